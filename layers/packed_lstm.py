"""PackedLSTM: an LSTM that computes nothing at padding, and multiplies each distinct word once.

B batch, T time, m input size, d units, U distinct words; N real steps, see `layers.time_steps`.
"""

import keras
from keras import ops

from layers.shapes import vector_size
from layers.time_steps import time_steps


@keras.saving.register_keras_serializable(package="pairzoo")
class PackedLSTM(keras.layers.Layer):
    """The LSTM of Keras, with its weights and to the same outputs, over the real words of texts alone.

    Use it where `keras.layers.LSTM` reads batches of texts of unlike lengths, or words that come again and again. It
    always gives all h_t. For both directions take two, one with `go_backwards`: `keras.layers.Bidirectional` does not
    take it.

        i, f, g, o = x_t W + h_{t-1} U + b      sigmoid, sigmoid, tanh, sigmoid of four quarters
        c_t = f c_{t-1} + i g
        h_t = o tanh(c_t)

    Hochreiter and Schmidhuber 1997, "Long short-term memory"; the forget gate is that of Gers et al. 2000.

    Args:
        units: d.
        go_backwards: whether texts are read from their last word to their first; outputs stay where their words are.
        kernel_initializer, recurrent_initializer, bias_initializer: of W `[m, 4d]`, U `[d, 4d]` and b `[4d]`.
        unit_forget_bias: whether the forget gate's quarter of b begins at 1 (Jozefowicz et al. 2015).
        kernel_regularizer, recurrent_regularizer: of W and U.

    Input shape:
        `[B, T, m]`; or places `[B, T]`, integers, with `words` `[U, m]`: position t of text b holds
        `words[places[b, t]]`, and each word is multiplied once, see `DistinctTokens`.

    Output shape:
        `[B, T, d]`, all h_t.

    Masking:
        A masked step copies c and h, and its output is zero: other than in Keras, where it is the output of before.
        The mask is passed on. States are float32 under half precision.

    Raises:
        ValueError: if `units` is not a positive integer, or the input does not have one of the two shapes, the last
            axis of known size.

    Example:
        >>> layer = PackedLSTM(units=4)
        >>> layer(np.ones((2, 5, 3)), mask=np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)).shape
        TensorShape([2, 5, 4])
    """

    def __init__(
        self,
        units,
        go_backwards=False,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        unit_forget_bias=True,
        kernel_regularizer=None,
        recurrent_regularizer=None,
        **kwargs,
    ):
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"`units` must be a positive integer. Received: units={units!r}")
        super().__init__(**kwargs)
        self.units = units
        self.go_backwards = go_backwards
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.unit_forget_bias = unit_forget_bias
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.supports_masking = True
        self._folded = None

    def build(self, inputs_shape, words_shape=None):
        size = vector_size(inputs_shape, words_shape)
        gates = 4 * self.units
        self.kernel = self.add_weight(
            name="kernel", shape=(size, gates), initializer=self.kernel_initializer, regularizer=self.kernel_regularizer
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.units, gates),
            initializer=self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
        )
        self.bias = self.add_weight(name="bias", shape=(gates,), initializer=self._first_bias)

    def _first_bias(self, shape, dtype=None):
        bias = self.bias_initializer(shape, dtype=dtype)
        if not self.unit_forget_bias:
            return bias
        d = self.units
        return ops.concatenate([bias[:d], ops.ones((d,), dtype=dtype), bias[2 * d :]])

    def call(self, inputs, mask=None, words=None):
        steps = time_steps(ops.ones(ops.shape(inputs)[:2], "bool") if mask is None else mask)
        if self._folded is not None:
            x = ops.take(self._folded, steps.of(inputs), axis=0)
        elif words is None:
            x = self._of_words(steps.of(inputs))
        else:
            x = ops.take(self._of_words(words), steps.of(inputs), axis=0)
        # Half precision ends here: what is added up over many steps would lose its small terms.
        dtype = "float64" if keras.backend.standardize_dtype(x.dtype) == "float64" else "float32"
        states = _recurrence(steps, ops.cast(x, dtype), ops.cast(self.recurrent_kernel, dtype), self.go_backwards)
        return ops.cast(steps.texts(states), self.compute_dtype)

    def _of_words(self, x):
        return ops.matmul(x, self.kernel) + self.bias

    def fold(self, words, keep=lambda table: table):
        """Places are those in `words` `[U, m]` from now on, multiplied here once and for all; `keep` stores a table."""
        self._folded = keep(self._of_words(ops.cast(words, self.kernel.dtype)))

    def folded_size(self, num_words):
        """Numbers in the table of so many words."""
        return num_words * self.kernel.shape[-1]

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, inputs_shape, words_shape=None):
        return (*inputs_shape[:2], self.units)

    def get_config(self):
        return super().get_config() | {
            "units": self.units,
            "go_backwards": self.go_backwards,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(self.recurrent_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "unit_forget_bias": self.unit_forget_bias,
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "recurrent_regularizer": keras.regularizers.serialize(self.recurrent_regularizer),
        }


def _recurrence(steps, x, kernel, backwards):
    """All h_t `[N, d]` of `x W + b` `[N, 4d]` and U; its gradient by U is one product after the loop."""
    zeros = ops.zeros((steps.num_texts, kernel.shape[0]), x.dtype)

    # Defined here, and never passed on: TensorFlow unwraps a custom gradient given to a tf.function.
    @ops.custom_gradient
    def run(x, kernel):
        def step(state, at_t):
            c_before, h_before = state
            i, f, g, o = gates = _activated(at_t[0] + ops.matmul(h_before, kernel))
            c = f * c_before + i * g
            h = o * ops.tanh(c)
            return [c, h], [h, c_before, h_before, *gates]

        (h, c_before, h_before, *gates), _ = steps.loop(step, [zeros, zeros], [x], backwards)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream

            def step_back(state, at_t):
                (dc, dh), (dh_t, c_before, i, f, g, o) = state, at_t
                dh = dh + dh_t
                bounded = ops.tanh(f * c_before + i * g)
                dc = dc + dh * o * (1 - bounded * bounded)
                dz = [
                    dc * g * i * (1 - i),
                    dc * c_before * f * (1 - f),
                    dc * i * (1 - g * g),
                    dh * bounded * o * (1 - o),
                ]
                dz = ops.concatenate(dz, axis=-1)
                return [dc * f, ops.matmul(dz, ops.transpose(kernel))], [dz]

            (dz,), _ = steps.loop(step_back, [zeros, zeros], [upstream, c_before, *gates], not backwards)
            dz, before = (ops.reshape(y, (-1, y.shape[-1])) for y in (steps.whole(dz), steps.whole(h_before)))
            return ops.reshape(dz, ops.shape(x)), ops.matmul(ops.transpose(before), dz)

        return steps.whole(h), gradient

    return run(x, kernel)


def _activated(z):
    i, f, g, o = ops.split(z, 4, axis=-1)
    return [ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)]
