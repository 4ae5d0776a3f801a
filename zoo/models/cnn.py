"""Siamese convolutional network under the dense head, a baseline of the CTRN paper's tables."""

import keras
from keras import ops

from layers.masked_pooling import MaskedPooling
from zoo.models import parts


def cnn(embeddings, *, filters=512, kernel_size=3, l2=4e-6, **settings):
    """Each side is read by one convolution; the largest response of each filter over time is kept.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        filters: number of filters.
        kernel_size: width of the convolution, in tokens.
        l2: factor of the squared kernels in the loss.
        settings: see `parts.encoded_apart`.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``, the log-odds of a match.
    """

    def encode(words, places, mask):
        vectors = ops.take(words, places, axis=0)
        # A projection's bias would make padding non-zero, and the window would carry it into the text.
        vectors = vectors * ops.cast(ops.expand_dims(mask, -1), vectors.dtype)
        states = keras.layers.Conv1D(
            filters,
            kernel_size,
            padding="same",
            activation="relu",
            kernel_regularizer=keras.regularizers.L2(l2),
            name="convolution",
        )(vectors)
        return MaskedPooling("max", name="pooling")(states, mask=mask)

    return parts.encoded_apart(encode, embeddings, name="cnn", l2=l2, **settings)
