"""Groups to token ids to batches ``[batch, list, time]``.

Each distinct text of a split is turned into ids once; they lie in one flat array, and batches are cut from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
import numpy as np

from zoo.data import Group, Text

PADDING_LABEL = -1.0


@dataclass(frozen=True)
class TokenIds:
    """The ids of many texts without padding: text i is ``flat[offsets[i]:offsets[i + 1]]``."""

    flat: np.ndarray
    offsets: np.ndarray

    @property
    def longest(self) -> int:
        """Tokens of the longest text, at least 1."""
        return max(1, int(np.diff(self.offsets).max(initial=0)))

    def longest_of(self, index: np.ndarray) -> int:
        """Tokens of the longest of some texts, at least 1; an index below 0 is padding."""
        tokens = np.where(index < 0, 0, self.offsets[index + 1] - self.offsets[index])
        return max(1, int(tokens.max(initial=0)))

    def padded(self, index: np.ndarray, length: int) -> np.ndarray:
        """Rows of texts, ``index.shape + (length,)``; an index below 0 gives a row of padding."""
        start = self.offsets[index]
        tokens = np.where(index < 0, 0, self.offsets[index + 1] - start)
        column = np.arange(length)
        inside = column < tokens[..., None]
        position = np.where(inside, start[..., None] + column, 0)
        if not len(self.flat):
            return np.zeros(inside.shape, "int32")
        return np.where(inside, self.flat[position], 0).astype("int32")


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


def _lists(split: EncodedSplit, size: int) -> np.ndarray:
    """Cuts each group into lists of at most ``size`` pairs: ``[lists, size]`` pair numbers, -1 is padding."""
    counts = np.diff(split.group_offsets)
    starts = np.concatenate(
        [np.arange(first, first + count, size) for first, count in zip(split.group_offsets, counts, strict=False)]
        or [np.zeros(0, "int64")]
    )
    ends = split.group_offsets[np.searchsorted(split.group_offsets, starts, side="right")]
    pairs = starts[:, None] + np.arange(size)
    return np.where(pairs < ends[:, None], pairs, -1).astype("int64")


# Lists are shuffled, then sorted by length within windows of this many batches, so that a batch holds texts of
# about one length and little padding, and is still a random draw.
_WINDOW = 50


class Batches(keras.utils.PyDataset):
    """Batches of lists of about one length, padded to their longest text.

    A batch is ``({"query": [B, Tq], "candidate": [B, L, Tc]}, labels [B, L])``; where texts have several
    fields, one input per side and field. Padding has id 0 and label -1; the last batch is filled up with it.

    Args:
        split: the encoded split.
        batch_size: lists in a batch.
        list_size: pairs in a list. With 1, pairs are shuffled over the whole split; a larger list keeps
            candidates of one query together, as pairwise and listwise losses need.
        shuffle_seed: None for all lists sorted by length. The order of an epoch depends on (seed, epoch) alone.
        first_epoch: number of the first epoch, for a run that goes on.

    Attributes:
        pairs: ``[lists, list_size]``, the pairs of each list; -1 is padding.
        order: ``[lists]``, the lists in the order of the batches.
    """

    def __init__(self, split, batch_size, list_size, *, shuffle_seed=None, first_epoch=0):
        super().__init__()
        self.split, self.batch_size, self.shuffle_seed = split, batch_size, shuffle_seed
        self.pairs = _lists(split, list_size)
        self.group_of_pair = np.repeat(np.arange(len(split.query_of_group)), np.diff(split.group_offsets))
        tokens = sum(np.diff(ids.offsets) for ids in split.candidate_ids.values())
        longest = np.where(self.pairs >= 0, tokens[split.candidate_of_pair[self.pairs]], 0)
        self._length = longest.max(axis=1, initial=0)
        self.epoch = first_epoch
        self._shuffle()

    def _shuffle(self):
        if self.shuffle_seed is None:
            self.order = np.argsort(self._length, kind="stable")
            return
        random = np.random.default_rng([self.shuffle_seed, self.epoch])
        order = random.permutation(len(self.pairs))
        window = _WINDOW * self.batch_size
        order = np.concatenate(
            [
                part[np.argsort(self._length[part], kind="stable")]
                for part in np.split(order, range(window, len(order), window))
            ]
        )
        whole = len(order) // self.batch_size * self.batch_size  # what is left over stays last
        batches = order[:whole].reshape(-1, self.batch_size)
        self.order = np.concatenate([batches[random.permutation(len(batches))].ravel(), order[whole:]])

    def on_epoch_end(self):
        self.epoch += 1
        self._shuffle()

    def __len__(self):
        return -(-len(self.pairs) // self.batch_size)

    def __getitem__(self, number):
        split = self.split
        rows = self.order[number * self.batch_size : (number + 1) * self.batch_size]
        pairs = np.full((self.batch_size, self.pairs.shape[1]), -1)
        pairs[: len(rows)] = self.pairs[rows]
        real = pairs >= 0
        query = np.where(real[:, 0], split.query_of_group[self.group_of_pair[pairs[:, 0]]], -1)
        candidate = np.where(real, split.candidate_of_pair[pairs], -1)
        inputs = {}
        for side, texts, index in (
            ("query", split.query_ids, query),
            ("candidate", split.candidate_ids, candidate),
        ):
            for field, ids in texts.items():
                # Keras takes an axis for fixed if the first two batches agree in it; no other batch has this length.
                length = ids.longest + 1 if number == 0 else ids.longest_of(index)
                inputs[input_name(side, field, tuple(texts))] = ids.padded(index, length)
        return inputs, np.where(real, split.labels[pairs], PADDING_LABEL).astype("float32")


def score_split(model, split: EncodedSplit, batch_size: int = 256) -> np.ndarray:
    """Scores every pair of a split: ``[pairs]`` float32, in the order of the file."""
    if not len(split.labels):
        return np.zeros(0, "float32")
    # Lists as long as the median group: long pools are cut into several, short ones are padded a little.
    list_size = max(1, int(np.median(np.diff(split.group_offsets))))
    batches = Batches(split, max(1, batch_size // list_size), list_size)
    scores = np.asarray(model.predict(batches, verbose=0))[: len(batches.pairs)]
    pairs = batches.pairs[batches.order]
    result = np.zeros(len(split.labels), "float32")
    result[pairs[pairs >= 0]] = scores[pairs >= 0]
    return result
