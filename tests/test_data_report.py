import pytest

from tests.data_checks import fault
from zoo.data import DataError, Dataset, Group
from zoo.data_report import Overlap, SplitReport, check_strict, report
from zoo.metrics import Convention


def dataset(**splits):
    return Dataset("made up", splits, Convention(), ("map",))


def group(query, *rows):
    return Group(query, (query,), tuple((text,) for text, _ in rows), tuple(label for _, label in rows))


CLEAN = {
    "train": [
        group("a", ("x", 1.0), ("X ", 1.0), ("y", 0.0), ("y", 1.0), ("", 0.0)),
        group("", ("x", 0.0)),
        group("A", ("x", 1.0)),
    ],
    "dev": [group("b", ("x", 1.0))],
}


def test_counts_of_a_split():
    result = report(dataset(**CLEAN))
    assert result.splits["train"] == SplitReport(
        groups=3,
        pairs=7,
        positives=4,
        without_positive=1,
        all_positive=1,
        min_candidates=1,
        mean_candidates=7 / 3,
        max_candidates=5,
        empty_texts=2,
        duplicate_pairs=2,
        contradictory_pairs=1,
    )
    assert result.overlaps == (Overlap("train", "dev", 0, 0, ""),)
    assert result.leaks == []
    check_strict(result)


def test_lines():
    lines = report(dataset(**CLEAN)).lines()
    assert lines[0].split()[:3] == ["split", "groups", "pairs"]
    assert lines[1].split() == ["train", "3", "7", "4", "1", "1", "1..2.3..5", "2", "2", "1"]
    assert len({len(line) for line in lines[:3]}) == 1 and len(lines[0]) < 110
    assert "repeated: rows beyond the first" in lines[3] and "contradictory: pairs with several labels" in lines[3]
    assert lines[4] == "No query or pair is in two splits."
    assert len(lines) == 5


def test_small_splits_are_told_by_what_counts():
    ranked = [group(str(i), ("x", 1.0), ("y", float(i < 10))) for i in range(45)]
    assert report(dataset(train=[], dev=ranked, test=ranked[:39])).small == (
        "Figures of test are rough: it has few queries with a right and a wrong candidate (29).",
    )
    pairs = [group(str(i), ("x", float(i))) for i in range(29)]
    values = Dataset("values", {"train": [], "dev": pairs, "test": [*pairs, pairs[0]]}, Convention(), ("pearson",))
    assert report(values).small == ("Figures of dev are rough: it has few pairs (29).",)


def test_leaks():
    result = report(
        dataset(
            train=[group("What  is it", ("x", 1.0), ("y", 0.0)), group("q", ("r", 1.0))],
            dev=[group("what is IT\n", ("X", 1.0), ("z", 0.0))],
            test=[group("r", ("q", 1.0))],
        )
    )
    assert result.leaks == [
        "train and dev share 1 queries and 1 pairs, e.g. 'what is it'.",
        "train and test share 0 queries and 1 pairs, e.g. 'q'.",  # the pair is there in the other role
    ]
    assert result.lines()[-2:] == result.leaks
    with pytest.raises(
        DataError,
        match=fault("made up", None, "share no query and no pair (--strict)", received="train and dev share 1 queries"),
    ):
        check_strict(result)


def test_empty_split():
    result = report(dataset(train=[]))
    assert result.splits["train"].candidates == "0..0.0..0" and result.overlaps == ()
