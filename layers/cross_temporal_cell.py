"""CrossTemporalCell: two quasi-recurrent encodings of a pair, each also pooled with the other's gates.

B batch, L list of candidates, Tq and Ta time, m input size, d units.
"""

import keras
from keras import ops

from layers.quasi_recurrent import add_gate_weights, check_arguments, fo_pool, gate_config, gates


@keras.saving.register_keras_serializable(package="pairzoo")
class CrossTemporalCell(keras.layers.Layer):
    """first form"""

    def __init__(
        self,
        units,
        kernel_size=2,
        padding="causal",
        alignment="ratio",
        cross="both",
        use_bias=False,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        **kwargs,
    ):
        check_arguments(units, kernel_size, padding)
        if alignment not in ("ratio", "index", "ratio_padded"):
            raise ValueError(
                f"`alignment` must be 'ratio', 'index' or 'ratio_padded'. Received: alignment={alignment!r}"
            )
        if cross not in ("both", "forget", "output"):
            raise ValueError(f"`cross` must be 'both', 'forget' or 'output'. Received: cross={cross!r}")
        super().__init__(**kwargs)
        self.units = units
        self.kernel_size = kernel_size
        self.padding = padding
        self.alignment = alignment
        self.cross = cross
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.supports_masking = True

    def build(self, query_shape, candidate_shape):
        add_gate_weights(self, query_shape[-1])

    def call(self, query, candidate, query_mask=None, candidate_mask=None):
        if query_mask is None:
            query_mask = ops.ones(ops.shape(query)[:-1], dtype="bool")
        if candidate_mask is None:
            candidate_mask = ops.ones(ops.shape(candidate)[:-1], dtype="bool")
        batch, time_q, size = ops.shape(query)
        time_a = ops.shape(candidate)[-2]
        num = ops.shape(candidate)[1] if len(candidate.shape) == 4 else 1
        mask_a = ops.reshape(candidate_mask, (-1, time_a))  # [B*L, Ta]
        mask_q = ops.repeat(query_mask, num, axis=0)

        z_q, f_q, o_q = gates(query, query_mask, self.kernel, self.bias, self.padding)
        z_a, f_a, o_a = gates(
            ops.reshape(candidate, (-1, time_a, size)), mask_a, self.kernel, self.bias, self.padding
        )
        len_q = ops.sum(ops.cast(mask_q, "int32"), axis=1)
        len_a = ops.sum(ops.cast(mask_a, "int32"), axis=1)
        if self.alignment == "ratio":
            ratio_lengths = (len_q, len_a)
        elif self.alignment == "ratio_padded":
            ratio_lengths = (time_q, time_a)
        else:
            ratio_lengths = (1, 1)
        pi_q = aligned(time_q, *ratio_lengths, len_a)
        pi_a = aligned(time_a, *ratio_lengths[::-1], len_q)

        def rep(x):
            return ops.repeat(x, num, axis=0) if len(candidate.shape) == 4 else x

        both = self.cross == "both"
        f_qx = _take(f_a, pi_q) if both or self.cross == "forget" else rep(f_q)
        o_qx = _take(o_a, pi_q) if both or self.cross == "output" else rep(o_q)
        f_ax = _take(rep(f_q), pi_a) if both or self.cross == "forget" else f_a
        o_ax = _take(rep(o_q), pi_a) if both or self.cross == "output" else o_a

        partner_a = ops.logical_and(mask_q, ops.expand_dims(len_a > 0, -1))
        partner_q = ops.logical_and(mask_a, ops.expand_dims(len_q > 0, -1))
        h_q = rep(fo_pool(z_q, f_q, o_q, query_mask)) * fo_pool(rep(z_q), f_qx, o_qx, partner_a)
        h_a = fo_pool(z_a, f_a, o_a, mask_a) * fo_pool(z_a, f_ax, o_ax, partner_q)
        if len(candidate.shape) == 4:
            h_q = ops.reshape(h_q, (-1, num, time_q, self.units))
            h_a = ops.reshape(h_a, (-1, num, time_a, self.units))
        return ops.cast(h_q, self.compute_dtype), ops.cast(h_a, self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_shape(self, query_shape, candidate_shape):
        listed = candidate_shape[1:-2]
        return (
            (query_shape[0], *listed, query_shape[1], self.units),
            (*candidate_shape[:-1], self.units),
        )

    def get_config(self):
        return super().get_config() | gate_config(self) | {"alignment": self.alignment, "cross": self.cross}


def aligned(time, own, partner, partner_length):
    """0-based position in the partner for each of `time` positions: int32 [N, time]."""
    own, partner = (ops.expand_dims(ops.maximum(ops.cast(n, "int32"), 1), -1) for n in (own, partner))
    t = ops.expand_dims(ops.arange(1, time + 1, dtype="int32"), 0)
    stretched = t * _ceil_div(partner, own)
    shrunk = _ceil_div(t, _ceil_div(own, partner))
    star = ops.where(own <= partner, stretched, shrunk)
    return ops.clip(star - 1, 0, ops.maximum(ops.expand_dims(partner_length, -1) - 1, 0))


def _ceil_div(a, b):
    return (a + b - 1) // b


def _take(x, index):
    """x [N, S, d] at index [N, T] -> [N, T, d]."""
    n, s, d = ops.shape(x)
    rows = index + ops.expand_dims(ops.arange(n, dtype="int32") * s, -1)
    return ops.take(ops.reshape(x, (-1, d)), rows, axis=0)
