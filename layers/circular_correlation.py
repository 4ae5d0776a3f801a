"""CircularCorrelation: the pairs of numbers of two vectors, folded into one vector.

... any leading axes, d size of the vectors.
"""

import keras
import numpy as np
from keras import ops

from layers.shapes import broadcast_axes


@keras.saving.register_keras_serializable(package="pairzoo")
class CircularCorrelation(keras.layers.Layer):
    """Holographic composition of two vectors: all products of their numbers, summed along d diagonals.

    Use it where the interaction of two vectors is wanted at the price of one vector:

        c_k = sum_i a_i b_((k + i) mod d)

    It is computed as a product of spectra, conj(F a) * F b. The transform is a product with a constant matrix:
    it runs on every backend and precision, and at these sizes costs what a dense layer costs.

    Tay et al. 2017, "Learning to rank question answer pairs with holographic dual LSTM architecture", Eq. 7.

    Call arguments:
        first, second: a and b, `[..., d]`; axes of size one are broadcast.

    Output shape:
        `[..., d]`.

    Example:
        >>> a, b = np.array([[1.0, 0.0, 2.0]], "float32"), np.array([[5.0, 6.0, 7.0]], "float32")
        >>> np.array(CircularCorrelation()(a, b)).round(3).tolist()
        [[19.0, 16.0, 19.0]]
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def call(self, first, second):
        size = first.shape[-1]
        dtype = "float64" if self.compute_dtype == "float64" else "float32"
        # Half of a real vector's spectrum holds all of it; the other half is counted by doubling.
        frequency = np.arange(size // 2 + 1)
        angle = 2 * np.pi * np.outer(np.arange(size), frequency) / size
        cosine, sine = ops.cast(np.cos(angle), dtype), ops.cast(np.sin(angle), dtype)
        counted = np.where((frequency == 0) | (2 * frequency == size), 1.0, 2.0) / size
        a, b = (ops.cast(x, dtype) for x in (first, second))
        a_real, a_sine = ops.matmul(a, cosine), ops.matmul(a, sine)
        b_real, b_sine = ops.matmul(b, cosine), ops.matmul(b, sine)
        real = (a_real * b_real + a_sine * b_sine) * ops.cast(counted, dtype)
        imaginary = (a_real * b_sine - a_sine * b_real) * ops.cast(counted, dtype)
        outputs = ops.matmul(real, ops.transpose(cosine)) + ops.matmul(imaginary, ops.transpose(sine))
        return ops.cast(outputs, self.compute_dtype)

    def compute_output_shape(self, first_shape, second_shape):
        return broadcast_axes(first_shape, second_shape)
