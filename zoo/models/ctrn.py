"""Cross Temporal Recurrent Networks (Tay, Tuan and Hui, AAAI 2018)."""

import keras
from keras import ops

from layers.cross_temporal_cell import CrossTemporalCell
from layers.masked_pooling import MaskedPooling
from layers.masking import token_mask
from zoo.models import parts


def ctrn(
    embeddings,
    *,
    trainable_embeddings=False,
    projection=300,
    projection_activation=None,
    word_dropout=0.0,
    filters=512,
    kernel_size=2,
    alignment="ratio",
    dense_layers=1,
    dense_units=128,
    dropout=0.5,
    l2=4e-6,
    overlap="none",
    initializer="lecun_uniform",
):
    """Query and candidate each read under their own and the partner's temporal gates.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        trainable_embeddings: the paper fixes them.
        projection: units m of the projection shared by both sides; 0 for none.
        projection_activation: None for the paper's linear map.
        word_dropout: dropout rate on the projected word vectors; not in the paper.
        filters: units d of the cell.
        kernel_size: width k of the convolutions.
        alignment: which step of the partner a step reads, see `CrossTemporalCell`.
        dense_layers, dense_units, dropout: the head.
        l2: factor of the squared kernels in the loss.
        overlap: the four word-overlap features that join the head, see `parts.overlap_features`.
        initializer: of the convolution kernel.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``, the log-odds of a match.
    """
    query, candidate = parts.pair_inputs()
    query_mask, candidate_mask = token_mask(query), token_mask(candidate)
    words, (query_places, candidate_places) = parts.token_vectors(
        [query, candidate],
        embeddings,
        trainable=trainable_embeddings,
        projection=projection,
        activation=projection_activation,
        l2=l2,
        dropout=word_dropout,
    )
    query_states, candidate_states = CrossTemporalCell(
        filters,
        kernel_size,
        alignment=alignment,
        kernel_initializer=initializer,
        kernel_regularizer=keras.regularizers.L2(l2),
        name="cross_temporal_cell",
    )(query_places, candidate_places, query_mask=query_mask, candidate_mask=candidate_mask, words=words)
    pool = MaskedPooling("mean", name="temporal_mean_pooling")
    score = parts.dense_head(
        pool(query_states, mask=ops.expand_dims(query_mask, 1)),
        pool(candidate_states, mask=candidate_mask),
        parts.overlap_features(query, candidate, len(embeddings), overlap),
        dense_layers=dense_layers,
        dense_units=dense_units,
        dropout=dropout,
        l2=l2,
    )
    return keras.Model({"query": query, "candidate": candidate}, score, name="ctrn")
