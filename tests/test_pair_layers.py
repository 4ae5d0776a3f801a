"""The layers of GGSA's baselines against the papers' equations, in float64."""

import keras
import numpy as np
import pytest

from layers.attention_pooling import AttentionPooling
from layers.attentive_pooling import AttentivePooling
from layers.circular_correlation import CircularCorrelation
from layers.feed_forward_residual import FeedForwardResidual
from layers.multihop_attention import MultihopAttention
from layers.sequential_attention import SequentialAttention
from layers.tensor_interaction import TensorInteraction
from tests.checks import check_layer

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 5, 4)).astype("float32")
MASK = np.array([[1] * 5, [1] * 2 + [0] * 3, [0, 1, 1, 0, 1]], bool)
LISTS = RANDOM.normal(size=(3, 2, 6, 4)).astype("float32")
LISTS_MASK = RANDOM.random((3, 2, 6)) < 0.7
A, B = RANDOM.normal(size=(2, 3, 5)).astype("float32")


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def test_multihop_attention():
    layer = MultihopAttention(num_hops=2)
    outputs = np.array(layer(X, mask=MASK))
    weights = [np.array(weight, "float64") for weight in layer.weights]
    for b in range(3):
        states = X[b, MASK[b]].astype("float64")
        o = [states.mean(axis=0)]
        memory = o[0]
        for k in range(2):
            w_states, w_memory, w = weights[3 * k : 3 * k + 3]
            logits = np.array([(np.tanh(h @ w_states) * np.tanh(memory @ w_memory)) @ w[:, 0] for h in states])
            o.append(softmax(logits) @ states)
            memory = memory + o[-1]
        np.testing.assert_allclose(outputs[b], o, atol=1e-5)


def test_sequential_attention():
    layer = SequentialAttention(units=3)
    vectors = RANDOM.normal(size=(3, 2, 4)).astype("float32")
    outputs = np.array(layer(X, vectors, states_mask=MASK))
    lstm = keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True))
    lstm.build((None, None, 4))
    lstm.set_weights(layer.get_weights())
    for b in range(3):
        states = X[b, MASK[b]]
        for k in range(2):
            read = np.array(lstm((states * vectors[b, k])[None]))[0]
            np.testing.assert_allclose(outputs[b, k], softmax(read.sum(axis=-1)) @ states, atol=1e-5)


@pytest.mark.parametrize("make", [AttentionPooling, SequentialAttention, FeedForwardResidual])
def test_states_of_few_texts_are_read_under_many_vectors(make):
    layer, vectors = make(), RANDOM.normal(size=(7, 1, 4)).astype("float32")
    vectors = vectors[:, None] if make is SequentialAttention else vectors
    states, mask = np.repeat(X[None], 7, axis=0), np.repeat(MASK[None], 7, axis=0)
    every = layer(states, np.repeat(vectors, 3, axis=1), states_mask=mask)
    outputs = layer(X[None], vectors, states_mask=MASK[None])
    np.testing.assert_allclose(outputs, every, atol=1e-5)
    assert layer.compute_output_shape((1, *X.shape), vectors.shape) == outputs.shape


def test_states_of_one_text_are_read_under_many_vectors():
    """TensorFlow's own product of such shapes is wrong on some CPUs."""
    layer, vectors = SequentialAttention(), RANDOM.normal(size=(7, 1, 2, 4)).astype("float32")
    states = RANDOM.normal(size=(1, 1, 5, 4)).astype("float32")
    every = layer(np.repeat(states, 7, axis=0), vectors)
    for _ in range(20):
        np.testing.assert_allclose(layer(states, vectors), every, atol=1e-5)


def test_attentive_pooling():
    layer = AttentivePooling()
    v_query, v_candidate = map(np.array, layer(X, LISTS, query_mask=MASK, candidate_mask=LISTS_MASK))
    kernel = np.array(layer.kernel, "float64")
    for b, i in np.ndindex(3, 2):
        q, a = X[b, MASK[b]], LISTS[b, i, LISTS_MASK[b, i]]
        fit = np.tanh(q @ kernel @ a.T)
        np.testing.assert_allclose(v_query[b, i], softmax(fit.max(axis=1)) @ q, atol=1e-5)
        np.testing.assert_allclose(v_candidate[b, i], softmax(fit.max(axis=0)) @ a, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_circular_correlation(size):
    a, b = RANDOM.normal(size=(2, 3, size)).astype("float32")
    expected = [[sum(x[i] * y[(k + i) % size] for i in range(size)) for k in range(size)] for x, y in zip(a, b)]  # noqa: B905
    np.testing.assert_allclose(CircularCorrelation()(a, b), expected, atol=1e-5)


def test_tensor_interaction():
    layer = TensorInteraction(slices=2)
    outputs = np.array(layer(A, B))
    tensor, kernel, bias = (np.array(weight, "float64") for weight in layer.weights)
    slices = tensor.reshape(5, 2, 5)
    for n in range(3):
        linear = np.concatenate([A[n], B[n]]) @ kernel + bias
        expected = [np.tanh(A[n] @ slices[:, k] @ B[n] + linear[k]) for k in range(2)]
        np.testing.assert_allclose(outputs[n], expected, atol=1e-5)


@pytest.mark.parametrize(
    "layer, arguments, inputs, masks",
    [
        (MultihopAttention, {"num_hops": 1}, {"states": X}, {"mask": MASK}),
        (SequentialAttention, {"units": 3}, {"states": X, "vectors": LISTS[:, :, 0]}, {"states_mask": MASK}),
        (
            AttentivePooling,
            {"kernel_initializer": "he_normal"},
            {"query": X, "candidate": LISTS},
            {"query_mask": MASK, "candidate_mask": LISTS_MASK},
        ),
        (CircularCorrelation, {}, {"first": A, "second": B}, {}),
        (TensorInteraction, {"slices": 2}, {"first": A, "second": B}, {}),
    ],
)
def test_promises(layer, arguments, inputs, masks):
    check_layer(layer, arguments, inputs, masks)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: MultihopAttention(num_hops=0), "num_hops=0"),
        (lambda: SequentialAttention(units=0), "units=0"),
        (lambda: TensorInteraction(slices=0), "slices=0"),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=f"Received: {message}"):
        make()
