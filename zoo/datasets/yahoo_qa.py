"""YahooQA: how-to questions of Yahoo! Answers, each with its chosen answer and four found by a search engine.

Used by CTRN (Tay, Tuan and Hui, 2018) and GGSA. All texts have 5 to 50 tokens; the figures are P@1 and MRR
over lists of five.

Where to get it: the authors' split is ``data/env.pkl.zip`` of https://github.com/vanzytay/YahooQA_Splits
(253 K train, 31.7 K dev, 31.7 K test pairs). A smaller text form of 1,760 questions is in
https://github.com/BUAAw-ML/Deep-Active-Learning-for-Answer-Selection. Licence: none is stated; the texts are
under the terms of Yahoo! Webscope (non-commercial research).

Files, the first that is found; each may also lie in ``data/``:

1. ``env.pkl`` or ``data.pkl``, plain, ``.gz`` or ``.zip``: dictionaries ``train``, ``dev``, ``test`` of
   question text to a list of ``[answer text, label]``. A question is a group, of whatever size.
2. ``train.txt``, ``test.txt`` and ``dev.txt`` (or ``valid.txt``), plain or ``.gz``: lines
   ``question#answer#label``. A run of lines with one question is a group; a run of 10, 15, ... lines with one
   positive in each 5 is as many groups. Without a dev file, as many groups as the test file has are drawn
   from train.
3. ``data.txt``: the same lines, from which a tenth each is drawn as dev and test.

What is drawn is drawn by whole questions with a fixed seed. In the text form the positive is always the last
of its five, so ties are scored pessimistically.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from zoo import files
from zoo.data import DataError, Dataset, Group
from zoo.metrics import Convention
from zoo.splits import SEED, hold_out_of

_PICKLES = ("env.pkl", "env.pkl.zip", "data.pkl", "data.pkl.zip")
_SPLITS = {"train": ("train",), "dev": ("dev", "valid"), "test": ("test",)}
_LIST = 5
PAPER_QUESTIONS = 50_600  # to train on: 253 thousand pairs (Tay et al. 2018, Table 3), five a question


def load(folder: str | Path, seed: int = SEED) -> Dataset:
    """Read the pickle or the text form; the module's docstring says which files are looked for.

    Args:
        folder: where the files lie.
        seed: of the split that is drawn where the files hold none. It is not the run's seed.

    Raises:
        DataError: no such file is there, or one does not hold what it must.
    """
    subfolders = ("", "data")
    pickled = files.find(folder, _PICKLES, subfolders)
    if pickled:
        return _dataset(_read_pickle(pickled), (pickled,), ())
    paths = {
        split: files.find(folder, [f"{name}.txt" for name in names], subfolders) for split, names in _SPLITS.items()
    }
    if paths["train"] and paths["test"]:
        splits = {split: _read_text(path) for split, path in paths.items() if path}
        notes = ()
        if "dev" not in splits:
            size = len(splits["test"])
            splits["train"], splits["dev"] = _draw(splits["train"], size, seed, paths["train"])
            notes = (f"The dev split of {size} questions was drawn from train (seed {seed}); it is our own.",)
        return _dataset(splits, tuple(path for path in paths.values() if path), notes)
    whole = files.find(folder, ["data.txt"], subfolders)
    if not whole:
        raise files.missing(folder, [*_PICKLES, "train.txt with test.txt (and dev.txt or valid.txt)", "data.txt"])
    groups = _read_text(whole)
    size = max(1, len(groups) // 10)
    rest, test = _draw(groups, size, seed, whole)
    train, dev = _draw(rest, size, seed, whole)
    note = f"Dev and test, {size} questions each, were drawn from data.txt (seed {seed}); the split is our own."
    return _dataset({"train": train, "dev": dev, "test": test}, (whole,), (note,))


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write ``train.txt``, ``dev.txt``, ``test.txt`` in the text form.

    What is lost: group ids; ``#`` and runs of white space become one space; adjacent groups with one question
    are read as one, unless both have five candidates and one positive.
    """
    for split, groups in splits.items():
        lines = (
            f"{files.one_line(group.query, '#')}#{files.one_line(candidate, '#')}#{int(label > 0)}"
            for group in groups
            for candidate, label in zip(group.candidates, group.labels, strict=True)
        )
        files.write_lines(Path(folder) / f"{split}.txt", lines)


def _dataset(splits: dict[str, list[Group]], paths: tuple[Path, ...], notes: tuple[str, ...]) -> Dataset:
    size = len(splits["train"])
    if size < PAPER_QUESTIONS // 2:
        notes += (
            f"Trained on {size:,} questions, where the paper has about {PAPER_QUESTIONS:,}: "
            "its figures are of other data, and not comparable.",
        )
    ordered = {split: splits[split] for split in ("train", "dev", "test")}
    return Dataset("YahooQA", ordered, Convention(ties="pessimistic"), ("p@1", "mrr"), files=paths, notes=notes)


def _draw(groups: list[Group], size: int, seed: int, path: Path) -> tuple[list[Group], list[Group]]:
    return hold_out_of(path, "enough questions to hold some out", groups, size, seed)


def _read_text(path: Path) -> list[Group]:
    groups: list[Group] = []
    for question, run in groupby(_rows(path), key=lambda row: row[0]):
        rows = [(answer, label) for _, answer, label in run]
        for block in _blocks(rows):
            groups.append(_group(len(groups), question, block))
    if not groups:
        raise DataError(path, None, "at least one line question#answer#label", "no line")
    return groups


def _rows(path: Path) -> Iterator[tuple[str, str, float]]:
    for number, line in files.read_lines(path):
        if not line.strip():
            continue
        columns = line.split("#")
        if len(columns) != 3:
            raise DataError(path, number, "question#answer#label with two '#'", line)
        question, answer, label = columns
        if label.strip() not in ("0", "1"):
            raise DataError(path, number, "label 0 or 1", label)
        yield question, answer, float(label)


def _blocks(rows: list[tuple[str, float]]) -> list[list[tuple[str, float]]]:
    blocks = [rows[start : start + _LIST] for start in range(0, len(rows), _LIST)]
    whole = all(len(block) == _LIST and sum(label for _, label in block) == 1 for block in blocks)
    return blocks if whole else [rows]


def _group(index: int, question: str, rows: Iterable[tuple[str, float]]) -> Group:
    answers, labels = zip(*rows, strict=True)
    return Group(str(index + 1), (question,), tuple((answer,) for answer in answers), labels)


def _read_pickle(path: Path) -> dict[str, list[Group]]:
    content = files.read_pickle(path)
    if not isinstance(content, dict):
        raise DataError(path, None, "a dictionary with train, dev and test", content)
    tables = {files.to_text(key, path): value for key, value in content.items()}
    splits = {}
    for split, names in _SPLITS.items():
        name = next((name for name in names if name in tables), None)
        if name is None:
            raise DataError(path, None, f"a dictionary with the key {split!r}", sorted(tables))
        if not isinstance(tables[name], dict) or not tables[name]:
            raise DataError(path, None, f"{name}: a dictionary of questions", tables[name])
        splits[split] = [
            _group(index, files.to_text(question, path), _answers(question, answers, path))
            for index, (question, answers) in enumerate(tables[name].items())
        ]
    return splits


def _answers(question: object, answers: object, path: Path) -> list[tuple[str, float]]:
    if not isinstance(answers, (list, tuple)) or not answers:
        raise DataError(path, None, f"a list of [answer, label] for question {question!r}", answers)
    rows = []
    for answer in answers:
        if not isinstance(answer, (list, tuple)) or len(answer) != 2:
            raise DataError(path, None, f"[answer, label] for question {question!r}", answer)
        text, label = answer
        if isinstance(label, (str, bytes)):
            label = {"0": 0, "1": 1}.get(files.to_text(label, path), label)
        if label not in (0, 1):
            raise DataError(path, None, f"label 0 or 1 for question {question!r}", label)
        rows.append((files.to_text(text, path), float(label)))
    return rows
