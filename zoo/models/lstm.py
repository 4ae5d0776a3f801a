"""Siamese LSTM under the dense head, the recurrent baseline of the CTRN paper's tables."""

import keras

from layers.masked_pooling import MaskedPooling
from layers.packed_lstm import PackedLSTM
from zoo.models import parts


def lstm(embeddings, *, filters=512, pooling="mean", l2=4e-6, **settings):
    """Each side is read by one LSTM; its states are pooled over time.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        filters: units of the LSTM.
        pooling: ``"mean"`` or ``"last"``.
        l2: factor of the squared kernels in the loss.
        settings: see `parts.encoded_apart`.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``, the log-odds of a match.
    """

    def encode(words, places, mask):
        states = PackedLSTM(
            filters,
            kernel_regularizer=keras.regularizers.L2(l2),
            recurrent_regularizer=keras.regularizers.L2(l2),
            name="lstm",
        )(places, mask=mask, words=words)
        return MaskedPooling(pooling, name="pooling")(states, mask=mask)

    return parts.encoded_apart(encode, embeddings, name="lstm", l2=l2, **settings)
