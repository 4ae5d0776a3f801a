"""SinusoidalPositions: tells attention where a word stands.

B batch, T time, D model size.
"""

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class SinusoidalPositions(keras.layers.Layer):
    """Adds to each word sines and cosines of its position, of wave lengths from 2 pi to 10000 * 2 pi.

    Use it below self-attention, which does not see order. At position t = 0, 1, ... and dimension j:

        x_t,j + sin(t / 10000^(e / D)) for even j, cos(...) for odd j

    with e = 2 floor(j / 2), so that a sine and a cosine share a wave length (Vaswani et al. 2017, section 3.5);
    or with e = 2 j, as Xu et al. 2019 print it in section 2.2 ("literal").

    Args:
        form: `"paired"` or `"literal"`.

    Input shape:
        `[B, T, D]`.

    Output shape:
        `[B, T, D]`.

    Masking:
        The output at masked positions is zero; they count as positions. The mask is passed on.

    Raises:
        ValueError: if `form` is neither name.

    Example:
        >>> np.array(SinusoidalPositions()(np.zeros((1, 2, 2), "float32"))).round(2).tolist()
        [[[0.0, 1.0], [0.8399999737739563, 0.5400000214576721]]]
    """

    def __init__(self, form="paired", **kwargs):
        if form not in ("paired", "literal"):
            raise ValueError(f"`form` must be 'paired' or 'literal'. Received: form={form!r}")
        super().__init__(**kwargs)
        self.form = form
        self.supports_masking = True

    def call(self, inputs, mask=None):
        dimension = np.arange(inputs.shape[-1])
        exponent = dimension // 2 * 2 if self.form == "paired" else 2 * dimension
        rate = 10000.0 ** -(exponent / inputs.shape[-1])
        # A cosine is a sine, a quarter of a turn ahead.
        phase = np.where(dimension % 2, np.pi / 2, 0)
        dtype = "float64" if self.compute_dtype == "float64" else "float32"
        position = ops.cast(ops.arange(ops.shape(inputs)[1]), dtype)
        waves = ops.sin(position[:, None] * ops.cast(rate, dtype) + ops.cast(phase, dtype))
        outputs = inputs + ops.cast(waves, inputs.dtype)
        if mask is None:
            return outputs
        return ops.where(ops.expand_dims(mask, -1), outputs, ops.zeros_like(outputs))

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def get_config(self):
        return {**super().get_config(), "form": self.form}
