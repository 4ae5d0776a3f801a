"""Pool a sequence of states into one vector, blind to padding.

Shapes: ``B`` batch, ``T`` tokens, ``d`` states; further axes may stand between ``B`` and ``T``.
"""

import keras

from layers.masking import last_state, masked_max, masked_mean, masked_sum

_POOLS = {
    "mean": lambda states, mask: masked_mean(states, mask, axis=-2),
    "sum": lambda states, mask: masked_sum(states, mask, axis=-2),
    "max": lambda states, mask: masked_max(states, mask, axis=-2),
    "last": last_state,
}


@keras.saving.register_keras_serializable(package="pairzoo")
class MaskedPooling(keras.layers.Layer):
    """Mean, sum, maximum or last of the states of real tokens.

    A text without tokens gives the zero vector under each mode.

    Args:
        mode: ``"mean"`` (CTRN's temporal mean pooling), ``"sum"``, ``"max"`` (CNN) or ``"last"`` (recurrent
            encoders).

    Call arguments:
        states: ``[B, ..., T, d]``.
        mask: boolean ``[B, ..., T]``, true at real tokens; axes of size one are broadcast.

    Output shape:
        ``[B, ..., d]``.

    Raises:
        ValueError: if ``mode`` is none of these.

    Example:
        >>> MaskedPooling("mean")(np.ones((2, 3, 4)), mask=np.array([[1, 1, 0], [0, 0, 0]], bool)).shape
        TensorShape([2, 4])
    """

    def __init__(self, mode="mean", **kwargs):
        if mode not in _POOLS:
            raise ValueError(f"mode must be one of {sorted(_POOLS)}. Received: mode={mode!r}")
        super().__init__(**kwargs)
        self.mode = mode
        self.supports_masking = True

    def call(self, states, mask):
        return _POOLS[self.mode](states, mask)

    def compute_mask(self, states, mask=None):
        return None  # the time axis is gone

    def compute_output_shape(self, states_shape):
        return (*states_shape[:-2], states_shape[-1])

    def get_config(self):
        return {**super().get_config(), "mode": self.mode}
