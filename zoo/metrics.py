"""Ranking metrics under a stated convention: what happens to ties and to queries without a positive.

Published figures of the same system differ by several points with these two choices alone, so they are
an argument that is written beside each figure, never a habit of the code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TIES = ("file", "pessimistic", "average")
WITHOUT_POSITIVE = ("skip", "zero", "error")


@dataclass(frozen=True)
class Convention:
    """How a ranking is scored; the default does not let a constant scorer profit from the file's order.

    Args:
        ties: order of candidates with equal scores. ``"file"`` keeps the order of the file (what most
            published scorers do), ``"pessimistic"`` puts the less relevant first, ``"average"`` is the exact
            expectation over all orders of the tied candidates.
        without_positive: a query without a relevant candidate is left out (``"skip"``), counts as zero
            (``"zero"``, as trec_eval -c) or is refused (``"error"``).
        cutoff: ``map`` and ``mrr`` ignore ranks beyond it; None looks at the whole list. AP is divided by all
            relevant candidates of the query, as in trec_eval, also by those beyond the cutoff.

    Raises:
        ValueError: for a value that is not one of these.
    """

    ties: str = "pessimistic"
    without_positive: str = "skip"
    cutoff: int | None = None

    def __post_init__(self):
        if self.ties not in TIES:
            raise ValueError(f"ties must be one of {TIES}. Received: ties={self.ties!r}")
        if self.without_positive not in WITHOUT_POSITIVE:
            raise ValueError(
                f"without_positive must be one of {WITHOUT_POSITIVE}. "
                f"Received: without_positive={self.without_positive!r}"
            )
        if self.cutoff is not None and (isinstance(self.cutoff, bool) or self.cutoff < 1):
            raise ValueError(f"cutoff must be at least 1, or None. Received: cutoff={self.cutoff!r}")


def ranking_metrics(
    scores: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    convention: Convention,
    metrics: Sequence[str] = ("map", "mrr", "p@1"),
) -> dict[str, float]:
    """Means over queries of average precision, reciprocal rank, precision and nDCG, as fractions.

    A query that has no candidates at all is never counted. ``p@K`` is divided by K also where the list is
    shorter. ``ndcg@K`` takes the label itself as gain and divides it by log2(rank + 1).

    Args:
        scores: one array ``[L]`` per query, higher is better, candidates in the order of the file.
        labels: one array ``[L]`` per query; greater than 0 is relevant.
        convention: see ``Convention``.
        metrics: names out of ``map``, ``mrr``, ``p@K``, ``ndcg@K`` with K a number.

    Raises:
        ValueError: for an unknown metric, lengths that differ, a NaN, a query without a positive where the
            convention refuses it, or when no query can be counted.
    """
    parsed = [_parse(name) for name in metrics]
    flat_scores, flat_labels, query, counted = _flatten(scores, labels, convention)
    ranks = _Ranking(flat_scores, flat_labels, query, len(labels), convention.ties)
    cutoff = np.inf if convention.cutoff is None else convention.cutoff
    compute = {
        "map": lambda k: ranks.average_precision(cutoff),
        "mrr": lambda k: ranks.reciprocal_rank(cutoff),
        "p": ranks.precision,
        "ndcg": ranks.ndcg,
    }
    return {name: float(np.mean(compute[kind](k)[counted])) for name, (kind, k) in zip(metrics, parsed, strict=True)}


def count_queries(labels: Sequence[np.ndarray], convention: Convention) -> dict[str, int]:
    """How many queries there are, how many enter the means, and how many have no relevant candidate."""
    with_positive = sum(bool(np.any(np.asarray(row) > 0)) for row in labels)
    with_candidates = sum(len(row) > 0 for row in labels)
    return {
        "num_queries": len(labels),
        "num_counted": with_candidates if convention.without_positive == "zero" else with_positive,
        "num_without_positive": len(labels) - with_positive,
    }


class _Ranking:
    """All queries sorted at once; where ties are averaged, a block of equal scores shares its chances.

    Every quantity is per sorted candidate: its rank in its query, and of its block the size n, the number
    of relevant candidates r, the relevant candidates ranked before the block, and the place j in the block.
    """

    def __init__(self, scores, labels, query, num_queries, ties):
        within_ties = labels if ties == "pessimistic" else np.zeros_like(labels)
        order = np.lexsort((within_ties, -scores, query))  # stable: what is still equal keeps file order
        scores, labels, query = scores[order], labels[order], query[order]
        gains = np.maximum(labels, 0.0)
        relevant = (labels > 0).astype(np.float64)
        self.query, self.gains, self.num_queries = query, gains, num_queries
        index = np.arange(len(query))
        new_query = np.diff(query, prepend=-1) != 0
        starts_block = np.ones(len(query), bool)
        if ties == "average":
            starts_block = new_query | (scores != np.concatenate([scores[:1], scores[:-1]]))
        first_of_query = np.maximum.accumulate(np.where(new_query, index, 0))
        first_of_block = np.maximum.accumulate(np.where(starts_block, index, 0))
        block = np.cumsum(starts_block) - 1
        before = np.cumsum(relevant) - relevant

        self.rank = index - first_of_query + 1
        self.place = index - first_of_block + 1
        self.size = np.bincount(block)[block] if len(block) else block
        self.hits = _sum_by(block, relevant)[block]
        self.gain = _sum_by(block, gains)[block] / np.maximum(self.size, 1)
        self.hits_before = before[first_of_block] - before[first_of_query]

    def average_precision(self, cutoff):
        # At place j of a block the candidate is relevant with chance r/n; given that, each of the j - 1
        # others before it in the block is relevant with chance (r-1)/(n-1).
        chance = self.hits / self.size
        among_others = (self.place - 1) * (self.hits - 1) / np.maximum(self.size - 1, 1)
        precision = (self.hits_before + 1 + among_others) / self.rank
        num_relevant = self._sum(chance)
        return self._sum(chance * precision * (self.rank <= cutoff)) / np.maximum(np.round(num_relevant), 1)

    def reciprocal_rank(self, cutoff):
        # Only the first block that holds a relevant candidate matters. The first relevant one stands at
        # place j with chance r/(n-j+1) * product over i < j of (1 - r/(n-i+1)).
        matters = (self.hits_before == 0) & (self.hits > 0)
        left = self.size - self.place + 1
        hit = np.minimum(self.hits / left, 1.0)
        missed = np.ones(len(hit))
        for start in np.flatnonzero(matters & (self.place == 1) & (self.size > 1)):
            end = start + self.size[start]
            missed[start + 1 : end] = np.cumprod(1.0 - hit[start : end - 1])
        return self._sum(matters * hit * missed / self.rank * (self.rank <= cutoff))

    def precision(self, k):
        return self._sum(self.hits / self.size * (self.rank <= k)) / k

    def ndcg(self, k):
        discount = (self.rank <= k) / np.log2(self.rank + 1)
        # Sorted by gain, the i-th candidate of a query still stands at the query's i-th rank.
        best = self.gains[np.lexsort((-self.gains, self.query))]
        ideal = self._sum(best * discount)
        return self._sum(self.gain * discount) / np.where(ideal > 0, ideal, 1.0)

    def _sum(self, values):
        return _sum_by(self.query, values, self.num_queries)


def _sum_by(index, values, length=0):
    return np.bincount(index, weights=values, minlength=length)


def _flatten(scores, labels, convention):
    if len(scores) != len(labels):
        raise ValueError(
            "scores and labels must hold one array per query. "
            f"Received: len(scores)={len(scores)}, len(labels)={len(labels)}"
        )
    counted = np.zeros(len(labels), bool)
    flat_scores, flat_labels = [], []
    for i, (row_scores, row_labels) in enumerate(zip(scores, labels, strict=True)):
        row_scores = np.asarray(row_scores, np.float64)
        row_labels = np.asarray(row_labels, np.float64)
        if row_scores.ndim != 1 or row_scores.shape != row_labels.shape:
            raise ValueError(
                f"Each query must have one score per label. Received: query {i}, "
                f"scores.shape={row_scores.shape}, labels.shape={row_labels.shape}"
            )
        for name, row in (("scores", row_scores), ("labels", row_labels)):
            if np.isnan(row).any():
                raise ValueError(
                    f"{name} must be numbers; NaN has no rank. "
                    f"Received: query {i}, {name}={np.array2string(row, threshold=20)}"
                )
        has_positive = bool((row_labels > 0).any())
        if convention.without_positive == "error" and not has_positive:
            raise ValueError(
                'without_positive="error" wants a relevant candidate (label > 0) for each query. '
                f"Received: query {i}, labels={np.array2string(row_labels, threshold=20)}"
            )
        counted[i] = has_positive or (convention.without_positive == "zero" and len(row_labels) > 0)
        flat_scores.append(row_scores)
        flat_labels.append(row_labels)
    if not counted.any():
        raise ValueError(
            "At least one query must have a relevant candidate (label > 0), or there is nothing to average. "
            f"Received: {len(labels)} queries, none of which counts"
        )
    query = np.repeat(np.arange(len(labels)), [len(row) for row in flat_labels])
    return np.concatenate(flat_scores), np.concatenate(flat_labels), query, counted


def check_metric(name: str) -> None:
    """Refuses a name that is no ranking metric.

    Raises:
        ValueError: with the names that there are.
    """
    _parse(name)


def _parse(name: str) -> tuple[str, int | None]:
    if name in ("map", "mrr"):
        return name, None
    match = re.fullmatch(r"(p|ndcg)@([1-9][0-9]*)", str(name))
    if match is None:
        raise ValueError(f"A metric must be one of map, mrr, p@K, ndcg@K with K >= 1. Received: metric={name!r}")
    return match[1], int(match[2])
