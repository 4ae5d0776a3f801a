"""SequentialAttention: weights over an answer from a recurrent reading under the question.

... any leading axes, T time, D model size, K vectors of the question.
"""

import keras
from keras import ops

from layers.masking import masked_softmax
from layers.packed_lstm import PackedLSTM
from layers.shapes import broadcast_axes


@keras.saving.register_keras_serializable(package="pairzoo")
class SequentialAttention(keras.layers.Layer):
    """Pools an answer once for each vector of a question; a word's weight depends on the words around it.

    Use it on the answer, beside `MultihopAttention` on the question. For each vector o_k, products of vectors
    element-wise:

        S = BiLSTM(h_1 * o_k, ..., h_T * o_k)
        b_t = softmax_t(sum_j S_t,j)
        a_k = sum_t b_t h_t

    One BiLSTM serves all vectors. Tran and Niederee 2018, "Multihop attention networks for question answer
    matching"; Brarda et al. 2017, "Sequential attention".

    Args:
        units: of the LSTM per direction; None for D / 2.

    Call arguments:
        states: `[..., T, D]`.
        vectors: `[..., K, D]`; leading axes of size one, here and of the states, are broadcast.
        states_mask: boolean `[..., T]`.

    Output shape:
        `[..., K, D]`.

    Masking:
        Masked states are passed over and have no weight; where all are masked the output is zero.

    Raises:
        ValueError: if `units` is not a positive integer or None.

    Example:
        >>> SequentialAttention()(np.ones((2, 5, 4), "float32"), np.ones((2, 3, 4), "float32")).shape
        TensorShape([2, 3, 4])
    """

    def __init__(self, units=None, **kwargs):
        if units is not None and not (isinstance(units, int) and units >= 1):
            raise ValueError(f"`units` must be a positive integer, or None. Received: units={units!r}")
        super().__init__(**kwargs)
        self.units = units
        self.supports_masking = True

    def build(self, states_shape, vectors_shape):
        size = states_shape[-1]
        units, dtype = self.units or max(1, size // 2), self.dtype_policy
        self.readers = [
            PackedLSTM(units, name="forward_lstm", dtype=dtype),
            PackedLSTM(units, go_backwards=True, name="backward_lstm", dtype=dtype),
        ]
        for reader in self.readers:
            reader.build((None, None, size))

    def call(self, states, vectors, states_mask=None):
        if states_mask is None:
            states_mask = ops.ones(ops.shape(states)[:-1], dtype="bool")
        real = ops.where(ops.expand_dims(states_mask, -1), states, ops.zeros_like(states))
        # Each pair of text and vector becomes a sequence of its own, [..., K, T, D].
        seen = ops.expand_dims(real, -3) * ops.expand_dims(vectors, -2)
        shape = ops.shape(seen)
        mask = ops.broadcast_to(ops.expand_dims(states_mask, -2), shape[:-1])
        texts, masks = ops.reshape(seen, (-1, shape[-2], seen.shape[-1])), ops.reshape(mask, (-1, shape[-2]))
        read = sum(ops.sum(reader(texts, mask=masks), axis=-1) for reader in self.readers)
        logits = ops.reshape(read, shape[:-1])
        weights = masked_softmax(logits, mask)  # [..., K, T]
        # Not left to the product: on CPUs TensorFlow 2.21 corrupts memory in that of [n, 1, K, T] and [1, 1, T, D].
        return ops.matmul(weights, ops.broadcast_to(real, (*shape[:-3], *shape[-2:])))

    def compute_mask(self, states, previous_mask=None):
        return None  # the time axis is gone

    def compute_output_shape(self, states_shape, vectors_shape):
        return (*broadcast_axes(states_shape[:-2], vectors_shape[:-2]), *vectors_shape[-2:])

    def get_config(self):
        return {**super().get_config(), "units": self.units}
