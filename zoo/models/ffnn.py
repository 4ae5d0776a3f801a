"""Sums of token and trigram vectors under a feed-forward network, a baseline of Tomar et al. 2017."""

import keras
from keras import ops

from layers.masked_pooling import MaskedPooling
from zoo.models import parts


def ffnn(
    embeddings,
    *,
    char_ngrams=False,
    trainable_embeddings=True,
    units=(800, 400, 200),
    trigram_units=0,
    dropout=0.1,
    deviation=0.01,
    combiner="sum",
    initializer="glorot_uniform",
):
    """Each question is the sum of its tokens' vectors beside that of its trigrams of tokens; order is lost.

    Args:
        embeddings, char_ngrams, trainable_embeddings, deviation, combiner: see `parts.token_vectors`.
        units: of the network on the pair.
        trigram_units: units of a ReLU layer on each trigram before the sum; 0 for none, as the paper.
        dropout: rate after each layer of the network.
        initializer: of its kernels.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}``, with one axis more for ``char_ngrams``, to
        scores ``[B, L]``, the log-odds of a match.
    """
    query, candidate = parts.pair_inputs(char_ngrams)
    masks = [parts.real_tokens(ids, char_ngrams) for ids in (query, candidate)]
    words, places = parts.token_vectors(
        [query, candidate],
        embeddings,
        char_ngrams=char_ngrams,
        trainable=trainable_embeddings,
        deviation=deviation,
        combiner=combiner,
    )
    words = ops.pad(words, [[1, 0], [0, 0]])  # row 0, zero, stands at padding
    network = keras.layers.Dense(trigram_units, activation="relu", name="trigrams") if trigram_units else None
    pool = MaskedPooling("sum", name="sums")

    def encode(places, mask):  # [..., T] -> [..., 4 E]
        places = ops.where(mask, places + 1, 0)
        around = ops.pad(places, [*[[0, 0]] * (len(places.shape) - 1), [1, 1]])
        # Places are cut, not vectors: the gradient of a slice is as large as what it is cut from.
        before, tokens, after = (ops.take(words, x, axis=0) for x in (around[..., :-2], places, around[..., 2:]))
        trigrams = ops.concatenate([before, tokens, after], axis=-1)
        return pool(ops.concatenate([tokens, network(trigrams) if network else trigrams], axis=-1), mask=mask)

    query_vector, candidate_vector = (encode(*text) for text in zip(places, masks, strict=True))
    query_vector = ops.expand_dims(query_vector, 1) + ops.zeros_like(candidate_vector)
    pair = ops.concatenate([query_vector, candidate_vector], axis=-1)
    score = parts.feedforward_head(pair, units=units, dropout=dropout, initializer=initializer)
    return keras.Model({"query": query, "candidate": candidate}, score, name="ffnn")
