"""Metrics by name, of any kind, and the threshold that is tuned on dev."""

import numpy as np
import pytest

from zoo.data import Dataset, Group
from zoo.evaluation import best_threshold, direction, evaluate, is_classification, is_ranking, tuned_threshold
from zoo.metrics import Convention


def dataset(metrics, labels):
    groups = [Group(str(i), ("q",), (("c",),) * len(row), tuple(row)) for i, row in enumerate(labels)]
    return Dataset("toy", {"train": [], "dev": groups, "test1": groups}, Convention(), metrics)


def test_each_metric_by_hand():
    of_pairs = dataset(("mse", "pearson", "spearman"), [[1.0], [2.0], [5.0]])
    scores = [np.array([x]) for x in (1.0, 3.0, 4.0)]
    found = evaluate(of_pairs, "dev", scores)
    assert list(found) == ["mse", "pearson", "spearman"]
    assert found["mse"] == pytest.approx((0 + 1 + 1) / 3)
    assert found["spearman"] == pytest.approx(1.0)
    assert found["pearson"] == pytest.approx(np.corrcoef([1, 3, 4], [1, 2, 5])[0, 1])


def test_accuracy_and_f1_depend_on_the_threshold_and_rankings_do_not():
    both = dataset(("accuracy", "f1", "mrr"), [[1.0, 0.0], [0.0, 1.0]])
    scores = [np.array([0.4, 0.1]), np.array([-0.5, -0.2])]
    assert evaluate(both, "dev", scores) == {"accuracy": 0.5, "f1": 0.5, "mrr": 1.0}
    at = evaluate(both, "test1", scores, threshold=-0.3)
    assert at == {"accuracy": 0.75, "f1": pytest.approx(0.8), "mrr": 1.0}


def test_a_constant_score_tells_nothing():
    found = evaluate(dataset(("pearson", "spearman"), [[1.0], [2.0]]), "dev", [np.zeros(1)] * 2)
    assert found == {"pearson": 0.0, "spearman": 0.0}


def test_an_unknown_metric_is_named():
    with pytest.raises(ValueError, match="metric='bleu'"):
        evaluate(dataset(("mse", "bleu"), [[1.0]]), "dev", [np.zeros(1)])


def test_kinds_and_directions():
    assert is_ranking(dataset(("map",), [])) and not is_ranking(dataset(("accuracy", "mse"), []))
    assert is_classification(dataset(("map", "f1"), [])) and not is_classification(dataset(("mse",), []))
    assert [direction(name) for name in ("mse", "perplexity", "loss", "pearson", "p@1")] == [*["min"] * 3, "max", "max"]
    with pytest.raises(ValueError, match="metric='mae'"):
        direction("mae")
    assert dataset(("map",), []).scored_splits == ("dev", "test1")


@pytest.mark.parametrize(
    "scores, labels, expected",
    [
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], 2.5),
        ([4.0, 1.0, 3.0, 2.0], [1, 0, 1, 0], 2.5),
        ([1.0, 2.0, 3.0], [1, 1, 1], 1.0),  # all a match: the lowest score is one too
        ([0.0, 0.0, 1.0], [0, 1, 1], 0.5),  # equal scores are never parted
    ],
)
def test_best_threshold(scores, labels, expected):
    threshold = best_threshold(np.array(scores), np.array(labels))
    assert threshold == expected
    right = (np.array(scores) >= threshold) == (np.array(labels) > 0)
    cuts = [*scores, max(scores) + 1]
    assert right.mean() == max(((np.array(scores) >= c) == (np.array(labels) > 0)).mean() for c in cuts)


def test_f1_has_a_threshold_of_its_own():
    random = np.random.default_rng(0)
    labels = (random.random(400) < 0.1).astype(float)
    scores = labels + random.normal(size=400)
    of_pairs = dataset(("f1",), [[label] for label in labels])
    rows = [np.array([score]) for score in scores]
    found = evaluate(of_pairs, "dev", rows, best_threshold(scores, labels, "f1"))["f1"]
    assert found == pytest.approx(max(evaluate(of_pairs, "dev", rows, cut)["f1"] for cut in scores))
    assert found > evaluate(of_pairs, "dev", rows, best_threshold(scores, labels))["f1"] + 0.05


def test_the_first_metric_says_what_the_threshold_is_tuned_for():
    random = np.random.default_rng(0)
    labels = (random.random(400) < 0.1).astype(float)
    scores = labels + random.normal(size=400)
    rows = [np.array([score]) for score in scores]
    for metrics, by in ((("f1", "accuracy"), "f1"), (("accuracy", "f1"), "accuracy")):
        tuned = tuned_threshold(dataset(metrics, [[label] for label in labels]), rows)
        assert tuned == best_threshold(scores, labels, by)
    assert tuned_threshold(dataset(("map",), [[label] for label in labels]), rows) == 0.0


def test_between_neighbouring_numbers_the_upper_one_is_the_threshold():
    scores = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert best_threshold(scores, np.array([0.0, 1.0])) == scores[1]


def test_what_serves_a_model_compares_with_the_same_number():
    random = np.random.default_rng(0)
    for _ in range(50):
        low = np.float32(random.normal())
        scores = np.array([low, np.nextafter(low, np.float32(9)), low + 1], "float32")
        for labels in ([0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]):
            threshold = best_threshold(scores, np.array(labels))
            assert threshold == np.float32(threshold)
            np.testing.assert_array_equal(scores >= threshold, np.array(labels) > 0)


def test_without_a_match_nothing_reaches_the_threshold():
    scores = np.array([0.5, 2.0])
    assert not (scores >= best_threshold(scores, np.zeros(2))).any()
    with pytest.raises(ValueError, match="length 0"):
        best_threshold(np.zeros(0), np.zeros(0))
