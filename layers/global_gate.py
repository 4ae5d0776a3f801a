"""GlobalGate: lets of each word pass what fits the text as a whole.

B batch, T time, D model size.
"""

import keras
from keras import ops

from layers.masking import masked_mean


@keras.saving.register_keras_serializable(package="pairzoo")
class GlobalGate(keras.layers.Layer):
    """Multiplies each word by a gate that sees the mean of all words.

    Use it below an attention that sees a part of the text only, as `GroupSelfAttention`: the gate carries what
    the whole text is about into every word.

        x_mean = mean of the real x_t
        g_t = sigmoid((x_t * x_mean) W + b)
        y_t = x_t * g_t

    Xu et al. 2019, "Gated group self-attention for answer selection", Eq. 1 (products of vectors are
    element-wise).

    Args:
        kernel_initializer: of W `[D, D]`; the bias begins at zero.

    Input shape:
        `[B, T, D]`.

    Output shape:
        `[B, T, D]`.

    Masking:
        Masked words do not enter the mean, and their output is zero. The mask is passed on.

    Raises:
        ValueError: if the input is not `[B, T, D]` with a known D.

    Example:
        >>> GlobalGate()(np.ones((2, 3, 4), "float32")).shape
        TensorShape([2, 3, 4])
    """

    def __init__(self, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, inputs_shape):
        size = inputs_shape[-1]
        if len(inputs_shape) != 3 or size is None:
            raise ValueError(
                f"The input must be [batch, time, size], of a known size. Received: inputs.shape={tuple(inputs_shape)}"
            )
        self.kernel = self.add_weight(name="kernel", shape=(size, size), initializer=self.kernel_initializer)
        self.bias = self.add_weight(name="bias", shape=(size,), initializer="zeros")

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        mean = ops.expand_dims(masked_mean(inputs, mask), 1)
        gate = ops.sigmoid(ops.matmul(inputs * mean, self.kernel) + self.bias)
        return ops.where(ops.expand_dims(mask, -1), inputs * gate, ops.zeros_like(inputs))

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
