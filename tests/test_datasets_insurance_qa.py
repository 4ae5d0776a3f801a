"""insuranceQA: both released versions, the map between them, and what is refused."""

import pytest

from tests.data_checks import counts, fault, real_data
from zoo.data import DataError, Group
from zoo.datasets import insurance_qa

V1 = {
    "vocabulary": "idx_1\twhat\nidx_2\tis\nidx_3\tlife\nidx_4\thealth\n",
    "question.train.token_idx.label": "idx_1 idx_3\t1 2\nidx_1 idx_4\t3\n",
    "question.dev.label.token_idx.pool": "2\tidx_2 idx_3\t2 1 3 1\n",
    "question.test1.label.token_idx.pool": "3\tidx_4\t1 3\n",
    "question.test2.label.token_idx.pool": "1 3\tidx_3\t3 2 1\n",
    "answers.label.token_idx": "1\tidx_3\n2\tidx_4 idx_2\n3\tidx_2\n",
}
MAPPED = {name: text for name, text in V1.items() if not name.startswith("answers")} | {
    "v1_to_v2_answer_map.derived.tsv": "1\t70\texact\n2\t80\tfuzzy\n",
    "answers_en.tsv": "70\tLife, it is.\n80\tHealth is\n",
}
POOL = "InsuranceQA.question.anslabel.raw.{}.pool.solr.{}.encoded"
V2 = {
    "vocabulary": "idx_1\tWhat\nidx_2\tlife?\n",
    POOL.format(100, "train"): "life\tidx_1 idx_2\t1\t2 3\n",
    POOL.format(500, "valid"): "life\tidx_2\t3\t1 2\n",
    POOL.format(500, "test"): "life\tidx_1\t2 3\t2 1\n",
    "answers_en.tsv": "1\tone\n2\ttwo\n3\tthree\n",
}


def save(folder, contents):
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_real_version_1():
    dataset = insurance_qa.load(real_data("insuranceqa"), dev_pool=20)
    assert {split: counts(groups) for split, groups in dataset.splits.items()} == {
        "train": (12423, 17712, 17712),
        "dev": (1000, 20000, 1454),
        "test1": (1800, 900_000, 2616),
        "test2": (1800, 900_000, 2593),
    }
    assert dataset.scored_splits == ("dev", "test1", "test2") and dataset.metrics == ("p@1", "mrr")
    assert dataset.notes[0].startswith("The text of 1125 of 24981 answers (4.5%) is missing")
    assert dataset.notes[1] == "Questions whose right answers are all empty: 69 of test1, 71 of test2."
    assert dataset.notes[2] == "Answers whose text the map is not sure of: 8445."
    assert dataset.notes[3].startswith("Dev pools are cut to 20 candidates")


def test_version_1(tmp_path):
    dataset = insurance_qa.load(save(tmp_path, V1))
    assert dataset.splits["train"][0] == Group("1", ("what life",), (("life",), ("health is",)), (1.0, 1.0))
    assert dataset.splits["dev"] == [
        Group("1", ("is life",), (("health is",), ("life",), ("is",), ("life",)), (1.0, 0.0, 0.0, 0.0))
    ]
    assert dataset.splits["test2"][0].labels == (1.0, 0.0, 1.0)
    assert dataset.convention.without_positive == "zero" and dataset.notes == () and len(dataset.files) == 6


def test_version_1_with_the_answers_of_version_2(tmp_path):
    dataset = insurance_qa.load(save(tmp_path, MAPPED))
    assert [group.query for group in dataset.splits["train"]] == [("what life",)]  # the other has no text to learn
    # Lemmatised, as the questions are.
    assert dataset.splits["dev"][0].candidates == (("health be",), ("life , it be .",), ("",), ("life , it be .",))
    assert dataset.splits["test1"][0] == Group("1", ("health",), (("life , it be .",), ("",)), (0.0, 1.0))
    assert dataset.notes[0].startswith("The text of 1 of 3 answers (33.3%) is missing")
    assert dataset.notes[1] == "Questions whose right answers are all empty: 1 of test1, 0 of test2."


def test_lemmas_leave_numbers_and_compounds_whole():
    text = "Covers 401k plans, $500,000 or long-term care in 2014."
    assert insurance_qa._lemmatised(text) == "cover 401k plan , $500,000 or long-term care in 2014 ."


def test_version_2(tmp_path):
    dataset = insurance_qa.load(save(tmp_path, V2), version=2)
    assert list(dataset.splits) == ["train", "dev", "test"]
    assert dataset.splits["train"] == [Group("1", ("What life?",), (("one",),), (1.0,))]
    assert dataset.splits["dev"][0].labels == (0.0, 0.0)  # its right answer is not in the pool
    assert dataset.splits["test"] == [Group("1", ("What",), (("two",), ("one",)), (1.0, 0.0))]
    encoded = V2 | {"InsuranceQA.label2answer.raw.encoded": "1\tidx_1\n2\tidx_2\n3\t\n"}
    dataset = insurance_qa.load(save(tmp_path, encoded), version=2)
    assert dataset.splits["test"][0].candidates == (("life?",), ("What",))


def test_a_thinned_pool_keeps_what_is_right(tmp_path):
    whole = insurance_qa.load(save(tmp_path, V1)).splits["test2"]
    thin = [insurance_qa._thinned(group, 2) for group in whole]
    assert thin == [Group("1", ("life",), (("is",), ("life",)), (1.0, 1.0))]
    dataset = insurance_qa.load(tmp_path, dev_pool=2)
    assert len(dataset.splits["dev"][0].labels) == 2 and sum(dataset.splits["dev"][0].labels) == 1


def test_written_files_are_read_back(tmp_path):
    groups = [Group("1", ("what  is",), (("a b",), ("",), ("c",)), (0.0, 1.0, 0.0))]
    insurance_qa.write(dict.fromkeys(("train", "dev", "test1", "test2"), groups), tmp_path)
    splits = insurance_qa.load(tmp_path).splits
    assert splits["train"] == [Group("1", ("what is",), (("",),), (1.0,))]
    assert splits["test2"] == [Group("1", ("what is",), (("a b",), ("",), ("c",)), (0.0, 1.0, 0.0))]


@pytest.mark.parametrize(
    "contents, name, text, line, expected, received",
    [
        (V1, "vocabulary", "idx_1\n", 1, "2 columns", "idx_1"),
        (V1, "vocabulary", "\n", None, "at least one line", "no line"),
        (V1, "answers.label.token_idx", "1\tidx_1\n2\tidx_1\n1\tidx_1\n", 3, "each number once", "1"),
        (V1, "question.train.token_idx.label", "idx_1\t1\nidx_9\t1\n", 2, "words of the vocabulary", "idx_9"),
        (V1, "question.train.token_idx.label", "idx_1\t7\n", 1, "answers whose text is there", "7"),
        (V1, "question.train.token_idx.label", "idx_1\t \n", 1, "at least one answer", "idx_1"),
        (V1, "question.dev.label.token_idx.pool", "1\tidx_1\n", 1, "3 columns", "idx_1"),
        (V1, "question.dev.label.token_idx.pool", "\n", None, "at least one question", "no line"),
        (MAPPED, "v1_to_v2_answer_map.derived.tsv", "1\t99\texact\n", 1, "an answer of", "99"),
    ],
)
def test_refuses(tmp_path, contents, name, text, line, expected, received):
    save(tmp_path, contents | {name: text})
    with pytest.raises(DataError, match=fault(tmp_path / name, line, expected, received=received)):
        insurance_qa.load(tmp_path)


def test_refuses_a_folder_without_the_files(tmp_path):
    with pytest.raises(DataError, match=fault(tmp_path, None, "vocabulary", received="[]")):
        insurance_qa.load(tmp_path)


def test_refuses_version_1_as_version_2(tmp_path):
    with pytest.raises(DataError, match="version 2's files.*Received: .*version 1's"):
        insurance_qa.load(save(tmp_path, V1), version=2)
    insurance_qa.load(save(tmp_path, V2), version=2)  # both in one folder


def test_refuses_another_version(tmp_path):
    with pytest.raises(ValueError, match="Received: version=3"):
        insurance_qa.load(tmp_path, version=3)
