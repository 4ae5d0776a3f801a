"""QuasiRecurrent: gates from a convolution, then fo-pooling.

B batch, T time, m input size, d units, k kernel size.
"""

import keras
from keras import ops

from layers.linear_recurrence import linear_recurrence


@keras.saving.register_keras_serializable(package="pairzoo")
class QuasiRecurrent(keras.layers.Layer):
    """first form"""

    def __init__(
        self,
        units,
        kernel_size=2,
        padding="causal",
        use_bias=False,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        **kwargs,
    ):
        check_arguments(units, kernel_size, padding)
        super().__init__(**kwargs)
        self.units = units
        self.kernel_size = kernel_size
        self.padding = padding
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.supports_masking = True

    def build(self, inputs_shape):
        add_gate_weights(self, inputs_shape[-1])

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        z, f, o = gates(inputs, mask, self.kernel, self.bias, self.padding)
        return ops.cast(fo_pool(z, f, o, mask), self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.units)

    def get_config(self):
        return super().get_config() | gate_config(self)


def gates(x, mask, kernel, bias, padding):
    """Eq. 1: Z = tanh(X * W_z), F = sigmoid(X * W_f), O = sigmoid(X * W_o), each [B, T, d]."""
    k, m, channels = kernel.shape
    time = ops.shape(x)[1]
    # Padding must not leak into a window: its vectors may be anything.
    x = ops.where(ops.expand_dims(mask, -1), x, ops.zeros_like(x))
    before = k - 1 if padding == "causal" else (k - 1) // 2
    padded = ops.pad(x, [[0, 0], [before, k - 1 - before], [0, 0]])
    windows = ops.concatenate([padded[:, i : i + time] for i in range(k)], axis=-1)
    a = ops.matmul(ops.reshape(windows, (-1, k * m)), ops.reshape(kernel, (k * m, channels)))
    if bias is not None:
        a = a + bias
    a = ops.reshape(a, (-1, time, channels))
    # Half precision ends here: a forget gate near 1 loses its distance from 1.
    z, f, o = ops.split(ops.cast(a, "float64" if a.dtype == "float64" else "float32"), 3, axis=-1)
    return ops.tanh(z), ops.sigmoid(f), ops.sigmoid(o)


def fo_pool(z, f, o, mask):
    """c_t = f_t c_{t-1} + (1 - f_t) z_t, h_t = o_t c_t; masked steps copy c and give zero."""
    mask = ops.expand_dims(mask, -1)
    c = linear_recurrence(ops.where(mask, f, 1.0), z)
    return ops.where(mask, o * c, 0.0)


def check_arguments(units, kernel_size, padding):
    """Raises ValueError unless the arguments that both layers share are in range."""
    for name, value in (("units", units), ("kernel_size", kernel_size)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    if padding not in ("causal", "same"):
        raise ValueError(f"`padding` must be 'causal' or 'same'. Received: padding={padding!r}")


def add_gate_weights(layer, input_size):
    """first form"""
    layer.kernel = layer.add_weight(
        name="kernel",
        shape=(layer.kernel_size, input_size, 3 * layer.units),
        initializer=layer.kernel_initializer,
        regularizer=layer.kernel_regularizer,
    )
    layer.bias = None
    if layer.use_bias:
        layer.bias = layer.add_weight(
            name="bias", shape=(3 * layer.units,), initializer=layer.bias_initializer
        )


def gate_config(layer):
    """first form"""
    return {
        "units": layer.units,
        "kernel_size": layer.kernel_size,
        "padding": layer.padding,
        "use_bias": layer.use_bias,
        "kernel_initializer": keras.initializers.serialize(layer.kernel_initializer),
        "bias_initializer": keras.initializers.serialize(layer.bias_initializer),
        "kernel_regularizer": keras.regularizers.serialize(layer.kernel_regularizer),
    }
