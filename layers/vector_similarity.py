"""VectorSimilarity: how alike two vectors are, as one number.

... any leading axes, d size of the vectors.
"""

import keras
from keras import ops

from layers.shapes import broadcast_axes


@keras.saving.register_keras_serializable(package="pairzoo")
class VectorSimilarity(keras.layers.Layer):
    """Cosine or GESD of each pair of vectors.

    Use it on top of encoders that read both texts apart:

        cosine(a, b) = a b / (|a| |b|), 0 if one of them is zero
        gesd(a, b) = 1 / (1 + |a - b|) * 1 / (1 + exp(-gamma (a b + c)))

    GESD (geometric mean of Euclidean and sigmoid dot product): Feng et al. 2015, "Applying deep learning to
    answer selection", Table 2, with gamma = c = 1.

    Args:
        mode: `"cosine"` or `"gesd"`.
        gamma, c: of GESD.

    Call arguments:
        first, second: `[..., d]`; axes of size one are broadcast.

    Output shape:
        `[...]`.

    Raises:
        ValueError: if `mode` is neither name.

    Example:
        >>> a, b = np.array([[3.0, 4.0], [0.0, 0.0]], "float32"), np.array([[4.0, 3.0], [1.0, 0.0]], "float32")
        >>> np.array(VectorSimilarity()(a, b)).round(2).tolist()
        [0.9599999785423279, 0.0]
    """

    def __init__(self, mode="cosine", gamma=1.0, c=1.0, **kwargs):
        if mode not in ("cosine", "gesd"):
            raise ValueError(f"`mode` must be 'cosine' or 'gesd'. Received: mode={mode!r}")
        super().__init__(**kwargs)
        self.mode = mode
        self.gamma = gamma
        self.c = c

    def call(self, first, second):
        if self.compute_dtype != "float64":
            first, second = ops.cast(first, "float32"), ops.cast(second, "float32")
        product = ops.sum(first * second, axis=-1)
        if self.mode == "cosine":
            # The root of a product of squares could overflow or vanish; that of each does not.
            similarity = product / (_length(first) * _length(second))
        else:
            distance = _length(first - second)
            similarity = ops.sigmoid(self.gamma * (product + self.c)) / (1.0 + distance)
        return ops.cast(similarity, self.compute_dtype)

    def compute_output_shape(self, first_shape, second_shape):
        return broadcast_axes(first_shape[:-1], second_shape[:-1])

    def get_config(self):
        return {**super().get_config(), "mode": self.mode, "gamma": self.gamma, "c": self.c}


def _length(x):
    # The root has no slope at zero, so it is taken a little above.
    return ops.sqrt(ops.sum(ops.square(x), axis=-1) + 1e-12)
