"""The convolutional answer selector of Feng et al. 2015, under cosine or GESD."""

import keras

from zoo.models.matching import Reader, matching, word_vectors


def qa_cnn(
    embeddings,
    *,
    trainable_embeddings=True,
    projection=0,
    word_dropout=0.0,
    filters=400,
    kernel_size=3,
    name="qa_cnn",
    **settings,
):
    """Each side is read by one shared convolution with tanh, whose states are composed and compared.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        trainable_embeddings, projection: as in `zoo.models.ggsa`.
        word_dropout: rate on the word vectors.
        filters: number of filters.
        kernel_size: width of the convolution, in tokens.
        name: the model's name.
        settings: composition and similarity, see `matching`.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``.
    """
    words = {"trainable": trainable_embeddings, "projection": projection, "dropout": word_dropout}
    # What stands at padding is zero, so the window carries nothing of it into the text.
    convolution = keras.layers.Conv1D(filters, kernel_size, padding="same", activation="tanh", name="convolution")

    def read(ids):
        return [convolution(word_vectors(ids, embeddings, **words))] * 2

    return matching(Reader(read), name=name, **settings)
