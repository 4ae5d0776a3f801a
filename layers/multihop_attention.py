"""MultihopAttention: several looks at a question, each led by the last.

... any leading axes, T time, D model size, K hops.
"""

import keras
from keras import ops

from layers.masking import masked_mean, masked_softmax


@keras.saving.register_keras_serializable(package="pairzoo")
class MultihopAttention(keras.layers.Layer):
    """Reads a text K times, each time with a memory of what it has read.

    Use it on the question, where one vector does not hold its several aspects; `SequentialAttention` finds in
    the answer what fits each of them. With products of vectors element-wise:

        o_0 = mean of the real h_t,  m_0 = o_0
        a_t = softmax_t(w_k . (tanh(h_t W_k) * tanh(m_k-1 M_k)))
        o_k = sum_t a_t h_t,  m_k = m_k-1 + o_k

    Tran and Niederee 2018, "Multihop attention networks for question answer matching"; the memory's update is
    that of Nam et al. 2017, which they follow.

    Args:
        num_hops: K.

    Input shape:
        `[..., T, D]`.

    Output shape:
        `[..., K + 1, D]`: o_0 to o_K.

    Masking:
        Masked states have no weight; where all are masked the output is zero.

    Raises:
        ValueError: if `num_hops` is not a positive integer.

    Example:
        >>> MultihopAttention(num_hops=2)(np.ones((2, 5, 4), "float32")).shape
        TensorShape([2, 3, 4])
    """

    def __init__(self, num_hops=2, **kwargs):
        if not (isinstance(num_hops, int) and num_hops >= 1):
            raise ValueError(f"`num_hops` must be a positive integer. Received: num_hops={num_hops!r}")
        super().__init__(**kwargs)
        self.num_hops = num_hops
        self.supports_masking = True

    def build(self, states_shape):
        size = states_shape[-1]
        self.kernels = [
            tuple(
                self.add_weight(name=f"{name}_{hop}", shape=shape)
                for name, shape in (("states", (size, size)), ("memory", (size, size)), ("weight", (size, 1)))
            )
            for hop in range(1, self.num_hops + 1)
        ]

    def call(self, states, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(states)[:-1], dtype="bool")
        real = ops.where(ops.expand_dims(mask, -1), states, ops.zeros_like(states))
        memory = masked_mean(states, mask, axis=-2)
        outputs = [memory]
        for states_kernel, memory_kernel, weight in self.kernels:
            asked = ops.expand_dims(ops.tanh(ops.matmul(memory, memory_kernel)), -2)
            logits = ops.matmul(ops.tanh(ops.matmul(real, states_kernel)) * asked, weight)
            weights = masked_softmax(logits, ops.expand_dims(mask, -1), axis=-2)
            outputs.append(ops.sum(weights * real, axis=-2))
            memory = memory + outputs[-1]
        return ops.stack(outputs, axis=-2)

    def compute_mask(self, states, previous_mask=None):
        return None  # the time axis is gone

    def compute_output_shape(self, states_shape):
        return (*states_shape[:-2], self.num_hops + 1, states_shape[-1])

    def get_config(self):
        return {**super().get_config(), "num_hops": self.num_hops}
