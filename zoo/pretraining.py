"""Titles to be told from contexts: the batches that an encoder-decoder is pre-trained on.

Word numbers of a title's targets: 0 is padding, 1 the end of the title, 2 any word that is not told apart, and
then come the words of the titles, the most frequent first.
"""

from __future__ import annotations

import keras
import numpy as np

from zoo.encoded import EncodedSplit, TokenIds, joined_ids

END, OTHER = 1, 2
MAX_TITLE = 30  # tokens; a title beyond it is a body in the wrong field


def target_numbers(titles: TokenIds, vocabulary_size: int, num_unread: int, max_words: int) -> np.ndarray:
    """The target of every id, ``[V]``: the most frequent words of the titles are told apart.

    Args:
        titles: of the texts to train on.
        vocabulary_size: V.
        num_unread: ids up to this one are no words.
        max_words: largest target.
    """
    frequency = np.bincount(titles.flat, minlength=vocabulary_size)
    frequency[: num_unread + 1] = 0
    words = np.argsort(-frequency, kind="stable")
    words = words[frequency[words] > 0][: max(0, max_words - OTHER)]
    numbers = np.full(vocabulary_size, OTHER)
    numbers[words] = np.arange(OTHER + 1, OTHER + 1 + len(words))
    return numbers


class TitleBatches(keras.utils.PyDataset):
    """Batches ``({"context": [B, Tc], "title": [B, T], "target": [B, T + 1]}, target)``.

    Every question's title is told from the question itself, and from each similar question; and the similar one's
    title from the question (Lei et al. 2016, section 4.2). The same rows come with each field of the context in
    turn, the title first. What an epoch holds in which order depends on (seed, epoch) alone.

    Args:
        split: whose queries are the questions, and whose candidates with a label above 0 are similar to them.
        numbers: target of every id, see `target_numbers`.
        num_unread: ids up to this one are left out of titles.
        batch_size: rows of a batch.
        fields: which fields of the context to give, by name; all if None.
        shuffle_seed: None for the order of the split.
    """

    def __init__(
        self,
        split: EncodedSplit,
        numbers: np.ndarray,
        num_unread: int,
        batch_size: int,
        fields: tuple[str, ...] | None = None,
        shuffle_seed: int | None = None,
    ):
        super().__init__()
        self.numbers, self.batch_size, self.shuffle_seed, self.epoch = numbers, batch_size, shuffle_seed, 0
        # Questions and similar ones in one numbering.
        texts = {name: joined_ids(ids, split.candidate_ids[name]) for name, ids in split.query_ids.items()}
        self.titles = _titles(texts["title"], num_unread)
        self.contexts = [texts[name] for name in fields or texts]
        similar = np.flatnonzero(split.labels > 0)
        query = split.query_of_group[split.group_of_pair[similar]]
        other = len(split.query_ids["title"].offsets) - 1 + split.candidate_of_pair[similar]
        itself = np.unique(split.query_of_group)
        pairs = [np.stack(pair, axis=1) for pair in ((itself, itself), (query, other), (other, query))]
        self.pairs = np.concatenate(pairs)  # context, title
        self.pairs = self.pairs[np.diff(self.titles.offsets)[self.pairs[:, 1]] > 0]
        self._shuffle()

    def _shuffle(self):
        self.order = np.arange(len(self.pairs))
        if self.shuffle_seed is not None:
            self.order = np.random.default_rng([self.shuffle_seed, self.epoch]).permutation(len(self.pairs))

    def on_epoch_end(self):
        self.epoch += 1
        self._shuffle()

    def __len__(self):
        return -(-len(self.pairs) // self.batch_size) * len(self.contexts)

    def __getitem__(self, number):
        chunk, field = divmod(number, len(self.contexts))
        rows = self.pairs[self.order[chunk * self.batch_size : (chunk + 1) * self.batch_size]]
        rows = np.concatenate([rows, np.full((self.batch_size - len(rows), 2), -1)])
        context, title = rows[:, 0], rows[:, 1]
        ids = self.contexts[field]
        # Keras takes an axis for fixed if the first two batches agree in it; no other batch has this length.
        longest = number == 0
        length = 1 + max(ids.longest for ids in self.contexts) if longest else ids.longest_of(context)
        context_ids = ids.padded(context, length)
        title_ids = self.titles.padded(title, MAX_TITLE + 1 if longest else self.titles.longest_of(title))
        target = np.pad(np.where(title_ids > 0, self.numbers[title_ids], 0), [(0, 0), (0, 1)])
        real = title >= 0
        target[real, (title_ids > 0).sum(axis=1)[real]] = END
        return {"context": context_ids, "title": title_ids, "target": target.astype("int32")}, target


def perplexity(model: keras.Model, batches: TitleBatches) -> float:
    """``exp`` of the mean of minus the log-probability of a target word, the title's end included; at most e^50.

    Raises:
        ValueError: if there is no title.
    """
    if not len(batches):
        raise ValueError("A perplexity needs titles. Received: none")
    total = count = 0.0
    for number in range(len(batches)):
        inputs, target = batches[number]
        total += float(np.sum(model.predict_on_batch(inputs)))
        count += float(np.sum(target > 0))
    return float(np.exp(min(total / count, 50.0)))


def _titles(titles: TokenIds, num_unread: int) -> TokenIds:
    """Without unread words, and cut."""
    kept = [part[part > num_unread][:MAX_TITLE] for part in titles.texts]
    return TokenIds(np.concatenate([np.zeros(0, "int32"), *kept]), np.cumsum([0, *map(len, kept)]))
