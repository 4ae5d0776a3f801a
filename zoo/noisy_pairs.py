"""Noisy pairs of questions to pre-train on, from any corpus of clusters of questions that mean the same.

A positive is two questions of one cluster, in both orders. With T(q) the set of words of a question, a negative is
a question of another cluster (Tomar et al. 2017, section 4.1), in equal parts as far as the corpus has them

1. one that shares no word but function words;
2. one that shares a single word, |T(q) & T(q')| = 1;
3. one that shares all but one word, on either side: |T(q) - T(q')| = |T(q') - T(q)| = 1.

Where none of kind 3 is found for a question, in a few draws, it is given one of kind 2, and else of kind 1. A candidate
of kind 2 comes from an index of words, one of kind 3 from an index of the hashes of T(q) without one word, past the
question's own cluster; both are then counted out, so that a hash in common is never enough. What is drawn depends on
the seed and the corpus alone.

Questions of the same words in the same order are one question, however they are spelt, and clusters that share a
question are one cluster: else a pair could be a match and none.

A corpus is held as arrays: texts as bytes, words as numbers. Pairs are drawn in blocks and may be more than memory
holds.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from zoo.data import Group

# 64 million negatives to 36 million positives: the balance of Quora's training pairs.
NEGATIVES_PER_POSITIVE = 64 / 36
BLOCK = 1 << 16
_TRIES = 8  # draws per negative and kind before the next kind

# Letters with their marks, and signs that tell questions apart, as in "c++"; what ends or joins words is none.
_WORD = re.compile(r"""[^\s.,;:!?…"'`´‘’“”«»()\[\]{}/\\‐–—¿¡。、，？！-]+""")


class Block(NamedTuple):
    """Some pairs, as numbers of questions.

    Attributes:
        query, candidate: ``[n]``.
        kind: ``[n]``, 0 for a positive, else the kind of negative.
    """

    query: np.ndarray
    candidate: np.ndarray
    kind: np.ndarray


class Corpus:
    """Questions of known clusters, and the indices that negatives are drawn from.

    Args:
        questions: pairs of a cluster, any hashable thing, and a question's text. Read once.

    Raises:
        ValueError: with fewer than two clusters, for negatives come from another one.
    """

    def __init__(self, questions: Iterable[tuple[object, str]]):
        self._read(questions)
        if self.num_clusters < 2:
            raise ValueError(
                f"Noisy pairs need questions of two clusters or more. Received: {self.num_clusters} clusters"
            )
        self._index()

    def __len__(self) -> int:
        return len(self.cluster)

    def text(self, number: int) -> str:
        """A question's text."""
        start, end = self._text_places[number]
        return self._bytes[start:end].decode("utf-8", "surrogatepass")

    def blocks(self, seed: int, num_pairs: int | None = None) -> Iterator[Block]:
        """Positives and negatives in random order, in blocks of `BLOCK`.

        Args:
            seed: another seed gives other pairs.
            num_pairs: how many at most; if not given, every question is at least once the first and once the second of
                a positive, and negatives are in proportion. There are fewer negatives where a corpus is so small or so
                alike that none is found for a question.

        Raises:
            ValueError: without `num_pairs`, if no cluster has two questions.
        """
        if num_pairs is None:
            if not len(self._in_company):
                raise ValueError(
                    "Noisy pairs need a cluster of two questions that differ, for their matches. "
                    f"Received: {len(self)} questions, each of a cluster of its own"
                )
            num_pairs = round(2 * len(self._in_company) * (1 + NEGATIVES_PER_POSITIVE))
        share = 1 / (1 + NEGATIVES_PER_POSITIVE) if len(self._in_company) else 0.0
        # Every question of a cluster of two or more is drawn before one comes again.
        order = np.random.default_rng([seed, 0]).permutation(self._in_company)
        used = 0
        for number, start in enumerate(range(0, num_pairs, BLOCK), start=1):
            random = np.random.default_rng([seed, number])
            size = min(BLOCK, num_pairs - start)
            twos = round((start + size) * share / 2) - round(start * share / 2)  # each in both orders
            num_positives = 2 * twos
            first = order[np.arange(used, used + twos) % len(order)] if twos else np.zeros(0, "int64")
            used += twos
            second = self._of_cluster(first, random)
            query, candidate = np.concatenate([first, second]), np.concatenate([second, first])
            anchors = random.integers(len(self), size=size - num_positives)
            negative, kind = self.negatives(anchors, 1 + np.arange(len(anchors)) % 3, random)
            real = negative >= 0
            mixed = random.permutation(num_positives + int(real.sum()))
            yield Block(
                np.concatenate([query, anchors[real]])[mixed],
                np.concatenate([candidate, negative[real]])[mixed],
                np.concatenate([np.zeros(num_positives, "int64"), kind[real]])[mixed],
            )

    def negatives(
        self, query: np.ndarray, kind: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """A question of another cluster for each query, and the kind it is of; -1 where none was found.

        Args:
            query: numbers of questions ``[n]``.
            kind: the kind that is wanted ``[n]``, 1 to 3.
            random: the generator.
        """
        found = np.full(len(query), -1)
        got = np.zeros(len(query), "int64")
        for wanted, draw in ((3, self._draw_all_but_one), (2, self._draw_one_shared), (1, self._draw_any)):
            for _ in range(_TRIES):
                rows = np.flatnonzero((found < 0) & (kind >= wanted))
                if not len(rows):
                    break
                drawn = draw(query[rows], random)
                good = (drawn >= 0) & (self.cluster[drawn] != self.cluster[query[rows]])
                # Of the same words, it is the same question.
                good &= self._hash[drawn] != self._hash[query[rows]]
                rows, drawn = rows[good], drawn[good]
                good = self._is_of_kind(query[rows], drawn, wanted)
                found[rows[good]], got[rows[good]] = drawn[good], wanted
        return found, got

    # Reading.

    def _read(self, questions):
        clusters: dict[object, int] = {}
        words: dict[str, int] = {}
        texts = bytearray()
        # Growing arrays of machine numbers: as objects they would take five times the memory.
        cluster, tokens, sizes, ends, marks = array("i"), array("i"), array("i"), array("q", [0]), array("q")
        for key, text in questions:
            sequence = words_of(text)
            own = {words.setdefault(word, len(words)) for word in sequence}
            cluster.append(clusters.setdefault(key, len(clusters)))
            tokens.extend(sorted(own))
            sizes.append(len(own))
            texts += text.encode("utf-8", "surrogatepass")
            ends.append(len(texts))
            marks.append(hash(sequence))
        self._bytes = bytes(texts)
        cluster, kept = distinct(np.frombuffer(cluster, "int32"), np.frombuffer(marks, "int64"))
        self.cluster = cluster[kept].astype("int32")
        self.num_clusters = len(np.unique(self.cluster))
        sizes = np.frombuffer(sizes, "int32")
        self._tokens = np.frombuffer(tokens, "int32")[np.repeat(kept, sizes)]
        self._sizes = sizes[kept].astype("int64")  # words of each question
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        ends = np.frombuffer(ends, "int64")
        self._text_places = np.stack([ends[:-1], ends[1:]], axis=1)[kept]
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # slow to import

        self._is_function_word = np.array([word in ENGLISH_STOP_WORDS for word in words])

    def _index(self):
        # Questions by cluster.
        self._by_cluster = np.argsort(self.cluster, kind="stable").astype("int32")
        counts = np.bincount(self.cluster)
        self._cluster_starts = np.concatenate([[0], np.cumsum(counts)])
        self._place_in_cluster = np.empty(len(self), "int32")
        self._place_in_cluster[self._by_cluster] = np.arange(len(self)) - np.repeat(self._cluster_starts[:-1], counts)
        self._in_company = np.flatnonzero(counts[self.cluster] > 1).astype("int32")
        # Questions by word.
        owner = np.repeat(np.arange(len(self), dtype="int32"), self._sizes)
        self._postings = owner[np.argsort(self._tokens, kind="stable")]
        self._posting_starts = np.concatenate([[0], np.cumsum(np.bincount(self._tokens, minlength=1))])
        # Questions by the hash of their words but one: the sum of their words' hashes, less that one.
        # Sums wrap around at 2^64.
        random = np.random.default_rng(2017)
        self._hash_of_word = random.integers(1 << 64, size=len(self._is_function_word), dtype="uint64")
        total = np.zeros(len(self._tokens) + 1, "uint64")
        np.cumsum(self._hash_of_word[self._tokens], out=total[1:])
        self._hash = total[self._starts[1:]] - total[self._starts[:-1]]
        # A stable sort keeps the questions of one cluster side by side under each key.
        places, owner = self._places(self._by_cluster), np.repeat(self._by_cluster, self._sizes[self._by_cluster])
        keys = self._hash[owner] - self._hash_of_word[self._tokens[places]]
        order = np.argsort(keys, kind="stable")
        keys, places, self._key_owners = keys[order], places[order], owner[order]
        new_key = np.diff(keys, prepend=~keys[:1]) != 0
        new_cluster = new_key | (np.diff(self.cluster[self._key_owners], prepend=-1) != 0)
        of_key, of_cluster = (np.append(np.flatnonzero(new), len(keys)) for new in (new_key, new_cluster))
        # The words without which a question is as one of another cluster, places in `_tokens`; of each, from where to
        # where its key is, and within it its own cluster.
        differ = np.repeat(np.diff(np.searchsorted(of_cluster, of_key)) > 1, np.diff(of_key))
        twins = np.flatnonzero(differ & (self._sizes[self._key_owners] > 1))
        twins = twins[np.argsort(places[twins])]
        self._twin_starts = np.searchsorted(places[twins], self._starts)
        around = [(bounds, np.searchsorted(bounds, twins, "right")) for bounds in (of_key, of_cluster)]
        self._twin_ranges = np.stack([bounds[at - side] for bounds, at in around for side in (1, 0)], axis=1)

    # Drawing; -1 where there is nothing to draw.

    def _of_cluster(self, query, random):
        """Another question of the same cluster, for queries that have one."""
        start = self._cluster_starts[self.cluster[query]]
        size = self._cluster_starts[self.cluster[query] + 1] - start
        step = 1 + (random.random(len(query)) * (size - 1)).astype("int64")
        return self._by_cluster[start + (self._place_in_cluster[query] + step) % size].astype("int64")

    def _draw_any(self, query, random):
        return random.integers(len(self), size=len(query))

    def _draw_one_shared(self, query, random):
        token = _one_of(self._tokens, self._starts[query], self._starts[query + 1], random)
        start, end = self._posting_starts[token], self._posting_starts[token + 1]
        return _one_of(self._postings, start, np.where(token < 0, start, end), random)

    def _draw_all_but_one(self, query, random):
        if not len(self._twin_ranges):
            return np.full(len(query), -1)
        twin = _place_in(self._twin_starts[query], self._twin_starts[query + 1], random)
        found = np.flatnonzero(twin >= 0)
        start, end, own, own_end = self._twin_ranges[twin[found]].T
        place = start + (random.random(len(found)) * (end - start - (own_end - own))).astype("int64")
        twin[found] = self._key_owners[place + (place >= own) * (own_end - own)]
        return twin

    # Counting.

    def _is_of_kind(self, query, candidate, kind):
        shared = self._num_shared(query, candidate, kind == 1)
        if kind == 1:
            return shared == 0
        if kind == 2:
            return shared == 1
        return (shared == self._sizes[query] - 1) & (shared == self._sizes[candidate] - 1)

    def _num_shared(self, query, candidate, without_function_words):
        """Words that two questions have in common, ``[n]``: numbers that stand twice in a row's two sets."""
        rows = np.concatenate([np.repeat(np.arange(len(query)), self._sizes[side]) for side in (query, candidate)])
        tokens = np.concatenate([self._tokens[self._places(side)] for side in (query, candidate)])
        if without_function_words:
            kept = ~self._is_function_word[tokens]
            rows, tokens = rows[kept], tokens[kept]
        keys = np.sort(rows * np.int64(len(self._is_function_word)) + tokens)
        twice = keys[1:][keys[1:] == keys[:-1]]
        return np.bincount(twice // len(self._is_function_word), minlength=len(query))

    def _places(self, questions):
        """Places of all words of some questions, in their order."""
        sizes = self._sizes[questions]
        before = np.cumsum(sizes) - sizes
        return np.arange(sizes.sum()) + np.repeat(self._starts[questions] - before, sizes)


def groups(corpus: Corpus, seed: int, num_pairs: int | None = None) -> Iterator[Group]:
    """The pairs of a corpus as groups of one candidate, as `Corpus.blocks` draws them.

    The id of one is its number and, behind a dash, its kind.
    """
    number = 0
    for block in corpus.blocks(seed, num_pairs):
        for query, candidate, kind in zip(*(part.tolist() for part in block), strict=True):
            number += 1
            yield Group(f"{number}-{kind}", (corpus.text(query),), ((corpus.text(candidate),),), (float(kind == 0),))


def words_of(text: str) -> tuple[str, ...]:
    """The words of a question, in lower case; the text itself where it has none."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return tuple(_WORD.findall(text.lower())) or (text,)


def clusters_of_pairs(pairs: Sequence[Group]) -> Iterator[tuple[int, str]]:
    """The clusters that labelled pairs imply: questions linked by matches, directly or through others.

    Args:
        pairs: groups of one candidate.

    Yields:
        Cluster and text of each distinct question; one that matches none is a cluster of its own.
    """
    number_of: dict[tuple[str, ...], int] = {}
    texts: list[str] = []
    links = []
    for group in pairs:
        ends = []
        for text in map(" ".join, (group.query, group.candidates[0])):
            ends.append(number_of.setdefault(words_of(text), len(texts)))
            texts += [text] * (ends[-1] == len(texts))
        if group.labels[0] > 0:
            links.append(ends)
    return zip(linked(len(texts), np.array(links, "int64").reshape(-1, 2)).tolist(), texts, strict=True)


def linked(count: int, links: np.ndarray) -> np.ndarray:
    """The cluster of each of ``count`` things, ``[count]``, from links between them ``[n, 2]``."""
    from scipy import sparse

    graph = sparse.coo_array((np.ones(len(links), "int8"), (links[:, 0], links[:, 1])), shape=(count, count))
    return sparse.csgraph.connected_components(graph, directed=False)[1]


def distinct(cluster: np.ndarray, marks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Clusters with those that share a question made one, and which questions are the first of theirs.

    Args:
        cluster: number of each question's cluster ``[n]``.
        marks: equal numbers for equal questions ``[n]``.
    """
    _, first, of = np.unique(marks, return_index=True, return_inverse=True)
    kept = np.zeros(len(marks), bool)
    kept[first] = True
    links = np.stack([cluster, cluster[first[of]]], axis=1)[~kept]
    return linked(cluster.max(initial=-1) + 1, links)[cluster], kept


def _one_of(values, start, end, random):
    """One of ``values[start:end]`` for each start and end; -1 where there is none."""
    if not len(values):
        return np.full(len(start), -1)
    place = _place_in(start, end, random)
    return np.where(place < 0, -1, values[place]).astype("int64")


def _place_in(start, end, random):
    """A number from each start to before its end; -1 where there is none."""
    return np.where(end > start, start + (random.random(len(start)) * (end - start)).astype("int64"), -1)
