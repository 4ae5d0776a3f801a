"""Quora question pairs: do two questions ask the same? Paraphrase identification, scored by accuracy.

Used by Wang et al. (2017, BiMPM), whose split is the published one, and by Tomar et al. (2017). Half of the pairs
of that dev and test are matches, and 36 % of the training pairs. The threshold of a match is tuned on dev.

Where to get it: Wang et al.'s files are the Quora download of https://zhiguowang.github.io; the original is
``quora_duplicate_questions.tsv`` of Quora's first data set release, and ``train.csv`` of the Kaggle competition
"Quora Question Pairs" holds the same pairs. Licence: Quora's terms of service, non-commercial.

Files, the first that is found, plain or ``.gz``:

1. ``train.tsv``, ``dev.tsv`` and ``test.tsv``, in the folder itself, in ``Quora_question_pair_partition/`` or in
   ``bimpm/``: lines ``label TAB question TAB question TAB pair id``, without header, nothing quoted. In place of
   the 384,348 training pairs there may be some of them, ``extra_train.derived.tsv``.
2. ``quora_duplicate_questions.tsv``: a header and the columns id, qid1, qid2, question1, question2, is_duplicate,
   quoted with ``"`` where a question holds a line end.
3. ``train.csv``: the same with commas.

Files 2 and 3 have no split: 10,000 pairs each (a tenth, if there are fewer than 100,000) become dev and test, by
whole questions of the first column. That split is our own, and not balanced: its figures are not the paper's.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from zoo import files
from zoo.data import DataError, Dataset, Group
from zoo.metrics import Convention
from zoo.splits import SEED, hold_out_of, without

NUM_TRAIN, NUM_HELD = 384_348, 10_000  # of Wang et al.'s split, whose dev and test are half matches
_SUBFOLDERS = ("", "Quora_question_pair_partition", "bimpm")
_SPLITS = {"train": ("train.tsv", "extra_train.derived.tsv"), "dev": ("dev.tsv",), "test": ("test.tsv",)}
_TABLES = {"quora_duplicate_questions.tsv": "\t", "train.csv": ","}
_COLUMNS = ("question1", "question2", "is_duplicate")


def load(folder: str | Path, seed: int = SEED) -> Dataset:
    """Read the pairs; the module's docstring says which files are looked for.

    Args:
        folder: where the files lie.
        seed: of the split that is drawn where the files hold none. It is not the run's seed.

    Raises:
        DataError: no such file is there, or one does not hold what it must.
    """
    paths = {split: files.find(folder, names, _SUBFOLDERS) for split, names in _SPLITS.items()}
    table = files.find(folder, tuple(_TABLES))
    if all(paths.values()):
        splits = {split: list(_read_lines(path)) for split, path in paths.items()}
        read, notes = tuple(paths.values()), ()
    elif table:
        train = list(_read_table(table, _TABLES[table.name.removesuffix(".gz")]))
        count = NUM_HELD if len(train) >= 100_000 else max(1, len(train) // 10)
        splits = {}
        for split in ("dev", "test"):
            train, splits[split] = hold_out_of(table, "enough questions to hold some out", train, count, seed)
        # The same pair may stand there in the other order, and training takes every pair in both.
        splits["dev"] = without(splits["dev"], splits["test"])
        splits = {"train": without(train, splits["dev"] + splits["test"]), **splits}
        sizes = f"Dev, {len(splits['dev']):,} pairs, and test, {len(splits['test']):,},"
        notes = (f"{sizes} were drawn from {table.name} (seed {seed}); the split is our own.",)
        read = (table,)
    else:
        lacking = [" or ".join(_SPLITS[split]) for split in paths if not paths[split]]
        raise files.missing(folder, ["train.tsv with dev.tsv and test.tsv", *_TABLES], f"lacking {', '.join(lacking)}")
    # Figures of Wang et al.'s split are not for another one.
    in_paper = all(
        len(splits[name]) == NUM_HELD and sum(pair.labels[0] for pair in splits[name]) == NUM_HELD / 2
        for name in ("dev", "test")
    )
    name = f"Quora, {len(splits['train']):,}{f' of {NUM_TRAIN:,}' if in_paper else ''} training pairs"
    return Dataset(name, splits, Convention(), ("accuracy", "f1"), files=read, notes=notes, in_paper=in_paper)


def draw(pairs: list[Group], count: int, seed: int = SEED) -> list[Group]:
    """``count`` of the pairs, in their order; fewer are among more of the same seed. 0 gives all of them."""
    if not count or count >= len(pairs):
        return pairs

    def drawn_at(index):
        pair = pairs[index]
        return hashlib.blake2b(f"{seed}\n{pair.query}\n{pair.candidates}".encode("utf-8", "surrogatepass")).digest()

    return [pairs[index] for index in sorted(sorted(range(len(pairs)), key=drawn_at)[:count])]


def in_both_orders(pairs: list[Group]) -> list[Group]:
    """The pairs and, after them, each with its two questions exchanged (Tomar et al., section 4.1)."""
    return [*pairs, *(Group(f"{p.id} reversed", p.candidates[0], (p.query,), p.labels) for p in pairs)]


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write ``train.tsv``, ``dev.tsv`` and ``test.tsv``; runs of white space become one space, lists are cut up."""
    for split, groups in splits.items():
        lines = (
            f"{int(label > 0)}\t{files.one_line(group.query)}\t{files.one_line(candidate)}\t{group.id}"
            for group in groups
            for candidate, label in zip(group.candidates, group.labels, strict=True)
        )
        files.write_lines(Path(folder) / f"{split}.tsv", lines)


def _read_lines(path: Path) -> Iterator[Group]:
    seen = False
    for number, line in files.read_lines(path):
        if not line:
            continue
        seen = True
        columns = line.split("\t")
        if len(columns) != 4:
            raise DataError(path, number, "label, question, question and pair id with three tabs", line)
        label, query, candidate, _ = columns
        yield _pair(number, query, candidate, _label(label, path, number))  # ids of the files may repeat
    if not seen:
        raise DataError(path, None, "at least one pair", "no line")


def _read_table(path: Path, delimiter: str) -> Iterator[Group]:
    csv.field_size_limit(sys.maxsize)  # its default refuses texts over 128 KiB
    lines = (line for _, line in files.read_lines(path, keep_ends=True))
    rows, start = csv.reader(lines, delimiter=delimiter, strict=True), 1
    places, count = None, 0
    try:
        for row in rows:
            if places is None:
                for column in _COLUMNS:
                    if row.count(column) != 1:
                        raise DataError(path, start, f"a header with the column {column!r}", row)
                header, places = row, [row.index(column) for column in _COLUMNS]
            elif row:
                if len(row) != len(header):
                    raise DataError(path, start, f"{len(header)} columns, as the header has", row)
                query, candidate, label = (row[place] for place in places)
                count += 1
                yield _pair(start, query, candidate, _label(label, path, start))
            start = rows.line_num + 1  # a row may span lines
    except csv.Error as error:
        raise DataError(path, start, "a row of a quoted table", str(error)) from error
    if not count:
        raise DataError(path, None, "a header and at least one pair", "no pair")


def _label(label: str, path: Path, number: int) -> float:
    if label.strip() not in ("0", "1"):
        raise DataError(path, number, "label 0 or 1", label)
    return float(label)


def _pair(number: int, query: str, candidate: str, label: float) -> Group:
    return Group(str(number), (query,), ((candidate,),), (label,))
