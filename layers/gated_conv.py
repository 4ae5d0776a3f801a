"""GatedConv: n-grams that skip what a gate finds unimportant, the encoder of RCNN.

B batch, T time, m input size, d units, n order, U distinct words.
"""

import keras
from keras import ops

from layers.time_loop import time_loop


@keras.saving.register_keras_serializable(package="pairzoo")
class GatedConv(keras.layers.Layer):
    """An adaptive, gated, non-consecutive convolution: a recurrence that averages all n-grams of a text.

    Use it where an LSTM would stand, for texts in which a few words matter: where the gate is near 1 a word
    leaves no trace, where it is near 0 the layer is a plain convolution of width n over the words kept.

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
        kernel_initializer, recurrent_initializer, bias_initializer: of `[W_l W_1 ... W_n W_o]`, of `[U_l U_o]`
            and of the biases.
        kernel_regularizer: of both kernels.

    Input shape:
        `[B, T, m]`; or places `[B, T]`, integers, with `words` `[U, m]`: position t of text b holds
        `words[places[b, t]]`, and each word is multiplied once, see `DistinctTokens`. `initial_state`
        `[B, n + 1, d]` holds c^1 ... c^n and h; zeros if None.

    Output shape:
        `[B, T, d]`, all h_t; with `return_state` also the final state, `[B, n + 1, d]`.

    Masking:
        A masked step copies the state, and its output is zero: padding on the left or the right, and words
        masked in between, change nothing. The mask is passed on. Gates and states are float32 under half
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
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.supports_masking = True

    def build(self, inputs_shape, words_shape=None, initial_state_shape=None):
        size = (words_shape or inputs_shape)[-1]
        if len(inputs_shape) != (3 if words_shape is None else 2) or size is None:
            raise ValueError(
                "The input must be [batch, time, size], or [batch, time] with words [number, size], of a known size. "
                f"Received: inputs.shape={tuple(inputs_shape)}, words.shape={words_shape and tuple(words_shape)}"
            )
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
        (states,), final = self._run(inputs, mask, words, initial_state, keep=[self.order])
        states = ops.cast(_masked(states, mask), self.compute_dtype)
        if not self.return_state:
            return states
        return states, ops.cast(ops.stack(final[: self.order + 1], axis=1), self.compute_dtype)

    def decay(self, inputs, mask=None, words=None, initial_state=None):
        """The gate l_t of every step, `[B, T, d]` or `[B, T, 1]`, of the arguments of `call`; 0 where masked."""
        # Outside of `__call__` nothing is cast to the layer's dtype.
        if words is None:
            inputs = ops.cast(inputs, self.variable_dtype)
        else:
            words = ops.cast(words, self.variable_dtype)
        (decay,), _ = self._run(inputs, mask, words, initial_state, keep=[self.order + 1])
        return _masked(decay, mask)

    def _run(self, inputs, mask, words, initial_state, keep):
        """The loop over the states c^1 ... c^n, h and the gate."""
        x = ops.matmul(inputs if words is None else words, self.kernel)
        # Half precision ends here: a gate near 1 would lose its distance from 1.
        dtype = "float64" if keras.backend.standardize_dtype(x.dtype) == "float64" else "float32"
        x = ops.cast(x, dtype)
        if words is not None:
            x = ops.take(x, inputs, axis=0)
        weights = [ops.cast(w, dtype) for w in (self.recurrent_kernel, self.gate_bias, self.bias)]
        if initial_state is None:
            zero = ops.zeros((ops.shape(x)[0], self.units), dtype)
            state = [zero] * (self.order + 1)
        else:
            initial_state = ops.cast(initial_state, dtype)
            state = [initial_state[:, i] for i in range(self.order + 1)]
        state = [*state, ops.zeros_like(state[0][:, : self._gate_size])]

        def step(state, at_t):
            return self._step(state, *weights, *at_t)

        inputs = [x] if mask is None else [x, ops.expand_dims(ops.cast(mask, "bool"), -1)]
        return time_loop(step, state, inputs, keep)

    def _step(self, state, recurrent_kernel, gate_bias, bias, x, real=None):
        *c, before, _ = state
        size, d = self._gate_size, self.units
        x_gate, *x_filters, x_output = ops.split(x, [size + i * d for i in range(self.order + 1)], axis=-1)
        recurrent = ops.matmul(before, recurrent_kernel) + gate_bias
        decay = ops.sigmoid(x_gate + recurrent[:, :size])
        if real is not None:
            decay = ops.where(real, decay, 1.0)  # all c stay as they are
        after = []
        for i, filtered in enumerate(x_filters):
            if i and self.filter_mode == "additive":
                filtered = c[i - 1] + filtered
            elif i:
                filtered = after[i - 1] * filtered
            after.append(decay * c[i] + (1 - decay) * filtered)
        h = ops.tanh(after[-1] + bias)
        if self.output_gate:
            h = ops.sigmoid(x_output + recurrent[:, size:]) * h
        return [*after, h if real is None else ops.where(real, h, before), decay]

    @property
    def _gate_size(self):
        return self.units if self.gate == "vector" else 1

    def compute_mask(self, inputs, previous_mask=None):
        return [previous_mask, None] if self.return_state else previous_mask

    def compute_output_shape(self, inputs_shape, words_shape=None, initial_state_shape=None):
        states = (*inputs_shape[:2], self.units)
        return (states, (inputs_shape[0], self.order + 1, self.units)) if self.return_state else states

    def get_config(self):
        return super().get_config() | {
            "units": self.units,
            "order": self.order,
            "gate": self.gate,
            "filter_mode": self.filter_mode,
            "output_gate": self.output_gate,
            "return_state": self.return_state,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(self.recurrent_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
        }


def _masked(x, mask):
    return x if mask is None else ops.where(ops.expand_dims(mask, -1), x, ops.zeros_like(x))
