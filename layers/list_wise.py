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

    Given several inputs as a list, it pads them with zeros to one length and calls the layer once for all of
    them: a recurrent encoder then loops once over time where it would loop for each, which takes nearly twice as
    long on a CPU when it has few units. With the id 0 for padding the outputs are the same.

    Args:
        layer: a layer or model from ``[n, T]`` to ``[n, ...]``, or to a list of such outputs.

    Input shape:
        ``[..., T]``, or a list of such; the number of axes must be known.

    Output shape:
        ``[..., *layer_output_shape[1:]]``, of each output, or a list of such.

    Example:
        >>> encoder = ListWise(keras.layers.Dense(4))
        >>> encoder(np.zeros((2, 3, 5))).shape
        TensorShape([2, 3, 4])
    """

    def build(self, input_shape):
        for shape in _listed(input_shape):
            if len(shape) < 2:
                raise ValueError(
                    "ListWise needs inputs of two axes or more, [..., T]. "
                    f"Received: input_shape={tuple(shape)}; add a batch axis."
                )
        if not self.layer.built:
            self.layer.build((None, _listed(input_shape)[0][-1]))
        self.built = True

    def call(self, inputs, training=None):
        several = isinstance(inputs, list | tuple)
        inputs = inputs if several else [inputs]
        shapes = [ops.shape(x) for x in inputs]
        rows = [ops.reshape(x, (-1, shape[-1])) for x, shape in zip(inputs, shapes, strict=True)]
        outputs = self.layer(_stacked(rows) if several else rows[0], training=training)
        results, start = [], 0
        for row, shape in zip(rows, shapes, strict=True):
            end = start + ops.shape(row)[0]

            def restored(output, leading=shape[:-1], start=start, end=end):
                part = output[start:end] if several else output
                return ops.reshape(part, (*leading, *ops.shape(output)[1:]))

            results.append(keras.tree.map_structure(restored, outputs))
            start = end
        return results if several else results[0]

    def compute_output_spec(self, inputs, training=None):
        several = isinstance(inputs, list | tuple)
        longest = inputs[0] if several else inputs
        inner = self.layer.compute_output_spec(keras.KerasTensor((None, *longest.shape[-1:]), longest.dtype))

        def one(x):
            return keras.tree.map_structure(lambda y: keras.KerasTensor((*x.shape[:-1], *y.shape[1:]), y.dtype), inner)

        return [one(x) for x in inputs] if several else one(inputs)

    def compute_output_shape(self, input_shape):
        def one(shape):
            leading = tuple(shape[:-1])
            size = None if None in leading else math.prod(leading)
            inner = self.layer.compute_output_shape((size, shape[-1]))
            if isinstance(inner, list):
                return [(*leading, *output[1:]) for output in inner]
            return (*leading, *inner[1:])

        shapes = [one(shape) for shape in _listed(input_shape)]
        return shapes if _is_several(input_shape) else shapes[0]


def _is_several(shape):
    return bool(shape) and isinstance(shape[0], list | tuple)


def _listed(shape):
    return list(shape) if _is_several(shape) else [shape]


def _stacked(rows):
    """Rows ``[n, T]`` of several lengths, under each other, padded with zeros at the end."""
    if any(row.shape[-1] is None for row in rows):
        longest = ops.shape(rows[0])[-1]
        for row in rows[1:]:
            longest = ops.maximum(longest, ops.shape(row)[-1])
    else:
        longest = max(row.shape[-1] for row in rows)
    return ops.concatenate([ops.pad(row, ((0, 0), (0, longest - ops.shape(row)[-1]))) for row in rows], axis=0)
