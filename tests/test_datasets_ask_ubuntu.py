"""AskUbuntu's files: the judged pairs as they were released, and the texts as the tests write them."""

import gzip

import numpy as np
import pytest

from tests.data_checks import counts, fault, real_data
from zoo.data import DataError, Group
from zoo.datasets import ask_ubuntu
from zoo.evaluation import evaluate
from zoo.lexical import SearchEngine

TEXTS = {str(i): (f"title {i}", f"body of {i}" if i % 3 else "") for i in range(1, 13)}


def test_another_forum_is_named_and_its_notes_are_told(tmp_path):
    assert ask_ubuntu.load(save(tmp_path)).name == "AskUbuntu"
    dataset = ask_ubuntu.load(save(tmp_path, origin=["cooking", "Nobody judged."]))
    assert dataset.name == "cooking" and "Nobody judged." in dataset.notes


def save(folder, **changes):
    """A small corpus in the official form; ``changes`` are other contents of its files."""
    content = {
        "text_tokenized.txt": [f"{i}\t{title}\t{body}" for i, (title, body) in TEXTS.items()],
        "train_random.txt": ["1\t2 3\t4 5 6", "2\t1\t7 8"],
        "dev.txt": ["9\t4\t4 5\t2.5 1.25"],
        "test.txt": ["10\t\t5 6\t7 7"],
        "heldout.txt": ["11"],
    }
    content |= {f"{name}.txt": lines for name, lines in changes.items()}
    for name, lines in content.items():
        if lines is not None:
            (folder / name).write_text("".join(line + "\n" for line in lines))
    return folder


def test_bm25_row_of_table_2_to_the_printed_digit():
    dataset = ask_ubuntu.load(real_data("askubuntu"), needs_text=False)
    assert {split: counts(groups) for split, groups in dataset.splits.items()} == {
        "train": (0, 0, 0),
        "dev": (200, 4000, 1177),
        "test": (200, 4000, 1078),
    }
    printed = {"dev": (66.0, 52.0, 51.9, 42.1), "test": (68.0, 56.0, 53.8, 42.5)}  # MRR, MAP, P@1, P@5
    for split, row in printed.items():
        measured = evaluate(dataset, split, SearchEngine().score(dataset.splits[split]))
        assert tuple(np.round(100 * np.array(list(measured.values())), 1)) == row


def test_real_held_out_questions():
    path = real_data("askubuntu") / "heldout.txt"
    assert len(list(ask_ubuntu._rows(path, ("an id",)))) == 1989


def test_all_parts(tmp_path):
    dataset = ask_ubuntu.load(save(tmp_path))

    def of(*ids):
        return tuple(TEXTS[str(i)] for i in ids)

    assert dataset.splits["train"] == [
        Group("1", *of(1), of(2, 3, 4, 5, 6), (1, 1, 0, 0, 0)),
        Group("2", *of(2), of(1, 7, 8), (1, 0, 0)),
    ]
    assert dataset.splits["dev"] == [Group("9", *of(9), of(4, 5), (1, 0), search_scores=(2.5, 1.25))]
    assert dataset.splits["test"] == [Group("10", *of(10), of(5, 6), (0, 0), search_scores=(7, 7))]
    assert dataset.splits["heldout"] == [Group("11", *of(11), (), ())]
    raw = {group.id: group for group in dataset.splits["pretrain"]}
    assert sorted(raw, key=int) == ["1", "2", "3", "4", "5", "6", "7", "8", "12"]  # no question of dev and test
    assert raw["1"] == Group("1", *of(1), of(2, 3), (1, 1)) and raw["4"] == Group("4", *of(4), (), ())
    assert dataset.fields == ("title", "body") and dataset.scored_splits == ("dev", "test")
    assert dataset.training_splits == ("train", "pretrain") and dataset.notes == ()
    assert (dataset.convention.ties, dataset.convention.without_positive) == ("file", "skip")


def test_gzip_and_no_held_out_questions(tmp_path):
    save(tmp_path, heldout=None)
    texts = tmp_path / "text_tokenized.txt"
    (tmp_path / "text_tokenized.txt.gz").write_bytes(gzip.compress(texts.read_bytes()))
    texts.unlink()
    assert "heldout" not in ask_ubuntu.load(tmp_path).splits


def test_training_questions_that_are_left_out(tmp_path):
    save(tmp_path, train_random=["1\t2 3 99\t4 98", "2\t1 3 4\t5", "77\t1\t2"])
    dataset = ask_ubuntu.load(tmp_path, max_positives=2)
    assert [group.id for group in dataset.splits["train"]] == ["1"]
    assert dataset.notes == (
        "Ids of train_random.txt without a text, left out: 3.",
        "Training questions without a text or with over 2 similar ones: 2.",
    )


def test_a_random_question_may_be_a_similar_one_or_the_question_itself(tmp_path):
    save(tmp_path, train_random=["1\t2\t2 1 3"])
    (group,) = ask_ubuntu.load(tmp_path).splits["train"]
    assert group.candidates == (TEXTS["2"], TEXTS["3"]) and group.labels == (1, 0)


def test_written_and_read_again(tmp_path):
    dataset = ask_ubuntu.load(save(tmp_path))
    ask_ubuntu.write(dataset.splits, tmp_path / "again")
    again = ask_ubuntu.load(tmp_path / "again")

    def content(splits):
        return {
            name: sorted((g.query, g.candidates, g.labels, g.search_scores) for g in groups)
            for name, groups in splits.items()
        }

    written = content(again.splits)
    written["pretrain"] = [row for row in written["pretrain"] if row[0] != TEXTS["12"]]
    assert written == {
        name: [row for row in rows if row[0] != TEXTS["12"]] for name, rows in content(dataset.splits).items()
    }


@pytest.mark.parametrize(
    "name, line, number, expected, received",
    [
        ("text_tokenized", "1\ttitle", 2, "id, title and body", "'1\\ttitle'"),
        ("text_tokenized", "1\ta\tb", 2, "an id that was not there before", "'1'"),
        ("train_random", "3\t1", 2, "a question's id, similar ids, random ids", "'3\\t1'"),
        ("train_random", "1\t2\t3", 2, "an id that was not there before", "'1'"),
        ("dev", "3\t\t4 5\t1.0", 2, "2 scores", "1"),
        ("dev", "3\t6\t4 5\t1.0 0.5", 2, "similar ids that are among the candidates", "['6']"),
        ("dev", "3\t4\t4 99\t1.0 0.5", 2, "ids of text_tokenized.txt", "'99'"),
        ("test", "99\t4\t4 5\t1.0 0.5", 2, "ids of text_tokenized.txt", "'99'"),
        ("test", "3\t4\t4 5\t1.0 nan", 2, "finite scores", "'nan'"),
        ("test", "3\t4\t4 5\t1.0 x", 2, "finite scores", "'x'"),
        ("heldout", "11 12", 2, "an id", "'11 12'"),
        ("heldout", "99", 2, "ids of text_tokenized.txt", "'99'"),
    ],
)
def test_faults(tmp_path, name, line, number, expected, received):
    save(tmp_path)
    path = tmp_path / f"{name}.txt"
    first = path.read_text().splitlines()[0]
    keep = list(TEXTS)[1:] if name == "text_tokenized" else []
    rest = [f"{i}\t{TEXTS[i][0]}\t{TEXTS[i][1]}" for i in keep]
    path.write_text("\n".join([first, line, *rest]) + "\n")
    with pytest.raises(DataError, match=fault(path, number, expected, received=received)):
        ask_ubuntu.load(tmp_path)


@pytest.mark.parametrize("name", ["text_tokenized", "train_random", "dev", "test"])
def test_missing_and_empty_files(tmp_path, name):
    save(tmp_path, **{name: None})
    with pytest.raises(DataError, match=fault(tmp_path, None, f"{name}.txt", received="heldout.txt")):
        ask_ubuntu.load(tmp_path)
    if name != "text_tokenized":
        save(tmp_path, **{name: []})
        with pytest.raises(
            DataError, match=fault(tmp_path / f"{name}.txt", None, "at least one line", received="an empty file")
        ):
            ask_ubuntu.load(tmp_path)


def test_without_texts_ids_stand_for_questions(tmp_path):
    save(tmp_path, text_tokenized=None, train_random=None, heldout=None)
    dataset = ask_ubuntu.load(tmp_path, needs_text=False)
    assert dataset.splits["dev"] == [Group("9", ("9", ""), (("4", ""), ("5", "")), (1, 0), search_scores=(2.5, 1.25))]
    assert dataset.splits["train"] == [] and "nothing can be trained" in dataset.notes[0]
