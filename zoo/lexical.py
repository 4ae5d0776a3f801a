"""Baselines that count words and train nothing, scored by the same evaluation as the models.

Each has ``fit(train)``, which returns the scorer itself, and ``score(groups)``, an array of scores a group.
A query or candidate without a known word scores 0. Libraries are imported where they are used: training a
model needs none of them, and bm25s brings JAX up, GPU memory included, as soon as it is imported.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from zoo.data import Group, Text

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class BM25:
    """BM25 as Lucene computes it, over the distinct candidates of the groups that are scored.

    A repeated query word counts as often as it stands there.

    Args:
        k1: how soon a repeated word saturates.
        b: how much a long candidate is held back, 0 to 1.
        stop_words: words that are left out of both sides, lower case.

    Reference: Lei et al. 2016, Table 2; Robertson and Zaragoza 2009; k1 and b are Lucene's.
    """

    k1: float = 1.2
    b: float = 0.75
    stop_words: frozenset[str] = frozenset()

    def fit(self, train: Sequence[Group]) -> BM25:
        return self

    def score(self, groups: Sequence[Group]) -> list[np.ndarray]:
        import bm25s

        rows = _rows(text for group in groups for text in group.candidates)
        documents = [self._words(text) for text in rows]
        if not any(documents):
            return [np.zeros(len(group.candidates)) for group in groups]
        index = bm25s.BM25(method="lucene", k1=self.k1, b=self.b)
        index.index(documents, show_progress=False)
        scores = []
        for group in groups:
            known = index.get_tokens_ids(self._words(group.query))
            everywhere = index.get_scores_from_ids(known) if known else np.zeros(len(rows))
            scores.append(everywhere[[rows[text] for text in group.candidates]].astype(np.float64))
        return scores

    def search(self, queries: Sequence[Text], documents: Sequence[Text], count: int) -> list[list[tuple[int, float]]]:
        """The best ``count`` documents of each query, as number and score, the best first."""
        import bm25s

        index = bm25s.BM25(method="lucene", k1=self.k1, b=self.b)
        index.index([self._words(text) for text in documents], show_progress=False)
        found = []
        for query in queries:
            known = index.get_tokens_ids(self._words(query))
            scores = index.get_scores_from_ids(known) if known else np.zeros(len(documents))
            best = np.argsort(-scores, kind="stable")[:count]
            found.append([(int(number), float(scores[number])) for number in best])
        return found

    def _words(self, text):
        return [word for word in _words(text) if word not in self.stop_words]


@dataclass
class TfIdf:
    """Cosine of tf-idf vectors, fitted on the queries and candidates of the training split.

    Args:
        max_ngram: n-grams of 1 to this many words.
        stop_words: words that are left out, lower case; what stood around one then counts as side by side.
        num_fields: how many fields of a text are read, from the first; all if None.

    Raises:
        ValueError: when the training texts hold no word, or when it scores before it was fitted.

    Reference: Lei et al. 2016, Table 2 (n-grams of 1 to 3 words); the weighting is scikit-learn's default.
    """

    max_ngram: int = 1
    stop_words: frozenset[str] = frozenset()
    num_fields: int | None = None
    _vectorizer: object = field(default=None, init=False, repr=False)

    def fit(self, train: Sequence[Group]) -> TfIdf:
        from sklearn.feature_extraction.text import TfidfVectorizer

        rows = _rows(text for group in train for text in (group.query, *group.candidates))
        if not any(self._words(text) for text in rows):
            raise ValueError(
                "The training texts must hold at least one word that is no stop word. "
                f"Received: {len(rows)} distinct texts without one"
            )
        self._vectorizer = TfidfVectorizer(
            tokenizer=self._words, token_pattern=None, lowercase=False, ngram_range=(1, self.max_ngram)
        )
        self._vectorizer.fit(list(rows))
        return self

    def score(self, groups: Sequence[Group]) -> list[np.ndarray]:
        if self._vectorizer is None:
            raise ValueError(f"TfIdf must be fitted before it scores: call fit(train). Received: {self!r}")
        rows = _rows(text for group in groups for text in (group.query, *group.candidates))
        if not rows:
            return [np.zeros(0) for _ in groups]
        vectors = self._vectorizer.transform(list(rows))  # of length 1, or 0 without a known word
        return [
            (vectors[[rows[text] for text in group.candidates]] @ vectors[rows[group.query]].T).toarray()[:, 0]
            for group in groups
        ]

    def _words(self, text):
        return [word for word in _words(text[: self.num_fields]) if word not in self.stop_words]


@dataclass(frozen=True)
class SearchEngine:
    """The order in which a search engine found the candidates, from the data's own `search_scores`.

    Raises:
        ValueError: for a group whose candidates have none.
    """

    def fit(self, train: Sequence[Group]) -> SearchEngine:
        return self

    def score(self, groups: Sequence[Group]) -> list[np.ndarray]:
        for group in groups:
            if len(group.search_scores) != len(group.candidates):
                raise ValueError(
                    "The search engine's order needs a score for each candidate. "
                    f"Received: {len(group.search_scores)} for {len(group.candidates)} candidates of {group.id!r}"
                )
        return [np.array(group.search_scores, np.float64) for group in groups]


@dataclass(frozen=True)
class Random:
    """Uniform random scores; a query's depend on the seed and its id alone, not on the other queries."""

    seed: int = 0

    def fit(self, train: Sequence[Group]) -> Random:
        return self

    def score(self, groups: Sequence[Group]) -> list[np.ndarray]:
        return [
            np.random.default_rng([self.seed, zlib.crc32(group.id.encode())]).random(len(group.candidates))
            for group in groups
        ]


def _words(text: Text) -> list[str]:
    return [word for part in text for word in _WORD.findall(part.casefold())]


def _rows(texts: Iterable[Text]) -> dict[Text, int]:
    return {text: row for row, text in enumerate(dict.fromkeys(texts))}
