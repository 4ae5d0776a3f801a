"""ManhattanDistance against sums written out, its ends, and the promises of every layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.manhattan_distance import ManhattanDistance
from tests.checks import check_layer

RANDOM = np.random.default_rng(0)


def vectors(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def distance_of(query, candidate, p):
    """The norm of the difference, one pair of float64 vectors at a time."""
    if p == "cosine":
        return 1 - np.dot(query, candidate) / np.sqrt(np.dot(query, query) * np.dot(candidate, candidate))
    return sum(abs(q - a) ** p for q, a in zip(query, candidate, strict=True)) ** (1 / p)


@pytest.mark.parametrize("p", [2, 1.5, "cosine"])
def test_promises(p):
    check_layer(
        ManhattanDistance, {"p": p, "similarity": False}, {"query": vectors(3, 5), "candidate": vectors(3, 4, 5)}
    )


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, "cosine"])
@pytest.mark.parametrize("queries", [(4, 6), (4, 3, 6)])
def test_equals_the_equation(p, queries):
    query, candidate = vectors(*queries), vectors(4, 3, 6)
    pairs = np.broadcast_to(query.reshape(4, -1, 6), (4, 3, 6)).astype("float64")
    expected = np.array(
        [[distance_of(pairs[i, j], candidate[i, j].astype("float64"), p) for j in range(3)] for i in range(4)]
    )
    np.testing.assert_allclose(ManhattanDistance(p, similarity=False)(query, candidate), expected, rtol=1e-5)
    similarity = 1 - expected / 2 if p == "cosine" else np.exp(-expected)
    np.testing.assert_allclose(ManhattanDistance(p)(query, candidate), similarity, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("size", [1e-3, 0.1, 9.0, 1e5])
def test_high_orders_neither_vanish_nor_overflow(size):
    x = np.zeros((1, 1, 4), "float32")
    distance = ManhattanDistance(50, similarity=False)(x, x + np.float32([0, 0, 0.5 * size, size]))
    np.testing.assert_allclose(distance, [[size]], rtol=1e-5)


@pytest.mark.parametrize("size", [1e-25, 1e-7, 1.0, 1e25])
def test_the_cosine_of_a_vector_with_itself_is_one_at_any_length(size):
    x = np.float32([[[size, -2 * size]]])
    np.testing.assert_allclose(ManhattanDistance("cosine")(x, x), [[1]], rtol=1e-6)


def test_ends_of_the_similarity():
    layer, x = ManhattanDistance(), np.zeros((1, 1, 4), "float32")
    assert layer(x, x).numpy().item() == 1.0
    np.testing.assert_allclose(layer(x, x + 0.25), np.exp(-1), rtol=1e-6)  # at distance 1
    np.testing.assert_allclose(layer(x + 2, x), layer(x, x + 2))


@pytest.mark.parametrize("p", [1, 1.5, 2, "cosine"])
@pytest.mark.parametrize("value", [0.0, 0.7])
def test_gradient_is_finite_where_vectors_are_equal(p, value):
    x = tf.constant(np.full((2, 3), value, "float32"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(ManhattanDistance(p)(x, tf.stop_gradient(x)[:, None]))
    np.testing.assert_allclose(tape.gradient(loss, x), np.zeros((2, 3)), atol=1e-6)


def test_half_precision_does_not_end_in_zero():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        layer = ManhattanDistance()
    finally:
        keras.config.set_dtype_policy("float32")
    query = tf.zeros((1, 2), "float16")
    with tf.GradientTape() as tape:
        tape.watch(query)
        similarity = layer(query, tf.fill((1, 1, 2), tf.constant(10.0, "float16")))
    assert similarity.dtype == "float32"
    np.testing.assert_allclose(similarity, np.exp(-20.0), rtol=1e-3)  # 0 in float16
    assert similarity.numpy().item() > 0 and np.isfinite(tape.gradient(similarity, query)).all()


@pytest.mark.parametrize("p", [0.5, 0, -1, float("inf"), float("nan"), True, "manhattan", None])
def test_refuses_what_is_no_norm(p):
    with pytest.raises(ValueError, match=f"Received: p={p!r}"):
        ManhattanDistance(p)
