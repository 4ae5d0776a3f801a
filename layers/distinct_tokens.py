"""DistinctTokens: what depends on a token alone is computed once, however often it stands in a batch.

U distinct tokens of the batch, ``...`` any leading axes, T tokens of a text.
"""

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

    Input shape:
        A list of int32 ids `[..., T]`.

    Output shape:
        `words` `[U]`, int32, and a list of `places`, int32, each of its input's shape: `words[places]` are the ids.

    Example:
        >>> words, (places,) = DistinctTokens()([np.array([[7, 3, 7], [3, 0, 0]])])
        >>> np.array(words).tolist(), np.array(places).tolist()
        ([7, 3, 0], [[0, 1, 0], [1, 2, 2]])
    """

    def call(self, ids):
        flat = ops.concatenate([ops.reshape(ops.cast(x, "int32"), (-1,)) for x in ids])
        words, places = _unique(flat)
        split, start = [], 0
        for x in ids:
            end = start + ops.size(x)
            split.append(ops.reshape(places[start:end], ops.shape(x)))
            start = end
        return words, split

    def compute_output_spec(self, ids):
        return keras.KerasTensor((None,), "int32"), [keras.KerasTensor(x.shape, "int32") for x in ids]


def _unique(ids):
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.unique(ids)
    return ids, ops.arange(ops.size(ids), dtype="int32")
