"""CrossTemporalCell: two texts read together, each gated by itself and by the other.

B batch, L list of candidates, Tq and Ta time, m input size, d units, k kernel size.
"""

import keras
from keras import ops

from layers.fo_pooling import crossed_fo_pool
from layers.quasi_recurrent import (
    check_gate_arguments,
    convolved,
    folded_products,
    gate_config,
    gate_weights,
    word_products,
)
from layers.time_steps import for_each, time_steps


@keras.saving.register_keras_serializable(package="pairzoo")
class CrossTemporalCell(keras.layers.Layer):
    """The temporal crossing of CTRN: quasi-recurrent encodings of a pair that share their gates.

    Each side is pooled twice, with its own forget and output gates and with those of its partner, and the
    two are multiplied step by step. With Z, F, O the gates of `QuasiRecurrent`, from one kernel for both sides:

        H_q = fo-pool(Z_q, F_q, O_q) fo-pool(Z_q, F_a[pi_q], O_a[pi_q])
        H_a = fo-pool(Z_a, F_a, O_a) fo-pool(Z_a, F_q[pi_a], O_q[pi_a])

    pi aligns a step with one of the partner. With n the own and m the partner's length, t counted from 1:

        n <= m:  t* = min(t r, m),  r = ceil(m / n)         n > m:  t* = ceil(t / r),  r = ceil(n / m)

    Tay et al. 2018, "Cross temporal recurrent networks for ranking question answer pairs". We leave the paper
    in two places: it prints t* = t r for either side, which leaves a shorter partner at once; and one of its
    equations reads the partner's z where its text says the own.

    It adds no weight to `QuasiRecurrent`, takes about twice its element-wise work and the same matrix
    products. The query is convolved once, however many candidates it has.

    Args:
        units, kernel_size, padding, use_bias, kernel_initializer, bias_initializer, kernel_regularizer: as
            `QuasiRecurrent`.
        alignment: `"ratio"`, as above on the real lengths; `"index"`, t* = min(t, m); `"ratio_padded"`, r of
            the padded lengths, so that scores depend on padding: only for inputs of one fixed length.
        cross: which gates of the partner are taken: `"both"`, as the paper, `"forget"` or `"output"`.

    Input shape:
        query `[B, Tq, m]`, candidate `[B, L, Ta, m]` or `[B, Ta, m]`; or both without m, as places in `words`
        `[U, m]`, see `QuasiRecurrent`.

    Output shape:
        H_q `[B, L, Tq, d]` and H_a `[B, L, Ta, d]`, without L where the candidate has none.

    Masking:
        As `QuasiRecurrent` on each side, but padding must be on the right: the alignment counts from the left.
        A text whose partner is empty (all masked) has no crossed states: its H is zero. The outputs carry no
        Keras mask, for Keras derives masks from the first input alone; pool them with those of the inputs.

    Raises:
        ValueError: if an argument is none of those listed, or the shapes do not fit each other.

    Example:
        >>> cell = CrossTemporalCell(units=4)
        >>> h_q, h_a = cell(np.ones((2, 5, 3)), np.ones((2, 6, 7, 3)))  # 6 candidates each
        >>> h_q.shape, h_a.shape
        (TensorShape([2, 6, 5, 4]), TensorShape([2, 6, 7, 4]))
    """

    def __init__(
        self,
        units,
        kernel_size=2,
        padding="causal",
        alignment="ratio",
        cross="both",
        use_bias=False,
        kernel_initializer="lecun_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        **kwargs,
    ):
        check_gate_arguments(units, kernel_size, padding)
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
        self._folded = None

    def build(self, query_shape, candidate_shape, words_shape=None):
        texts = [query_shape, candidate_shape]
        if words_shape is not None:
            texts = [(*shape, words_shape[-1]) for shape in texts]
        query, candidate = texts
        sizes = {query[-1], candidate[-1]}
        if len(query) != 3 or len(candidate) not in (3, 4) or len(sizes) != 1 or None in sizes:
            raise ValueError(
                "The query must be [batch, time, size] and the candidate [batch, time, size] or "
                "[batch, list, time, size], of one known size, or both without it beside words [number, size]. "
                f"Received: query.shape={tuple(query_shape)}, candidate.shape={tuple(candidate_shape)}, "
                f"words.shape={words_shape and tuple(words_shape)}"
            )
        self.kernel, self.bias = gate_weights(self, query[-1])

    def call(self, query, candidate, query_mask=None, candidate_mask=None, words=None):
        vector = [] if words is not None else list(ops.shape(query)[2:])  # the axes of one position
        if query_mask is None:
            query_mask = ops.ones(ops.shape(query)[:2], dtype="bool")
        if candidate_mask is None:
            candidate_mask = ops.ones(ops.shape(candidate)[: len(candidate.shape) - len(vector)], dtype="bool")
        if len(candidate_mask.shape) == 2:
            candidate, candidate_mask = ops.expand_dims(candidate, 1), ops.expand_dims(candidate_mask, 1)
            h_q, h_a = self.call(query, candidate, query_mask, candidate_mask, words)
            return ops.squeeze(h_q, 1), ops.squeeze(h_a, 1)

        batch, num, time_a = ops.shape(candidate)[:3]
        time_q = ops.shape(query)[1]
        candidate = ops.reshape(candidate, (batch * num, time_a, *vector))
        mask_a = ops.reshape(candidate_mask, (batch * num, time_a))

        products = self._folded or (None if words is None else word_products(words, self.kernel))

        def read(x, mask):
            """Its steps, and Z, F and O of Eq. 1, `[N, d]`."""
            steps = time_steps(mask)
            z, f, o = convolved(x, mask, steps, self.kernel, self.bias, self.padding, products)
            return steps, (ops.tanh(z), ops.sigmoid(f), ops.sigmoid(o))

        # A query is read once, and its gates are taken from there for each of its candidates.
        steps, gates = read(query, query_mask)
        mask_q = for_each(query_mask, num)
        steps_q = time_steps(mask_q)
        gates_q = _taken(gates, steps_q.of(for_each(steps.rows(), num)))
        steps_a, gates_a = read(candidate, mask_a)

        len_q, len_a = _length(mask_q), _length(mask_a)  # [B * L, 1]
        pi_q = aligned_steps(self.alignment, len_q, len_a, time_q, time_a)  # [B * L, Tq]
        pi_a = aligned_steps(self.alignment, len_a, len_q, time_a, time_q)  # [B * L, Ta]
        h_q = self._crossed(steps_q, gates_q, gates_a, steps_a, pi_q, len_a)
        h_a = self._crossed(steps_a, gates_a, gates_q, steps_q, pi_a, len_q)
        h_q = ops.reshape(h_q, (batch, num, time_q, self.units))
        h_a = ops.reshape(h_a, (batch, num, time_a, self.units))
        return ops.cast(h_q, self.compute_dtype), ops.cast(h_a, self.compute_dtype)

    def _crossed(self, steps, gates, partner_gates, partner_steps, pi, partner_length):
        """H of one side, `[B * L, T, d]`."""
        z, f, o = gates
        alive = ops.cast(partner_length > 0, z.dtype)  # [B * L, 1]
        alive = steps.of(ops.expand_dims(ops.broadcast_to(alive, ops.shape(pi)), -1))
        partner_rows = ops.pad(partner_steps.rows(), [[0, 0], [0, 1]])  # so that there is one to take
        texts, time = ops.shape(partner_rows)
        first = ops.expand_dims(ops.arange(texts, dtype="int32") * time, -1)
        rows = steps.of(ops.take(ops.reshape(partner_rows, (-1,)), first + pi, axis=0))
        crossed = _taken(partner_gates[1:], rows)
        if self.cross != "both":
            crossed = [crossed[0], o] if self.cross == "forget" else [f, crossed[1]]
        return steps.texts(crossed_fo_pool(steps, z, (f, o), crossed, alive))

    def fold(self, words, keep=lambda table: table):
        """As `QuasiRecurrent.fold`."""
        self._folded = folded_products(self, words, keep)

    def folded_size(self, num_words):
        """Numbers in the tables of so many words."""
        return (num_words + 1) * self.kernel_size * 3 * self.units

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_shape(self, query_shape, candidate_shape, words_shape=None):
        *of_list, time_a = candidate_shape[1:] if words_shape else candidate_shape[1:-1]
        return (
            (query_shape[0], *of_list, query_shape[1], self.units),
            (query_shape[0], *of_list, time_a, self.units),
        )

    def get_config(self):
        return super().get_config() | gate_config(self) | {"alignment": self.alignment, "cross": self.cross}


def aligned_steps(alignment, length, partner_length, padded, partner_padded):
    """pi: for each of the `padded` steps that of the partner, from 0, `[N, padded]` int32.

    `length` and `partner_length` are `[N, 1]`, the padded lengths are numbers. Never beyond the partner's
    real length, whatever the alignment: the gates at its padding mean nothing.
    """
    t = ops.expand_dims(ops.arange(1, padded + 1, dtype="int32"), 0)
    if alignment != "index":
        n, m = (length, partner_length) if alignment == "ratio" else (padded, partner_padded)
        n, m = (ops.maximum(ops.cast(x, "int32"), 1) for x in (n, m))
        t = ops.where(n <= m, t * _ceil_divide(m, n), _ceil_divide(t, _ceil_divide(n, m)))
    return ops.maximum(ops.minimum(t, partner_length), 1) - 1


def _ceil_divide(a, b):
    return (a + b - 1) // b


def _length(mask):
    return ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)


def _taken(gates, rows):
    """Rows of each gate, in the shape of `rows` and the gate's own last axis; zeros for the row behind the last."""
    flat = [ops.pad(ops.reshape(x, (-1, x.shape[-1])), [[0, 1], [0, 0]]) for x in gates]
    return [ops.take(x, rows, axis=0) for x in flat]
