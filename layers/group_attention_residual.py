"""GroupAttentionResidual: gate, group self-attention, residual and normalization in one.

B batch, T time, D model size.
"""

import keras
from keras import ops

from layers.global_gate import GlobalGate
from layers.group_self_attention import GroupSelfAttention


@keras.saving.register_keras_serializable(package="pairzoo")
class GroupAttentionResidual(keras.layers.Layer):
    """The first half of a GGSA block: what a word takes from its neighbours is added to it.

        C = GroupSelfAttention(GlobalGate(X)),  or of X without the gate
        Y = LayerNorm(X + C)

    `FeedForwardResidual` is the second half. Group or global or local attention, with or without offsets and
    gate, are the rows of the paper's ablation. The residual is the word before its gate.

    Xu et al. 2019, "Gated group self-attention for answer selection", Eq. 1 and 2, Tables 3 and 4.

    Args:
        num_heads, group_size, offsets, window, scale: of `GroupSelfAttention`.
        gate: whether the attention reads gated words.
        epsilon: of the normalization.
        dropout: rate on C; the paper has none.

    Input shape:
        `[B, T, D]`.

    Output shape:
        `[B, T, D]`.

    Masking:
        Masked words are not seen by others, and their output is zero. The mask is passed on.

    Raises:
        ValueError: as `GroupSelfAttention`.

    Example:
        >>> GroupAttentionResidual(num_heads=2, group_size=3)(np.ones((2, 7, 4), "float32")).shape
        TensorShape([2, 7, 4])
    """

    def __init__(
        self,
        num_heads=6,
        group_size=10,
        offsets=None,
        window=False,
        scale="head",
        gate=True,
        epsilon=1e-6,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.group_size = group_size
        self.offsets = None if offsets is None else tuple(offsets)
        self.window = window
        self.scale = scale
        self.gate = gate
        self.epsilon = epsilon
        self.dropout = dropout
        self.supports_masking = True
        self.attention = GroupSelfAttention(
            num_heads, group_size, offsets, window, scale, dtype=self.dtype_policy, name="attention"
        )

    def build(self, inputs_shape):
        self.attention.build(inputs_shape)
        self.normalization = keras.layers.LayerNormalization(
            epsilon=self.epsilon, dtype=self.dtype_policy, name="normalization"
        )
        self.normalization.build(inputs_shape)
        self.drop = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy)
        if self.gate:
            self.global_gate = GlobalGate(dtype=self.dtype_policy, name="global_gate")
            self.global_gate.build(inputs_shape)

    def call(self, inputs, mask=None, training=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        seen = self.global_gate(inputs, mask=mask) if self.gate else inputs
        outputs = self.normalization(inputs + self.drop(self.attention(seen, mask=mask), training=training))
        return ops.where(ops.expand_dims(mask, -1), outputs, ops.zeros_like(outputs))

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def get_config(self):
        names = ("num_heads", "group_size", "offsets", "window", "scale", "gate", "epsilon", "dropout")
        return super().get_config() | {name: getattr(self, name) for name in names}
