"""Decomposable attention over words or character n-grams (Parikh et al. 2016; Tomar et al., SCLeM 2017)."""

import keras
from keras import ops

from layers.decomposable_attention import DecomposableAttention
from zoo.models import parts


def decatt(
    embeddings,
    *,
    char_ngrams=False,
    trainable_embeddings=True,
    projection=0,
    units=(400, 200),
    context=1,
    self_attention=False,
    values="token",
    max_distance=10,
    dropout=0.1,
    deviation=0.01,
    combiner="sum",
    attend_gain=1.0,
    initializer="glorot_uniform",
):
    """The tokens of query and candidate aligned, compared in pairs, and the comparisons summed.

    Args:
        embeddings, char_ngrams, trainable_embeddings, projection, deviation, combiner: see `parts.token_vectors`.
            Parikh et al. project to 200; the other paper does not.
        units: of every network.
        context, self_attention, values, max_distance: see `DecomposableAttention`.
        dropout: rate between the layers of the networks, and after those of the head.
        attend_gain: the kernels of the network that attends begin this many times as large as Glorot's, or as
            `initializer`'s if it is 1. Where vectors and kernels begin small, all words are aligned alike, and stay so.
        initializer: of the networks' kernels.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}``, with one axis more for ``char_ngrams``, to
        scores ``[B, L]``, the log-odds of a match.
    """
    query, candidate = parts.pair_inputs(char_ngrams)
    query_mask, candidate_mask = (parts.real_tokens(ids, char_ngrams) for ids in (query, candidate))
    words, (query_places, candidate_places) = parts.token_vectors(
        [query, candidate],
        embeddings,
        char_ngrams=char_ngrams,
        trainable=trainable_embeddings,
        projection=projection,
        use_bias=False,
        deviation=deviation,
        combiner=combiner,
    )
    query_vector, candidate_vector, _ = DecomposableAttention(
        units,
        context,
        self_attention=self_attention,
        values=values,
        max_distance=max_distance,
        dropout=dropout,
        kernel_initializer=initializer,
        attend_initializer=keras.initializers.VarianceScaling(attend_gain**2, "fan_avg", "uniform")
        if attend_gain != 1
        else initializer,
        name="decomposable_attention",
    )(query_places, candidate_places, query_mask=query_mask, candidate_mask=candidate_mask, words=words)
    pair = ops.concatenate([query_vector, candidate_vector], axis=-1)
    score = parts.feedforward_head(pair, units=units, dropout=dropout, initializer=initializer)
    return keras.Model({"query": query, "candidate": candidate}, score, name="decatt")
