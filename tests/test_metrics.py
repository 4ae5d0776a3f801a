"""Ranking metrics: the paper's BM25 row to the digit, trec_eval, and a loop that reads as the definition."""

import itertools

import numpy as np
import pytest

from tests.data_checks import real_data
from zoo.metrics import Convention, count_queries, ranking_metrics

ALL = ("map", "mrr", "p@1", "p@3", "p@10", "ndcg@1", "ndcg@3", "ndcg@10")


def metrics_of_order(labels, cutoff=None):
    """All metrics of one list in the order given, as the definitions read."""
    relevant = [rank for rank, label in enumerate(labels, 1) if label > 0]
    within = [rank for rank in relevant if cutoff is None or rank <= cutoff]
    result = {
        "map": sum((i + 1) / rank for i, rank in enumerate(within)) / max(len(relevant), 1),
        "mrr": 1 / within[0] if within else 0.0,
    }
    for k in (1, 3, 10):
        result[f"p@{k}"] = sum(rank <= k for rank in relevant) / k

        def dcg(gains, k=k):
            return sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains[:k], 1))

        ideal = dcg(sorted(labels, reverse=True))
        result[f"ndcg@{k}"] = dcg(labels) / ideal if ideal else 0.0
    return result


def orders(scores, labels, ties):
    """Every order of the candidates that the convention allows, equally likely."""
    blocks = [[label for s, label in zip(scores, labels, strict=True) if s == score] for score in set(scores)]
    blocks = [block for _, block in sorted(zip(set(scores), blocks, strict=True), reverse=True)]
    if ties == "file":
        choices = [[tuple(block)] for block in blocks]
    elif ties == "pessimistic":
        choices = [[tuple(sorted(block))] for block in blocks]
    else:
        choices = [list(itertools.permutations(block)) for block in blocks]
    for chosen in itertools.product(*choices):
        yield [label for block in chosen for label in block]


def expected(all_scores, all_labels, convention):
    rows = []
    for scores, labels in zip(all_scores, all_labels, strict=True):
        if max(labels) <= 0 and convention.without_positive == "skip":
            continue
        per_order = [metrics_of_order(order, convention.cutoff) for order in orders(scores, labels, convention.ties)]
        rows.append({name: np.mean([row[name] for row in per_order]) for name in ALL})
    return {name: np.mean([row[name] for row in rows]) for name in ALL}


@pytest.mark.parametrize("cutoff", [None, 2])
@pytest.mark.parametrize("without_positive", ["skip", "zero"])
@pytest.mark.parametrize("ties", ["file", "pessimistic", "average"])
def test_agrees_with_the_definition_over_all_orders_of_ties(ties, without_positive, cutoff):
    rng = np.random.default_rng(7)
    sizes = [1, 1, 2, 3, 4, 5, 6, 6, 6]
    scores = [rng.integers(0, 3, n).astype(float) for n in sizes] + [np.zeros(6), np.zeros(3)]
    labels = [rng.integers(0, 3, n) for n in sizes] + [np.array([0, 0, 1, 0, 2, 0]), np.zeros(3)]
    convention = Convention(ties, without_positive, cutoff)
    got = ranking_metrics(scores, labels, convention, ALL)
    want = expected(scores, labels, convention)
    assert list(got) == list(ALL)
    for name in ALL:
        assert got[name] == pytest.approx(want[name], abs=1e-12), name


@pytest.mark.parametrize(
    ("split", "ties", "without_positive", "published"),
    [
        ("dev", "file", "skip", (52.03, 65.99, 51.85, 42.12)),
        ("test", "file", "skip", (55.99, 68.03, 53.76, 42.47)),
        ("dev", "file", "zero", (49.17, 62.36, 49.00, 39.80)),
        ("test", "file", "zero", (52.07, 63.27, 50.00, 39.50)),
        ("dev", "pessimistic", "skip", (52.01, 65.83, 51.85, 42.12)),
        ("test", "pessimistic", "skip", (55.89, 67.94, 53.76, 42.47)),
    ],
)
def test_reproduces_the_bm25_row_of_the_rcnn_paper(split, ties, without_positive, published):
    scores, labels = [], []
    for line in (real_data("askubuntu") / f"{split}.txt").read_text(encoding="utf-8").splitlines():
        _, similar, candidates, bm25 = line.split("\t")
        labels.append([float(candidate in similar.split()) for candidate in candidates.split()])
        scores.append([float(score) for score in bm25.split()])
    convention = Convention(ties, without_positive)
    got = ranking_metrics(scores, labels, convention, ("map", "mrr", "p@1", "p@5"))
    assert tuple(round(100 * value, 2) for value in got.values()) == published
    counts = count_queries(labels, convention)
    without = {"dev": 11, "test": 14}[split]
    counted = 200 if without_positive == "zero" else 200 - without
    assert counts == {"num_queries": 200, "num_counted": counted, "num_without_positive": without}


def test_agrees_with_trec_eval():
    import pytrec_eval

    rng = np.random.default_rng(3)
    scores = [rng.integers(0, n, n).astype(float) for n in rng.integers(2, 30, 200)]
    labels = [np.minimum(rng.poisson(0.3, len(row)), 3) for row in scores]
    # trec_eval breaks ties by document name, last one first: these names are the order of the file.
    qrels = {f"q{i}": {f"d{99 - j}": int(x) for j, x in enumerate(row)} for i, row in enumerate(labels)}
    run = {f"q{i}": {f"d{99 - j}": float(x) for j, x in enumerate(row)} for i, row in enumerate(scores)}
    names = {"map": "map", "mrr": "recip_rank", "p@1": "P_1", "p@50": "P_50", "ndcg@10": "ndcg_cut_10"}
    per_query = pytrec_eval.RelevanceEvaluator(
        qrels, {"map", "recip_rank", "P.1,50", "ndcg_cut.10", "map_cut.3"}
    ).evaluate(run)
    assert len(per_query) == 200
    without = sum(not row.any() for row in labels)
    assert without > 5
    for without_positive, count in (("zero", 200), ("skip", 200 - without)):
        ours = ranking_metrics(scores, labels, Convention("file", without_positive), tuple(names))
        cut = ranking_metrics(scores, labels, Convention("file", without_positive, cutoff=3), ("map",))["map"]
        for got, their_name in [*((ours[name], names[name]) for name in names), (cut, "map_cut_3")]:
            theirs = sum(row[their_name] for row in per_query.values()) / count
            assert got == pytest.approx(theirs, abs=1e-9), (without_positive, their_name)


def test_constant_scorer_gains_nothing():
    constant = [np.zeros(5)] * 5
    labels = list(np.eye(5))
    got = ranking_metrics(constant, labels, Convention("average"))
    assert got["p@1"] == pytest.approx(0.2)
    assert got["mrr"] == pytest.approx(0.456667, abs=1e-6)
    positives_first = [np.array([1, 0, 0, 0, 0])] * 5
    assert ranking_metrics(constant, positives_first, Convention("file"))["p@1"] == 1.0
    worst = ranking_metrics(constant, positives_first, Convention())
    assert (worst["p@1"], worst["mrr"]) == (0.0, pytest.approx(0.2))


def test_order_of_queries_and_candidates_does_not_matter():
    rng = np.random.default_rng(1)
    scores = [rng.integers(0, 4, 8).astype(float) for _ in range(20)]
    labels = [rng.integers(0, 2, 8) for _ in range(20)]
    orders_of = [rng.permutation(8) for _ in range(20)]
    for ties in ("pessimistic", "average"):
        one = ranking_metrics(scores, labels, Convention(ties), ALL)
        moved = ranking_metrics(
            [row[order] for row, order in zip(scores, orders_of, strict=True)][::-1],
            [row[order] for row, order in zip(labels, orders_of, strict=True)][::-1],
            Convention(ties),
            ALL,
        )
        assert one == pytest.approx(moved, abs=1e-12)


def test_scores_may_be_infinite_half_precision_or_lists():
    labels = [[1, 0, 0], [0, 1, 0]]
    for scores in ([[np.inf, 0.0, -np.inf], [-np.inf, np.inf, 0.0]], np.float16([[3, 1, 2], [1, 3, 2]])):
        assert ranking_metrics(scores, labels, Convention(), ("mrr",)) == {"mrr": 1.0}


def test_queries_without_candidates_never_count():
    scores, labels = [[], [1.0, 0.0], [0.5]], [[], [1, 0], [0]]
    zero = Convention(without_positive="zero")
    assert ranking_metrics(scores, labels, zero, ("map",)) == {"map": 0.5}
    assert count_queries(labels, zero) == {"num_queries": 3, "num_counted": 2, "num_without_positive": 2}
    skip = Convention()
    assert ranking_metrics(scores, labels, skip, ("map",)) == {"map": 1.0}
    assert count_queries(labels, skip) == {"num_queries": 3, "num_counted": 1, "num_without_positive": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ties": "best"}, r"one of .*Received: ties='best'"),
        ({"without_positive": "drop"}, r"Received: without_positive='drop'"),
        ({"cutoff": 0}, r"at least 1.*Received: cutoff=0"),
    ],
)
def test_convention_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Convention(**arguments)


@pytest.mark.parametrize(
    ("scores", "labels", "arguments", "message"),
    [
        ([[0.0]], [[1]], {"metrics": ("map", "p@0")}, r"K >= 1. Received: metric='p@0'"),
        ([[0.0]], [[1]], {"metrics": ("recall@5",)}, r"Received: metric='recall@5'"),
        ([[0.0]], [[1], [0]], {}, r"Received: len\(scores\)=1, len\(labels\)=2"),
        ([[0.0], [1, 2.0]], [[1], [0]], {}, r"Received: query 1, scores.shape=\(2,\), labels.shape=\(1,\)"),
        ([[0.0], [1.0, np.nan]], [[1], [0, 1]], {}, r"NaN.*Received: query 1, scores=\[ 1. nan\]"),
        ([[0.0]], [[np.nan]], {}, r"Received: query 0, labels=\[nan\]"),
        ([[0.0], [1.0]], [[1], [0]], {"without_positive": "error"}, r"Received: query 1, labels=\[0.\]"),
        ([[0.0]], [[0]], {}, r"Received: 1 queries, none of which counts"),
        ([], [], {}, r"Received: 0 queries"),
    ],
)
def test_ranking_metrics_refuses(scores, labels, arguments, message):
    metrics = arguments.pop("metrics", ("map",))
    with pytest.raises(ValueError, match=message):
        ranking_metrics(scores, labels, Convention(**arguments), metrics)
