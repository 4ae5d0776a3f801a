"""GatedConv: n-grams that skip what a gate finds unimportant, the encoder of RCNN.

B batch, T time, m input size, d units, n order, U distinct words.
"""

import keras
from keras import ops

from layers.gated_recurrence import gated_recurrence
from layers.shapes import vector_size
from layers.time_steps import time_steps


@keras.saving.register_keras_serializable(package="pairzoo")
class GatedConv(keras.layers.Layer):
    """An adaptive, gated, non-consecutive convolution: a recurrence that averages all n-grams of a text.

    Use it where an LSTM would stand, for texts in which a few words matter: where the gate is near 1 a word
    leaves no trace, where it is near 0 the layer is a plain convolution of width n over the words kept. It reads a
    text forwards; `keras.layers.Bidirectional` does not take it.

        l_t    = sigmoid(x_t W_l + h_{t-1} U_l + b_l)
        c^1_t  = l_t c^1_{t-1} + (1 - l_t) (x_t W_1)
        c^i_t  = l_t c^i_{t-1} + (1 - l_t) (c^{i-1}_{t-1} + x_t W_i),    i = 2 ... n
        h_t    = tanh(c^n_t + b)

    Lei et al. 2016, "Semi-supervised question retrieval with gated convolutions", section 4.1; the other filter
    mode and the output gate are those of its released code.

    Args:
        units: d.
        order: n, at least 1.
        gate: `"vector"`, one gate per unit, or `"scalar"`, one per step (Figure 4 of the paper).
        filter_mode: how an n-gram grows by a word: `"additive"`, as above, or `"multiplicative"`,
            `c^{i-1}_t * (x_t W_i)`, of the same step.
        output_gate: whether `h_t = o_t tanh(c^n_t + b)` with `o_t = sigmoid(x_t W_o + h_{t-1} U_o + b_o)`.
        return_state: whether the final state is an output too.
        return_sequences: whether all h_t are an output, and not the last alone.
        kernel_initializer, recurrent_initializer, bias_initializer: of `[W_l W_1 ... W_n W_o]`, of `[U_l U_o]`
            and of the biases.
        kernel_regularizer: of both kernels.

    Input shape:
        `[B, T, m]`; or places `[B, T]`, integers, with `words` `[U, m]`: position t of text b holds
        `words[places[b, t]]`, and each word is multiplied once, see `DistinctTokens`. `initial_state`
        `[B, n + 1, d]` holds c^1 ... c^n and h; zeros if None.

    Output shape:
        `[B, T, d]`, all h_t, or `[B, d]`, the last one; with `return_state` also the final state, `[B, n + 1, d]`.

    Masking:
        A masked step copies the state, and its output is zero: padding on the left or the right, and words
        masked in between, change nothing. The mask is passed on with all h_t. Gates and states are float32 under half
        precision.

    Raises:
        ValueError: if `units` or `order` is not a positive integer, `gate` or `filter_mode` is none of its
            names, or the input does not have one of the two shapes, the last axis of known size.

    Example:
        >>> layer = GatedConv(units=4, return_state=True)
        >>> states, final = layer(np.ones((2, 5, 3)))
        >>> states.shape, final.shape
        (TensorShape([2, 5, 4]), TensorShape([2, 3, 4]))
        >>> bool(np.all(final[:, -1] == states[:, -1]))
        True
    """

    def __init__(
        self,
        units,
        order=2,
        gate="vector",
        filter_mode="additive",
        output_gate=False,
        return_state=False,
        return_sequences=True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        **kwargs,
    ):
        for name, value in (("units", units), ("order", order)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
        if gate not in ("vector", "scalar"):
            raise ValueError(f"`gate` must be 'vector' or 'scalar'. Received: gate={gate!r}")
        if filter_mode not in ("additive", "multiplicative"):
            raise ValueError(
                f"`filter_mode` must be 'additive' or 'multiplicative'. Received: filter_mode={filter_mode!r}"
            )
        super().__init__(**kwargs)
        self.units = units
        self.order = order
        self.gate = gate
        self.filter_mode = filter_mode
        self.output_gate = output_gate
        self.return_state = return_state
        self.return_sequences = return_sequences
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.supports_masking = True
        self._folded = None

    def build(self, inputs_shape, words_shape=None, initial_state_shape=None):
        size = vector_size(inputs_shape, words_shape)
        gates = self._gate_size + self.units * self.output_gate

        def weight(name, shape, initializer, regularizer=None):
            return self.add_weight(name=name, shape=shape, initializer=initializer, regularizer=regularizer)

        kernel_size = gates + self.order * self.units
        self.kernel = weight("kernel", (size, kernel_size), self.kernel_initializer, self.kernel_regularizer)
        self.recurrent_kernel = weight(
            "recurrent_kernel", (self.units, gates), self.recurrent_initializer, self.kernel_regularizer
        )
        self.gate_bias = weight("gate_bias", (gates,), self.bias_initializer)
        self.bias = weight("bias", (self.units,), self.bias_initializer)

    def call(self, inputs, mask=None, words=None, initial_state=None):
        states, final, _ = self._run(inputs, mask, words, initial_state, self.return_sequences)
        outputs = ops.cast(states if self.return_sequences else final[-1], self.compute_dtype)
        return (outputs, ops.cast(ops.stack(final, axis=1), self.compute_dtype)) if self.return_state else outputs

    def decay(self, inputs, mask=None, words=None, initial_state=None):
        """The gate l_t of every step, `[B, T, d]` or `[B, T, 1]`, of the arguments of `call`; 0 where masked."""
        # Outside of `__call__` nothing is cast to the layer's dtype.
        if words is None:
            inputs = ops.cast(inputs, self.variable_dtype)
        else:
            words = ops.cast(words, self.variable_dtype)
        return self._run(inputs, mask, words, initial_state, with_states=False, with_gates=True)[2]

    def _run(self, inputs, mask, words, initial_state, with_states, with_gates=False):
        """All h_t if they are wanted, the final states, and all l_t if they are."""
        steps = time_steps(ops.ones(ops.shape(inputs)[:2], "bool") if mask is None else mask)
        if self._folded:
            x = [ops.take(part, steps.of(inputs), axis=0) for part in self._folded]
        elif words is None:
            x = self._parts(steps.of(inputs))
        else:
            x = [ops.take(part, steps.of(inputs), axis=0) for part in self._parts(words)]
        # Half precision ends here: a gate near 1 would lose its distance from 1.
        dtype = "float64" if keras.backend.standardize_dtype(x[0].dtype) == "float64" else "float32"
        x = [ops.cast(part, dtype) for part in x]
        weights = [ops.cast(w, dtype) for w in (self.recurrent_kernel, self.gate_bias, self.bias)]
        if initial_state is None:
            initial = [ops.zeros((steps.num_texts, self.units), dtype)] * (self.order + 1)
        else:
            initial = ops.unstack(ops.cast(initial_state, dtype), self.order + 1, axis=1)
        multiplicative = self.filter_mode == "multiplicative"
        states, final, decay = gated_recurrence(steps, x, *weights, initial, multiplicative, with_gates, with_states)
        states = steps.texts(states) if with_states else None
        return states, final, steps.texts(decay) if with_gates else None

    def _parts(self, x):
        """`x W_l`, `x W_1` ... `x W_n` and `x W_o`, cut while a word that is met often is still one row."""
        ends = [self._gate_size + i * self.units for i in range(self.order + self.output_gate)]
        return ops.split(ops.matmul(x, self.kernel), ends, axis=-1)

    def fold(self, words, keep=lambda table: table):
        """Places are those in `words` `[U, m]` from now on, multiplied here once and for all; `keep` stores a table."""
        self._folded = tuple(keep(part) for part in self._parts(ops.cast(words, self.kernel.dtype)))

    def folded_size(self, num_words):
        """Numbers in the tables of so many words."""
        return num_words * self.kernel.shape[-1]

    @property
    def _gate_size(self):
        return self.units if self.gate == "vector" else 1

    def compute_mask(self, inputs, previous_mask=None):
        mask = previous_mask if self.return_sequences else None
        return [mask, None] if self.return_state else mask

    def compute_output_shape(self, inputs_shape, words_shape=None, initial_state_shape=None):
        outputs = (*inputs_shape[: 1 + self.return_sequences], self.units)
        return (outputs, (inputs_shape[0], self.order + 1, self.units)) if self.return_state else outputs

    def get_config(self):
        return super().get_config() | {
            "units": self.units,
            "order": self.order,
            "gate": self.gate,
            "filter_mode": self.filter_mode,
            "output_gate": self.output_gate,
            "return_state": self.return_state,
            "return_sequences": self.return_sequences,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(self.recurrent_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
        }
