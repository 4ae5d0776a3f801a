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
        source: ``"list"``, the query's own candidates that are not relevant (fewer where it has fewer); or
            ``"corpus"``, all candidates of the split but the query's relevant ones and its own text. No text twice
            in a list.

    Raises:
        ValueError: for a count below 1 or another source.
    """

    count: int
    source: str = "list"

    def __post_init__(self):
        if self.count < 1 or self.source not in ("list", "corpus"):
            raise ValueError(
                "Negatives need a count of at least 1 and the source 'list' or 'corpus'. "
                f"Received: count={self.count!r}, source={self.source!r}"
            )


def draw(split: EncodedSplit, negatives: Negatives, random: np.random.Generator):
    """Query ``[n]``, candidates ``[n, 1 + count]`` and labels of every relevant pair with its negatives.

    Texts are told apart by their ids: what the model cannot tell from a relevant text is no negative.

    Raises:
        ValueError: if no relevant pair has a negative.
    """
    positive = np.flatnonzero(split.labels > 0)
    group = split.group_of_pair[positive]
    query_key, candidate_key = _first_alike(split.query_ids, split.candidate_ids)
    query_key = query_key[split.query_of_group]  # of a group
    # A query and a text as one number; a query is relevant to itself.
    base = 1 + max(query_key.max(), candidate_key.max())
    relevant = np.unique(
        np.concatenate(
            [
                query_key[group] * base + candidate_key[split.candidate_of_pair[positive]],
                query_key * base + query_key,
            ]
        )
    )

    def is_relevant(query, candidate):
        return np.isin(query * base + candidate_key[candidate], relevant)

    if negatives.source == "list":
        others = ~is_relevant(query_key[split.group_of_pair], split.candidate_of_pair)
        drawn = _draw_from_list(split, negatives.count, group, others, random)
    else:
        drawn = _draw_from_corpus(split.num_candidates, negatives.count, query_key[group], is_relevant, random)
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
