"""OverlapFeatures: four numbers that say how many words two texts share.

B batch, L list of candidates, Tq and Ta time, V vocabulary size.
"""

import keras
import numpy as np
from keras import ops

from layers.masking import token_mask


@keras.saving.register_keras_serializable(package="pairzoo")
class OverlapFeatures(keras.layers.Layer):
    """The word-overlap features of answer selection, from token ids.

    With q and a the sets of distinct ids of the two texts (padding, id 0, left out):

        |q & a| / (|q| + |a|)    and    (sum of idf(w) over w in q & a) / (|q| + |a|)

    or, with `coverage`, in place of the first how much of the query the candidate holds:

        (sum of idf(w) over w in q & a) / (sum of idf(w) over w in q)

    first with all words, then with stop words taken out of both sets; each of the four as
    `(x - mean) / deviation`. Where no word is left the ratio is 0 before scaling. Useful beside an encoder whose
    word vectors are fixed, for it knows no rare names.

    Severyn and Moschitti 2015, as CTRN (Tay et al. 2018) appends them on TrecQA. Two faults of the released
    script are not copied: its stop list is empty, and its weight is df / ln(N / df) where an idf was meant.

    The statistics are weights that are not trained, saved and exported like any other: ones for idf, no stop
    word, mean 0 and deviation 1, until `set_statistics(idf, is_stop, mean=None, deviation=None)`, with one number
    per id of the vocabulary, and one per feature. A deviation of 0 leaves its feature unscaled.

    Args:
        vocabulary_size: V; ids are in `[0, V)`.
        coverage: takes the share of the query's idf instead of the share of words.

    Input shape:
        ids, integers: query `[B, Tq]`, candidate `[B, L, Ta]`.

    Output shape:
        `[B, L, 4]`, float32 whatever the policy, unless `dtype` is given.

    Raises:
        ValueError: if `vocabulary_size` is not a positive integer, or a statistic has the wrong shape.

    Example:
        >>> overlap = OverlapFeatures(vocabulary_size=10)
        >>> overlap(np.array([[1, 2, 2]]), np.array([[[2, 3, 0]]])).numpy()  # {1, 2} and {2, 3}
        array([[[0.25, 0.25, 0.25, 0.25]]], dtype=float32)
    """

    def __init__(self, vocabulary_size, coverage=False, **kwargs):
        if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
            raise ValueError(
                f"`vocabulary_size` must be a positive integer. Received: vocabulary_size={vocabulary_size!r}"
            )
        # Counts are exact and cheap: no policy makes them half precision.
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.coverage = coverage

    def build(self, query_shape, candidate_shape):
        def statistic(name, size, initial):
            return self.add_weight(
                name=name,
                shape=(size,),
                initializer=initial,
                trainable=False,
                dtype="float32",
                autocast=False,
            )

        self.idf = statistic("idf", self.vocabulary_size, "ones")
        self.is_stop = statistic("is_stop", self.vocabulary_size, "zeros")
        self.mean = statistic("mean", 4, "zeros")
        self.deviation = statistic("deviation", 4, "ones")

    def set_statistics(self, idf, is_stop, mean=None, deviation=None):
        if not self.built:
            self.build((None, None), (None, None, None))
        mean = np.zeros(4) if mean is None else mean
        deviation = np.ones(4) if deviation is None else deviation
        # A feature that is constant in training has deviation 0 and stays unscaled.
        deviation = np.where(np.asarray(deviation) == 0, 1.0, deviation)
        values = {"idf": idf, "is_stop": is_stop, "mean": mean, "deviation": deviation}
        for name, value in values.items():
            expected, shape = tuple(getattr(self, name).shape), np.shape(value)
            if shape != expected:
                raise ValueError(
                    f"`{name}` must have shape {expected}: one number per id of the vocabulary for `idf` and "
                    f"`is_stop`, one per feature for `mean` and `deviation`. Received: {name}.shape={shape}"
                )
        for name, value in values.items():
            getattr(self, name).assign(np.asarray(value, "float32"))

    def call(self, query, candidate):
        query, is_new_q = _distinct(query)  # [B, Tq]
        candidate, is_new_a = _distinct(candidate)  # [B, L, Ta]
        equal = ops.equal(candidate[:, :, :, None], query[:, None, None, :])
        shared = ops.logical_and(is_new_a, ops.any(equal, axis=-1))
        idf, features = ops.convert_to_tensor(self.idf), []
        for counted in (ops.ones_like(idf), 1 - self.is_stop):  # 1 for the words that are looked at, [V]

            def total(weight, ids, where):  # of the weight of the words of a set, [...]
                return ops.sum(ops.where(where, ops.take(weight, ids, axis=0), 0.0), axis=-1)

            size = total(counted, query, is_new_q)[:, None] + total(counted, candidate, is_new_a)
            size, shared_idf = ops.maximum(size, 1.0), total(counted * idf, candidate, shared)
            if self.coverage:
                query_idf = total(counted * idf, query, is_new_q)[:, None]
                features.append(ops.where(query_idf > 0, shared_idf / ops.where(query_idf > 0, query_idf, 1.0), 0.0))
            else:
                features.append(total(counted, candidate, shared) / size)
            features.append(shared_idf / size)
        scaled = (ops.stack(features, axis=-1) - self.mean) / self.deviation
        return ops.cast(scaled, self.compute_dtype)

    def compute_output_shape(self, query_shape, candidate_shape):
        return (*candidate_shape[:2], 4)

    def get_config(self):
        return super().get_config() | {"vocabulary_size": self.vocabulary_size, "coverage": self.coverage}


def _distinct(ids):
    """The ids sorted along the last axis, and True at the first of each real one."""
    ids = ops.sort(ops.cast(ids, "int32"), axis=-1)
    before = ops.concatenate([ops.zeros_like(ids[..., :1]), ids[..., :-1]], axis=-1)
    # Sorted, padding comes first: the first real id always differs from its left neighbour, 0.
    return ids, ops.logical_and(token_mask(ids), ops.not_equal(ids, before))
