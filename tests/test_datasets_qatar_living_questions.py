"""Subtask B of SemEval-2016: the official order's figure, the forms of its files, and what pre-training may see."""

import json
import re

import pytest

from tests.data_checks import counts, fault, real_data
from zoo.data import DataError, Group
from zoo.datasets import qatar_living_questions
from zoo.datasets.qatar_living import TEST_IN_2015
from zoo.evaluation import evaluate
from zoo.lexical import SearchEngine

NAME = "SemEval2016-Task3-CQA-QL-{}.xml"
HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<xml>\n'


def question(query, number, found, label="Relevant", rank=None):
    return (
        f'<OrgQuestion ORGQ_ID="{query}"><OrgQSubject>about {query}</OrgQSubject><OrgQBody>I ask {query}</OrgQBody>\n'
        f'<Thread THREAD_SEQUENCE="{query}_R{number}">\n'
        f'<RelQuestion RELQ_RANKING_ORDER="{number if rank is None else rank}" RELQ_RELEVANCE2ORGQ="{label}">\n'
        f"<RelQSubject>{found}</RelQSubject><RelQBody>body of\n {found}</RelQBody></RelQuestion>\n"
        f"<RelComment><RelCText>no question</RelCText></RelComment></Thread></OrgQuestion>\n"
    )


def save(folder, name, *questions):
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / NAME.format(name)
    path.write_text(HEAD + "".join(questions) + "</xml>")
    return path


def save_all(folder):
    save(folder, "train-part2", question("Q1", 3, "x"), question("Q1", 1, "y", "Irrelevant"))
    save(folder, "dev", question("Q2", 1, "d", "PerfectMatch"), question("Q2", 2, "e", "Irrelevant"))
    save(folder, "test", question("Q3", 1, "t"), question("Q3", 2, "u", "Irrelevant"))


def test_real_splits_and_the_official_figure():
    dataset = qatar_living_questions.load(real_data("qatarliving"))
    found = {split: counts(groups) for split, groups in dataset.splits.items()}
    assert found["train"][:2] == (267, 2628) and found["dev"] == (50, 500, 214) and found["test"] == (70, 700, 233)
    measured = evaluate(dataset, "test", SearchEngine().score(dataset.splits["test"]))
    assert round(100 * measured["map"], 2) == 74.75
    assert found["heldout"][0] == 200 and found["pretrain"][0] > 4000
    assert {len(group.candidates) for split in ("dev", "test") for group in dataset.splits[split]} == {10}


def test_real_pre_training_sees_no_question_of_dev_or_test():
    dataset = qatar_living_questions.load(real_data("qatarliving"))

    def key(text):  # whatever stands between them, and however it was encoded
        return "".join(re.findall("[a-z]", " ".join(text).lower()))

    scored = {
        key(text)
        for split in ("dev", "test")
        for group in dataset.splits[split]
        for text in (group.query, *group.candidates)
    }
    raw = [key(group.query) for split in ("pretrain", "heldout") for group in dataset.splits[split]]
    assert len(set(raw)) > 0.99 * len(raw) and not scored & set(raw)
    told = {key(text) for group in dataset.splits["pretrain"] for text in (group.query, *group.candidates)}
    assert not told & {key(group.query) for group in dataset.splits["heldout"]}


def test_characters_of_the_csv_are_read_back():
    broken = "it\x89Ûªs aåÊSueÌ±o ....ÌâåÊpriceÌâåÊ \x89Û_"
    assert qatar_living_questions._repaired(broken) == "it’s a\xa0Sueño ....\xa0price\xa0  _"
    texts = [text for group in real_table() for one in (group.query, *group.candidates) for text in one]
    assert not any("åÊ" in text or "Û" in text for text in texts)


def real_table():
    folder = real_data("qatarliving") / "subtaskB_csv"
    return list(qatar_living_questions._read(folder / "TRAIN-BASE.csv.gz"))


def test_three_official_files_suffice(tmp_path):
    save_all(tmp_path)
    dataset = qatar_living_questions.load(tmp_path)
    assert dataset.splits["train"] == [
        Group(
            "Q1", ("about Q1", "I ask Q1"), (("x", "body of x"), ("y", "body of y")), (1, 0), search_scores=(1 / 3, 1)
        )
    ]
    assert [group.labels for group in dataset.splits["dev"] + dataset.splits["test"]] == [(1, 0), (1, 0)]
    assert [group.query for group in dataset.splits["pretrain"]] == [
        ("y", "body of y"),
        ("x", "body of x"),
        ("about Q1", "I ask Q1"),
    ]
    assert "heldout" not in dataset.splits and dataset.fields == ("title", "body")
    assert "Not there: train part 1." in dataset.notes


def test_part_1_from_a_table(tmp_path):
    save_all(tmp_path)
    path = tmp_path / "subtaskB_csv" / "TRAIN-BASE.csv"
    path.parent.mkdir()
    rows = ["a b c d,asked,found 1,Relevant", "a b e,asked,found 2,Irrelevant", '"a, x",other,"f ""3""",PerfectMatch']
    path.write_text("\n".join(["feature,question,rel_question,labels", *rows]) + "\n")
    first, second, _ = qatar_living_questions.load(tmp_path).splits["train"]
    assert first == Group("T1", ("a b", "asked"), (("c d", "found 1"), ("e", "found 2")), (1, 0))
    assert second.candidates == (("", 'f "3"'),) and second.query == ("a, x", "other")
    path.write_text("feature,question\n")
    with pytest.raises(DataError, match=fault(path, 1, "the header", received="['feature', 'question']")):
        qatar_living_questions.load(tmp_path)
    path.write_text("feature,question,rel_question,labels\na,b\n")
    with pytest.raises(DataError, match=fault(path, 2, "4 columns", received="['a', 'b']")):
        qatar_living_questions.load(tmp_path)
    path.write_text("feature,question,rel_question,labels\na,b,c,Good\n")
    with pytest.raises(DataError, match=fault(path, 2, "a label out of", received="'Good'")):
        qatar_living_questions.load(tmp_path)


def test_what_pre_training_reads(tmp_path):
    save_all(tmp_path)
    known = next(iter(TEST_IN_2015))
    threads = [
        {"id": "Q9_R1", "subject": "new", "body": "text", "origin2015": "train"},
        {"id": "Q9_R2", "subject": "d", "body": "BODY of d!", "origin2015": "train"},  # of dev
        {"id": known, "subject": "of", "body": "test", "origin2015": "train"},
        {"id": "Q9_R3", "subject": "dev's", "body": "come from the other file", "origin2015": "dev"},
    ]
    path = tmp_path / "ql2015_lemmatised.jsonl"
    path.write_text("".join(json.dumps(thread) + "\n" for thread in threads))
    other = "SemEval2015-Task3-CQA-QL-dev-reformatted-excluding-2016-questions-cleansed.xml"
    (tmp_path / other).write_text(
        f"{HEAD}<Thread THREAD_SEQUENCE='Q8'><RelQuestion><RelQSubject>old</RelQSubject><RelQBody>one</RelQBody>"
        "</RelQuestion></Thread></xml>"
    )
    dataset = qatar_living_questions.load(tmp_path)
    texts = {group.query for group in dataset.splits["pretrain"]}
    assert {("new", "text"), ("old", "one")} <= texts
    assert not {("d", "BODY of d!"), ("of", "test")} & texts and not any(title == "dev's" for title, _ in texts)
    path.write_text('{"id": "Q1", "subject": "no body", "origin2015": "train"}\n')
    with pytest.raises(DataError, match=fault(path, 1, "a text under the key 'body'", received="None")):
        qatar_living_questions.load(tmp_path)


@pytest.mark.parametrize(
    "fault, expected, received",
    [
        (question("Q2", 1, "a", label="Good"), "RELQ_RELEVANCE2ORGQ one of", "'Good'"),
        (question("Q2", 1, "a", rank="first"), "RELQ_RANKING_ORDER", "'first'"),
        (question("Q2", 1, "a", rank=0), "RELQ_RANKING_ORDER", "'0'"),
        (question("", 1, "a"), "an ORGQ_ID", "'ORGQ_ID': ''"),
        ("<OrgQuestion>", "an ORGQ_ID", "{}"),
    ],
)
def test_faults(tmp_path, fault, expected, received):
    save_all(tmp_path)
    path = save(tmp_path, "dev", fault)
    with pytest.raises(ValueError, match="expected") as caught:
        qatar_living_questions.load(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{path}:") and expected in message and received in message, message


def test_broken_xml_entities_and_files_without_questions(tmp_path):
    save_all(tmp_path)
    path = tmp_path / NAME.format("dev")
    path.write_text(HEAD + "<OrgQuestion")
    with pytest.raises(DataError, match=fault(path, 3, "well-formed XML", received="unclosed token")):
        qatar_living_questions.load(tmp_path)
    path.write_text('<!DOCTYPE xml [<!ENTITY a "b">]>\n<xml/>')
    with pytest.raises(DataError, match=fault(path, 1, "no entity declarations", received="'a'")):
        qatar_living_questions.load(tmp_path)
    path.write_text(HEAD + "</xml>")
    with pytest.raises(DataError, match=fault(path, None, "at least one OrgQuestion", received="'none'")):
        qatar_living_questions.load(tmp_path)


@pytest.mark.parametrize("absent", ["dev", "train-part2"])
def test_missing_files(tmp_path, absent):
    save_all(tmp_path)
    (tmp_path / NAME.format(absent)).unlink()
    with pytest.raises(DataError, match=fault(tmp_path, None, "one of these files", received="test.xml")):
        qatar_living_questions.load(tmp_path)


def test_written_and_read_again(tmp_path):
    save_all(tmp_path)
    splits = qatar_living_questions.load(tmp_path).splits
    splits["dev"][0] = splits["dev"][0]._replace(query=('a <b> & \x01 "c"', "d\ne"))
    qatar_living_questions.write(splits, tmp_path / "again")
    again = qatar_living_questions.load(tmp_path / "again").splits
    assert again["dev"][0].query == ('a <b> & "c"', "d e")
    assert again["test"] == splits["test"]
    assert again["train"] == [splits["train"][0]._replace(search_scores=(1 / 2, 1))]
