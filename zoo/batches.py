"""Groups to token ids to batches ``[batch, list, time]``.

Each distinct text of a split is turned into ids once; they lie in one flat array, and batches are cut from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import keras
import numpy as np

from zoo import apart
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


@dataclass(frozen=True)
class Negatives:
    """Negatives drawn anew each epoch: a list is then one positive and ``count`` others.

    Args:
        count: how many are drawn per positive.
        source: ``"list"``, the query's own candidates that are not relevant (fewer where it has fewer); or
            ``"corpus"``, all candidates of the split but the query's relevant ones. No text twice in a list.

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


class Batches(keras.utils.PyDataset):
    """Batches of lists of about one length, padded to their longest text.

    A batch is ``({"query": [B, Tq], "candidate": [B, L, Tc]}, labels [B, L])``; where texts have several
    fields, one input per side and field. Padding has id 0 and label -1; the last batch is filled up with it.

    Args:
        split: the encoded split.
        batch_size: lists in a batch.
        list_size: pairs in a list. With 1, pairs are shuffled over the whole split; a larger list keeps
            candidates of one query together, as pairwise and listwise losses need.
        negatives: draws each list: every relevant pair with its negatives. ``list_size`` is then not used.
        shuffle_seed: None for all lists sorted by length. What an epoch draws, and in which order, depends on
            (seed, epoch) alone.
        first_epoch: number of the first epoch, for a run that goes on.
        drop_remainder: leaves out the lists of an epoch that do not fill a batch, unless there is no other.
        length_step: texts of both sides are padded to one length, the next multiple of this: few shapes, for a step
            that is compiled anew for each. 1 pads each input to its own longest text.

    Attributes:
        pairs: ``[lists, list_size]``, the pairs of each list; -1 is padding. None where negatives are drawn.
        order: ``[lists]``, the lists in the order of the batches.
    """

    def __init__(
        self,
        split,
        batch_size,
        list_size=1,
        *,
        negatives=None,
        shuffle_seed=None,
        first_epoch=0,
        drop_remainder=False,
        length_step=1,
    ):
        super().__init__()
        self.drop_remainder, self.length_step = drop_remainder, length_step
        self.split, self.batch_size, self.shuffle_seed = split, batch_size, shuffle_seed
        self.negatives, self.epoch = negatives, first_epoch
        self.pairs = None if negatives else _lists(split, list_size)
        if not negatives:
            real = self.pairs >= 0
            self._texts = (
                split.query_of_group[split.group_of_pair[self.pairs[:, 0]]],
                np.where(real, split.candidate_of_pair[self.pairs], -1),
                np.where(real, split.labels[self.pairs], PADDING_LABEL),
            )
        self._shuffle()

    def _shuffle(self):
        """Decides which texts stand in which list, and in which batch, in this epoch."""
        random = np.random.default_rng([self.shuffle_seed or 0, self.epoch])
        if self.negatives:
            self._texts = _draw(self.split, self.negatives, random)
        length = self._longest_candidate()
        if self.shuffle_seed is None:
            self.order = np.argsort(length, kind="stable")
            return
        order = random.permutation(len(length))
        window = _WINDOW * self.batch_size
        order = np.concatenate(
            [
                part[np.argsort(length[part], kind="stable")]
                for part in np.split(order, range(window, len(order), window))
            ]
        )
        whole = len(order) // self.batch_size * self.batch_size  # what is left over stays last
        batches = order[:whole].reshape(-1, self.batch_size)
        self.order = np.concatenate([batches[random.permutation(len(batches))].ravel(), order[whole:]])

    def _longest_candidate(self):
        _, candidate, _ = self._texts
        tokens = sum(np.diff(ids.offsets) for ids in self.split.candidate_ids.values())
        return np.where(candidate >= 0, tokens[candidate], 0).max(axis=1, initial=0)

    def on_epoch_end(self):
        self.epoch += 1
        self._shuffle()

    def __len__(self):
        whole, rest = divmod(len(self.order), self.batch_size)
        return whole + (rest > 0 and not (self.drop_remainder and whole))

    def __getitem__(self, number):
        rows = self.order[number * self.batch_size : (number + 1) * self.batch_size]
        query, candidate, labels = (_filled(part[rows], self.batch_size) for part in self._texts)
        texts = {
            input_name(side, field, tuple(fields)): (ids, index)
            for side, fields, index in (
                ("query", self.split.query_ids, query),
                ("candidate", self.split.candidate_ids, candidate),
            )
            for field, ids in fields.items()
        }
        # Keras takes an axis for fixed if the first two batches agree in it; no other batch has this length.
        lengths = {
            name: ids.longest + 1 if number == 0 else ids.longest_of(index) for name, (ids, index) in texts.items()
        }
        if self.length_step > 1:
            lengths = dict.fromkeys(lengths, -(-max(lengths.values()) // self.length_step) * self.length_step)
        inputs = {}
        for name, (ids, index) in texts.items():
            width = ids.rows.shape[1] + 1 if number == 0 and ids.rows is not None else None
            inputs[name] = ids.padded(index, lengths[name], width)
        return inputs, labels.astype("float32")


def _filled(rows, size):
    """The rows, and padding (-1) up to ``size``."""
    return np.concatenate([rows, np.full((size - len(rows), *rows.shape[1:]), -1, rows.dtype)])


def _draw(split, negatives, random):
    """Query ``[n]``, candidates ``[n, 1 + count]`` and labels of every relevant pair with its negatives.

    Texts are told apart by their ids: what the model cannot tell from a relevant text is no negative.
    """
    positive = np.flatnonzero(split.labels > 0)
    group = split.group_of_pair[positive]
    query_key = _first_alike(split.query_ids)[split.query_of_group]  # of a group
    candidate_key = _first_alike(split.candidate_ids)
    num_texts = split.num_candidates
    # A query and a text as one number.
    relevant = np.unique(query_key[group] * num_texts + candidate_key[split.candidate_of_pair[positive]])

    def is_relevant(query, candidate):
        return np.isin(query * num_texts + candidate_key[candidate], relevant)

    if negatives.source == "list":
        others = ~is_relevant(query_key[split.group_of_pair], split.candidate_of_pair)
        drawn = _draw_from_list(split, negatives.count, group, others, random)
    else:
        drawn = _draw_from_corpus(num_texts, negatives.count, query_key[group], is_relevant, random)
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


def _first_alike(fields):
    """For each text, the number of the first text that has the same ids."""
    first: dict[tuple, int] = {}
    texts = [np.split(ids.flat, ids.offsets[1:-1]) for ids in fields.values()]
    keys = [tuple(part.tobytes() for part in parts) for parts in zip(*texts, strict=True)]
    return np.array([first.setdefault(key, number) for number, key in enumerate(keys)], "int64")


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


def joined(splits: list[EncodedSplit]) -> EncodedSplit:
    """Several splits as one, one after the other."""
    first, *others = splits
    for other in others:
        first = EncodedSplit(
            query_ids={name: _joined_ids(ids, other.query_ids[name]) for name, ids in first.query_ids.items()},
            candidate_ids={
                name: _joined_ids(ids, other.candidate_ids[name]) for name, ids in first.candidate_ids.items()
            },
            query_of_group=np.concatenate([first.query_of_group, other.query_of_group + first.num_queries]),
            candidate_of_pair=np.concatenate([first.candidate_of_pair, other.candidate_of_pair + first.num_candidates]),
            labels=np.concatenate([first.labels, other.labels]),
            group_offsets=np.concatenate([first.group_offsets, other.group_offsets[1:] + len(first.labels)]),
        )
    return first


def _joined_ids(first, other):
    flat, rows = other.flat, None
    if first.rows is not None:
        width = max(first.rows.shape[1], other.rows.shape[1])
        rows = np.concatenate(
            [np.pad(part, [(0, 0), (0, width - part.shape[1])]) for part in (first.rows, other.rows[1:])]
        )
        flat = flat + len(first.rows) - 1
    offsets = np.concatenate([first.offsets, other.offsets[1:] + len(first.flat)])
    return TokenIds(np.concatenate([first.flat, flat]), offsets, rows)


def predict_split(model, split: EncodedSplit, batch_size: int = 256) -> dict[str, np.ndarray]:
    """The model's outputs by name, each ``[pairs, ...]`` float32, in the order of the file.

    The model gives scores ``[B, L]``, which are named ``score``, or a dictionary of outputs ``[B, L, ...]``.
    """
    # Lists as long as the median group: long pools are cut into several, short ones are padded a little.
    list_size = max(1, int(np.median(np.diff(split.group_offsets))))
    batches = Batches(split, max(1, batch_size // list_size), list_size)
    outputs = model.predict(batches, verbose=0)
    pairs = batches.pairs[batches.order]
    results = {}
    for name, output in (outputs if isinstance(outputs, dict) else {"score": outputs}).items():
        output = np.asarray(output)[: len(batches.pairs)]
        results[name] = np.zeros((len(split.labels), *output.shape[2:]), "float32")
        results[name][pairs[pairs >= 0]] = output[pairs >= 0]
    return results


def score_split(model, split: EncodedSplit, batch_size: int = 256) -> np.ndarray:
    """Scores every pair of a split: ``[pairs]`` float32, in the order of the file.

    A model that encodes both sides apart, and says where, encodes each distinct text once, see `zoo.apart`.
    """
    if not len(split.labels):
        return np.zeros(0, "float32")
    if (parts := apart.parts(model)) and len(split.query_ids) == 1:
        return apart.score(parts, split, batch_size)
    return predict_split(model, split, batch_size)["score"]
