"""GGSA and iGGSA as a whole against the paper's equations, word by word in float64 (Xu et al. 2019, Eq. 1 to 5).

The rows of the ablation and the several hops of Tran and Niederee 2018 (multihop attention networks) too.
"""

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


def attended(x, weights, whole):
    """Y of Eq. 2: a word and what it takes from its group, or of the ``whole`` text, without a gate."""
    name = "text_attention_1"
    gated = x
    if not whole:
        gate = x * x.mean(0) @ weights[f"{name}/global_gate/kernel"] + weights[f"{name}/global_gate/bias"]
        gated = x / (1 + np.exp(-gate))
    q, k, v = np.split(gated @ weights[f"{name}/attention/kernel"], 3, axis=1)
    c, width = np.zeros_like(x), SIZE // HEADS
    for head, offset in enumerate(OFFSETS):
        of_head = slice(head * width, (head + 1) * width)
        group = [(t + (GROUP - offset) % GROUP) // GROUP for t in range(len(x))]
        for t in range(len(x)):
            seen = [u for u in range(len(x)) if whole or group[u] == group[t]]
            alike = np.array([q[t, of_head] @ k[u, of_head] for u in seen]) / np.sqrt(width)
            c[t, of_head] = sum(a * v[u, of_head] for a, u in zip(softmax(alike), seen, strict=True))
    return normalized(x + c @ weights[f"{name}/attention/output_kernel"], weights, name)


def encoded(y, weights, whole):
    h = y + feed_forward(y, weights, "text_feed_forward_1")
    return normalized(h, weights, "text_feed_forward_1") if whole else h


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def looked_at(h_a, vector, weights):
    hidden = np.tanh(h_a @ weights["attention/states_kernel"] + vector @ weights["attention/vector_kernel"])
    return softmax((hidden @ weights["attention/weight"])[:, 0]) @ h_a


def read_along(h_a, vector, weights):
    """The sequential attention: an LSTM in both directions over the answer as the hop sees it."""
    name, total = "sequential_attention", 0

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    for direction in ("forward", "backward"):
        path = next(path for path in weights if path.startswith(name) and f"/{direction}_" in path)
        cell = path[: path.rindex("/")]
        kernel, recurrent, bias = (weights[f"{cell}/{part}"] for part in ("kernel", "recurrent_kernel", "bias"))
        h, c = (np.zeros(recurrent.shape[0]) for _ in range(2))
        sums = []
        for x in (h_a * vector)[:: 1 if direction == "forward" else -1]:
            i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            sums.append(h.sum())
        total = total + np.array(sums[:: 1 if direction == "forward" else -1])
    return softmax(total) @ h_a


def score(query, candidate, weights, interaction, composition, whole):
    h_q = encoded(attended(words(query, weights), weights, whole), weights, whole)
    y_a = attended(words(candidate, weights), weights, whole)
    if interaction:
        name = "question_aware_residual"
        y_a = normalized(y_a + feed_forward(y_a * h_q.mean(0), weights, name), weights, name)
    h_a = encoded(y_a, weights, whole)
    if composition == "max":
        return cosine(h_q.max(0), h_a.max(0))
    if composition == "attention":
        return cosine(h_q.max(0), looked_at(h_a, h_q.max(0), weights))
    look = read_along if composition == "multihop" else looked_at
    vector = memory = h_q.mean(0)
    total = cosine(vector, look(h_a, vector, weights))
    for hop in (1, 2):
        seen = np.tanh(h_q @ weights[f"hops/states_{hop}"]) * np.tanh(memory @ weights[f"hops/memory_{hop}"])
        vector = softmax((seen @ weights[f"hops/weight_{hop}"])[:, 0]) @ h_q
        memory = memory + vector
        total += cosine(vector, look(h_a, vector, weights))
    return total


@pytest.mark.parametrize("composition", ["max", "attention", "multihop", "multihop_mlp"])
@pytest.mark.parametrize("interaction, whole", [(False, False), (True, False), (False, True)])
def test_scores_are_those_of_the_equations(interaction, whole, composition):
    model = ggsa(
        embeddings(size=SIZE),
        num_heads=HEADS,
        inner_units=6,
        interaction=interaction,
        composition=composition,
        **{"group_size": None, "offsets": None, "gate": False, "normalize": True}
        if whole
        else {"group_size": GROUP, "offsets": OFFSETS},
    )
    random = np.random.default_rng(2)
    for weight in model.weights:
        if "embeddings" not in weight.path:  # gamma and beta too, which begin without effect
            weight.assign(random.normal(0.3, 0.5, weight.shape))
    weights = {weight.path: np.array(weight, "float64") for weight in model.weights}
    texts = ids(query_time=8, candidate_time=11)
    expected = [
        [score(query, candidate, weights, interaction, composition, whole) for candidate in candidates]
        for query, candidates in zip(texts["query"], texts["candidate"], strict=True)
    ]
    assert np.std(expected) > 1e-2
    np.testing.assert_allclose(np.array(model(texts)), expected, atol=5e-5)
