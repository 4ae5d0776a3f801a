"""Scores against labels: each metric by its name, whatever its kind.

============================== ============================================== ======================
ranking, over queries          ``map``, ``mrr``, ``p@K``, ``ndcg@K``          see `zoo.metrics`
regression, over pairs         ``pearson``, ``spearman``, ``mse``             of score and label
classification, over pairs     ``accuracy``, ``f1``                           a score from the threshold on is a match
============================== ============================================== ======================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zoo.data import Dataset
from zoo.metrics import check_metric, ranking_metrics

_REGRESSION = ("pearson", "spearman", "mse")
_CLASSIFICATION = ("accuracy", "f1")
_LOWER_IS_BETTER = ("mse", "perplexity", "loss")


def direction(metric: str) -> str:
    """``"min"`` where a lower value is better, else ``"max"``.

    Raises:
        ValueError: for an unknown metric; beside those above, ``perplexity`` and ``loss`` are known.
    """
    if metric in _LOWER_IS_BETTER:
        return "min"
    if metric not in (*_REGRESSION, *_CLASSIFICATION):
        check_metric(metric)
    return "max"


def is_ranking(dataset: Dataset) -> bool:
    """Whether the data set is scored by the order of each query's candidates."""
    return any(name not in (*_REGRESSION, *_CLASSIFICATION) for name in dataset.metrics)


def is_classification(dataset: Dataset) -> bool:
    """Whether the data set is scored by pairs being told right, and so needs a threshold."""
    return any(name in _CLASSIFICATION for name in dataset.metrics)


def evaluate(dataset: Dataset, split: str, scores: Sequence[np.ndarray], threshold: float = 0.0) -> dict[str, float]:
    """The data set's metrics of one split, under its convention.

    Args:
        dataset: says which metrics.
        split: name of the split.
        scores: one array ``[L]`` per group.
        threshold: score from which on a pair is told a match.

    Raises:
        ValueError: for an unknown metric, or scores that do not fit the labels.
    """
    labels = [np.array(group.labels) for group in dataset.splits[split]]
    ranking = [name for name in dataset.metrics if name not in (*_REGRESSION, *_CLASSIFICATION)]
    found = ranking_metrics(scores, labels, dataset.convention, ranking) if ranking else {}
    if len(ranking) < len(dataset.metrics):
        flat_scores, flat_labels = np.concatenate(scores).astype("float64"), np.concatenate(labels)
        found |= {
            name: _over_pairs(name, flat_scores, flat_labels, threshold)
            for name in dataset.metrics
            if name not in ranking
        }
    return {name: found[name] for name in dataset.metrics}


def tuned_threshold(dataset: Dataset, dev_scores: Sequence[np.ndarray]) -> float:
    """The score from which on a pair is told a match: tuned on dev where pairs are told right or wrong, else 0.

    Args:
        dataset: its first metric decides whether accuracy or F1 is to be greatest.
        dev_scores: one array ``[L]`` per group of dev.
    """
    if not is_classification(dataset):
        return 0.0
    labels = [label for group in dataset.splits["dev"] for label in group.labels]
    by = "f1" if dataset.metrics[0] == "f1" else "accuracy"
    return best_threshold(np.concatenate(dev_scores), np.array(labels), by)


def best_threshold(scores: np.ndarray, labels: np.ndarray, metric: str = "accuracy") -> float:
    """The score from which on a pair is told a match, so that accuracy or F1 is greatest.

    Halfway between two neighbouring scores, and a number of float32, in which what serves the model compares; of
    several that are equally good the one nearest the middle.

    Args:
        scores: ``[n]``.
        labels: ``[n]``, greater than 0 is a match.
        metric: ``"accuracy"`` or ``"f1"``.

    Raises:
        ValueError: without scores.
    """
    if not len(scores):
        raise ValueError("A threshold needs scores. Received: scores of length 0")
    order = np.argsort(scores, kind="stable")
    ordered, positive = np.asarray(scores, "float64")[order], np.asarray(labels)[order] > 0
    # Cut i tells the first i pairs no match, the others a match.
    rejected = np.concatenate([[0], np.cumsum(~positive)])  # rightly
    accepted = positive.sum() - np.concatenate([[0], np.cumsum(positive)])
    if metric == "f1":
        told = len(ordered) - np.arange(len(ordered) + 1)
        value = 2 * accepted / np.maximum(told + positive.sum(), 1)
    else:
        value = rejected + accepted
    between = np.concatenate([[True], ordered[1:] > ordered[:-1], [True]])  # never through equal scores
    best = np.flatnonzero(between & (value == value[between].max()))
    cut = best[len(best) // 2]
    if cut == 0:
        return float(ordered[0])
    if cut == len(ordered):
        return float(np.nextafter(np.float32(ordered[-1]), np.float32(np.inf)))
    middle = np.float32((ordered[cut - 1] + ordered[cut]) / 2)
    # Neighbouring numbers have none between them.
    return float(middle if ordered[cut - 1] < middle <= ordered[cut] else ordered[cut])


def _over_pairs(name, scores, labels, threshold):
    # Slow to import, and not needed by rankings.
    from scipy import stats
    from sklearn import metrics

    if name == "mse":
        return float(np.mean((scores - labels) ** 2))
    if name in ("pearson", "spearman"):
        if np.ptp(scores) == 0 or np.ptp(labels) == 0:
            return 0.0  # undefined; a constant score tells nothing
        correlate = stats.pearsonr if name == "pearson" else stats.spearmanr
        return float(correlate(scores, labels).statistic)
    score = {"accuracy": metrics.accuracy_score, "f1": metrics.f1_score}[name]
    return float(score(labels > 0, scores >= threshold))
