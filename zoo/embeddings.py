"""Word-vector files to the first matrix of a model.

Reads what GloVe and word2vec write as text: one word and its numbers a line, optionally after a header line
``count dimension``; and word2vec's binary form, told by its content: after that header, each word, a space, and its
numbers as little-endian float32. Both plain or gzipped. A word is looked up exactly as the vocabulary spells it; the
vocabulary is folded to lower case, so the vectors should be of lower-cased text.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from zoo.data import DataError

# Half the width of the uniform distribution of words without a vector (Kim 2014, section 3.2).
RANDOM_RANGE = 0.25

_COUNT = re.compile(rb"[0-9]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")  # in any vector of float32, and in no text
_DECIMAL = re.compile(rb"[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class Coverage:
    """How many words of a vocabulary have a vector; ``str`` gives one line for the log.

    Attributes:
        found: words with a vector in at least one file.
        found_in: the same for each file, by its name.
        missing: the words without, in the vocabulary's order.
    """

    found: int
    found_in: tuple[tuple[str, int], ...]
    missing: tuple[str, ...]
    _missing_in: tuple[tuple[str, frozenset[str]], ...] = field(default=(), compare=False, repr=False)

    def of(self, words: Sequence[str]) -> Coverage:
        """The coverage of some of the vocabulary's words."""
        missing = set(self.missing)
        without = tuple(word for word in words if word in missing)
        found_in = tuple((name, sum(word not in lacks for word in words)) for name, lacks in self._missing_in)
        return Coverage(len(words) - len(without), found_in, without)

    @property
    def share(self) -> float:
        """Share of the vocabulary's words that were found; 0 for an empty vocabulary."""
        total = self.found + len(self.missing)
        return self.found / total if total else 0.0

    def __str__(self) -> str:
        line = f"{self.found} of {self.found + len(self.missing)} words have a vector ({self.share:.1%})"
        if len(self.found_in) > 1:
            line += "; " + ", ".join(f"{count} in {name}" for name, count in self.found_in)
        if self.missing:
            line += "; without: " + " ".join(self.missing[:8]) + (" ..." if len(self.missing) > 8 else "")
        return line


def read_words(paths: Sequence[str | Path], limit: int | None = None) -> list[str]:
    """Returns the words of vector files in the files' order, without repeats, at most ``limit``."""
    words: dict[str, None] = {}
    for path in _as_paths(paths):
        for _, word, _ in _rows(path):
            if limit is not None and len(words) >= limit:
                return list(words)
            words[word.decode("utf-8", "replace")] = None
    return list(words)


def embedding_matrix(
    paths: Sequence[str | Path],
    words: Sequence[str],
    oov_buckets: int,
    seed: int,
    random_range: float = RANDOM_RANGE,
) -> tuple[np.ndarray, Coverage]:
    """Builds the embedding matrix of a vocabulary from one or more vector files.

    Only the vectors of ``words`` are kept in memory, and only their numbers are checked. Of a word that a
    file repeats, the first vector counts. A word that one file has and another lacks gets zeros for the
    latter. A word that no file has, and each bucket of unknown words, is drawn from a uniform distribution by its own
    seed, made of ``seed`` and the word, so that it does not depend on the rest of the vocabulary.

    Args:
        paths: vector files; the vectors of several are joined end to end.
        words: the vocabulary.
        oov_buckets: rows between padding and the words, as in `zoo.text.TextEncoder`.
        seed: for the random rows.
        random_range: the drawn numbers lie between this and its negative; 0 gives zeros.

    Returns:
        float32 [1 + oov_buckets + len(words), E], row 0 zeros, and the `Coverage`.

    Raises:
        DataError: for a line that is no word with finite numbers, or has more or fewer of them than the first
            line; names path and line.
        ValueError: if there is no path.
    """
    paths = _as_paths(paths)
    if not paths:
        raise ValueError("embedding_matrix needs at least one vector file. Received: paths=[]")
    first = 1 + oov_buckets
    row_of = {word.encode(): first + index for index, word in enumerate(words)}
    known = np.zeros(first + len(words), bool)
    parts = []
    found_in, missing_in = [], []
    for path in paths:
        part, found = _read_vectors(path, row_of, len(known))
        parts.append(part)
        found_in.append((path.name, int(found.sum())))
        missing_in.append((path.name, frozenset(words[index] for index in np.flatnonzero(~found[first:]))))
        known |= found
    matrix = np.concatenate(parts, axis=1)
    size = matrix.shape[1]
    for bucket in range(oov_buckets):
        matrix[1 + bucket] = _random_vector(f"{seed}\n{bucket}", size, random_range)  # no word holds a line break
    for index in np.flatnonzero(~known[first:]):
        matrix[first + index] = _random_vector(f"{seed}\n\n{words[index]}", size, random_range)
    missing = tuple(word for word, has_vector in zip(words, known[first:], strict=True) if not has_vector)
    return matrix, Coverage(len(words) - len(missing), tuple(found_in), missing, tuple(missing_in))


def _read_vectors(path: Path, row_of: Mapping[bytes, int], num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Reads the vectors of the wanted words: float32 [num_rows, E], and which rows were found."""
    matrix = None
    line_of = np.zeros(num_rows, np.int64)
    with np.errstate(over="ignore"):  # a number beyond float32 becomes infinite, and is refused below
        for number, word, fields in _rows(path):
            if matrix is None:
                matrix = np.zeros((num_rows, len(fields)), np.float32)
            row = row_of.get(word)
            if row is None or line_of[row]:
                continue
            try:
                matrix[row] = [*map(float, fields)]
            except ValueError:
                matrix[row] = np.nan
            line_of[row] = number
    broken = line_of[~np.isfinite(matrix).all(axis=1)]
    if broken.size:
        number = int(broken.min())
        word, fields = next((word, fields) for at, word, fields in _rows(path) if at == number)
        numbers = " ".join(_text(field) if isinstance(field, bytes) else f"{field:g}" for field in fields)
        raise DataError(path, number, "a word and finite numbers", f"{_text(word)} {numbers}")
    return matrix, line_of > 0


def _rows(path: Path) -> Iterator[tuple[int, bytes, Sequence]]:
    """Yields line number, word and the unparsed numbers; all lines have the same number of these.

    Of a binary file the line is the place among the vectors.
    """
    with _open(path) as file:
        header, more = _head(file)
    yield from _binary_rows(path, header) if _is_binary(header, more) else _text_rows(path)


def _text_rows(path: Path) -> Iterator[tuple[int, bytes, list[bytes]]]:
    dimension = num_lines = None
    number = count = 0
    with _open(path) as file:
        for number, line in _numbered(path, file):
            line = line.rstrip(b" \r\n")
            if dimension is None:
                head = line.split(b" ")
                if number == 1 and len(head) == 2 and all(map(_COUNT.fullmatch, head)):
                    num_lines, dimension = map(int, head)
                    continue
                dimension = len(head) - 1
            # From the right, because a word may hold spaces; but none ends in a number of the vector.
            word, *fields = line.rsplit(b" ", dimension)
            is_whole = dimension and len(fields) == dimension and word and _is_number(fields[0])
            if not is_whole or (b" " in word and _DECIMAL.fullmatch(word.rsplit(b" ", 1)[1])):
                raise DataError(path, number, f"a word and {dimension or 'some'} numbers", _text(line))
            count += 1
            yield number, word, fields
    if not count:
        raise DataError(path, None, "at least one word and its numbers", "an empty file")
    if num_lines is not None and count != num_lines:
        raise DataError(path, number, f"{num_lines} vectors, as the first line says", f"{count} vectors")


def _head(file: IO[bytes]) -> tuple[bytes, bytes]:
    """The first line, and what follows it."""
    try:
        return file.readline(1 << 20), file.read(1 << 12)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return b"", b""  # the text reader says where


def _is_binary(header: bytes, more: bytes) -> bool:
    head = header.split()
    return len(head) == 2 and all(map(_COUNT.fullmatch, head)) and bool(_CONTROL.search(more))


def _binary_rows(path: Path, header: bytes) -> Iterator[tuple[int, bytes, np.ndarray]]:
    count, dimension = map(int, header.split())
    size = 4 * dimension
    with _open(path) as file:
        file.readline()
        kept, start = b"", 0
        for number in range(1, count + 1):
            try:
                while (end := kept.find(b" ", start)) < 0 or len(kept) < end + 1 + size:
                    block = file.read(1 << 20)
                    if not block:
                        expected = f"{count} vectors, as the first line says"
                        raise DataError(path, number, expected, f"{number - 1} vectors")
                    kept, start = kept[start:] + block, 0
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise DataError(path, number, "a whole gzip file", str(error)) from error
            yield number, kept[start:end].lstrip(b"\n"), np.frombuffer(kept, "<f4", dimension, end + 1)
            start = end + 1 + size
        if (kept[start:] + file.read(1 << 10)).strip():
            raise DataError(path, count + 1, f"{count} vectors, as the first line says", "more of them")


def _open(path: Path) -> IO[bytes]:
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_gzip else open(path, "rb")


def _numbered(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        for number, line in enumerate(file, start=1):  # noqa: B007 - the last number names the place
            yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(path, number + 1, "a whole gzip file", str(error)) from error


def _random_vector(key: str, size: int, limit: float) -> np.ndarray:
    """Draws from U(-limit, limit); a hash, because a numpy generator for each word takes ten times as long."""
    bits = np.frombuffer(hashlib.shake_128(key.encode()).digest(4 * size), "<u4")
    return ((bits / 2**32 - 0.5) * 2 * limit).astype(np.float32)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _as_paths(paths: Sequence[str | Path]) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
