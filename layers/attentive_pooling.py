"""AttentivePooling: two texts weigh each other's words.

B queries, L candidates of a list, Tq and Tc time, D model size.
"""

import keras
from keras import ops

from layers.masking import masked_max, masked_softmax


@keras.saving.register_keras_serializable(package="pairzoo")
class AttentivePooling(keras.layers.Layer):
    """Pools both texts of a pair, each word by the best partner that it has on the other side.

    Use it where what matters in a question depends on the answer, and the reverse; it needs both at once.

        G = tanh(Q U A^T)
        v_q = sum_i softmax_i(max_j G_ij) Q_i,   v_a = sum_j softmax_j(max_i G_ij) A_j

    Dos Santos et al. 2016, "Attentive pooling networks", Eq. 5 to 10.

    Args:
        kernel_initializer: of U `[D, D]`.

    Call arguments:
        query: `[B, Tq, D]`.
        candidate: `[B, L, Tc, D]`.
        query_mask, candidate_mask: boolean `[B, Tq]` and `[B, L, Tc]`.

    Output shape:
        Two of `[B, L, D]`: v_q and v_a of each pair.

    Masking:
        Masked words are no partners and have no weight; where all are masked the vector is zero.

    Example:
        >>> query, candidate = np.ones((2, 3, 4), "float32"), np.ones((2, 5, 6, 4), "float32")
        >>> masks = {"query_mask": np.ones((2, 3), bool), "candidate_mask": np.ones((2, 5, 6), bool)}
        >>> [vector.shape for vector in AttentivePooling()(query, candidate, **masks)]
        [TensorShape([2, 5, 4]), TensorShape([2, 5, 4])]
    """

    def __init__(self, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, query_shape, candidate_shape):
        self.kernel = self.add_weight(
            name="kernel", shape=(query_shape[-1], candidate_shape[-1]), initializer=self.kernel_initializer
        )

    def call(self, query, candidate, query_mask, candidate_mask):
        query, query_mask = ops.expand_dims(query, 1), ops.expand_dims(query_mask, 1)
        query = ops.where(ops.expand_dims(query_mask, -1), query, ops.zeros_like(query))
        candidate = ops.where(ops.expand_dims(candidate_mask, -1), candidate, ops.zeros_like(candidate))
        fit = ops.tanh(ops.matmul(ops.matmul(query, self.kernel), ops.swapaxes(candidate, -1, -2)))  # [B, L, Tq, Tc]
        of_query = masked_max(fit, ops.expand_dims(candidate_mask, -2), axis=-1)
        of_candidate = masked_max(fit, ops.expand_dims(query_mask, -1), axis=-2)
        query_weights = masked_softmax(of_query, query_mask)
        candidate_weights = masked_softmax(of_candidate, candidate_mask)
        return [
            ops.sum(ops.expand_dims(weights, -1) * states, axis=-2)
            for weights, states in ((query_weights, query), (candidate_weights, candidate))
        ]

    def compute_mask(self, query, previous_mask=None):
        return None  # the time axes are gone

    def compute_output_shape(self, query_shape, candidate_shape):
        lists = tuple(candidate_shape[:2])
        return [(*lists, query_shape[-1]), (*lists, candidate_shape[-1])]

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
