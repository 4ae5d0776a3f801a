"""A split as token ids.

Each distinct text is turned into ids once; they lie in one flat array, from which batches are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zoo.data import Group, Text

PADDING_LABEL = -1.0


@dataclass(frozen=True)
class TokenIds:
    """The ids of many texts without padding: text i is ``flat[offsets[i]:offsets[i + 1]]``.

    Where a token is a row of ids, those of its character n-grams, ``flat`` holds the numbers of rows.

    Attributes:
        flat: ``[total]``.
        offsets: ``[texts + 1]``.
        rows: ``[1 + tokens, g]``, row 0 being padding; None where a token is one id.
    """

    flat: np.ndarray
    offsets: np.ndarray
    rows: np.ndarray | None = None

    @property
    def texts(self) -> list[np.ndarray]:
        """Each text by itself, ``[tokens]``."""
        return np.split(self.flat, self.offsets[1:-1])

    @property
    def longest(self) -> int:
        """Tokens of the longest text, at least 1."""
        return max(1, int(np.diff(self.offsets).max(initial=0)))

    def longest_of(self, index: np.ndarray) -> int:
        """Tokens of the longest of some texts, at least 1; an index below 0 is padding."""
        tokens = np.where(index < 0, 0, self.offsets[index + 1] - self.offsets[index])
        return max(1, int(tokens.max(initial=0)))

    @cached_property
    def _widths(self) -> np.ndarray:
        """N-grams of each row."""
        return (self.rows != 0).sum(axis=1)

    def padded(self, index: np.ndarray, length: int, width: int | None = None) -> np.ndarray:
        """Texts, ``index.shape + (length,)``; an index below 0 gives padding throughout.

        Where a token is a row of n-grams, ``width`` of them stand in a further axis, by default those of the widest
        token of these texts.
        """
        start = self.offsets[index]
        tokens = np.where(index < 0, 0, self.offsets[index + 1] - start)
        column = np.arange(length)
        inside = column < tokens[..., None]
        position = np.where(inside, start[..., None] + column, 0)
        ids = np.where(inside, self.flat[position], 0) if len(self.flat) else np.zeros(inside.shape, "int32")
        if self.rows is None:
            return ids.astype("int32")
        width = width or max(1, int(self._widths[ids].max(initial=0)))
        rows = self.rows[ids][..., :width].astype("int32")
        return np.pad(rows, [*[(0, 0)] * ids.ndim, (0, width - rows.shape[-1])])


@dataclass(frozen=True)
class EncodedSplit:
    """A split as ids.

    Attributes:
        query_ids, candidate_ids: per field, the ids of the distinct texts of that side.
        query_of_group: ``[groups]``, which text is the query of a group.
        candidate_of_pair: ``[pairs]``, which text is the candidate of a pair; pairs of a group are adjacent.
        labels: ``[pairs]``.
        group_offsets: ``[groups + 1]``, the pairs of group g are ``group_offsets[g]:group_offsets[g + 1]``.
    """

    query_ids: dict[str, TokenIds]
    candidate_ids: dict[str, TokenIds]
    query_of_group: np.ndarray
    candidate_of_pair: np.ndarray
    labels: np.ndarray
    group_offsets: np.ndarray

    @cached_property
    def group_of_pair(self) -> np.ndarray:
        """``[pairs]``, which group a pair is of."""
        return np.repeat(np.arange(len(self.query_of_group)), np.diff(self.group_offsets))

    @property
    def num_queries(self) -> int:
        """Number of distinct query texts."""
        return len(next(iter(self.query_ids.values())).offsets) - 1

    @property
    def num_candidates(self) -> int:
        """Number of distinct candidate texts."""
        return len(next(iter(self.candidate_ids.values())).offsets) - 1

    def per_group(self, values: np.ndarray) -> list[np.ndarray]:
        """Cuts one value per pair into one array per group."""
        return np.split(values, self.group_offsets[1:-1])


def input_name(side: str, field: str, fields: tuple[str, ...]) -> str:
    """Name of a model's input: the side, with the field where texts have several."""
    return side if len(fields) == 1 else f"{side}_{field}"


def encode_split(groups: list[Group], encoder, fields, max_query_length, max_candidate_length) -> EncodedSplit:
    """Turns each distinct text of a split into ids, once.

    Args:
        groups: the split.
        encoder: a `zoo.text.TextEncoder`.
        fields: names of a text's fields.
        max_query_length, max_candidate_length: tokens that are kept of a field.
    """
    queries: dict[Text, int] = {}
    candidates: dict[Text, int] = {}
    query_of_group = [queries.setdefault(group.query, len(queries)) for group in groups]
    candidate_of_pair = [
        candidates.setdefault(candidate, len(candidates)) for group in groups for candidate in group.candidates
    ]

    def ids(texts, max_length):
        return {
            field: TokenIds(*encoder.encode([text[number] for text in texts], max_length))
            for number, field in enumerate(fields)
        }

    return EncodedSplit(
        query_ids=ids(queries, max_query_length),
        candidate_ids=ids(candidates, max_candidate_length),
        query_of_group=np.array(query_of_group, "int64"),
        candidate_of_pair=np.array(candidate_of_pair, "int64"),
        labels=np.array([label for group in groups for label in group.labels], "float32"),
        group_offsets=np.cumsum([0] + [len(group.labels) for group in groups]),
    )


def joined(splits: list[EncodedSplit]) -> EncodedSplit:
    """Several splits as one, one after the other."""
    first, *others = splits
    for other in others:
        first = EncodedSplit(
            query_ids={name: joined_ids(ids, other.query_ids[name]) for name, ids in first.query_ids.items()},
            candidate_ids={
                name: joined_ids(ids, other.candidate_ids[name]) for name, ids in first.candidate_ids.items()
            },
            query_of_group=np.concatenate([first.query_of_group, other.query_of_group + first.num_queries]),
            candidate_of_pair=np.concatenate([first.candidate_of_pair, other.candidate_of_pair + first.num_candidates]),
            labels=np.concatenate([first.labels, other.labels]),
            group_offsets=np.concatenate([first.group_offsets, other.group_offsets[1:] + len(first.labels)]),
        )
    return first


def joined_ids(first: TokenIds, other: TokenIds) -> TokenIds:
    """The texts of both in one numbering."""
    flat, rows = other.flat, None
    if first.rows is not None:
        width = max(first.rows.shape[1], other.rows.shape[1])
        rows = np.concatenate(
            [np.pad(part, [(0, 0), (0, width - part.shape[1])]) for part in (first.rows, other.rows[1:])]
        )
        flat = flat + len(first.rows) - 1
    offsets = np.concatenate([first.offsets, other.offsets[1:] + len(first.flat)])
    return TokenIds(np.concatenate([first.flat, flat]), offsets, rows)


def distinct_texts(splits: list[EncodedSplit]) -> list[np.ndarray]:
    """The ids of every text of some splits, of either side and each field, equal ones once."""
    return list(
        {
            tokens.tobytes(): tokens
            for split in splits
            for side in (split.query_ids, split.candidate_ids)
            for ids in side.values()
            for tokens in ids.texts
        }.values()
    )


def document_frequency(texts: list[np.ndarray], vocabulary_size: int) -> np.ndarray:
    """In how many of the texts each id occurs: ``[vocabulary_size]``."""
    return np.bincount(np.concatenate([np.unique(tokens) for tokens in texts]), minlength=vocabulary_size)
