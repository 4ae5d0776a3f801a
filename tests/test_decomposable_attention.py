"""DecomposableAttention against the paper's equations as loops, and what must hold of it whatever the numbers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.decomposable_attention import DecomposableAttention
from tests.checks import check_layer
from zoo.models.decatt import decatt

RANDOM = np.random.default_rng(0)
QUERY = RANDOM.normal(size=(3, 5, 3)).astype("float32")
CANDIDATE = RANDOM.normal(size=(3, 2, 6, 3)).astype("float32")
MASKS = {
    "query_mask": np.arange(5) < np.array([[5], [3], [1]]),
    "candidate_mask": np.arange(6) < np.array([[[6], [2]], [[4], [6]], [[1], [3]]]),
}
VARIANTS = [
    {},
    {"context": 0},
    {"context": 2},
    {"self_attention": True, "max_distance": 1},
    {"self_attention": True, "values": "window", "max_distance": 2},
]


def test_promises():
    arguments = {
        "units": (5, 4),
        "context": 2,
        "self_attention": True,
        "values": "window",
        "max_distance": 2,
        "dropout": 0.5,
        "kernel_initializer": "he_normal",
        "bias_initializer": "ones",
        "attend_initializer": "he_uniform",
        "seed": 3,
    }
    check_layer(DecomposableAttention, arguments, {"query": QUERY, "candidate": CANDIDATE}, MASKS)


def softmax(x):
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def network(layer, name):
    parts = [[np.array(weight).astype("float64") for weight in pair] for pair in getattr(layer, name)]

    def run(x):
        for kernel, bias in parts:
            x = np.maximum(x @ kernel + bias, 0)
        return x

    return run


def windows(tokens, context):
    zero = np.zeros_like(tokens[0])
    near = [zero] * context + list(tokens) + [zero] * context
    return [np.concatenate(near[i : i + 2 * context + 1]) for i in range(len(tokens))]


def phrases(layer, tokens):
    """The windows, or Eq. 3 and 4."""
    around = windows(tokens, layer.context)
    if not layer.self_attention:
        return around
    f_self, f_other = network(layer, "self_query"), network(layer, "self_key")
    bias, furthest = np.array(layer.distance_bias).astype("float64"), layer.max_distance + 1
    values = around if layer.values == "window" else tokens
    result = []
    for i in range(len(tokens)):
        f = [
            f_self(around[i]) @ f_other(around[j]) + bias[min(max(i - j, -furthest), furthest) + furthest]
            for j in range(len(tokens))
        ]
        mixed = sum(weight * value for weight, value in zip(softmax(np.array(f)), values, strict=True))
        result.append(np.concatenate([values[i], mixed]))
    return result


def by_loops(layer, query, candidate):
    """Eq. 1, 2 and 5 for one pair of texts without padding: v1, v2 and the alignment."""
    attend, compare = network(layer, "attend"), network(layer, "compare")
    a, b = phrases(layer, query), phrases(layer, candidate)
    e = np.array([[attend(a_i) @ attend(b_j) for b_j in b] for a_i in a])
    rows = np.array([softmax(row) for row in e])
    beta = [sum(rows[i, j] * b[j] for j in range(len(b))) for i in range(len(a))]
    alpha = [sum(softmax(e[:, j])[i] * a[i] for i in range(len(a))) for j in range(len(b))]
    v1 = sum(compare(np.concatenate([a_i, beta_i])) for a_i, beta_i in zip(a, beta, strict=True))
    v2 = sum(compare(np.concatenate([b_j, alpha_j])) for b_j, alpha_j in zip(b, alpha, strict=True))
    return v1, v2, rows


def randomized(**arguments):
    layer = DecomposableAttention((5, 4), **arguments)
    layer(QUERY, CANDIDATE)
    for weight in layer.weights:
        weight.assign(RANDOM.normal(size=weight.shape) * 0.5)
    return layer


@pytest.mark.parametrize("arguments", VARIANTS)
def test_padding_may_come_first(arguments):
    layer = randomized(**arguments)
    expected = layer(QUERY, CANDIDATE, **MASKS)

    def shifted(x, mask):
        """Texts pushed to the end of their row, other numbers where they stood."""
        order = np.argsort(mask, axis=-1, kind="stable")
        return np.take_along_axis(x, order[..., None], axis=-2), np.take_along_axis(mask, order, axis=-1), order

    query, query_mask, of_query = shifted(QUERY, MASKS["query_mask"])
    candidate, candidate_mask, of_candidate = shifted(CANDIDATE, MASKS["candidate_mask"])
    *vectors, alignment = map(np.array, layer(query, candidate, query_mask=query_mask, candidate_mask=candidate_mask))
    for vector, same in zip(vectors, expected[:2], strict=True):
        np.testing.assert_allclose(vector, same, atol=1e-4)
    same = np.take_along_axis(np.array(expected[2]), of_query[:, None, :, None], axis=2)
    same = np.take_along_axis(same, of_candidate[:, :, None], axis=3)
    np.testing.assert_allclose(alignment, same, atol=1e-5)


def test_padding_between_two_tokens_keeps_its_place():
    gap = np.array([True, False, True, True, False])
    for context, closes in ((0, True), (1, False)):
        layer = randomized(context=context)
        candidate = CANDIDATE[:, 0]
        open_ = layer(QUERY, candidate, query_mask=np.tile(gap, (3, 1)))
        closed = layer(QUERY[:, gap], candidate)
        zeros = layer(QUERY * gap[:, None], candidate, query_mask=np.tile(gap, (3, 1)))
        assert np.allclose(open_[0], closed[0], atol=1e-5) == closes
        np.testing.assert_array_equal(open_[0], zeros[0])


def test_a_text_without_tokens_gives_zeros():
    masks = {side: mask.copy() for side, mask in MASKS.items()}
    masks["query_mask"][0] = masks["candidate_mask"][1, 1] = False
    layer = DecomposableAttention((5, 4), bias_initializer="ones")
    query, candidate, alignment = map(np.array, layer(QUERY, CANDIDATE, **masks))
    assert not query[0].any() and not candidate[1, 1].any() and not alignment[0].any() and not alignment[1, 1].any()
    assert query[1].any() and candidate[1, 0].any()


@pytest.mark.parametrize("arguments", VARIANTS)
def test_equals_the_loops(arguments):
    layer = randomized(**arguments)
    v1, v2, alignment = map(np.array, layer(QUERY, CANDIDATE, **MASKS))
    for b in range(3):
        for n in range(2):
            query = QUERY[b, MASKS["query_mask"][b]].astype("float64")
            candidate = CANDIDATE[b, n, MASKS["candidate_mask"][b, n]].astype("float64")
            expected = by_loops(layer, query, candidate)
            np.testing.assert_allclose(v1[b, n], expected[0], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(v2[b, n], expected[1], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(alignment[b, n, : len(query), : len(candidate)], expected[2], atol=1e-5)


@pytest.mark.parametrize("arguments", [{}, {"self_attention": True}])
def test_words_and_places_give_what_their_vectors_give(arguments):
    layer = randomized(**arguments)
    words = RANDOM.normal(size=(4, 3)).astype("float32")
    query, candidate = RANDOM.integers(0, 4, (3, 5)), RANDOM.integers(0, 4, (3, 2, 6))
    found = layer(query, candidate, **MASKS, words=words)
    for one, other in zip(found, layer(words[query], words[candidate], **MASKS), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_words_are_multiplied_once_for_both_texts_in_either_direction():
    layer = randomized()
    words = tf.constant(RANDOM.normal(size=(4, 3)).astype("float32"))
    query, candidate = np.zeros((3, 5), "int32"), np.zeros((3, 2, 6), "int32")

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            tape.watch(words)
            v1, v2, _ = layer(query, candidate, **MASKS, words=words)
            loss = tf.reduce_sum(v1) + tf.reduce_sum(v2)
        return tape.gradient(loss, [words, *(weight.value for weight in layer.trainable_weights)])

    operations = gradients.get_concrete_function().graph.get_operations()
    products = [operation for operation in operations if operation.type == "MatMul"]
    taps, second_layers = 3 * 3, 2 * 2  # of F and both halves of G; of F and G, for each text
    assert len(products) == 3 * (taps + second_layers)  # forwards, and to words and to kernels


def test_swapped_texts_have_swapped_vectors():
    layer = randomized(self_attention=True)
    v1, v2, _ = layer(QUERY, CANDIDATE[:, 0])
    w1, w2, _ = layer(CANDIDATE[:, 0], QUERY)
    np.testing.assert_allclose(v1, w2, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(v2, w1, rtol=1e-4, atol=1e-5)


def test_order_is_seen_through_windows_and_distances_alone():
    order = [3, 0, 4, 1, 2]
    for arguments, blind in (({"context": 0}, True), ({}, False), ({"context": 0, "self_attention": True}, False)):
        layer = randomized(**arguments)
        one, other = (np.array(layer(x, CANDIDATE)[0]) for x in (QUERY, QUERY[:, order]))
        assert np.allclose(one, other, atol=1e-5) is blind, arguments


def test_dropout_is_for_training():
    layer = randomized(dropout=0.5)
    np.testing.assert_array_equal(layer(QUERY, CANDIDATE)[0], layer(QUERY, CANDIDATE, training=False)[0])
    assert not np.allclose(layer(QUERY, CANDIDATE, training=True)[0], layer(QUERY, CANDIDATE)[0])


def test_parikh_s_form_has_381803_parameters():
    model = decatt((40, 300), projection=200, units=(200, 200), context=0)
    third_class = 200 + 1  # theirs are three
    assert model.count_params() - 40 * 300 + third_class == 381_803


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ({"units": ()}, r"units=\(\)"),
        ({"units": (4, 0)}, r"units=\(4, 0\)"),
        ({"context": -1}, "context=-1"),
        ({"max_distance": 1.5}, "max_distance=1.5"),
        ({"values": "phrase"}, "values='phrase'"),
        ({"dropout": 1}, "dropout=1"),
        ({"units": 4}, "units=4"),
    ],
)
def test_wrong_arguments(arguments, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        DecomposableAttention(**{"units": (5, 4), **arguments})


@pytest.mark.parametrize(
    "shapes", [((2, 5), (2, 6)), ((2, 5, 3), (2, 6, 4)), ((2, 5, 3), (2, 1, 1, 6, 3)), ((2, 5, 3), (3, 6, 3))]
)
def test_wrong_shapes(shapes):
    with pytest.raises(ValueError, match=r"Received: query.shape=\(2, 5"):
        DecomposableAttention((5, 4))(*map(keras.ops.ones, shapes))
