"""WordEmbedding: the vectors of words, of a table of which a step touches the rows of its words alone.

``...`` any axes, V words, d units.
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class WordEmbedding(keras.layers.Layer):
    """Word vectors, looked up in a table that may have a million rows.

    Use it in place of `keras.layers.Embedding` where the table is trained. That layer reads the whole table before each
    lookup, and TensorFlow must then copy it for an optimizer that writes rows, so that a step takes longer the more
    words there are. Here a lookup reads its own rows; `zoo.optimizers.LazyAdam` and `Adagrad` write no other, and the
    optimizers beside them, which write all rows, write them in place. Gradients that are clipped by their global norm
    hold all rows, whatever the optimizer.

    Args:
        num_words: V.
        units: d.
        initializer: of the table.

    Input shape:
        `[...]`, integers from 0, which is padding, to V - 1.

    Output shape:
        `[..., d]`.

    Masking:
        None is computed; padding has the zero vector, whatever its row.

    Raises:
        ValueError: if `num_words` or `units` is not a positive integer.

    Example:
        >>> layer = WordEmbedding(num_words=100, units=4)
        >>> layer(np.array([[17, 5, 5], [8, 0, 0]])).shape
        TensorShape([2, 3, 4])
    """

    def __init__(self, num_words, units, initializer="uniform", **kwargs):
        for name, value in (("num_words", num_words), ("units", units)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
        super().__init__(**kwargs)
        self.num_words = num_words
        self.units = units
        self.initializer = keras.initializers.get(initializer)

    def build(self, ids_shape):
        # Not cast as a whole under half precision, which would touch every row. The name is that of Keras' own layer.
        self.table = self.add_weight(
            name="embeddings", shape=(self.num_words, self.units), initializer=self.initializer, autocast=False
        )

    def call(self, ids):
        # The backend's variable, not what it holds: that would be the whole table.
        vectors = ops.cast(ops.take(self.table.value, ops.cast(ids, "int32"), axis=0), self.compute_dtype)
        return ops.where(ops.expand_dims(ids != 0, -1), vectors, ops.zeros_like(vectors))

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_shape(self, ids_shape):
        return (*ids_shape, self.units)

    def get_config(self):
        return super().get_config() | {
            "num_words": self.num_words,
            "units": self.units,
            "initializer": keras.initializers.serialize(self.initializer),
        }
