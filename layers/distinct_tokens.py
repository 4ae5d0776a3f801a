"""DistinctTokens: what depends on a token alone is computed once, however often it stands in a batch.

U distinct tokens of the batch, ``...`` any leading axes, T tokens of a text, G n-grams of a token.
"""

import functools
import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class DistinctTokens(keras.layers.Layer):
    """The distinct ids of some texts, and where in that list each position's id stands.

    Use it below an embedding and the linear maps of single tokens: a batch of 256 texts of 50 positions holds
    10 to 20 times fewer distinct tokens than positions, and so many times less is multiplied. What follows
    reads `words[places]`; `QuasiRecurrent` and `CrossTemporalCell` take the two as they are, so that their
    convolutions too meet each word once. Exact, unless something random stands between that should differ
    from position to position.

    Under JAX, whose shapes are fixed before the ids are known, every position keeps its own row.

    Args:
        rows: whether a token is a row of ids, the last axis, as the character n-grams of `CharNgramEmbedding`.

    Input shape:
        A list of int32 ids `[..., T]`, or `[..., T, G]`, whose G may differ: short rows are filled up with 0.

    Output shape:
        `words` `[U]` or `[U, G]`, int32, and a list of `places` `[..., T]`, int32: `words[places]` are the ids.

    Example:
        >>> words, (places,) = DistinctTokens()([np.array([[7, 3, 7], [3, 0, 0]])])
        >>> np.array(words).tolist(), np.array(places).tolist()
        ([7, 3, 0], [[0, 1, 0], [1, 2, 2]])
    """

    def __init__(self, rows=False, **kwargs):
        super().__init__(**kwargs)
        self.rows = rows
        self._folded = False

    def fold(self):
        """From now on places are the ids themselves, for layers that have folded all words into tables."""
        self._folded = True

    def call(self, ids):
        ids = [ops.cast(x, "int32") for x in ids]
        if self._folded:
            return ops.concatenate([_flat(x) for x in ids]), ids
        texts = [ops.shape(x)[:-1] if self.rows else ops.shape(x) for x in ids]
        words, places = _unique(ops.concatenate(_as_wide_rows(ids) if self.rows else [_flat(x) for x in ids]))
        split, start = [], 0
        for shape in texts:
            end = start + math.prod(shape)
            split.append(ops.reshape(places[start:end], shape))
            start = end
        return words, split

    def compute_output_spec(self, ids):
        places = [keras.KerasTensor(x.shape[:-1] if self.rows else x.shape, "int32") for x in ids]
        return keras.KerasTensor((None, None) if self.rows else (None,), "int32"), places

    def get_config(self):
        return {**super().get_config(), "rows": self.rows}


def _flat(ids):
    return ops.reshape(ids, (-1,))


def _as_wide_rows(ids):
    """Each `[..., T, G]` as `[number, widest G]`."""
    widths = [ops.shape(x)[-1] for x in ids]
    widest = functools.reduce(ops.maximum, widths)
    wide = []
    for x, width in zip(ids, widths, strict=True):
        rows = ops.reshape(x, (math.prod(ops.shape(x)[:-1]), width))
        filler = ops.zeros((ops.shape(rows)[0], widest - width), "int32")
        wide.append(ops.concatenate([rows, filler], axis=1))
    return wide


def _unique(ids):
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.raw_ops.UniqueV2(x=ids, axis=[0]) if len(ids.shape) == 2 else tf.unique(ids)
    return ids, ops.arange(ops.shape(ids)[0], dtype="int32")
