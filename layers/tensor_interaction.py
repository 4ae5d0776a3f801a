"""TensorInteraction: the bilinear products of two vectors, several at once.

... any leading axes, d size of the vectors, r slices.
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class TensorInteraction(keras.layers.Layer):
    """The tensor layer of neural tensor networks: r numbers, each a bilinear form of both vectors.

    Use it where the numbers of one vector select among those of the other; it has r d^2 weights.

        v_k = tanh(a M_k b + [a; b] V + bias)_k,   k = 1..r

    Qiu and Huang 2015, "Convolutional neural tensor network architecture for community-based question answering";
    Socher et al. 2013, Eq. 1.

    Args:
        slices: r.

    Call arguments:
        first, second: a and b, `[..., d]`, of equal shape.

    Output shape:
        `[..., r]`.

    Raises:
        ValueError: if `slices` is not a positive integer.

    Example:
        >>> TensorInteraction(slices=5)(np.ones((2, 3, 4), "float32"), np.ones((2, 3, 4), "float32")).shape
        TensorShape([2, 3, 5])
    """

    def __init__(self, slices, **kwargs):
        if not (isinstance(slices, int) and slices >= 1):
            raise ValueError(f"`slices` must be a positive integer. Received: slices={slices!r}")
        super().__init__(**kwargs)
        self.slices = slices

    def build(self, first_shape, second_shape):
        a, b = first_shape[-1], second_shape[-1]
        self.tensor = self.add_weight(name="tensor", shape=(a, self.slices * b))
        self.kernel = self.add_weight(name="kernel", shape=(a + b, self.slices))
        self.bias = self.add_weight(name="bias", shape=(self.slices,), initializer="zeros")

    def call(self, first, second):
        shape = ops.shape(first)[:-1]
        slices = ops.reshape(ops.matmul(first, self.tensor), (*shape, self.slices, second.shape[-1]))
        bilinear = ops.squeeze(ops.matmul(slices, ops.expand_dims(second, -1)), -1)
        linear = ops.matmul(ops.concatenate([first, second], axis=-1), self.kernel)
        return ops.tanh(bilinear + linear + self.bias)

    def compute_output_shape(self, first_shape, second_shape):
        return (*first_shape[:-1], self.slices)

    def get_config(self):
        return {**super().get_config(), "slices": self.slices}
