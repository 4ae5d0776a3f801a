"""VocabularySoftmax: how surprised a model is by the next word, over all words or a sample of them.

... any leading axes, d state size, C words, S sampled words.
"""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class VocabularySoftmax(keras.layers.Layer):
    """The last layer of a language model and its loss in one: minus the log-probability of each target word.

        -log p(w | h) = log sum_v exp(h W_v + b_v) - (h W_w + b_w)

    With `num_sampled` the sum runs, in training, over the target and S other words, drawn for the whole batch with
    chances that fall with a word's number as they do by Zipf's law: P(v) = log(1 + 1 / v) / log(C + 1). The logit of
    a drawn word is lowered by the log of how often it is expected, so that the sum is right in the mean; a drawn
    word that is the target counts for nothing. Number the words by frequency for it.

    Jean et al. 2015, "On using very large target vocabulary for neural machine translation".

    Args:
        num_words: C.
        num_sampled: S, 0 for the full sum; else only evaluation takes that.
        kernel_initializer: of W, `[C, d]`; the bias begins at zero.
        seed: of the words drawn.

    Input shape:
        states `[..., d]`; targets, integers `[...]`: words are 1 to C, and 0 is padding.

    Output shape:
        `[...]`, float32 at least; 0 at padding.

    Raises:
        ValueError: if `num_words` is not a positive or `num_sampled` a negative number.

    Example:
        >>> loss = VocabularySoftmax(num_words=4, kernel_initializer="zeros")
        >>> loss(np.ones((1, 2, 3)), np.array([[3, 0]])).numpy().round(4)  # log 4
        array([[1.3863, 0.    ]], dtype=float32)
    """

    def __init__(self, num_words, num_sampled=0, kernel_initializer="glorot_uniform", seed=None, **kwargs):
        if not isinstance(num_words, int) or num_words < 1:
            raise ValueError(f"`num_words` must be a positive integer. Received: num_words={num_words!r}")
        if not isinstance(num_sampled, int) or num_sampled < 0:
            raise ValueError(f"`num_sampled` must be 0 or more. Received: num_sampled={num_sampled!r}")
        super().__init__(**kwargs)
        self.num_words = num_words
        self.num_sampled = num_sampled
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.random = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, states_shape, targets_shape):
        self.kernel = self.add_weight(
            name="kernel", shape=(self.num_words, states_shape[-1]), initializer=self.kernel_initializer
        )
        self.bias = self.add_weight(name="bias", shape=(self.num_words,), initializer="zeros")

    def call(self, states, targets, training=None):
        targets = ops.cast(targets, "int32")
        word = ops.maximum(targets - 1, 0)
        if training and self.num_sampled:
            loss = self._sampled(states, word)
        else:
            logits = self._widened(ops.matmul(states, ops.transpose(self.kernel))) + self._widened(self.bias)
            loss = ops.logsumexp(logits, axis=-1) - ops.take_along_axis(logits, word[..., None], axis=-1)[..., 0]
        return ops.where(targets > 0, loss, ops.zeros_like(loss))

    def _sampled(self, states, word):
        uniform = keras.random.uniform((self.num_sampled,), seed=self.random, dtype="float32")
        drawn = ops.cast(ops.floor(ops.exp(uniform * math.log(self.num_words + 1))), "int32") - 1
        drawn = ops.clip(drawn, 0, self.num_words - 1)
        others = ops.matmul(states, ops.transpose(ops.take(self.kernel, drawn, axis=0)))
        others = self._widened(others) + self._widened(ops.take(self.bias, drawn)) - self._log_expected(drawn)
        others = ops.where(ops.equal(drawn, word[..., None]), -1e30, others)
        target = self._widened(ops.sum(states * ops.take(self.kernel, word, axis=0), axis=-1))
        target = target + self._widened(ops.take(self.bias, word))
        return ops.logsumexp(ops.concatenate([target[..., None], others], axis=-1), axis=-1) - target

    def _log_expected(self, word):
        """The log of how often a word is expected among the drawn ones."""
        chance = ops.log1p(1 / (self._widened(word) + 1)) / math.log(self.num_words + 1)
        return ops.log(self.num_sampled * chance)

    def _widened(self, x):
        return ops.cast(x, "float64" if self.compute_dtype == "float64" else "float32")

    def compute_mask(self, states, previous_mask=None):
        return None

    def compute_output_spec(self, states, targets, training=None):
        return keras.KerasTensor(targets.shape, "float64" if self.compute_dtype == "float64" else "float32")

    def get_config(self):
        return super().get_config() | {
            "num_words": self.num_words,
            "num_sampled": self.num_sampled,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }
