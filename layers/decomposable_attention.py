"""DecomposableAttention: attend, compare, aggregate.

B batch, L list of candidates, Tq and Ta tokens, m input size, U distinct words, p phrase size, h and u the first
and the last of a network's units.
"""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from layers.masking import masked_softmax
from layers.time_steps import for_each, time_steps


@keras.saving.register_keras_serializable(package="pairzoo")
class DecomposableAttention(keras.layers.Layer):
    """Two texts aligned softly, token by token; each token compared with what it is aligned to; the sum of that.

    Use it to compare texts in detail without a recurrence: its cost is that of the products of two texts' tokens.
    With a_i the vectors of the query, b_j those of the candidate, and phrases `p(a)_i` of them:

        attend      e_ij = F(p(a)_i) . F(p(b)_j)
                    beta_i = sum_j softmax_j(e_ij) p(b)_j        alpha_j = sum_i softmax_i(e_ij) p(a)_i
        compare     v1_i = G([p(a)_i; beta_i])                   v2_j = G([p(b)_j; alpha_j])
        aggregate   v1 = sum_i v1_i                              v2 = sum_j v2_j

    A phrase is a window, `w(a)_i = [a_{i-c}; ...; a_{i+c}]` with zeros outside of the text; or, with
    self-attention, a token beside what its own text says of it:

        f_ij = S(w(a)_i) . S'(w(a)_j) + d[i - j],   distances beyond `max_distance` sharing a bias on each side
        p(a)_i = [a_i; sum_j softmax_j(f_ij) a_j]

    F, G, S and S' are networks of ReLU layers of `units`. Parikh et al. 2016, "A decomposable attention model for
    natural language inference"; Tomar et al. 2017, "Neural paraphrase identification of questions with noisy
    pretraining", whose Eq. 4 is followed: they print a_j where one might expect the window, see `values`.

    The first layer of each network is linear before its bias, so it is applied to each word of the batch once, and
    attention then mixes its `h` outputs: `softmax(e) (b W) = (softmax(e) b) W`.

    Args:
        units: of the layers of each network; the paper has (400, 200).
        context: c, tokens to either side of a window.
        self_attention: whether phrases are self-aligned tokens instead of windows.
        values: what self-attention mixes: `"token"`, as the paper prints it, or `"window"`.
        max_distance: the largest distance with a bias of its own.
        dropout: rate after each layer of a network but its last.
        kernel_initializer, bias_initializer: of the networks; biases of distances begin at 0.
        attend_initializer: of the kernels of F, the same as of the others if None. Where `e` is near 0 at first, each
            token is aligned with all alike, and a small training set is learnt by heart before that changes: F should
            begin large enough to tell like words from others.
        seed: of the dropout.

    Input shape:
        query `[B, Tq, m]`, candidate `[B, L, Ta, m]` or `[B, Ta, m]`; or both without m, as places in `words`
        `[U, m]`, see `DistinctTokens`.

    Output shape:
        v1 and v2 `[B, L, u]`, and the alignment `softmax_j(e_ij)` `[B, L, Tq, Ta]`, without L where the candidate
        has none.

    Masking:
        Padding is in no window, no softmax and no sum, and may stand on either side of a text; between two tokens
        it keeps its place. A text without tokens gives zeros. The outputs carry no mask.

    Raises:
        ValueError: if an argument is none of those listed, or the shapes do not fit each other.

    Example:
        >>> layer = DecomposableAttention(units=(6, 4))
        >>> v1, v2, alignment = layer(np.ones((2, 5, 3)), np.ones((2, 1, 7, 3)))
        >>> v1.shape, v2.shape, alignment.shape
        (TensorShape([2, 1, 4]), TensorShape([2, 1, 4]), TensorShape([2, 1, 5, 7]))
    """

    def __init__(
        self,
        units,
        context=1,
        self_attention=False,
        values="token",
        max_distance=10,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        attend_initializer=None,
        seed=None,
        **kwargs,
    ):
        units = tuple(units) if isinstance(units, list | tuple) else units
        if not isinstance(units, tuple) or not units or not all(isinstance(size, int) and size > 0 for size in units):
            raise ValueError(f"`units` must be positive integers, one or more. Received: units={units!r}")
        for name, value in (("context", context), ("max_distance", max_distance)):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"`{name}` must be an integer of at least 0. Received: {name}={value!r}")
        if values not in ("token", "window"):
            raise ValueError(f"`values` must be 'token' or 'window'. Received: values={values!r}")
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must be at least 0 and below 1. Received: dropout={dropout!r}")
        super().__init__(**kwargs)
        self.units = units
        self.context = context
        self.self_attention = self_attention
        self.values = values
        self.max_distance = max_distance
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.attend_initializer = keras.initializers.get(attend_initializer)
        self.seed = seed
        self._dropout = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy) if dropout else None
        self.supports_masking = True

    def build(self, query_shape, candidate_shape, words_shape=None):
        vector = () if words_shape is None else (words_shape[-1],)
        query, candidate = (*query_shape, *vector), (*candidate_shape, *vector)
        if len(query) != 3 or len(candidate) not in (3, 4) or query[-1] != candidate[-1] or query[-1] is None:
            raise ValueError(
                "The query must be [batch, time, size] and the candidate [batch, time, size] or "
                "[batch, list, time, size], of one known size, or both without it beside words [number, size]. "
                f"Received: query.shape={tuple(query_shape)}, candidate.shape={tuple(candidate_shape)}, "
                f"words.shape={words_shape and tuple(words_shape)}"
            )
        token, window = query[-1], (2 * self.context + 1) * query[-1]
        phrase = window
        if self.self_attention:
            phrase = 2 * (token if self.values == "token" else window)
            self.self_query = self._network("self_query", window)
            self.self_key = self._network("self_key", window)
            self.distance_bias = self.add_weight(
                name="distance_bias", shape=(2 * self.max_distance + 3,), initializer="zeros"
            )
        self.attend = self._network("attend", phrase, self.attend_initializer)
        self.compare = self._network("compare", 2 * phrase)

    def _network(self, name, size, initializer=None):
        """Kernel and bias of each layer of a network."""
        sizes, initializer = (size, *self.units), initializer or self.kernel_initializer
        return [
            (
                self.add_weight(name=f"{name}_kernel_{n}", shape=shape, initializer=initializer),
                self.add_weight(name=f"{name}_bias_{n}", shape=shape[1:], initializer=self.bias_initializer),
            )
            for n, shape in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
        ]

    def call(self, query, candidate, query_mask=None, candidate_mask=None, words=None, training=None):
        vector = 0 if words is not None else 1  # axes of one position
        if None not in (query.shape[0], candidate.shape[0]) and query.shape[0] != candidate.shape[0]:
            raise ValueError(
                "The query and the candidate must be of one batch. "
                f"Received: query.shape={tuple(query.shape)}, candidate.shape={tuple(candidate.shape)}"
            )
        if query_mask is None:
            query_mask = ops.ones(ops.shape(query)[:2], dtype="bool")
        if candidate_mask is None:
            candidate_mask = ops.ones(ops.shape(candidate)[: len(candidate.shape) - vector], dtype="bool")
        if len(candidate_mask.shape) == 2:
            candidate, candidate_mask = ops.expand_dims(candidate, 1), ops.expand_dims(candidate_mask, 1)
            outputs = self.call(query, candidate, query_mask, candidate_mask, words, training)
            return tuple(ops.squeeze(output, 1) for output in outputs)

        batch, num, time = ops.shape(candidate)[:3]
        if words is None:
            words = ops.concatenate([ops.reshape(x, (-1, x.shape[-1])) for x in (query, candidate)])
            query, candidate = _numbered(query_mask, candidate_mask)
        words = ops.pad(ops.cast(words, self.compute_dtype), [[1, 0], [0, 0]])  # row 0, zero, stands at padding
        candidate, mask_c = (ops.reshape(x, (batch * num, time)) for x in (candidate, candidate_mask))
        # Networks run over real tokens alone; only where two texts meet do these stand in rows beside padding.
        steps_q, steps_c = time_steps(query_mask), time_steps(mask_c)
        steps_of_pairs = time_steps(for_each(query_mask, num))
        texts = [_text(*text, self.context) for text in ((query, query_mask, steps_q), (candidate, mask_c, steps_c))]
        phrases = self._phrases(words, texts, training)

        def of_query(x):  # [Nq, h] -> [B, Tq, h]
            return steps_q.texts(x)

        def of_candidate(x):  # [Nc, h] -> [B, L, Ta, h]
            return ops.reshape(steps_c.texts(x), (batch, num, time, x.shape[-1]))

        def summed(steps, x):  # [B, L, T, h] -> [B, L, u]
            x = steps.of(ops.reshape(x, (batch * num, ops.shape(x)[2], x.shape[-1])))
            x = steps.texts(self._run(self.compare, x, training))
            return ops.reshape(ops.cast(ops.sum(_widened(x), axis=1), x.dtype), (batch, num, self.units[-1]))

        (kernel, *_), *_ = self.attend
        f_q, f_c = (self._run(self.attend, x, training) for x in phrases(kernel))
        e = ops.einsum("bih,bljh->blij", of_query(f_q), of_candidate(f_c))
        beta = masked_softmax(e, candidate_mask[:, :, None, :], axis=-1)  # [B, L, Tq, Ta]
        alpha = masked_softmax(e, query_mask[:, None, :, None], axis=-2)

        (kernel, *_), *_ = self.compare
        (own_q, own_c), (other_q, other_c) = (phrases(half) for half in ops.split(kernel, 2, axis=0))
        g_q = ops.expand_dims(of_query(own_q), 1) + ops.matmul(beta, of_candidate(other_c))
        g_c = of_candidate(own_c) + ops.einsum("blij,bih->bljh", alpha, of_query(other_q))
        beta = ops.where(query_mask[:, None, :, None], beta, ops.zeros_like(beta))
        return summed(steps_of_pairs, g_q), summed(steps_c, g_c), beta

    def _phrases(self, words, texts, training):
        """A function that applies a kernel `[p, h]` to the phrases of texts: for each `[N, h]`, of its real steps."""

        def windows(kernel, context=self.context):
            """The windows around each place under `kernel` `[(2 c + 1) m, h]`: each word is multiplied once."""
            taps = ops.split(kernel, 2 * context + 1, axis=0) if context else [kernel]
            taps = [ops.matmul(words, tap) for tap in taps]
            around = slice(self.context - context, self.context + context + 1)
            return [
                sum(ops.take(tap, rows, axis=0) for tap, rows in zip(taps, text.rows[around], strict=True))
                for text in texts
            ]

        if not self.self_attention:
            return windows

        def values(kernel):
            return windows(kernel, 0 if self.values == "token" else self.context)

        queries, keys = (
            [
                text.steps.texts(self._run(network, x, training))
                for text, x in zip(texts, windows(network[0][0]), strict=True)
            ]
            for network in (self.self_query, self.self_key)
        )
        weights = [self._self_alignment(*parts) for parts in zip(texts, queries, keys, strict=True)]

        def self_aligned(kernel):
            own, mixed = (values(half) for half in ops.split(kernel, 2, axis=0))
            return [
                x + text.steps.of(ops.matmul(weight, text.steps.texts(y)))
                for x, y, text, weight in zip(own, mixed, texts, weights, strict=True)
            ]

        return self_aligned

    def _self_alignment(self, text, queries, keys):
        """softmax_j(f_ij) of each text, `[n, T, T]`."""
        step = ops.arange(ops.shape(text.mask)[1], dtype="int32")
        limit = self.max_distance + 1
        distance = ops.clip(ops.expand_dims(step, 1) - ops.expand_dims(step, 0), -limit, limit) + limit
        f = ops.matmul(queries, ops.swapaxes(keys, 1, 2)) + ops.take(self.distance_bias, distance, axis=0)
        return masked_softmax(f, ops.expand_dims(text.mask, 1), axis=-1)

    def _run(self, network, x, training):
        """The rest of a network, above the product of its input and its first kernel."""
        for number, (kernel, bias) in enumerate(network):
            if number:
                x = ops.matmul(self._dropout(x, training=training) if self._dropout else x, kernel)
            x = ops.relu(x + bias)
        return x

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_shape(self, query_shape, candidate_shape, words_shape=None):
        *of_list, time = candidate_shape[1:] if words_shape else candidate_shape[1:-1]
        vector = (query_shape[0], *of_list, self.units[-1])
        return vector, vector, (query_shape[0], *of_list, query_shape[1], time)

    def get_config(self):
        return super().get_config() | {
            "units": self.units,
            "context": self.context,
            "self_attention": self.self_attention,
            "values": self.values,
            "max_distance": self.max_distance,
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "attend_initializer": keras.initializers.serialize(self.attend_initializer),
            "seed": self.seed,
        }


class _Text(NamedTuple):
    """Texts of a batch: for each position of a window, the rows of the words that stand there, `[N]`, 0 for none; which
    tokens are real, `[n, T]`, and their steps."""

    rows: list
    mask: Any
    steps: Any


def _text(places, mask, steps, context):
    """A `_Text` of the places of its tokens in the words, row 0 left out."""
    rows = ops.pad(ops.where(mask, ops.cast(places, "int32") + 1, 0), [[0, 0], [context, context]])
    return _Text([steps.of(rows[:, i : i + ops.shape(places)[1]]) for i in range(2 * context + 1)], mask, steps)


def _numbered(*masks):
    """The places of the tokens of several texts, where each has a word of its own."""
    start, places = 0, []
    for mask in masks:
        number = math.prod(ops.shape(mask))
        places.append(ops.reshape(start + ops.arange(number, dtype="int32"), ops.shape(mask)))
        start += number
    return places


def _widened(x):
    """In half precision a sum over many tokens would lose the small ones."""
    return x if keras.backend.standardize_dtype(x.dtype) == "float64" else ops.cast(x, "float32")
