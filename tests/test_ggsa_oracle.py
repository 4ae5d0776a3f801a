"""GGSA and iGGSA as a whole against the paper's equations, word by word in float64 (Xu et al. 2019, Eq. 1 to 5)."""

import numpy as np
import pytest

from tests.toy_models import embeddings, ids
from zoo.models.ggsa import ggsa

SIZE, HEADS, GROUP, OFFSETS = 8, 2, 3, (0, 2)


def softmax(x):
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def normalized(x, weights, name):
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return scaled * weights[f"{name}/normalization/gamma"] + weights[f"{name}/normalization/beta"]


def feed_forward(z, weights, name):
    inner = np.maximum(z @ weights[f"{name}/inner/kernel"] + weights[f"{name}/inner/bias"], 0)
    return inner @ weights[f"{name}/outer/kernel"] + weights[f"{name}/outer/bias"]


def words(text, weights):
    """Vectors of the real words, with positions."""
    x = weights["embedding/embeddings"][text[text > 0]]
    for t in range(len(x)):
        for j in range(SIZE):
            angle = t / 10000 ** (2 * (j // 2) / SIZE)
            x[t, j] += np.cos(angle) if j % 2 else np.sin(angle)
    return x


def attended(x, weights):
    """Y of Eq. 2: a word and what it takes from its group."""
    name = "text_attention_1"
    gate = x * x.mean(0) @ weights[f"{name}/global_gate/kernel"] + weights[f"{name}/global_gate/bias"]
    gated = x / (1 + np.exp(-gate))
    q, k, v = np.split(gated @ weights[f"{name}/attention/kernel"], 3, axis=1)
    c, width = np.zeros_like(x), SIZE // HEADS
    for head, offset in enumerate(OFFSETS):
        of_head = slice(head * width, (head + 1) * width)
        group = [(t + (GROUP - offset) % GROUP) // GROUP for t in range(len(x))]
        for t in range(len(x)):
            seen = [u for u in range(len(x)) if group[u] == group[t]]
            alike = np.array([q[t, of_head] @ k[u, of_head] for u in seen]) / np.sqrt(width)
            c[t, of_head] = sum(a * v[u, of_head] for a, u in zip(softmax(alike), seen, strict=True))
    return normalized(x + c @ weights[f"{name}/attention/output_kernel"], weights, name)


def encoded(y, weights):
    return y + feed_forward(y, weights, "text_feed_forward_1")


def cosine(query, candidate, weights, interaction, attention):
    h_q, y_a = encoded(attended(words(query, weights), weights), weights), attended(words(candidate, weights), weights)
    if interaction:
        name = "question_aware_residual"
        y_a = normalized(y_a + feed_forward(y_a * h_q.mean(0), weights, name), weights, name)
    h_a, v_q = encoded(y_a, weights), h_q.max(0)
    v_a = h_a.max(0)
    if attention:
        hidden = np.tanh(h_a @ weights["attention/states_kernel"] + v_q @ weights["attention/vector_kernel"])
        v_a = softmax((hidden @ weights["attention/weight"])[:, 0]) @ h_a
    return v_q @ v_a / np.linalg.norm(v_q) / np.linalg.norm(v_a)


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("interaction", [False, True])
def test_scores_are_those_of_the_equations(interaction, attention):
    model = ggsa(
        embeddings(size=SIZE),
        num_heads=HEADS,
        group_size=GROUP,
        offsets=OFFSETS,
        inner_units=6,
        interaction=interaction,
        composition="attention" if attention else "max",
    )
    random = np.random.default_rng(2)
    for weight in model.weights:
        if "embeddings" not in weight.path:  # gamma and beta too, which begin without effect
            weight.assign(random.normal(0.3, 0.5, weight.shape))
    weights = {weight.path: np.array(weight, "float64") for weight in model.weights}
    texts = ids(query_time=8, candidate_time=11)
    expected = [
        [cosine(query, candidate, weights, interaction, attention) for candidate in candidates]
        for query, candidates in zip(texts["query"], texts["candidate"], strict=True)
    ]
    assert np.std(expected) > 1e-2
    np.testing.assert_allclose(np.array(model(texts)), expected, atol=2e-5)
