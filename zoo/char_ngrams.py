"""Tokens to their character n-grams, in the graph.

A token is marked at both ends, ``<where>``, and cut into all runs of n code points: ``<wher``, ``where``,
``here>`` for n = 5. A marked token that is shorter than every n is its own only n-gram. Of a token longer than
`MAX_CHARACTERS` the first ones are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import tensorflow as tf

# Words are shorter; what is longer is no word, and each n-gram more widens the row of every token beside it.
MAX_CHARACTERS = 30


def check_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes n, ascending; raises ValueError for one that is below 1 or stands there twice."""
    sizes = tuple(sizes)
    if any(size < 1 for size in sizes) or len(set(sizes)) < len(sizes):
        raise ValueError(f"Sizes of n-grams must be at least 1 and differ. Received: ngram_sizes={sizes}")
    return tuple(sorted(sizes))


def ngrams(tokens: tf.Tensor, sizes: Sequence[int]) -> tf.RaggedTensor:
    """Tokens, string [n], to their n-grams, ragged string [n, (grams)], each as often as it occurs."""
    marked = tf.strings.join(["<", tf.strings.substr(tokens, 0, MAX_CHARACTERS, unit="UTF8_CHAR"), ">"])
    characters = tf.strings.unicode_split(marked, "UTF-8")
    return tf.strings.ngrams(characters, tuple(sizes), separator="", preserve_short_sequences=True)


def count_ngrams(words: Iterable[tuple[str, int]], sizes: Sequence[int]) -> list[tuple[str, int]]:
    """The n-grams of counted words with their own counts, most frequent first, then alphabetically."""
    words = list(words)
    if not words:
        return []
    rows = ngrams(tf.constant([word for word, _ in words]), sizes).to_list()
    counts: Counter[bytes] = Counter()
    for row, (_, count) in zip(rows, words, strict=True):
        for ngram in row:
            counts[ngram] += count
    return sorted(((ngram.decode(), count) for ngram, count in counts.items()), key=lambda item: (-item[1], item[0]))
