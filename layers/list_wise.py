"""Apply an encoder of sequences to texts that stand in lists.

Shapes: ``...`` any leading axes (batch, list), ``T`` tokens.
"""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class ListWise(keras.layers.Wrapper):
    """Applies a layer of ``[n, T]`` inputs to ``[..., T]`` inputs, with any leading axes.

    Use it to encode a query ``[B, T]`` and its list of candidates ``[B, L, T]`` with one shared encoder: the
    leading axes are folded into one, the layer is called once, and the axes are restored on its output.

    Args:
        layer: a layer or model from ``[n, T]`` to ``[n, ...]``.

    Input shape:
        ``[..., T]``; the number of axes must be known.

    Output shape:
        ``[..., *layer_output_shape[1:]]``.

    Example:
        >>> encoder = ListWise(keras.layers.Dense(4))
        >>> encoder(np.zeros((2, 3, 5))).shape
        TensorShape([2, 3, 4])
    """

    def build(self, input_shape):
        if len(input_shape) < 2:
            raise ValueError(
                "ListWise needs inputs of two axes or more, [..., T]. "
                f"Received: input_shape={tuple(input_shape)}; add a batch axis."
            )
        if not self.layer.built:
            self.layer.build((None, input_shape[-1]))
        self.built = True

    def call(self, inputs, training=None):
        shape = ops.shape(inputs)
        outputs = self.layer(ops.reshape(inputs, (-1, shape[-1])), training=training)
        return ops.reshape(outputs, (*shape[:-1], *outputs.shape[1:]))

    def compute_output_shape(self, input_shape):
        leading = input_shape[:-1]
        size = None if None in leading else math.prod(leading)
        inner = self.layer.compute_output_shape((size, input_shape[-1]))
        return (*leading, *inner[1:])
