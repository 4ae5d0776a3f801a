"""Quasi-recurrent network (Bradbury et al. 2016) as the CTRN paper's baseline: CTRN without the crossed gates."""

import keras

from layers.masked_pooling import MaskedPooling
from layers.quasi_recurrent import QuasiRecurrent
from zoo.models import parts


def qrnn(embeddings, *, filters=512, kernel_size=2, initializer="lecun_uniform", l2=4e-6, **settings):
    """Each side is read by one quasi-recurrent layer and averaged over time.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        filters: units d of the layer.
        kernel_size: width k of the convolutions.
        initializer: of the convolution kernel.
        l2: factor of the squared kernels in the loss.
        settings: see `parts.encoded_apart`.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``, the log-odds of a match.
    """

    def encode(words, places, mask):
        states = QuasiRecurrent(
            filters,
            kernel_size,
            kernel_initializer=initializer,
            kernel_regularizer=keras.regularizers.L2(l2),
            name="quasi_recurrent",
        )(places, mask=mask, words=words)
        return MaskedPooling("mean", name="temporal_mean_pooling")(states, mask=mask)

    return parts.encoded_apart(encode, embeddings, name="qrnn", l2=l2, **settings)
