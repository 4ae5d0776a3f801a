"""STS: pairs of sentences judged for how much they mean the same, from 0 to 5 (SemEval 2012 to 2017).

MaLSTM (Mueller and Thyagarajan, 2016) is trained on STS 2013 before it meets SICK. The STS-Benchmark is a choice
of pairs of all years, with a split of its own.

Where to get it: https://ixa2.si.ehu.eus/stswiki. Licence: see the files beside each year's.

Files of one year, in a folder and its subfolders, plain or ``.gz``:

* ``STS.input.NAME.txt`` with ``STS.gs.NAME.txt``: two sentences a line, and the score of the same line; or
* ``*.tsv``: ``score``, two sentences.

A line with an empty score was not judged, and is left out. The benchmark is ``sts-train.csv``, ``sts-dev.csv`` and
``sts-test.csv``: genre, file, year, number, score and two sentences (more may follow). All are separated by tabs
and unquoted, and have no header.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from zoo import files
from zoo.data import DataError, Dataset, Group
from zoo.datasets.sick import read_score
from zoo.metrics import Convention

SCALE = (0.0, 5.0)

_BENCHMARK = {split: f"sts-{split}.csv" for split in ("train", "dev", "test")}


def is_benchmark(folder: str | Path) -> bool:
    """Whether the folder holds a file of the STS-Benchmark."""
    return files.find(folder, list(_BENCHMARK.values())) is not None


def load(folder: str | Path) -> Dataset:
    """Read the STS-Benchmark.

    Raises:
        DataError: a file is not there, or does not hold what it must.
    """
    splits, read = {}, []
    for split, name in _BENCHMARK.items():
        path = files.find(folder, [name])
        if path is None:
            raise files.missing(folder, [name])
        rows = _columns(path, 7, "genre, file, year, number, score and two sentences")
        splits[split] = list(_groups(path, ((number, row[4:7]) for number, row in rows)))
        if not splits[split]:
            raise DataError(path, None, "pairs with a score", "none")
        read.append(path)
    return Dataset(
        "STS-Benchmark",
        splits,
        Convention(),
        ("pearson", "spearman", "mse"),
        scale=SCALE,
        files=tuple(read),
        in_paper=False,
    )


def read_year(folder: str | Path, scale: Sequence[float] = SCALE) -> tuple[list[Group], tuple[Path, ...]]:
    """The judged pairs of one or more years, and the files that they are from.

    Args:
        folder: where the files lie, or a folder of such folders.
        scale: lowest and highest label; the scores, 0 to 5, are mapped to it.

    Raises:
        DataError: no such file is there, or one does not hold what it must.
    """
    low, high = scale
    groups, read = [], []
    for path in sorted(Path(folder).rglob("*")) if Path(folder).is_dir() else ():
        name = path.name.removesuffix(".gz")
        if name.startswith("STS.input.") and name.endswith(".txt"):
            gold = files.find(path.parent, [name.replace("STS.input.", "STS.gs.")])
            if gold is None:
                continue  # some years give fewer scores than inputs
            rows, read = _beside(path, gold), [*read, path, gold]
        elif name.endswith(".tsv"):
            rows, read = _columns(path, 3, "a score and two sentences"), [*read, path]
        else:
            continue
        groups += _groups(path, rows)
    if not groups:
        raise files.missing(folder, ["*.tsv", "STS.input.*.txt with STS.gs.*.txt"])
    mapped = [group._replace(labels=(low + (high - low) * group.labels[0] / SCALE[1],)) for group in groups]
    return mapped, tuple(read)


def _beside(path: Path, gold: Path) -> Iterator[tuple[int, Sequence[str]]]:
    scores = [score for _, score in files.read_lines(gold)]
    num_lines = sum(1 for _ in files.read_lines(path))
    if len(scores) != num_lines:
        raise DataError(gold, None, f"a score for each of the {num_lines} lines of {path.name}", f"{len(scores)} lines")
    for number, row in _columns(path, 2, "two sentences"):
        yield number, (scores[number - 1], *row)


def _columns(path: Path, least: int, what: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in files.read_lines(path):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) < least:
            raise DataError(path, number, f"{what}, separated by tabs", line)
        yield number, columns


def _groups(path: Path, rows) -> Iterator[Group]:
    for number, (score, query, candidate, *_) in rows:
        if score.strip():
            label = read_score(score, SCALE, path, number)
            yield Group(f"{path.parent.name}/{path.name}-{number}", (query,), ((candidate,),), (label,))
