"""An encoded split to batches ``[batch, list, time]``, and the model's outputs for all of its pairs."""

from __future__ import annotations

import keras
import numpy as np

from zoo import apart
from zoo.encoded import PADDING_LABEL, EncodedSplit, input_name
from zoo.negatives import Relevance, draw

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
        negatives: draws each list: every relevant pair with its negatives. ``list_size`` is then not used. Where they
            are those of the batch, labels are ``[B, B]``, of each query with the candidate of each.
        shuffle_seed: None for all lists sorted by length. What an epoch draws, and in which order, depends on
            (seed, epoch) alone.
        drop_remainder: leaves out the lists of an epoch that do not fill a batch, unless there is no other.
        length_step: texts of both sides are padded to one length, the next multiple of this: few shapes, for a step
            that is compiled anew for each. 1 pads each input to its own longest text.

    Attributes:
        within_batch: whether the negatives are those of the batch.
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
        drop_remainder=False,
        length_step=1,
    ):
        super().__init__()
        self.drop_remainder, self.length_step = drop_remainder, length_step
        self.split, self.batch_size, self.shuffle_seed = split, batch_size, shuffle_seed
        self.negatives, self.epoch = negatives, 0
        self.pairs = None if negatives else _lists(split, list_size)
        self._relevance = Relevance(split) if negatives else None
        self.within_batch = bool(negatives) and negatives.source == "batch"
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
            self._texts = draw(self.split, self.negatives, self._relevance, random)
        length = self._longest()
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

    def _longest(self):
        """Tokens of the longest text of each list, the query or a candidate."""
        query, candidate, _ = self._texts
        of_query, tokens = (
            sum(np.diff(ids.offsets) for ids in side.values())
            for side in (self.split.query_ids, self.split.candidate_ids)
        )
        longest = np.where(candidate >= 0, tokens[candidate], 0).max(axis=1, initial=0)
        return np.maximum(longest, of_query[query])

    def on_epoch_end(self):
        self.epoch += 1
        self._shuffle()

    def __len__(self):
        whole, rest = divmod(len(self.order), self.batch_size)
        return whole + (rest > 0 and not (self.drop_remainder and whole))

    def __getitem__(self, number):
        rows = self.order[number * self.batch_size : (number + 1) * self.batch_size]
        query, candidate, labels = (_filled(part[rows], self.batch_size) for part in self._texts)
        if self.within_batch:
            labels = self._relevance.within_batch(query, candidate[:, 0])
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


def finite_scores(model, split: EncodedSplit) -> list[np.ndarray]:
    """The scores of a split by group.

    Raises:
        FloatingPointError: if one is no finite number: training has diverged.
    """
    scores = score_split(model, split)
    if not np.isfinite(scores).all():
        raise FloatingPointError
    return split.per_group(scores)
