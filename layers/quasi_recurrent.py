"""QuasiRecurrent: gates from a convolution, a recurrence that only applies them.

B batch, T time, m input size, d units, k kernel size.
"""

import keras
from keras import ops

from layers.linear_recurrence import linear_recurrence


@keras.saving.register_keras_serializable(package="pairzoo")
class QuasiRecurrent(keras.layers.Layer):
    """A quasi-recurrent layer (QRNN): convolved gates with fo-pooling.

    Use it where an LSTM would stand: about half of its parameters and multiplications, and nothing but
    element-wise work is left in the loop over time. With `*` a convolution of width k over time:

        Z = tanh(X * W_z),  F = sigmoid(X * W_f),  O = sigmoid(X * W_o)
        c_t = f_t c_{t-1} + (1 - f_t) z_t,   c_0 = 0
        h_t = o_t c_t

    Bradbury et al. 2017, "Quasi-recurrent neural networks"; Eq. 1 of Tay et al. 2018, "Cross temporal
    recurrent networks for ranking question answer pairs".

    Args:
        units: d, the number of filters of each gate.
        kernel_size: k, the number of time steps a window spans.
        padding: `"causal"`, a window ends at its step and nothing is seen of what follows; or `"same"`, it is
            centred, an even one reaching one step further ahead.
        use_bias: adds a bias to each gate. The paper has none.
        kernel_initializer, bias_initializer, kernel_regularizer: of the one kernel `[k, m, 3d]`, gates in
            the order z, f, o, and of the one bias `[3d]`. The default depends on the inputs k m alone: Glorot's
            would count the three gates as outputs of one map, and make each smaller than if it stood alone.

    Input shape:
        `[B, T, m]`; or places `[B, T]`, integers, with `words` `[U, m]`: position t of text b holds
        `words[places[b, t]]`. Each word is then multiplied once, however often it stands in the batch; see
        `DistinctTokens`.

    Output shape:
        `[B, T, d]`, all h_t.

    Masking:
        A masked step copies c, and its output is zero; what stands there never enters a window. The mask is
        passed on. Gates and states are float32 under half precision.

    Raises:
        ValueError: if `units` or `kernel_size` is not a positive integer, `padding` is neither name, or the
            input does not have one of the two shapes, the last axis of known size.

    Example:
        >>> layer = QuasiRecurrent(units=4)
        >>> layer(np.ones((2, 5, 3)), mask=np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)).shape
        TensorShape([2, 5, 4])
    """

    def __init__(
        self,
        units,
        kernel_size=2,
        padding="causal",
        use_bias=False,
        kernel_initializer="lecun_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        **kwargs,
    ):
        check_gate_arguments(units, kernel_size, padding)
        super().__init__(**kwargs)
        self.units = units
        self.kernel_size = kernel_size
        self.padding = padding
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.supports_masking = True

    def build(self, inputs_shape, words_shape=None):
        size = (words_shape or inputs_shape)[-1]
        if len(inputs_shape) != (3 if words_shape is None else 2) or size is None:
            raise ValueError(
                "The input must be [batch, time, size], or [batch, time] with words [number, size], of a known size. "
                f"Received: inputs.shape={tuple(inputs_shape)}, words.shape={words_shape and tuple(words_shape)}"
            )
        self.kernel, self.bias = gate_weights(self, size)

    def call(self, inputs, mask=None, words=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        z, f, o = gates(inputs, mask, self.kernel, self.bias, self.padding, words)
        return ops.cast(fo_pool(z, f, o, mask), self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, inputs_shape, words_shape=None):
        return (*inputs_shape[:2], self.units)

    def get_config(self):
        return super().get_config() | gate_config(self)


# The equations, shared with CrossTemporalCell.


def gates(x, mask, kernel, bias, padding, words=None):
    """Eq. 1: Z, F and O, each `[B, T, d]`, from `x` `[B, T, m]`, or from places `x` `[B, T]` in `words` `[U, m]`."""
    k = kernel.shape[0]
    before = k - 1 if padding == "causal" else (k - 1) // 2
    around = (before, k - 1 - before)
    a = _convolved(x, mask, kernel, around) if words is None else _convolved_words(x, mask, kernel, around, words)
    if bias is not None:
        a = a + bias
    # Half precision ends here: a forget gate near 1 would lose its distance from 1.
    if keras.backend.standardize_dtype(a.dtype) != "float64":
        a = ops.cast(a, "float32")
    z, f, o = ops.split(a, 3, axis=-1)
    return ops.tanh(z), ops.sigmoid(f), ops.sigmoid(o)


# X * W for the three gates at once, `[B, T, 3d]`. Whatever stands at padding must not leak into a window.


def _convolved(x, mask, kernel, around):
    k, m, channels = kernel.shape
    batch, time, _ = ops.shape(x)
    x = ops.where(ops.expand_dims(mask, -1), x, ops.zeros_like(x))
    x = ops.pad(x, [[0, 0], around, [0, 0]])
    # One matrix product, which is the fastest form on a CPU.
    windows = ops.concatenate([x[:, i : i + time] for i in range(k)], axis=-1)
    a = ops.matmul(ops.reshape(windows, (batch * time, k * m)), ops.reshape(kernel, (k * m, channels)))
    return ops.reshape(a, (batch, time, channels))


def _convolved_words(places, mask, kernel, around, words):
    time = ops.shape(places)[1]
    words = ops.pad(words, [[1, 0], [0, 0]])  # row 0, zero, stands at padding
    places = ops.pad(ops.where(mask, places + 1, 0), [[0, 0], around])
    return sum(ops.take(ops.matmul(words, kernel[i]), places[:, i : i + time], axis=0) for i in range(kernel.shape[0]))


def fo_pool(z, f, o, mask):
    """c_t = f_t c_{t-1} + (1 - f_t) z_t and h_t = o_t c_t: all h, `[B, T, d]`, zero where masked."""
    mask = ops.expand_dims(mask, -1)
    c = linear_recurrence(forget=ops.where(mask, f, 1.0), update=z)
    return ops.where(mask, o * c, 0.0)


# Arguments and weights, shared with CrossTemporalCell.


def check_gate_arguments(units, kernel_size, padding):
    for name, value in (("units", units), ("kernel_size", kernel_size)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    if padding not in ("causal", "same"):
        raise ValueError(f"`padding` must be 'causal' or 'same'. Received: padding={padding!r}")


def gate_weights(layer, input_size):
    """The kernel `[k, m, 3d]` and the bias `[3d]` or None."""
    kernel = layer.add_weight(
        name="kernel",
        shape=(layer.kernel_size, input_size, 3 * layer.units),
        initializer=layer.kernel_initializer,
        regularizer=layer.kernel_regularizer,
    )
    if not layer.use_bias:
        return kernel, None
    return kernel, layer.add_weight(name="bias", shape=(3 * layer.units,), initializer=layer.bias_initializer)


def gate_config(layer):
    return {
        "units": layer.units,
        "kernel_size": layer.kernel_size,
        "padding": layer.padding,
        "use_bias": layer.use_bias,
        "kernel_initializer": keras.initializers.serialize(layer.kernel_initializer),
        "bias_initializer": keras.initializers.serialize(layer.bias_initializer),
        "kernel_regularizer": keras.regularizers.serialize(layer.kernel_regularizer),
    }
