"""Paralex: questions of WikiAnswers that its users marked as asking the same; noisy, and without negatives.

Used by Tomar et al. (2017) to pre-train, with negatives that `zoo.noisy_pairs` draws.

Where to get it: ``wikianswers-paraphrases-1.0.tar.gz`` of http://knowitall.cs.washington.edu/paralex (Fader et al.
2013), 35,291,309 lines. The later WikiAnswers corpus of clusters is at https://github.com/afader/oqa (Fader et al.
2014). Licence: see there.

Files, the first that is found, plain or ``.gz``:

1. ``word_alignments.txt``, in the folder or in ``wikianswers-paraphrases-1.0/``: lines ``question TAB question TAB
   alignments``; most pairs stand there in both orders. Questions are linked by pairs, directly or through others.
2. ``clusters.txt``: one cluster a line, its questions between tabs; ``q:`` before a question is taken off, and an
   entry that begins with ``a:``, an answer of the WikiAnswers corpus, is left out. Lines that share a question are one
   cluster.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from zoo import files, noisy_pairs
from zoo.data import DataError, Dataset
from zoo.metrics import Convention
from zoo.splits import SEED

_ALIGNMENTS, _CLUSTERS = "word_alignments.txt", "clusters.txt"
_MOST_HELD = 10_000  # pairs of dev and of test
_SUBFOLDERS = ("", "wikianswers-paraphrases-1.0")


def load(folder: str | Path, num_pairs: int = 0, seed: int = SEED) -> Dataset:
    """Draw noisy pairs to train on, and some of other clusters for dev and test.

    A twentieth of the clusters, whichever their hash says, is dev, another one test.

    Args:
        folder: where the files lie.
        num_pairs: of the training split, see `zoo.noisy_pairs.Corpus.blocks`; 0 for every question once.
        seed: of the draw; not the run's seed.

    Raises:
        DataError: no such file is there, or one does not hold what it must.
    """
    read, path = questions(folder)
    held: dict[str, list[tuple[int, str]]] = {"dev": [], "test": []}
    most = {"train": None, "dev": _MOST_HELD, "test": _MOST_HELD}

    def of_train():
        for cluster, text in read:
            split = {0: "dev", 1: "test"}.get(zlib.crc32(f"{seed} {cluster}".encode()) % 20)
            if split:
                held[split].append((cluster, text))
            else:
                yield cluster, text

    try:
        corpora = {"train": noisy_pairs.Corpus(of_train())}
        corpora |= {split: noisy_pairs.Corpus(rows) for split, rows in held.items()}
        splits = {
            split: list(islice(noisy_pairs.groups(corpus, seed, num_pairs or None), most[split]))
            for split, corpus in corpora.items()
        }
    except DataError:
        raise
    except ValueError as error:
        expected = "in each split two clusters, and one of two questions"
        raise DataError(path, None, expected, str(error)) from error
    train = corpora["train"]
    name = f"noisy pairs of {path.name}, {len(train):,} questions of {train.num_clusters:,} clusters"
    note = "Dev and test are noisy too: drawn like the training pairs, of other clusters."
    return Dataset(name, splits, Convention(), ("accuracy", "f1"), files=(path,), notes=(note,))


def questions(folder: str | Path) -> tuple[Iterator[tuple[int, str]], Path]:
    """Pairs of cluster and question, for `zoo.noisy_pairs.Corpus`, and the file that they are read from.

    Raises:
        DataError: no such file is there, or (when they are read) a line does not hold what it must.
    """
    alignments = files.find(folder, [_ALIGNMENTS], _SUBFOLDERS)
    if alignments:
        return _from_pairs(alignments), alignments
    clusters = files.find(folder, [_CLUSTERS], _SUBFOLDERS)
    if clusters:
        return _from_clusters(clusters), clusters
    raise files.missing(folder, [_ALIGNMENTS, _CLUSTERS])


def write(clusters: dict[object, list[str]], folder: str | Path) -> None:
    """Write ``clusters.txt``; runs of white space become one space."""
    rows = ("\t".join(f"q:{files.one_line(text)}" for text in texts) for texts in clusters.values())
    files.write_lines(Path(folder) / _CLUSTERS, rows)


def _from_pairs(path: Path) -> Iterator[tuple[int, str]]:
    number_of: dict[int, int] = {}
    texts = []
    links = array("q")  # as lists they would take ten times the memory
    for number, line in files.read_lines(path):
        if not line:
            continue
        columns = line.split("\t")
        if len(columns) not in (2, 3):
            raise DataError(path, number, "question, question and alignments between tabs", line)
        if not all(text.strip() for text in columns[:2]):
            continue  # all that stand beside an empty question would be linked by it
        for text in columns[:2]:
            links.append(number_of.setdefault(hash(noisy_pairs.words_of(text)), len(texts)))
            texts += [text] * (links[-1] == len(texts))
    if not texts:
        raise DataError(path, None, "at least one pair", "no line")
    cluster = noisy_pairs.linked(len(texts), np.frombuffer(links, "int64").reshape(-1, 2))
    yield from zip(cluster.tolist(), texts, strict=True)


def _from_clusters(path: Path) -> Iterator[tuple[int, str]]:
    # Read twice: a question may stand in several clusters, which are known for one only in the end.
    cluster, marks = array("q"), array("q")
    for number, text in _entries(path):
        cluster.append(number)
        marks.append(hash(noisy_pairs.words_of(text)))
    if not marks:
        raise DataError(path, None, "at least one question", "none")
    cluster, kept = noisy_pairs.distinct(np.frombuffer(cluster, "int64"), np.frombuffer(marks, "int64"))
    for (_, text), number, is_first in zip(_entries(path), cluster.tolist(), kept.tolist(), strict=True):
        if is_first:
            yield number, text


def _entries(path):
    """Number of the line and question."""
    for number, line in files.read_lines(path):
        for entry in line.split("\t"):
            text = entry.removeprefix("q:").strip()
            if text and not entry.startswith("a:"):
                yield number, text
