"""QA-LSTM and its relatives: a bidirectional LSTM under one of the compositions (Tan et al. 2016)."""

from zoo.models.matching import Reader, bidirectional_lstm, matching


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
    words = {"trainable": trainable_embeddings, "projection": projection, "dropout": word_dropout}

    def read(ids):
        return [bidirectional_lstm(ids, embeddings, units, **words)] * 2

    return matching(Reader(read), name=name, **settings)
