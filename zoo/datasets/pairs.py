"""Your own file of pairs: a query, a candidate and a label a row; rows of one query form its list.

The name's ending tells the format, each plain or with ``.gz``:

* ``.tsv``, ``.txt``: split on tabs, nothing is quoted; a quote is a quote.
* ``.csv``: commas, fields quoted with ``"`` where they hold commas, quotes or line ends.
* ``.jsonl``, ``.ndjson``: a JSON object a line, texts as strings.

The first row of TSV and CSV names the columns. A file without such a row is read by numbering all columns from 1:
``query="1", candidate="2", label="3"``. Other columns are ignored; every row has as many as the first. Labels are
0 or 1, also written 0.0, 1.0, false, true. Texts are UTF-8 and kept as they are: they may be empty, long or
repeated. A query needs no positive. Blank lines are skipped.

Rows belong together when their query text is equal, wherever they stand, or when their ``group`` is.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from zoo import files
from zoo.data import DataError, Dataset, Group
from zoo.metrics import Convention
from zoo.splits import SEED, hold_out_of, is_mixed, normalise

_LABELS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}
_TABS, _COMMAS, _JSON = (".tsv", ".txt"), (".csv",), (".jsonl", ".ndjson")

# Line and values of the columns that were asked for.
_Row = tuple[int, tuple[object, ...]]


def load(
    train: str | Path,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    *,
    query: str = "query",
    candidate: str = "candidate",
    label: str = "label",
    group: str | None = None,
    negatives: int = 0,
    dev_share: float = 0.1,
    seed: int = SEED,
) -> Dataset:
    """Read one to three files of pairs.

    Without ``dev``, whole queries are drawn from ``train`` for it; with neither ``dev`` nor ``test``, for both,
    if enough are there.

    Args:
        train, dev, test: the files; the module's docstring describes them.
        query, candidate, label: names of the columns, or 1-based numbers for files without a header.
        group: a column that tells lists apart; by default the query text does.
        negatives: wrong candidates that a query without any gets from the other queries of its file.
        dev_share: share of the queries that is drawn for each split that has no file.
        seed: of the draw; not the run's seed.

    Raises:
        DataError: a file does not hold what it must, or has too few queries to hold one out.
        ValueError: ``dev_share`` is not between 0 and 1.
    """
    if not 0 < dev_share < 1:
        raise ValueError(f"dev_share must be between 0 and 1. Received: dev_share={dev_share!r}")
    columns = [query, candidate, label] + ([group] if group is not None else [])
    paths = {"train": train, "dev": dev, "test": test}
    paths = {split: Path(path) for split, path in paths.items() if path is not None}
    splits = {split: _groups(path, columns) for split, path in paths.items()}
    notes = []
    if negatives:
        splits = {split: with_negatives(groups, negatives, seed) for split, groups in splits.items()}
        notes.append(
            f"Queries without a wrong candidate have up to {negatives} drawn from the other queries (seed {seed})."
        )
    if dev is None:
        drawn = ["dev"] if test is not None else ["dev", "test"]
        notes.append(_draw(splits, drawn, dev_share, seed, paths["train"]))
    elif test is None:
        notes.append("There is no test file: figures are of dev, which also chose the epoch.")
    ordered = {split: splits[split] for split in ("train", "dev", "test") if split in splits}
    return Dataset(
        paths["train"].name,
        ordered,
        Convention(ties="pessimistic", without_positive="skip"),
        ("map", "mrr", "p@1", "ndcg@10"),
        files=tuple(paths.values()),
        notes=tuple(notes),
    )


def with_negatives(groups: Sequence[Group], count: int, seed: int = SEED) -> list[Group]:
    """The groups, where those without a wrong candidate have ``count`` of other queries, or as many as there are.

    The draw depends on the seed and the texts alone. A text that equals one of the query's own is none of them.
    """
    texts = {normalise(text): text for text in sorted({text for group in groups for text in group.candidates})}
    pool = [texts[text] for text in sorted(texts)]

    def extended(group):
        if not all(label > 0 for label in group.labels):
            return group
        own = {normalise(text) for text in (group.query, *group.candidates)}
        random = Random(f"{seed}\n{normalise(group.query)}")
        # Few of those drawn are the query's own.
        drawn = random.sample(pool, min(len(pool), count + len(own)))
        wrong = [text for text in drawn if normalise(text) not in own][:count]
        return group._replace(candidates=(*group.candidates, *wrong), labels=(*group.labels, *[0.0] * len(wrong)))

    return [extended(group) for group in groups]


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write each split as ``<split>.tsv`` with the header query, candidate, label.

    What is lost: group ids; runs of white space become one space; groups with one query become one; fields are
    joined.
    """
    for split, groups in splits.items():
        rows = (
            f"{files.one_line(group.query)}\t{files.one_line(candidate)}\t{int(label > 0)}"
            for group in groups
            for candidate, label in zip(group.candidates, group.labels, strict=True)
        )
        files.write_lines(Path(folder) / f"{split}.tsv", ["query\tcandidate\tlabel", *rows])


def _draw(splits: dict[str, list[Group]], drawn: list[str], share: float, seed: int, path: Path) -> str:
    """Moves whole queries from train to the splits ``drawn``; says how many."""
    count = max(1, round(share * len(splits["train"])))
    for split in drawn:
        if split == "test" and _num_to_spare(splits["train"]) < 1:
            return f"{_drawn(splits, drawn[:1], seed)} There are too few queries for a test split as well."
        expected = "enough queries to hold out a dev split"
        splits["train"], splits[split] = hold_out_of(path, expected, splits["train"], count, seed)
    return _drawn(splits, drawn, seed)


def _drawn(splits: dict[str, list[Group]], drawn: list[str], seed: int) -> str:
    sizes = " and ".join(f"{split} ({len(splits[split])} queries)" for split in drawn)
    return f"Drawn from train by whole queries, seed {seed}: {sizes}."


def _num_to_spare(groups: Sequence[Group]) -> int:
    """How many queries can leave train so that one remains to learn a ranking from, if there was one."""
    mixed = {normalise(group.query) for group in groups if is_mixed(group)}
    return len(mixed or {normalise(group.query) for group in groups}) - 1


def _groups(path: Path, columns: Sequence[str]) -> list[Group]:
    queries: dict[str, str] = {}
    lists: dict[str, list[tuple[str, float]]] = {}
    for number, (query, candidate, label, *group) in _rows(path, columns):
        for name, value in zip(columns, (query, candidate), strict=False):
            if not isinstance(value, str):
                raise DataError(path, number, f"a text as {name!r}", value)
        key = str(group[0]) if group else query
        if queries.setdefault(key, query) != query:
            raise DataError(path, number, f"the query {queries[key]!r}, as earlier in group {key!r}", query)
        lists.setdefault(key, []).append((candidate, _label(label, path, number)))
    if not lists:
        raise DataError(path, None, "at least one row", "none")
    return [
        Group(
            key if len(columns) == 4 else str(index),
            (queries[key],),
            tuple((candidate,) for candidate, _ in rows),
            tuple(label for _, label in rows),
        )
        for index, (key, rows) in enumerate(lists.items(), start=1)
    ]


def _label(value: object, path: Path, number: int) -> float:
    label = _LABELS.get(str(value).strip().lower())
    if label is None:
        raise DataError(path, number, "label 0 or 1 (also 0.0, 1.0, false, true)", value)
    return label


def _rows(path: Path, columns: Sequence[str]) -> Iterator[_Row]:
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in _JSON:
        yield from _json_rows(path, columns)
    elif ending in _TABS:
        yield from _columns_of(_tab_rows(path), path, columns)
    elif ending in _COMMAS:
        yield from _columns_of(_comma_rows(path), path, columns)
    else:
        endings = ", ".join(_TABS + _COMMAS + _JSON)
        raise DataError(path, None, f"a file whose name ends in {endings}, or such an ending and .gz", path.name)


def _json_rows(path: Path, columns: Sequence[str]) -> Iterator[_Row]:
    for number, row in files.read_json_lines(path):
        for column in columns:
            if column not in row:
                raise DataError(path, number, f"the key {column!r}; the keys there are", list(row))
        yield number, tuple(row[column] for column in columns)


def _columns_of(rows: Iterator[tuple[int, list[str]]], path: Path, columns: Sequence[str]) -> Iterator[_Row]:
    """Picks the columns; the first row is a header unless all columns are numbers."""
    first = next(rows, None)
    if first is None:
        raise DataError(path, None, "at least one row", "none")
    number, header = first
    if all(column.isdecimal() for column in columns):
        places = [int(column) - 1 for column in columns]
        for place in places:
            if not 0 <= place < len(header):
                raise DataError(path, number, f"a column number from 1 to {len(header)}", place + 1)
        yield number, tuple(header[place] for place in places)
    else:
        for column in columns:
            if header.count(column) != 1:
                expected = f"one column named {column!r} (without a header row, number all columns from 1)"
                raise DataError(path, number, expected, header)
        places = [header.index(column) for column in columns]
    for number, row in rows:
        if len(row) != len(header):
            raise DataError(path, number, f"{len(header)} columns, as the first row has", row)
        yield number, tuple(row[place] for place in places)


def _tab_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in files.read_lines(path):
        if line.strip(" "):
            yield number, line.split("\t")


def _comma_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(sys.maxsize)  # its default refuses texts over 128 KiB
    lines = (line for _, line in files.read_lines(path, keep_ends=True))
    reader = csv.reader(lines, strict=True)
    start = 1
    try:
        for row in reader:
            if row:
                yield start, row
            start = reader.line_num + 1  # a row may span lines
    except csv.Error as error:
        raise DataError(path, start, "a row of CSV", str(error)) from error
