"""RadialBasis: the decision values of a support-vector machine with the RBF kernel.

d size of the features, S support vectors, C classes.
"""

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class RadialBasis(keras.layers.Layer):
    """One value per class: a weighted sum of how near the features are to each support vector.

        y_c = intercept_c + sum_s weight_sc * exp(-gamma * |x - v_s|^2)

    Use it to serve a support-vector machine that was fitted on a model's features elsewhere, one class against
    all others: the largest value names the class. MaLSTM (Mueller and Thyagarajan 2016) tells entailment so.

    It sums in float64, where the backend has it. Its weights are not trained, and are zeros until
    `set_vectors(vectors, weights, intercepts, gamma)`; `vectors` is `[S, d]`, `weights` `[S, C]`, `intercepts`
    `[C]`, and `gamma` a positive number.

    Args:
        num_vectors: S.
        num_classes: C.

    Input shape:
        `[..., d]`.

    Output shape:
        `[..., C]`, float32 whatever the policy, unless `dtype` is given.

    Raises:
        ValueError: if a size is not a positive integer, an array has another shape, or gamma is not positive.

    Example:
        >>> machine = RadialBasis(num_vectors=2, num_classes=1)
        >>> machine.set_vectors([[0.0], [1.0]], [[1.0], [-1.0]], [0.5], gamma=2.0)
        >>> machine(np.array([[0.5], [100.0]])).numpy()
        array([[0.5],
               [0.5]], dtype=float32)
    """

    def __init__(self, num_vectors, num_classes, **kwargs):
        for name, size in (("num_vectors", num_vectors), ("num_classes", num_classes)):
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={size!r}")
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.num_vectors = num_vectors
        self.num_classes = num_classes

    def build(self, input_shape):
        def constant(name, shape):
            return self.add_weight(
                name=name, shape=shape, initializer="zeros", trainable=False, dtype="float32", autocast=False
            )

        self.vectors = constant("vectors", (self.num_vectors, input_shape[-1]))
        self.weights_ = constant("weights", (self.num_vectors, self.num_classes))
        self.intercepts = constant("intercepts", (self.num_classes,))
        self.gamma = constant("gamma", ())

    def set_vectors(self, vectors, weights, intercepts, gamma):
        if not self.built:
            self.build((None, np.shape(vectors)[-1]))
            self.built = True
        values = {"vectors": vectors, "weights_": weights, "intercepts": intercepts, "gamma": gamma}
        for name, value in values.items():
            expected = tuple(getattr(self, name).shape)
            if np.shape(value) != expected:
                name = name.rstrip("_")
                raise ValueError(f"`{name}` must have shape {expected}. Received: {name}.shape={np.shape(value)}")
        if not gamma > 0:
            raise ValueError(f"`gamma` must be a positive number. Received: gamma={gamma}")
        for name, value in values.items():
            getattr(self, name).assign(np.asarray(value, "float32"))

    def call(self, inputs):
        # Thousands of large weights of both signs nearly cancel: in float32 little would be left of the sum.
        inputs, vectors, weights, intercepts, gamma = (
            ops.cast(each, "float64") for each in (inputs, self.vectors, self.weights_, self.intercepts, self.gamma)
        )
        # |x - v|^2 by a product, not by all differences; rounding may not make it negative.
        squares = ops.sum(inputs**2, axis=-1, keepdims=True) + ops.sum(vectors**2, axis=-1)
        squares = ops.maximum(squares - 2 * ops.matmul(inputs, ops.transpose(vectors)), 0)
        return ops.cast(ops.matmul(ops.exp(-gamma * squares), weights) + intercepts, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.num_classes)

    def get_config(self):
        return super().get_config() | {"num_vectors": self.num_vectors, "num_classes": self.num_classes}
