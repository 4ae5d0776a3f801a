import gzip
import pickle

import pytest

from tests.data_checks import counts, fault, real_data
from zoo.data import DataError, Group
from zoo.datasets import yahoo_qa

BLOCK = "".join(f"how to boil an egg#answer {i}#{int(i == 4)}\n" for i in range(5))


def lines(question, *labels):
    return "".join(f"{question}#{question} answer {i}#{label}\n" for i, label in enumerate(labels))


def save(folder, **contents):
    for name, content in contents.items():
        (folder / f"{name}.txt").write_text(content, encoding="utf-8")


def not_the_papers(questions):
    """What is said of files that hold far less than the paper's."""
    return (
        f"Trained on {questions} questions, where the paper has about 50,600: "
        "its figures are of other data, and not comparable."
    )


def test_files_of_the_papers_size_have_no_such_note(tmp_path, monkeypatch):
    monkeypatch.setattr(yahoo_qa, "PAPER_QUESTIONS", 2)
    save(tmp_path, train=BLOCK, dev=BLOCK, test=BLOCK)
    assert yahoo_qa.load(tmp_path).notes == ()


def test_real_splits():
    dataset = yahoo_qa.load(real_data("yahooqa"))
    assert {split: counts(groups) for split, groups in dataset.splits.items()} == {
        "train": (1280, 6400, 1280),
        "dev": (240, 1200, 240),
        "test": (240, 1200, 240),
    }
    assert {group.labels for groups in dataset.splits.values() for group in groups} == {(0.0, 0.0, 0.0, 0.0, 1.0)}
    assert not {g.query for g in dataset.splits["train"]} & {g.query for g in dataset.splits["dev"]}
    assert dataset.convention.ties == "pessimistic" and dataset.metrics == ("p@1", "mrr")
    assert len(dataset.files) == 2
    assert dataset.notes == (
        "The dev split of 240 questions was drawn from train (seed 2018); it is our own.",
        not_the_papers("1,280"),
    )
    again = yahoo_qa.load(real_data("yahooqa"), seed=1)
    assert again.splits["dev"] != dataset.splits["dev"] and again.splits["test"] == dataset.splits["test"]


def test_real_single_file(tmp_path):
    (tmp_path / "data.txt.gz").symlink_to(real_data("yahooqa").resolve() / "data.txt.gz")
    dataset = yahoo_qa.load(tmp_path)
    assert [len(groups) for groups in dataset.splits.values()] == [1408, 176, 176]
    texts = [{group.query for group in groups} for groups in dataset.splits.values()]
    assert len(set.union(*texts)) == sum(map(len, texts)) == 1755  # equal questions are on one side
    ids = {group.id for groups in dataset.splits.values() for group in groups}
    assert len(ids) == 1760
    assert dataset.notes == (
        "Dev and test, 176 questions each, were drawn from data.txt (seed 2018); the split is our own.",
        not_the_papers("1,408"),
    )


def test_runs_of_one_question(tmp_path):
    save(
        tmp_path,
        train=lines("double", 0, 0, 1, 0, 0, 0, 0, 0, 0, 1)
        + lines("seven", 1, 0, 0, 0, 0, 0, 0)
        + lines("ten with two in one five", 1, 1, *[0] * 8)
        + "\n"
        + lines("double", 1),
        dev=BLOCK,
        test="\ufeff" + BLOCK.replace("\n", "\r\n").rstrip(),
    )
    dataset = yahoo_qa.load(tmp_path)
    train = dataset.splits["train"]
    assert [(g.query[0], len(g.labels)) for g in train] == [
        ("double", 5),
        ("double", 5),
        ("seven", 7),
        ("ten with two in one five", 10),
        ("double", 1),
    ]
    assert len({g.id for g in train}) == 5
    assert dataset.splits["dev"] == dataset.splits["test"]
    assert dataset.notes == (not_the_papers("5"),)


def test_valid_is_another_name_of_dev(tmp_path):
    save(tmp_path, train=BLOCK, valid=lines("q", 1), test=BLOCK)
    assert yahoo_qa.load(tmp_path).splits["dev"][0].query == ("q",)


def test_empty_texts_are_legal(tmp_path):
    save(tmp_path, train="##1\nq##0\n", dev=BLOCK, test=BLOCK)
    assert yahoo_qa.load(tmp_path).splits["train"] == [
        Group("1", ("",), (("",),), (1.0,)),
        Group("2", ("q",), (("",),), (0.0,)),
    ]


@pytest.mark.parametrize(
    ("line", "expected", "received"),
    [
        ("question#answer", "question#answer#label", "'question#answer'"),
        ("a#b#c#1", "question#answer#label", "'a#b#c#1'"),
        ("a#b#2", "label 0 or 1", "'2'"),
        ("a#b#", "label 0 or 1", "''"),
    ],
)
def test_bad_line(tmp_path, line, expected, received):
    save(tmp_path, train=BLOCK + "\n" + line + "\n", test=BLOCK)
    with pytest.raises(DataError, match=fault(tmp_path / "train.txt", 7, expected, received=received)):
        yahoo_qa.load(tmp_path)


def test_bad_files(tmp_path):
    with pytest.raises(
        DataError, match=fault(tmp_path, None, "env.pkl", "train.txt", "valid.txt", "data.txt", received="[]")
    ):
        yahoo_qa.load(tmp_path)
    save(tmp_path, train=BLOCK, test="\n")
    with pytest.raises(DataError, match=fault(tmp_path / "test.txt", None, "at least one line", received="no line")):
        yahoo_qa.load(tmp_path)
    save(tmp_path, test=BLOCK)
    with pytest.raises(
        DataError,
        match=fault(tmp_path / "train.txt", None, "enough questions", received="number of distinct queries=1"),
    ):
        yahoo_qa.load(tmp_path)


PICKLED = {
    "train": {"how to fry é": [["in oil", 1], ["no idea", 0], ["ask her", 0]]},
    "dev": {"q": [("a", "1"), ("", 0)]},
    "test": {"q": [["a", 1.0], ["b", False]]},
    "word_index": {"oil": 3},
}


@pytest.mark.parametrize("name", ["env.pkl", "data/env.pkl.gz", "data.pkl"])
def test_pickle(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    content = pickle.dumps(PICKLED, protocol=2)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    save(tmp_path, train=BLOCK)  # the pickle goes before
    dataset = yahoo_qa.load(tmp_path)
    assert dataset.files == (path,) and dataset.notes == (not_the_papers("1"),)
    assert list(dataset.splits) == ["train", "dev", "test"]
    assert dataset.splits["train"] == [
        Group("1", ("how to fry é",), (("in oil",), ("no idea",), ("ask her",)), (1.0, 0.0, 0.0))
    ]
    assert dataset.splits["dev"][0].labels == dataset.splits["test"][0].labels == (1.0, 0.0)


def test_pickle_of_python_2(tmp_path):
    # {'train': t, 'dev': t, 'test': t} with t = {'caf\xc3\xa9': [['a', 1]]} as Python 2 writes it, protocol 0.
    content = (
        b"(dp0\nS'train'\np1\n(dp2\nS'caf\\xc3\\xa9'\np3\n(lp4\n(lp5\nS'a'\np6\naI1\naass"
        b"S'dev'\np7\ng2\nsS'test'\np8\ng2\ns."
    )
    (tmp_path / "env.pkl").write_bytes(content)
    assert yahoo_qa.load(tmp_path).splits["dev"] == [Group("1", ("café",), (("a",),), (1.0,))]


@pytest.mark.parametrize(
    ("content", "expected", "received"),
    [
        ([1], "a dictionary with train, dev and test", "[1]"),
        ({"train": {"q": [["a", 1]]}, "test": {}}, "the key 'dev'", "['test', 'train']"),
        (PICKLED | {"dev": []}, "dev: a dictionary of questions", "[]"),
        (PICKLED | {"dev": {}}, "dev: a dictionary of questions", "{}"),
        (PICKLED | {"dev": {"q": []}}, "a list of [answer, label] for question 'q'", "[]"),
        (PICKLED | {"dev": {"q": ["a"]}}, "[answer, label] for question 'q'", "'a'"),
        (PICKLED | {"dev": {"q": [["a", 2]]}}, "label 0 or 1 for question 'q'", "2"),
        (PICKLED | {"dev": {"q": [["a", "2"]]}}, "label 0 or 1 for question 'q'", "'2'"),
        (PICKLED | {"dev": {"q": [["a", None]]}}, "label 0 or 1 for question 'q'", "None"),
        (PICKLED | {"dev": {"q": [[3, 1]]}}, "a text", "3"),
    ],
)
def test_bad_pickle(tmp_path, content, expected, received):
    path = tmp_path / "env.pkl"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match=fault(path, None, expected, received=received)):
        yahoo_qa.load(tmp_path)


def test_written_splits_are_read_back(tmp_path):
    candidates = (("no  idea",), ("an #answer\nof two lines",), ("",))
    splits = {
        split: [
            Group("1", (f"{split} one",), (("a",), ("b",)), (0.0, 1.0)),
            Group("2", ("😀 '\" two",), candidates, (1.0, 0.0, 0.0)),
        ]
        for split in ("train", "dev", "test")
    }
    yahoo_qa.write(splits, tmp_path / "new")
    dataset = yahoo_qa.load(tmp_path / "new")
    for split, groups in splits.items():
        cleaned = groups[1]._replace(candidates=(("no idea",), ("an answer of two lines",), ("",)))
        assert dataset.splits[split] == [groups[0], cleaned]
