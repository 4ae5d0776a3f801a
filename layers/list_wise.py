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
        layer: a layer or model from ``[n, T]``, or a dictionary of such (the fields of a text), to ``[n, ...]`` or a
            list of such outputs.

    Input shape:
        ``[..., T]``, or a dictionary of such that agree in all axes but the last; or a list of either. The number
        of axes must be known.

    Output shape:
        ``[..., *layer_output_shape[1:]]``, of each output, or a list of such.

    Example:
        >>> encoder = ListWise(keras.layers.Dense(4))
        >>> encoder(np.zeros((2, 3, 5))).shape
        TensorShape([2, 3, 4])
    """

    def build(self, input_shape):
        texts = input_shape if _is_several(input_shape) else [input_shape]
        for shape in (shape for text in texts for shape in _fields(text)):
            if len(shape) < 2:
                raise ValueError(
                    "ListWise needs inputs of two axes or more, [..., T]. "
                    f"Received: input_shape={tuple(shape)}; add a batch axis."
                )
        if not self.layer.built:
            self.layer.build(_of_rows(texts[0]))
        self.built = True

    def call(self, inputs, training=None):
        several = isinstance(inputs, list | tuple)
        texts = inputs if several else [inputs]
        leading = [ops.shape(_fields(text)[0])[:-1] for text in texts]
        rows = [keras.tree.map_structure(lambda x: ops.reshape(x, (-1, ops.shape(x)[-1])), text) for text in texts]
        stacked = keras.tree.map_structure(lambda *fields: _stacked(fields), *rows) if several else rows[0]
        outputs = self.layer(stacked, training=training)
        results, start = [], 0
        for row, shape in zip(rows, leading, strict=True):
            end = start + ops.shape(_fields(row)[0])[0]

            def restored(output, shape=shape, start=start, end=end):
                part = output[start:end] if several else output
                return ops.reshape(part, (*shape, *ops.shape(output)[1:]))

            results.append(keras.tree.map_structure(restored, outputs))
            start = end
        return results if several else results[0]

    def compute_output_spec(self, inputs, training=None):
        several = isinstance(inputs, list | tuple)
        rows = keras.tree.map_structure(
            lambda x: keras.KerasTensor((None, *x.shape[-1:]), x.dtype), inputs[0] if several else inputs
        )
        inner = self.layer.compute_output_spec(rows)

        def one(text):
            leading = _fields(text)[0].shape[:-1]
            return keras.tree.map_structure(lambda y: keras.KerasTensor((*leading, *y.shape[1:]), y.dtype), inner)

        return [one(text) for text in inputs] if several else one(inputs)

    def compute_output_shape(self, input_shape):
        def one(text):
            leading = tuple(_fields(text)[0][:-1])
            size = None if None in leading else math.prod(leading)
            inner = self.layer.compute_output_shape(_of_rows(text, size))
            if isinstance(inner, list):
                return [(*leading, *output[1:]) for output in inner]
            return (*leading, *inner[1:])

        return list(map(one, input_shape)) if _is_several(input_shape) else one(input_shape)


def _is_several(shape):
    return not isinstance(shape, dict) and bool(shape) and isinstance(shape[0], list | tuple | dict)


def _fields(text):
    """The fields of a text, or of its shapes; the text itself where it has no fields."""
    return list(text.values()) if isinstance(text, dict) else [text]


def _of_rows(shape, size=None):
    """The shape, or those of the fields, with one axis in place of all leading ones."""
    if isinstance(shape, dict):
        return {name: _of_rows(of_field, size) for name, of_field in shape.items()}
    return (size, shape[-1])


def _stacked(rows):
    """Rows ``[n, T]`` of several lengths, under each other, padded with zeros at the end."""
    if any(row.shape[-1] is None for row in rows):
        longest = ops.shape(rows[0])[-1]
        for row in rows[1:]:
            longest = ops.maximum(longest, ops.shape(row)[-1])
    else:
        longest = max(row.shape[-1] for row in rows)
    return ops.concatenate([ops.pad(row, ((0, 0), (0, longest - ops.shape(row)[-1]))) for row in rows], axis=0)
