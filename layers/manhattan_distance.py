"""ManhattanDistance: how near two texts are, by one number of their vectors (MaLSTM).

B batch, L list of candidates, d size of the vectors.
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class ManhattanDistance(keras.layers.Layer):
    """The distance of two vectors, or the similarity in (0, 1] that falls with it.

        distance = |q - a|_p = (sum_j |q_j - a_j|^p)^(1/p),    similarity = exp(-distance)

    Use it on top of one encoder that both texts share: the encoder must then place texts so that this number
    alone tells how alike they are. Mueller and Thyagarajan 2016 (MaLSTM) take p = 1: p = 2 can stall where unlike
    texts are near (Chopra et al. 2005), and they found the cosine slightly worse. `p="cosine"` is the distance
    1 - cos(q, a) and the similarity (1 + cos(q, a)) / 2.

    It computes in float32 under a half-precision policy, where exp(-distance) would soon be 0 with gradient 0,
    unless `dtype` is given. The gradient is 0, and no NaN, where the vectors are equal; a vector of zeros has
    the cosine 0 with every other.

    Args:
        p: order of the norm, a number of at least 1, or "cosine".
        similarity: false for the distance itself.

    Input shape:
        query `[B, d]`, or `[B, L, d]`; candidate `[B, L, d]`. A query `[B, d]` is compared with each of its list.

    Output shape:
        `[B, L]`.

    Raises:
        ValueError: if `p` is neither of these.

    Example:
        >>> ManhattanDistance(similarity=False)(np.array([[1.0, 2.0]]), np.array([[[1.0, 2.0], [0.0, 4.0]]])).numpy()
        array([[0., 3.]], dtype=float32)
    """

    def __init__(self, p=1, similarity=True, **kwargs):
        is_order = isinstance(p, int | float) and not isinstance(p, bool) and 1 <= p < float("inf")
        if not is_order and p != "cosine":
            raise ValueError(f'`p` must be a number of at least 1, or "cosine". Received: p={p!r}')
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.p = p
        self.similarity = similarity

    def call(self, query, candidate):
        if len(query.shape) < len(candidate.shape):
            query = ops.expand_dims(query, 1)
        if self.p == "cosine":
            cosine = ops.sum(_direction(query) * _direction(candidate), axis=-1)
            return (1 + cosine) / 2 if self.similarity else 1 - cosine
        difference = ops.abs(query - candidate)
        if self.p == 1:
            distance = ops.sum(difference, axis=-1)
        else:
            # In units of the largest difference, so that no power is too small or too large for float32. Where the
            # vectors are equal, where the root has no slope, another number takes its place before it is drawn.
            unit = ops.stop_gradient(ops.max(difference, axis=-1, keepdims=True, initial=0))
            apart = unit > 0
            unit = ops.where(apart, unit, 1)
            total = ops.sum((difference / unit) ** self.p, axis=-1)
            apart = apart[..., 0]
            distance = ops.where(apart, unit[..., 0] * ops.where(apart, total, 1) ** (1 / self.p), 0)
        return ops.exp(-distance) if self.similarity else distance

    def compute_output_shape(self, query_shape, candidate_shape):
        return candidate_shape[:-1]

    def get_config(self):
        return super().get_config() | {"p": self.p, "similarity": self.similarity}


def _direction(x):
    """The vector at length 1; a vector of zeros stays one."""
    # In units of the largest number, whose square no vector is too short or too long for.
    unit = ops.stop_gradient(ops.max(ops.abs(x), axis=-1, keepdims=True, initial=0))
    x = x / ops.where(unit > 0, unit, 1)
    return x * ops.rsqrt(ops.maximum(ops.sum(x * x, axis=-1, keepdims=True), 1e-12))
