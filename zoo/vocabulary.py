"""Vocabulary files, one word a line, and the learning of wordpieces.

The line of a word decides its id, so a file that an editor or a transfer has changed is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zoo.data import DataError

UNKNOWN_PIECE = "[UNK]"


def write_vocabulary(path: str | Path, words: Sequence[str]) -> None:
    """Writes one word a line; raises ValueError for words that could not be read back."""
    check_words(words)
    Path(path).write_text("".join(f"{word}\n" for word in words), encoding="utf-8", newline="\n")


def read_vocabulary(path: str | Path) -> list[str]:
    """Reads one word a line; raises DataError, a ValueError, that names an empty, repeated or broken line."""
    lines: dict[str, int] = {}
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                word = line.removesuffix(b"\n").decode()
            except UnicodeDecodeError:
                raise DataError(path, number, "UTF-8", line) from None
            if not word:
                raise DataError(path, number, "a word", word)
            if "\r" in word:
                raise DataError(path, number, "lines that end in LF alone (mend with dos2unix)", word)
            if word in lines:
                raise DataError(path, number, f"a word other than that of line {lines[word]}", word)
            lines[word] = number
    return list(lines)


def check_words(words: Sequence[str]) -> None:
    """Raises ValueError for a word that is empty, holds a line break or stands there twice."""
    seen: set[str] = set()
    for index, word in enumerate(words):
        if not word or "\n" in word or "\r" in word:
            raise ValueError(f"A word must not be empty nor hold a line break. Received: words[{index}]={word!r}")
        if word in seen:
            raise ValueError(f"Words must differ from each other. Received twice: words[{index}]={word!r}")
        seen.add(word)


def learn_pieces(counts: list[tuple[str, int]], max_pieces: int, min_count: int) -> list[str]:
    """Learns wordpieces from counted words: [UNK], single characters, then pieces by frequency.

    Args:
        counts: words and how often they occur, most frequent first.
        max_pieces: size of the vocabulary.
        min_count: occurrences that a piece needs.
    """
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    if not counts:
        return [UNKNOWN_PIECE]
    pieces = learner.learn(
        counts,
        vocab_size=max_pieces,
        reserved_tokens=[UNKNOWN_PIECE],
        lower_thresh=min_count,
        # A character makes two pieces: at a word's start, and inside.
        max_unique_chars=max(1, min(1000, max_pieces // 3)),
    )
    return pieces[:max_pieces]  # the learner's search may end a little above
