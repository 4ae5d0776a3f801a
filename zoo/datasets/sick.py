"""SICK: 9,927 pairs of sentences, judged for how related they are, from 1 to 5, and for entailment.

Used by MaLSTM (Mueller and Thyagarajan, 2016), after SemEval-2014 task 1. The figures are Pearson's and Spearman's
correlation and the mean squared error of the relatedness; the entailment is told apart by accuracy.

Where to get it: https://zenodo.org/records/2787612 (``SICK.txt``) or the files of SemEval-2014 task 1. Licence:
CC BY-NC-SA 3.0.

Files, the first that is found, plain or ``.gz``; columns are told by the header, separated by tabs, unquoted:

1. ``SICK_train.txt``, ``SICK_trial.txt`` and ``SICK_test_annotated.txt`` (4,500, 500 and 4,927 pairs), with
   ``pair_ID sentence_A sentence_B relatedness_score entailment_judgment``.
2. ``SICK.txt``, all of them, with ``entailment_label`` and ``SemEval_set`` (TRAIN, TRIAL, TEST).

The paper trains on the 5,000 pairs of train and trial, and draws 30 % of them to choose the epoch. SICK pairs each
sentence with several others, which may be in other splits; of the test pairs 86 are in train or trial too, 34 of them
the other way round alone, and stay in both, for figures to compare with others'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from zoo import files
from zoo.data import DataError, Dataset, Group
from zoo.metrics import Convention
from zoo.splits import SEED, hold_out_of, without

SCALE = (1.0, 5.0)
CLASSES = ("contradiction", "entailment", "neutral")

_FILES = {"train": "SICK_train.txt", "trial": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
_WHOLE = "SICK.txt"
_JUDGEMENT = ("entailment_judgment", "entailment_label")


def load(folder: str | Path, held_out: float = 0.3, seed: int = SEED) -> Dataset:
    """Read SICK.

    Args:
        folder: where the files lie.
        held_out: share of the training pairs (train and trial together) that is drawn as dev; 0 takes the trial
            pairs as dev.
        seed: of the draw; not the run's seed.

    Raises:
        DataError: no such file is there, or one does not hold what it must.
        ValueError: ``held_out`` is not in [0, 1).
    """
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out must be at least 0 and below 1. Received: held_out={held_out!r}")
    paths = {split: files.find(folder, [name]) for split, name in _FILES.items()}
    whole = files.find(folder, [_WHOLE])
    if all(paths.values()):
        splits = {split: [group for _, group in _rows(path)] for split, path in paths.items()}
        read = tuple(paths.values())
    elif whole:
        splits = {split: [] for split in _FILES}
        for split, group in _rows(whole):
            splits[split].append(group)
        read = (whole,)
    else:
        raise files.missing(folder, [" with ".join(_FILES.values()), _WHOLE])
    for split, groups in splits.items():
        if not groups:
            raise DataError(whole or paths[split], None, f"pairs of the {split} set", "none")
    train, dev, note = splits["train"], splits["trial"], "Dev is the trial set."
    if held_out:
        together = train + dev
        count = max(1, round(held_out * len(together)))
        train, dev = hold_out_of(read[0], "enough sentences to hold some out", together, count, seed)
        kept = without(train, dev)
        dev += without(train, kept)  # what is there the other way round
        train = kept
        note = f"Dev, {len(dev)} pairs, was drawn from train and trial (seed {seed}); which ones is our own."
    return Dataset(
        "SICK",
        {"train": train, "dev": dev, "test": splits["test"]},
        Convention(),
        ("pearson", "spearman", "mse"),
        scale=SCALE,
        files=read,
        notes=(note,),
    )


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write train, trial and test as the three files of SemEval-2014.

    What is lost: candidates after a group's first; tabs and runs of white space become one space.
    """
    for split, name in _FILES.items():
        rows = (
            f"{number}\t{files.one_line(group.query)}\t{files.one_line(group.candidates[0])}\t"
            f"{group.labels[0]:g}\t{group.judgements[0].upper()}"
            for number, group in enumerate(splits[split], start=1)
        )
        header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
        files.write_lines(Path(folder) / name, [header, *rows])


def _rows(path: Path) -> Iterator[tuple[str, Group]]:
    """Split, where the file names it, and group of each line."""
    lines = files.read_lines(path)
    _, first = next(lines, (1, ""))
    header = first.split("\t")
    judgement = next((name for name in _JUDGEMENT if name in header), _JUDGEMENT[0])
    wanted = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", judgement)
    if absent := [name for name in wanted if name not in header]:
        raise DataError(path, 1, f"a header with {', '.join(absent)}", first)
    for number, line in lines:
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != len(header):
            raise DataError(path, number, f"{len(header)} columns, as the header has", line)
        row = dict(zip(header, columns, strict=True))
        name, query, candidate, score, judged = (row[column] for column in wanted)
        if judged.strip().lower() not in CLASSES:
            raise DataError(path, number, f"one of {', '.join(CLASSES).upper()}", judged)
        split = row.get("SemEval_set", "train").strip().lower()
        if split not in _FILES:
            raise DataError(path, number, "the set TRAIN, TRIAL or TEST", row["SemEval_set"])
        label = read_score(score, SCALE, path, number)
        yield split, Group(name.strip(), (query,), ((candidate,),), (label,), (judged.strip().lower(),))


def read_score(text: str, scale: Sequence[float], path: Path, number: int) -> float:
    """A score within a scale.

    Raises:
        DataError: for anything else, with path and line.
    """
    low, high = scale
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    if not low <= score <= high:
        raise DataError(path, number, f"a score from {low:g} to {high:g}", text)
    return score
