"""The layers around group self-attention against the paper's equations, one word at a time in float64."""

import keras
import numpy as np
import pytest

from layers.attention_pooling import AttentionPooling
from layers.feed_forward_residual import FeedForwardResidual
from layers.global_gate import GlobalGate
from layers.group_attention_residual import GroupAttentionResidual
from layers.group_self_attention import GroupSelfAttention
from layers.sinusoidal_positions import SinusoidalPositions
from layers.vector_similarity import VectorSimilarity
from tests.checks import check_layer

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 5, 8)).astype("float32")
MASK = np.array([[1] * 5, [1] * 2 + [0] * 3, [0, 1, 1, 0, 1]], bool)
VECTOR = RANDOM.normal(size=(3, 8)).astype("float32")
LISTS = RANDOM.normal(size=(3, 2, 5, 8)).astype("float32")
LISTS_MASK = np.stack([MASK, MASK[::-1]], axis=1)


def weights_of(layer):
    return [np.array(weight, "float64") for weight in layer.weights]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normalized(x):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-6)


def test_global_gate():
    layer = GlobalGate()
    outputs = np.array(layer(X, mask=MASK))
    kernel, bias = weights_of(layer)
    expected = np.zeros_like(X)
    for b in range(3):
        mean = X[b, MASK[b]].mean(axis=0)
        for t in np.flatnonzero(MASK[b]):
            expected[b, t] = X[b, t] * sigmoid((X[b, t] * mean) @ kernel + bias)
    np.testing.assert_allclose(outputs, expected, atol=1e-6)


@pytest.mark.parametrize("form", ["paired", "literal"])
def test_sinusoidal_positions(form):
    outputs = np.array(SinusoidalPositions(form)(np.zeros((1, 6, 7), "float32")))
    for t in range(6):
        for j in range(7):
            angle = t / 10000 ** ((2 * (j // 2) if form == "paired" else 2 * j) / 7)
            assert abs(outputs[0, t, j] - (np.sin(angle) if j % 2 == 0 else np.cos(angle))) < 1e-5


@pytest.mark.parametrize("gate", [True, False])
def test_group_attention_residual(gate):
    layer = GroupAttentionResidual(num_heads=2, group_size=2, offsets=(0, 1), gate=gate)
    outputs = np.array(layer(X, mask=MASK))
    seen = layer.global_gate(X, mask=MASK) if gate else X
    attended = np.array(layer.attention(seen, mask=MASK))
    for b, t in np.argwhere(MASK):
        np.testing.assert_allclose(outputs[b, t], normalized(X[b, t] + attended[b, t]), atol=1e-5)
    assert isinstance(layer.attention, GroupSelfAttention) and not outputs[~MASK].any()


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("vector", [None, VECTOR])
def test_feed_forward_residual(normalize, vector):
    layer = FeedForwardResidual(units=6, normalize=normalize)
    outputs = np.array(layer(X, vector=vector, states_mask=MASK))
    w1, b1, w2, b2 = weights_of(layer)[:4]
    for b, t in np.argwhere(MASK):
        seen = X[b, t] if vector is None else X[b, t] * vector[b]
        expected = X[b, t] + np.maximum(seen @ w1 + b1, 0) @ w2 + b2
        np.testing.assert_allclose(outputs[b, t], normalized(expected) if normalize else expected, atol=1e-5)


def test_inner_layer_is_four_times_as_wide():
    layer = FeedForwardResidual()
    layer(X)
    assert layer.inner.units == 32


def test_one_vector_serves_a_list():
    for layer in (FeedForwardResidual(), AttentionPooling()):
        together = np.array(layer(LISTS, VECTOR[:, None], states_mask=LISTS_MASK))
        for i in range(2):
            alone = layer(LISTS[:, i], VECTOR, states_mask=LISTS_MASK[:, i])
            np.testing.assert_allclose(together[:, i], alone, atol=1e-6)


def test_attention_pooling():
    layer = AttentionPooling(units=3)
    outputs = np.array(layer(X, VECTOR, states_mask=MASK))
    w0, w1, w = weights_of(layer)
    for b in range(3):
        states = X[b, MASK[b]].astype("float64")
        weights = np.exp([float((np.tanh(h @ w0 + VECTOR[b] @ w1) @ w)[0]) for h in states])
        np.testing.assert_allclose(outputs[b], weights / weights.sum() @ states, atol=1e-5)


def test_similarities():
    a, b = RANDOM.normal(size=(2, 4, 6))
    cosine = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(a, b, strict=True)]
    gesd = [1 / (1 + np.linalg.norm(x - y)) / (1 + np.exp(-0.5 * (x @ y + 2))) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(VectorSimilarity()(a, b), cosine, atol=1e-5)
    np.testing.assert_allclose(VectorSimilarity("gesd", gamma=0.5, c=2.0)(a, b), gesd, atol=1e-5)


def test_equal_and_zero_vectors_have_finite_similarity_and_slope():
    import tensorflow as tf

    x = tf.constant([[0.0, 0.0], [1.0, 2.0]])
    for mode in ("cosine", "gesd"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            similarity = VectorSimilarity(mode)(x, x)
        assert np.isfinite(similarity).all() and np.isfinite(tape.gradient(similarity, x)).all()


@pytest.mark.parametrize(
    "layer, arguments, inputs, masks",
    [
        (GlobalGate, {"kernel_initializer": "he_normal"}, {"inputs": X}, {"mask": MASK}),
        (SinusoidalPositions, {"form": "literal"}, {"inputs": X}, {"mask": MASK}),
        (
            GroupAttentionResidual,
            {
                "num_heads": 2,
                "group_size": 3,
                "offsets": (0, 0),
                "window": True,
                "scale": "model",
                "gate": False,
                "epsilon": 1e-3,
                "dropout": 0.5,
            },
            {"inputs": np.concatenate([X, X[..., :4]], axis=-1)},
            {"mask": MASK},
        ),
        (
            FeedForwardResidual,
            {"units": 6, "normalize": True, "epsilon": 1e-3, "dropout": 0.5, "outer_initializer": "zeros"},
            {"states": X, "vector": VECTOR},
            {"states_mask": MASK},
        ),
        (AttentionPooling, {"units": 3}, {"states": X, "vector": VECTOR}, {"states_mask": MASK}),
        (VectorSimilarity, {"mode": "gesd", "gamma": 0.5, "c": 2.0}, {"first": VECTOR, "second": X[:, 0]}, {}),
    ],
)
def test_promises(layer, arguments, inputs, masks):
    check_layer(layer, arguments, inputs, masks)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: GlobalGate()(np.zeros((2, 3), "float32")), r"inputs.shape=\(2, 3\)"),
        (lambda: SinusoidalPositions("none"), "form='none'"),
        (lambda: FeedForwardResidual(units=0), "units=0"),
        (lambda: FeedForwardResidual()(keras.Input((None, None))), r"states.shape=\(None, None, None\)"),
        (lambda: FeedForwardResidual()(np.ones((2, 3, 4)), np.ones((2, 5))), r".*vector.shape=\(2, 5\)"),
        (lambda: AttentionPooling(units=1.5), "units=1.5"),
        (lambda: VectorSimilarity("dot"), "mode='dot'"),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=f"Received: {message}"):
        make()
