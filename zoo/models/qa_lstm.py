"""QA-LSTM and its relatives: a bidirectional LSTM under one of the compositions (Tan et al. 2016)."""

import keras

from layers.masking import token_mask
from zoo.models.matching import Reader, matching, word_vectors


def qa_lstm(
    embeddings,
    *,
    trainable_embeddings=True,
    projection=0,
    word_dropout=0.0,
    units=141,
    name="qa_lstm",
    **settings,
):
    """Each side is read by one bidirectional LSTM, whose states are composed and compared.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        trainable_embeddings, projection: as in `zoo.models.ggsa`.
        word_dropout: rate on the word vectors.
        units: of the LSTM, per direction.
        name: the model's name.
        settings: composition and similarity, see `matching`.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``.
    """
    look_up = word_vectors(embeddings, trainable=trainable_embeddings, projection=projection, dropout=word_dropout)
    # cuDNN refuses a text without tokens, and its kernel would be in the export.
    lstm = keras.layers.LSTM(units, return_sequences=True, use_cudnn=False)
    reader = keras.layers.Bidirectional(lstm, name="bidirectional_lstm")

    def read(ids):
        return [reader(look_up(ids), mask=token_mask(ids))] * 2

    return matching(Reader(read), name=name, **settings)
