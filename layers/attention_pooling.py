"""AttentionPooling: a weighted mean of states, the weights asked for by a vector.

... any leading axes, T time, D size of states, d size of the vector.
"""

import keras
from keras import ops

from layers.masking import masked_softmax
from layers.shapes import broadcast_axes


@keras.saving.register_keras_serializable(package="pairzoo")
class AttentionPooling(keras.layers.Layer):
    """Pools the states of an answer by how they fit the vector of a question.

    Use it where only a part of a long answer speaks to the question:

        a_t = softmax_t(w . tanh(h_t W_0 + v W_1))
        pooled = sum_t a_t h_t

    Tan et al. 2016, "LSTM-based deep learning models for non-factoid answer selection", section 3.3.

    Args:
        units: columns of W_0 and W_1; None for D.

    Call arguments:
        states: `[..., T, D]`.
        vector: `[..., d]`; leading axes of size one, here and of the states, are broadcast.
        states_mask: boolean `[..., T]`.

    Output shape:
        `[..., D]`.

    Masking:
        Masked states have no weight; where all are masked the output is zero.

    Raises:
        ValueError: if `units` is not a positive integer or None.

    Example:
        >>> AttentionPooling()(np.ones((2, 3, 4), "float32"), np.ones((2, 5), "float32")).shape
        TensorShape([2, 4])
    """

    def __init__(self, units=None, **kwargs):
        if units is not None and not (isinstance(units, int) and units >= 1):
            raise ValueError(f"`units` must be a positive integer, or None. Received: units={units!r}")
        super().__init__(**kwargs)
        self.units = units
        self.supports_masking = True

    def build(self, states_shape, vector_shape):
        units = self.units or states_shape[-1]
        self.states_kernel = self.add_weight(name="states_kernel", shape=(states_shape[-1], units))
        self.vector_kernel = self.add_weight(name="vector_kernel", shape=(vector_shape[-1], units))
        self.weight = self.add_weight(name="weight", shape=(units, 1))

    def call(self, states, vector, states_mask=None):
        if states_mask is None:
            states_mask = ops.ones(ops.shape(states)[:-1], dtype="bool")
        asked = ops.expand_dims(ops.matmul(vector, self.vector_kernel), -2)
        logits = ops.matmul(ops.tanh(ops.matmul(states, self.states_kernel) + asked), self.weight)
        weights = masked_softmax(logits, ops.expand_dims(states_mask, -1), axis=-2)
        real = ops.where(ops.expand_dims(states_mask, -1), states, ops.zeros_like(states))
        return ops.sum(weights * real, axis=-2)

    def compute_mask(self, states, previous_mask=None):
        return None  # the time axis is gone

    def compute_output_shape(self, states_shape, vector_shape):
        return (*broadcast_axes(states_shape[:-2], vector_shape[:-1]), states_shape[-1])

    def get_config(self):
        return {**super().get_config(), "units": self.units}
