"""SICK and STS: the official files, what is drawn, and faults by place."""

import gzip

import pytest

from tests.data_checks import counts, fault, real_data
from zoo.data import DataError, Group
from zoo.datasets import sick, sts
from zoo.splits import pair_key

HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
WHOLE = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set"


def save(folder, **contents):
    for name, rows in contents.items():
        full = "SICK_test_annotated" if name == "test" else f"SICK_{name}"
        (folder / f"{full}.txt").write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return folder


def rows(first, count):
    return [f"{first + i}\ta {first + i}\tb {first + i}\t{1 + i % 5}.0\tNEUTRAL" for i in range(count)]


def test_real_splits():
    dataset = sick.load(real_data("sick"), held_out=0)
    assert {name: counts(groups)[:2] for name, groups in dataset.splits.items()} == {
        "train": (4500, 4500),
        "dev": (500, 500),
        "test": (4927, 4927),
    }
    judged = [group.judgements[0] for group in dataset.splits["test"]]
    assert [judged.count(name) for name in sick.CLASSES] == [720, 1414, 2793]
    assert {name.strip("\r") for name in judged} == set(sick.CLASSES)  # the test file has CRLF
    labels = [group.labels[0] for group in dataset.splits["train"]]
    assert (min(labels), max(labels)) == dataset.scale == (1, 5)
    assert dataset.notes == ("Dev is the trial set.",)


def test_the_paper_holds_out_thirty_percent():
    dataset = sick.load(real_data("sick"))
    # Of the 1,500 that are drawn nine are there the other way round too.
    assert [len(dataset.splits[name]) for name in ("train", "dev", "test")] == [3491, 1509, 4927]
    ids = {group.id for name in ("train", "dev") for group in dataset.splits[name]}
    assert len(ids) == 5000
    train, dev = ({pair_key(g.query, *g.candidates) for g in dataset.splits[name]} for name in ("train", "dev"))
    assert not train & dev


def test_one_file_of_all_sets(tmp_path):
    content = [WHOLE] + [f"{i}\ta {i}\tb\tENTAILMENT\t4.5\t{name}" for i, name in enumerate(["TRAIN", "TRIAL", "TEST"])]
    (tmp_path / "SICK.txt.gz").write_bytes(gzip.compress("\r\n".join(content).encode()))
    dataset = sick.load(tmp_path, held_out=0)
    assert dataset.splits["dev"] == [Group("1", ("a 1",), (("b",),), (4.5,), ("entailment",))]
    assert [len(groups) for groups in dataset.splits.values()] == [1, 1, 1]


def test_written_files_are_read_again(tmp_path):
    splits = {
        split: [Group(str(i), (f"{split} {i}",), (("b \t c",),), (1.0 + i,), ("neutral",)) for i in range(1, 4)]
        for split in ("train", "trial", "test")
    }
    sick.write(splits, tmp_path)
    read = sick.load(tmp_path, held_out=0).splits
    assert read["train"] == [group._replace(candidates=(("b c",),)) for group in splits["train"]]
    assert read["dev"] == [group._replace(candidates=(("b c",),)) for group in splits["trial"]]


@pytest.mark.parametrize(
    "row, parts, received",
    [
        ("1\ta\tb\t4.5", ["5 columns, as the header has"], "4.5"),
        ("1\ta\tb\t5.5\tNEUTRAL", ["a score from 1 to 5"], "5.5"),
        ("1\ta\tb\tnan\tNEUTRAL", ["a score from 1 to 5"], "nan"),
        ("1\ta\tb\tmany\tNEUTRAL", ["a score from 1 to 5"], "many"),
        ("1\ta\tb\t4.5\tMAYBE", ["CONTRADICTION", "ENTAILMENT", "NEUTRAL"], "MAYBE"),
    ],
)
def test_faults_have_a_place(tmp_path, row, parts, received):
    save(tmp_path, train=[*rows(1, 3), row], trial=rows(10, 3), test=rows(20, 3))
    with pytest.raises(DataError, match=fault(tmp_path / "SICK_train.txt", 5, *parts, received=received)):
        sick.load(tmp_path)


def test_faults_of_files(tmp_path):
    with pytest.raises(DataError, match=fault(tmp_path, None, "SICK_train.txt", "SICK.txt", received="[]")):
        sick.load(tmp_path)
    save(tmp_path, train=rows(1, 3), trial=[], test=rows(20, 3))
    with pytest.raises(
        DataError, match=fault(tmp_path / "SICK_trial.txt", None, "pairs of the trial set", received="none")
    ):
        sick.load(tmp_path)
    (tmp_path / "SICK_trial.txt").write_text("pair_ID\tsentence_A\n")
    with pytest.raises(
        DataError, match=fault(tmp_path / "SICK_trial.txt", 1, "sentence_B, relatedness_score", received="pair_ID")
    ):
        sick.load(tmp_path)
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "SICK.txt").write_text(f"{WHOLE}\n1\ta\tb\tNEUTRAL\t2\tDEV\n")
    with pytest.raises(
        DataError, match=fault(tmp_path / "whole" / "SICK.txt", 2, "TRAIN, TRIAL or TEST", received="DEV")
    ):
        sick.load(tmp_path / "whole")
    (tmp_path / "same").mkdir()
    save(tmp_path / "same", train=["1\ta\tb\t2\tNEUTRAL"] * 2, trial=["1\ta\tc\t2\tNEUTRAL"], test=rows(9, 1))
    with pytest.raises(
        DataError, match=fault(tmp_path / "same" / "SICK_train.txt", None, "enough sentences", received="distinct")
    ):
        sick.load(tmp_path / "same")


def test_shares_are_checked(tmp_path):
    with pytest.raises(ValueError, match="Received: held_out=1"):
        sick.load(tmp_path, held_out=1)


def test_real_years():
    groups, read = sts.read_year(real_data("sts") / "2013", scale=(1, 5))
    assert counts(groups)[:2] == (1500, 1500) and len(read) == 3
    assert min(group.labels[0] for group in groups) == 1 and max(group.labels[0] for group in groups) == 5
    assert len({group.id for group in groups}) == 1500
    judged, _ = sts.read_year(real_data("sts") / "2015")
    assert 2500 < len(judged) < 8500  # lines without a score are left out


def test_official_files_of_a_year(tmp_path):
    (tmp_path / "STS.input.OnWN.txt").write_text('a "quoted\tb\nc\td\ne\tf\n')
    (tmp_path / "STS.gs.OnWN.txt").write_text("5.0\n\n2.5\n")
    (tmp_path / "STS.input.unscored.txt").write_text("x\ty\n")
    groups, read = sts.read_year(tmp_path)
    assert [(group.query[0], group.labels) for group in groups] == [('a "quoted', (5.0,)), ("e", (2.5,))]
    assert len(read) == 2
    wanted = "a score for each of the 3 lines of STS.input.OnWN.txt"
    for scores, count in (("5.0\n", "1 lines"), ("5.0\n\n2.5\n1.0\n", "4 lines")):
        (tmp_path / "STS.gs.OnWN.txt").write_text(scores)
        with pytest.raises(DataError, match=fault(tmp_path / "STS.gs.OnWN.txt", None, wanted, received=count)):
            sts.read_year(tmp_path)


def test_faults_of_a_year(tmp_path):
    with pytest.raises(DataError, match=fault(tmp_path, None, "*.tsv", "STS.input.*.txt", received="[]")):
        sts.read_year(tmp_path)
    (tmp_path / "x.tsv").write_text("1\ta\tb\n6\ta\tb\n")
    with pytest.raises(DataError, match=fault(tmp_path / "x.tsv", 2, "a score from 0 to 5", received="6")):
        sts.read_year(tmp_path)
    (tmp_path / "x.tsv").write_text("1\ta\n")
    with pytest.raises(DataError, match=fault(tmp_path / "x.tsv", 1, "two sentences", received="1")):
        sts.read_year(tmp_path)


def test_benchmark(tmp_path):
    assert not sts.is_benchmark(tmp_path)
    for split in ("train", "dev", "test"):
        row = f'main-captions\tMSRvid\t2012test\t0001\t{len(split)}.00\tA {split}.\t"B".\tlicence\n'
        (tmp_path / f"sts-{split}.csv").write_text("\ufeff" + row)
    assert sts.is_benchmark(tmp_path)
    dataset = sts.load(tmp_path)
    (group,) = dataset.splits["test"]
    assert (group.query, group.candidates, group.labels) == (("A test.",), (('"B".',),), (4.0,))
    assert dataset.scale == (0, 5) and dataset.metrics == ("pearson", "spearman", "mse")
    test = tmp_path / "sts-test.csv"
    test.write_text(test.read_text().replace("4.00", ""))
    with pytest.raises(DataError, match=fault(test, None, "pairs with a score", received="none")):
        sts.load(tmp_path)
    (tmp_path / "sts-dev.csv").unlink()
    with pytest.raises(DataError, match=fault(tmp_path, None, "sts-dev.csv", received="sts-test.csv")):
        sts.load(tmp_path)
