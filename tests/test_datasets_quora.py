import pytest

from tests.data_checks import counts, fault, real_data
from zoo import samples
from zoo.data import DataError
from zoo.datasets import quora

LINES = "1\ta b ?\tc\t7\n0\t\td e\t8\n"
HEADER = ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]


def save(folder, **contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.tsv").write_text(content, encoding="utf-8")


def test_real_splits():
    dataset = quora.load(real_data("quora"))
    assert {split: counts(groups) for split, groups in dataset.splits.items()} == {
        "train": (31697, 31697, 13862),
        "dev": (10000, 10000, 5000),
        "test": (10000, 10000, 5000),
    }
    assert dataset.name == "Quora, 31,697 of 384,348 training pairs"
    assert dataset.metrics == ("accuracy", "f1") and dataset.notes == () and len(dataset.files) == 3


def test_files_of_ones_own_are_not_the_papers(tmp_path):
    samples.quora(tmp_path)
    dataset = quora.load(tmp_path)
    assert dataset.name == "Quora, 4,000 training pairs" and not dataset.in_paper
    (tmp_path / "train.tsv").unlink()
    with pytest.raises(DataError, match="lacking train.tsv or extra_train.derived.tsv"):
        quora.load(tmp_path)


@pytest.mark.parametrize("subfolder", ["", "Quora_question_pair_partition", "bimpm"])
def test_lines(tmp_path, subfolder):
    save(tmp_path / subfolder, train=LINES, dev=LINES.replace("\n", "\r\n"), test=LINES.rstrip())
    dataset = quora.load(tmp_path)
    assert dataset.splits["train"] == dataset.splits["dev"] == dataset.splits["test"]
    first, second = dataset.splits["train"]
    assert (first.query, first.candidates, first.labels) == (("a b ?",), (("c",),), (1.0,))
    assert second.query == ("",)


@pytest.mark.parametrize(
    ("line", "expected", "received"),
    [
        ("1\ta\tb", "three tabs", r"'1\ta\tb'"),
        ("2\ta\tb\t3", "label 0 or 1", "'2'"),
        ("1\ta\tb\t3\t4", "three tabs", r"'1\ta\tb\t3\t4'"),
    ],
)
def test_a_broken_line(tmp_path, line, expected, received):
    save(tmp_path, train=LINES, dev=f"{LINES}{line}\n", test=LINES)
    with pytest.raises(DataError, match=fault(tmp_path / "dev.tsv", 3, expected, received=received)):
        quora.load(tmp_path)


def test_an_empty_file(tmp_path):
    save(tmp_path, train=LINES, dev="\n", test=LINES)
    with pytest.raises(DataError, match=fault(tmp_path / "dev.tsv", None, "at least one pair", received="no line")):
        quora.load(tmp_path)


def table(delimiter, rows):
    quoted = [HEADER, *rows]
    return "".join(delimiter.join(f'"{value}"' for value in row) + "\n" for row in quoted)


@pytest.mark.parametrize(("name", "delimiter"), [("quora_duplicate_questions.tsv", "\t"), ("train.csv", ",")])
def test_tables(tmp_path, name, delimiter):
    rows = [[i, 2 * i, 2 * i + 1, f'question ""{i}"", \nand more', f"other, {i}", i % 2] for i in range(40)]
    (tmp_path / name).write_text(table(delimiter, rows), encoding="utf-8")
    dataset = quora.load(tmp_path)
    assert [len(groups) for groups in dataset.splits.values()] == [32, 4, 4]
    texts = {group.query[0] for groups in dataset.splits.values() for group in groups}
    assert len(texts) == 40 and all("\n" in text for text in texts)
    assert "Dev, 4 pairs, and test, 4," in dataset.notes[0]
    assert "our own" in dataset.notes[0] and "384,348" not in dataset.name and not dataset.in_paper
    again = quora.load(tmp_path, seed=1)
    assert again.splits["dev"] != dataset.splits["dev"]


@pytest.mark.parametrize(
    ("content", "line", "expected", "received"),
    [
        ("id,question1\n1,a\n", 1, "question2", "'question1'"),
        (table(",", [[1, 2, 3, "a", "b", 1], [1, 2, 3, "a", "b"]]), 3, "6 columns", "'b'"),
        (table(",", [[1, 2, 3, "a", "b", "x"]]), 2, "label 0 or 1", "'x'"),
        (table(",", []), None, "at least one pair", "no pair"),
        (table(",", [[1, 2, 3, "a", "b", 1]]), None, "hold some out", "1"),
        (table(",", [])[:-1] + '\n"open', 2, "quoted table", "end"),
    ],
)
def test_a_broken_table(tmp_path, content, line, expected, received):
    (tmp_path / "train.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=fault(tmp_path / "train.csv", line, expected, received=received)):
        quora.load(tmp_path)


def test_no_pair_is_in_two_splits_the_other_way_round(tmp_path):
    pairs = [(f"question {i}", f"other {i}") for i in range(200)]
    rows = [[i, i, i, *pair, i % 2] for i, pair in enumerate([*pairs, *(pair[::-1] for pair in pairs)])]
    (tmp_path / "train.csv").write_text(table(",", rows), encoding="utf-8")
    dataset = quora.load(tmp_path)
    splits = dataset.splits
    assert f"Dev, {len(splits['dev'])} pairs, and test, {len(splits['test'])}," in dataset.notes[0]
    pair = {name: {frozenset((*g.query, *g.candidates[0])) for g in groups} for name, groups in splits.items()}
    assert len(pair["dev"]) >= 20 and len(pair["test"]) >= 20 and len(pair["train"]) > 100
    assert not pair["train"] & (pair["dev"] | pair["test"]) and not pair["dev"] & pair["test"]


def test_nothing_there(tmp_path):
    save(tmp_path, train=LINES)
    with pytest.raises(DataError, match=fault(tmp_path, None, "quora_duplicate_questions.tsv", received="train.tsv")):
        quora.load(tmp_path)


def test_drawn_pairs_are_among_more_and_do_not_depend_on_the_order():
    pairs = samples.question_pairs(50)
    few, more = quora.draw(pairs, 10), quora.draw(pairs, 30)
    assert (len(few), len(more)) == (10, 30) and set(few) < set(more)
    assert set(quora.draw(pairs[::-1], 10)) == set(few)
    assert quora.draw(pairs, 10, seed=1) != few
    assert quora.draw(pairs, 0) == quora.draw(pairs, 50) == pairs


def test_in_both_orders():
    pairs = samples.question_pairs(3)
    both = quora.in_both_orders(pairs)
    assert both[:3] == pairs
    assert [(g.candidates[0], (g.query,), g.labels) for g in both[3:]] == [
        (g.query, g.candidates, g.labels) for g in pairs
    ]
    assert len({group.id for group in both}) == 6


def test_what_is_written_is_read_back_and_the_sample_is_balanced_as_it_says(tmp_path):
    samples.quora(tmp_path)
    splits = quora.load(tmp_path).splits
    quora.write(splits, tmp_path / "again")
    assert quora.load(tmp_path / "again").splits == splits
    labels = [group.labels[0] for group in splits["train"]]
    assert 0.37 < sum(labels) / len(labels) < 0.43
