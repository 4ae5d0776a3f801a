"""How padding is ignored: the one place that knows.

A mask is boolean, True at real tokens, shaped like the leading axes of what it masks: `[B, T]` beside
`[B, T, d]`, `[B, L, T]` beside `[B, L, T, d]`. Sums run in float32 under half precision (float64 stays), and
the result has the dtype of the input. A row that is padding throughout gives zeros everywhere, never NaN.
"""

import keras
from keras import ops

# Close to the lowest float32, yet finite, so that a fully masked row stays finite too.
_VERY_NEGATIVE = -3e38


def token_mask(ids):
    """True where `ids` holds a real token; id 0 is padding."""
    return ops.not_equal(ids, 0)


def masked_softmax(logits, mask, axis=-1):
    """Softmax over the real entries of `axis`: weights that sum to 1, or zeros where none is real.

    `mask` is broadcast to `logits` (it may have axes of size 1, and may lack trailing axes).
    """
    mask = _like(mask, logits)
    weights = ops.softmax(ops.where(mask, _widened(logits), _VERY_NEGATIVE), axis=axis)
    return ops.cast(ops.where(mask, weights, 0.0), logits.dtype)


def masked_sum(x, mask, axis=1):
    """Sum over the real positions of `axis`, which is dropped: `[B, T, d] -> [B, d]`."""
    return ops.cast(ops.sum(ops.where(_like(mask, x), _widened(x), 0.0), axis=axis), x.dtype)


def masked_mean(x, mask, axis=1):
    """Mean over the real positions of `axis`, which is dropped: `[B, T, d] -> [B, d]`."""
    mask = _like(mask, x)
    total = ops.sum(ops.where(mask, _widened(x), 0.0), axis=axis)
    count = ops.sum(ops.cast(mask, total.dtype), axis=axis)
    return ops.cast(total / ops.maximum(count, 1.0), x.dtype)


def masked_max(x, mask, axis=1):
    """Largest value over the real positions of `axis`, which is dropped: `[B, T, d] -> [B, d]`."""
    mask = _like(mask, x)
    largest = ops.max(ops.where(mask, _widened(x), _VERY_NEGATIVE), axis=axis, initial=_VERY_NEGATIVE)
    return ops.cast(ops.where(ops.any(mask, axis=axis), largest, 0.0), x.dtype)


def last_state(x, mask):
    """The state at the last real position of each sequence: `[..., T, d], [..., T] -> [..., d]`.

    With right padding that is index `len - 1`; with left padding it is the last index.
    """
    position = ops.cumsum(ops.ones_like(mask, dtype="int32"), axis=-1)
    last = ops.max(ops.where(mask, position, 0), axis=-1, keepdims=True, initial=0)
    # A sum over one entry, not a gather: it is defined for length 0 and for rows without a real token.
    is_last = _like(ops.logical_and(mask, ops.equal(position, last)), x)
    return ops.sum(ops.where(is_last, x, ops.zeros_like(x)), axis=-2)


def _like(mask, x):
    """`mask` as boolean with trailing axes of size 1, as many as `x` has more."""
    mask = ops.cast(mask, "bool")
    for _ in range(len(x.shape) - len(mask.shape)):
        mask = ops.expand_dims(mask, -1)
    return mask


def _widened(x):
    return ops.cast(x, "float64" if keras.backend.standardize_dtype(x.dtype) == "float64" else "float32")
