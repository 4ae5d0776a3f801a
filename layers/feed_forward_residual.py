"""FeedForwardResidual: a two-layer network on each word, added to the word.

... any leading axes, T time, D model size.
"""

import keras
from keras import ops

from layers.shapes import broadcast_axes


@keras.saving.register_keras_serializable(package="pairzoo")
class FeedForwardResidual(keras.layers.Layer):
    """Adds to each state what two dense layers make of it, alone or under a vector.

    Use it as the second half of a self-attention block; and, with the vector of a question, as iGGSA's
    question-aware residual, which turns the words of an answer to their sense under that question:

        r_t = relu(z_t W_1 + b_1) W_2 + b_2,   z_t = y_t, or y_t * vector
        h_t = y_t + r_t,   with `normalize` LayerNorm(y_t + r_t)

    Xu et al. 2019, "Gated group self-attention for answer selection": Eq. 3 and 4 without, the block of
    section 2.1 with `normalize`, and Eq. 5 with the vector and `normalize`.

    Args:
        units: size of the inner layer; None for four times D, as Vaswani et al. 2017.
        normalize: whether the sum is normalized.
        epsilon: of the normalization.
        dropout: rate on the residual; the paper has none.
        outer_initializer: of W_2; from small numbers the residual begins with little effect, and does not disturb
            what is trained already.

    Call arguments:
        states: `[..., T, D]`.
        vector: None, or `[..., D]`; leading axes of size one, here and of the states, are broadcast.
        states_mask: boolean `[..., T]`.

    Output shape:
        `[..., T, D]`.

    Masking:
        The output at masked positions is zero. Positions do not see each other.

    Raises:
        ValueError: if `units` is not a positive integer or None, or the states' size is not known, or not that of
            the vector.

    Example:
        >>> layer = FeedForwardResidual(units=8, normalize=True)
        >>> layer(np.ones((2, 3, 4), "float32"), vector=np.ones((2, 4), "float32")).shape
        TensorShape([2, 3, 4])
    """

    def __init__(
        self, units=None, normalize=False, epsilon=1e-6, dropout=0.0, outer_initializer="glorot_uniform", **kwargs
    ):
        if units is not None and not (isinstance(units, int) and units >= 1):
            raise ValueError(f"`units` must be a positive integer, or None. Received: units={units!r}")
        super().__init__(**kwargs)
        self.units = units
        self.normalize = normalize
        self.epsilon = epsilon
        self.dropout = dropout
        self.outer_initializer = keras.initializers.get(outer_initializer)
        self.supports_masking = True

    def build(self, states_shape, vector_shape=None):
        size = states_shape[-1]
        if size is None or (vector_shape is not None and vector_shape[-1] != size):
            raise ValueError(
                "The states must be of a known size, and the vector of the same. "
                f"Received: states.shape={tuple(states_shape)}, vector.shape={vector_shape}"
            )
        self.inner = keras.layers.Dense(self.units or 4 * size, "relu", dtype=self.dtype_policy, name="inner")
        self.outer = keras.layers.Dense(
            size, kernel_initializer=self.outer_initializer, dtype=self.dtype_policy, name="outer"
        )
        self.inner.build((None, size))
        self.outer.build((None, self.inner.units))
        self.drop = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy)
        if self.normalize:
            self.normalization = keras.layers.LayerNormalization(
                epsilon=self.epsilon, dtype=self.dtype_policy, name="normalization"
            )
            self.normalization.build((None, size))

    def call(self, states, vector=None, states_mask=None, training=None):
        seen = states if vector is None else states * ops.expand_dims(vector, -2)
        outputs = states + self.drop(self.outer(self.inner(seen)), training=training)
        if self.normalize:
            outputs = self.normalization(outputs)
        if states_mask is None:  # of one tensor alone, Keras hands its mask to an argument called `mask`
            states_mask = getattr(states, "_keras_mask", None)
        if states_mask is None:
            return outputs
        return ops.where(ops.expand_dims(states_mask, -1), outputs, ops.zeros_like(outputs))

    def compute_mask(self, states, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, states_shape, vector_shape=None):
        if vector_shape is None:
            return tuple(states_shape)
        return (*broadcast_axes(states_shape[:-2], vector_shape[:-1]), *states_shape[-2:])

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "normalize": self.normalize,
            "epsilon": self.epsilon,
            "dropout": self.dropout,
            "outer_initializer": keras.initializers.serialize(self.outer_initializer),
        }
