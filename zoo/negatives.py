"""Negatives that are drawn: lists of one relevant candidate and others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zoo.encoded import PADDING_LABEL, EncodedSplit


@dataclass(frozen=True)
class Negatives:
    """Negatives drawn anew each epoch: a list is then one positive and ``count`` others.

    Args:
        count: how many are drawn per positive.
        source: ``"list"``, the query's own candidates that are not relevant (fewer where it has fewer);
            ``"corpus"``, all candidates of the split but the query's relevant ones and its own text, no text twice
            in a list; or ``"batch"``, whatever ``count``: the positives of the batch's other queries, which cost no
            encoding of their own, see `zoo.apart.within_batch`.

    Raises:
        ValueError: for a count below 1 or another source.
    """

    count: int
    source: str = "list"

    def __post_init__(self):
        if self.count < 1 or self.source not in ("list", "corpus", "batch"):
            raise ValueError(
                "Negatives need a count of at least 1 and the source 'list', 'corpus' or 'batch'. "
                f"Received: count={self.count!r}, source={self.source!r}"
            )


class Relevance:
    """Which candidates of a split are relevant to which queries, texts being told apart by their ids.

    What the model cannot tell from a relevant text is no negative, and a query is relevant to itself.

    Args:
        split: the encoded split.
    """

    def __init__(self, split: EncodedSplit):
        self.query_key, self.candidate_key = _first_alike(split.query_ids, split.candidate_ids)
        self.positive = np.flatnonzero(split.labels > 0)
        query = self.query_key[split.query_of_group]  # of a group
        # A query and a text as one number.
        self._base = 1 + max(self.query_key.max(), self.candidate_key.max())
        pairs = self._pairs(query[split.group_of_pair[self.positive]], split.candidate_of_pair[self.positive])
        self._relevant = np.unique(np.concatenate([pairs, query * self._base + query]))

    def __call__(self, query: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """For keys of queries and numbers of candidates, of shapes that fit, whether each pair is relevant."""
        return np.isin(self._pairs(query, candidate), self._relevant)

    def within_batch(self, query: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Labels ``[B, B]`` of every query with every candidate, given the numbers of both ``[B]``; -1 is padding."""
        pairs = (query[:, None] >= 0) & (candidate >= 0)
        known = pairs & self(self.query_key[query][:, None], candidate)
        labels = np.where(pairs & ~known, 0.0, PADDING_LABEL)
        np.fill_diagonal(labels, np.where(candidate >= 0, 1.0, PADDING_LABEL))
        return labels

    def _pairs(self, query, candidate):
        return query * self._base + self.candidate_key[candidate]


def draw(split: EncodedSplit, negatives: Negatives, relevance: Relevance, random: np.random.Generator):
    """Query ``[n]``, candidates ``[n, 1 + count]`` and labels of every relevant pair with its negatives.

    Those of the batch are not drawn: candidates and labels are then ``[n, 1]``.

    Raises:
        ValueError: if no relevant pair has a negative; for those of the batch, if there are not two queries.
    """
    positive = relevance.positive
    group = split.group_of_pair[positive]
    query_key = relevance.query_key[split.query_of_group]  # of a group
    if negatives.source == "batch":
        if len(np.unique(query_key[group])) < 2:
            raise ValueError(
                "Negatives of the batch need relevant pairs of two queries. "
                f"Received: {len(positive)} relevant pairs of {len(split.labels)}, source='batch'"
            )
        return split.query_of_group[group], split.candidate_of_pair[positive][:, None], np.ones((len(group), 1))
    if negatives.source == "list":
        others = ~relevance(query_key[split.group_of_pair], split.candidate_of_pair)
        drawn = _draw_from_list(split, negatives.count, group, others, random)
    else:
        drawn = _draw_from_corpus(split.num_candidates, negatives.count, query_key[group], relevance, random)
    keep = (drawn >= 0).any(axis=1)  # without a negative there is nothing to learn
    if not keep.any():
        raise ValueError(
            "Drawing negatives needs a relevant pair whose query has another candidate. "
            f"Received: {len(positive)} relevant pairs of {len(split.labels)}, source={negatives.source!r}"
        )
    candidate = np.concatenate([split.candidate_of_pair[positive][:, None], drawn], axis=1)[keep]
    labels = np.where(candidate >= 0, 0.0, PADDING_LABEL)
    labels[:, 0] = 1.0
    return split.query_of_group[group][keep], candidate, labels


def _first_alike(*sides):
    """For each text of each side, the number of the first text of any that has the same ids."""
    first: dict[tuple, int] = {}
    found = []
    for fields in sides:
        texts = [ids.texts for ids in fields.values()]
        keys = [tuple(part.tobytes() for part in parts) for parts in zip(*texts, strict=True)]
        found.append(np.array([first.setdefault(key, len(first)) for key in keys], "int64"))
    return found


def _draw_from_list(split, count, group, others, random):
    drawn = np.full((len(group), count), -1)
    for row, number in enumerate(group):
        pairs = np.arange(split.group_offsets[number], split.group_offsets[number + 1])
        chosen = random.permutation(split.candidate_of_pair[pairs[others[pairs]]])[:count]
        drawn[row, : len(chosen)] = chosen
    return drawn


def _draw_from_corpus(num_texts, count, query, is_relevant, random):
    drawn = random.integers(num_texts, size=(len(query), count))
    for _ in range(100):
        ordered = np.sort(drawn, axis=1)
        repeated = np.pad(ordered[:, 1:] == ordered[:, :-1], [[0, 0], [1, 0]])
        wrong = is_relevant(query[:, None], ordered) | repeated
        drawn = ordered
        if not wrong.any():
            return drawn
        drawn[wrong] = random.integers(num_texts, size=wrong.sum())
    return np.where(wrong, -1, drawn)  # nearly all of a small corpus is relevant, or already in the list
