"""CharNgramEmbedding: a token as the sum of the vectors of its character n-grams.

``...`` any leading axes, G n-grams of a token, d units.
"""

import math

import keras
from keras import ops

from layers.time_steps import may_pack

COMBINERS = ("sum", "sqrtn")  # as TensorFlow's lookups name them


@keras.saving.register_keras_serializable(package="pairzoo")
class CharNgramEmbedding(keras.layers.Layer):
    """Sums of n-gram vectors, looked up in one table.

    Use it where a word embedding would stand: words that share n-grams share what is learnt of these, so that a
    misspelt word and one that training never saw get a vector near those of their kin.

        e(w) = sum over the n-grams g of w of table[g]

    With ``combiner="sqrtn"`` it is divided by the square root of their number, so that vectors drawn for long words are
    no longer than those for short ones: where tokens are aligned by inner products, sums draw all weight to long words.

    The ids are made of the texts by `zoo.text.TextEncoder` with `ngram_sizes`. A table may have a million rows:
    those of a batch alone are read (and that of padding, where XLA or JAX must know how many), and the gradient holds
    no other; `zoo.optimizers.Adagrad` writes no other. Below it stands `DistinctTokens(rows=True)`, so that each token
    of a batch is summed once.

    Tomar et al. 2017, "Neural paraphrase identification of questions with noisy pretraining", section 3.3.

    Args:
        num_ngrams: rows of the table, that of padding included.
        units: d.
        initializer: of the table; the default is the paper's N(0, 0.01^2).
        combiner: `"sum"`, the paper's, or `"sqrtn"`.

    Input shape:
        `[..., G]`, integers; what is 0 (padding) or below (an n-gram without a row) adds nothing. An n-gram that
        stands twice counts twice.

    Output shape:
        `[..., d]`.

    Masking:
        None is computed; a token of padding alone has the zero vector.

    Raises:
        ValueError: if `num_ngrams` or `units` is not a positive integer, or for another `combiner`.

    Example:
        >>> layer = CharNgramEmbedding(num_ngrams=100, units=4)
        >>> layer(np.array([[[17, 5, 5], [8, 0, 0]]])).shape  # two tokens, of three n-grams and of one
        TensorShape([1, 2, 4])
    """

    def __init__(self, num_ngrams, units, initializer=None, combiner="sum", **kwargs):
        for name, value in (("num_ngrams", num_ngrams), ("units", units)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
        if combiner not in COMBINERS:
            raise ValueError(f"`combiner` must be one of {COMBINERS}. Received: combiner={combiner!r}")
        super().__init__(**kwargs)
        self.num_ngrams = num_ngrams
        self.units = units
        self.combiner = combiner
        self.initializer = keras.initializers.get(
            keras.initializers.RandomNormal(stddev=0.01) if initializer is None else initializer
        )

    def build(self, ids_shape):
        # Not cast as a whole under half precision, which would touch every row.
        self.table = self.add_weight(
            name="table", shape=(self.num_ngrams, self.units), initializer=self.initializer, autocast=False
        )

    def call(self, ids):
        *tokens, width = ops.shape(ids)
        rows = ops.reshape(ops.maximum(ids, 0), (math.prod(tokens), width))
        # TensorFlow's variable, not what it holds: a lookup in that copies the table whenever a row is written.
        sums = (_sums_of_real if may_pack() else _sums)(self.table.value, rows, self.combiner)
        return ops.cast(ops.reshape(sums, (*tokens, self.units)), self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_shape(self, ids_shape):
        return (*ids_shape[:-1], self.units)

    def get_config(self):
        return super().get_config() | {
            "num_ngrams": self.num_ngrams,
            "units": self.units,
            "initializer": keras.initializers.serialize(self.initializer),
            "combiner": self.combiner,
        }


def _sums_of_real(table, ids, combiner):
    """Each n-gram of the batch is read once, padding never."""
    import tensorflow as tf

    real = tf.where(ids > 0)
    ngrams, places = tf.unique(tf.gather_nd(ids, real))
    combine = {"sum": tf.sparse.segment_sum, "sqrtn": tf.sparse.segment_sqrt_n}[combiner]
    return combine(tf.gather(table, ngrams), places, real[:, 0], num_segments=tf.shape(ids)[0])


def _sums(table, ids, combiner):
    vectors = ops.take(table, ids, axis=0)
    real = ops.cast(ids > 0, vectors.dtype)
    sums = ops.einsum("ug,ugd->ud", real, vectors)
    if combiner == "sqrtn":
        sums *= ops.rsqrt(ops.maximum(ops.sum(real, axis=-1, keepdims=True), 1))
    return sums
