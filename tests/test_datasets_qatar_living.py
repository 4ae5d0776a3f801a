import gzip
import json

import pytest

from tests.data_checks import counts, fault, real_data
from zoo.data import DataError, Group
from zoo.datasets import qatar_living

NAME = "SemEval2016-Task3-CQA-QL-{}.xml"
NAME_2015 = "SemEval2015-Task3-CQA-QL-{}-reformatted-excluding-2016-questions-{}.xml"


def thread(name, query, *comments, skip=""):
    skip = f' SubtaskA_Skip_Because_Same_As_RelQuestion_ID="{skip}"' if skip else ""
    rows = "".join(
        f'<RelComment RELC_ID="{name}_C{i}" RELC_RELEVANCE2ORGQ="Good" RELC_RELEVANCE2RELQ="{label}">'
        f"\n<RelCText>{text}</RelCText></RelComment>\n"
        for i, (text, label) in enumerate(comments)
    )
    return (
        f'<OrgQuestion ORGQ_ID="Q1"><OrgQSubject>not this</OrgQSubject><OrgQBody>nor this</OrgQBody>\n'
        f'<Thread THREAD_SEQUENCE="{name}"{skip}>'
        f"<RelQuestion><RelQSubject>{query}</RelQSubject><RelQBody>body\n of it</RelQBody></RelQuestion>\n"
        f"{rows}</Thread></OrgQuestion>\n"
    )


def save(folder, name, *threads, head="", compress=False):
    content = ('<?xml version="1.0" encoding="utf-8"?>\n' + head + "<xml>\n" + "".join(threads) + "</xml>").encode()
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / (name + ".gz" if compress else name)
    path.write_bytes(gzip.compress(content) if compress else content)
    return path


def save_json(folder, name, *threads):
    path = folder / name
    path.write_text("".join(json.dumps(thread) + "\n" for thread in threads))
    return path


GOOD, BAD, USEFUL = ("a &amp; b", "Good"), ("no\n way", "Bad"), ("", "PotentiallyUseful")
DEV = {"id": "D1", "subject": "dev", "body": "body", "comments": [["a", "Good"]]}


def test_real_splits():
    dataset = qatar_living.load(real_data("qatarliving"), keep_copies=True)
    # 3894 threads, of which one has no comments.
    assert {split: counts(groups)[:2] for split, groups in dataset.splits.items()} == {
        "train": (3893, 26338),
        "dev": (244, 2440),
        "test": (327, 3270),
    }
    without = {split: sum(not any(g.labels) for g in groups) for split, groups in dataset.splits.items()}
    assert (without["dev"], without["test"]) == (33, 12)
    assert counts(dataset.splits["dev"])[2] == 818 and counts(dataset.splits["test"])[2] == 1329
    assert len({group.id for groups in dataset.splits.values() for group in groups}) == 3893 + 244 + 327
    convention = dataset.convention
    assert (convention.ties, convention.without_positive, convention.cutoff) == ("pessimistic", "zero", 10)
    assert dataset.metrics == ("p@1", "map", "mrr") and dataset.fields == ("text",)
    assert dataset.notes == (
        "Threads without comments, left out: 1.",
        "Train part 1 is read from train_part1_recovered.derived.jsonl.gz.",
        "2015 train is read from ql2015_lemmatised.jsonl.gz.",
    )
    raw = [path.name for path in dataset.files if path.name.startswith("SemEval2015")]
    assert len(raw) == 2  # of two parts there is raw text, which goes before the lemmatised


def test_real_copies_of_test_threads_are_left_out():
    folder = real_data("qatarliving")
    everything, dataset = qatar_living.load(folder, keep_copies=True), qatar_living.load(folder)
    assert "Train threads whose question is in dev or test, left out: 23." in dataset.notes
    kept = {group.id for group in dataset.splits["train"]}
    copies = [group for group in everything.splits["train"] if group.id not in kept]
    assert len(copies) == 23
    # Each shares most words with a test question, cut to four letters since some of the copies are lemmatised.
    held_out = [_words(group.query[0]) for group in dataset.splits["test"]]
    for group in copies:
        words = _words(group.query[0])
        assert max(len(words & other) / len(words | other) for other in held_out) > 0.6, group.query


def _words(text):
    return {"".join(filter(str.isalpha, word))[:4] for word in text.lower().replace("/", " ").split()} - {""}


def test_three_official_files_suffice(tmp_path):
    part = save(
        tmp_path / "train",
        NAME.format("train-part1"),
        thread("Q1_R1", "x", GOOD, BAD, USEFUL),
        thread("Q1_R2", "x", GOOD, skip="Q1_R1"),
        compress=True,
    )
    dev = save(tmp_path / "dev", NAME.format("dev"), thread("Q2_R1", "y", BAD, USEFUL))
    test = save(tmp_path / "test", NAME.format("test"), thread("Q3_R1", "&lt;z", GOOD, USEFUL))
    dataset = qatar_living.load(tmp_path)
    assert dataset.splits == {
        "train": [Group("Q1_R1", ("x body of it",), (("a & b",), ("no way",), ("",)), (1.0, 0.0, 0.0))],
        "dev": [Group("Q2_R1", ("y body of it",), (("no way",), ("",)), (0.0, 0.0))],
        "test": [Group("Q3_R1", ("<z body of it",), (("a & b",), ("",)), (1.0, 0.0))],
    }
    assert set(dataset.files) == {part, dev, test}
    absent = ("train part 2", "2015 train", "2015 dev", "2015 test")
    assert dataset.notes == tuple(f"Not there: {name}." for name in absent)
    test.unlink()
    dataset = qatar_living.load(tmp_path)
    assert list(dataset.splits) == ["train", "dev"] and "Not there: test." in dataset.notes


def test_forms_that_go_first(tmp_path):
    save(tmp_path, NAME.format("dev"), thread("D", "dev", GOOD))
    save(tmp_path, NAME.format("train-part1"), thread("P", "xml", GOOD))
    save_json(tmp_path, "train_part1_recovered.derived.jsonl", DEV | {"id": "P", "subject": "json"})
    old = [DEV | {"id": f"T{i}", "origin2015": part, "body": str(i)} for i, part in enumerate(("train", "dev", "test"))]
    save_json(tmp_path, "ql2015_lemmatised.jsonl", *old)
    save(tmp_path, NAME_2015.format("dev", "multiline"), thread("M", "many lines", GOOD))
    save(tmp_path, NAME_2015.format("test", "multiline"), thread("M", "many lines", GOOD))
    save(tmp_path, NAME_2015.format("test", "cleansed"), thread("C", "clean", GOOD))
    train = qatar_living.load(tmp_path).splits["train"]
    assert [group.id for group in train] == ["P", "T0", "M", "C"]
    assert train[0].query == ("xml body of it",)


def test_train_threads_that_are_in_dev_or_test(tmp_path):
    save(tmp_path, NAME.format("dev"), thread("D", "Dev; one", GOOD))
    save(tmp_path, NAME.format("test"), thread("Q338_R2", "test", GOOD))
    save(tmp_path, NAME.format("train-part1"), thread("P1", "dev, ONE!", GOOD), thread("P2", "other", GOOD))
    known = DEV | {"id": "Q1687", "subject": "lemmatised", "origin2015": "train"}
    save_json(tmp_path, "ql2015_lemmatised.jsonl", known, known | {"id": "Q1688"})
    assert [group.id for group in qatar_living.load(tmp_path).splits["train"]] == ["P2", "Q1688"]
    kept = qatar_living.load(tmp_path, keep_copies=True).splits["train"]
    assert [group.id for group in kept] == ["P1", "P2", "Q1687", "Q1688"]


def test_threads_without_comments(tmp_path):
    save(tmp_path, NAME.format("dev"), thread("D1", "y", GOOD), thread("D2", "z"))
    save(tmp_path, NAME.format("train-part1"), thread("P", "x", GOOD), thread("N", "n"))
    dataset = qatar_living.load(tmp_path)
    assert {split: [g.id for g in groups] for split, groups in dataset.splits.items()} == {
        "train": ["P"],
        "dev": ["D1"],
    }
    assert "Threads without comments, left out: 2." in dataset.notes


def test_absent_files(tmp_path):
    with pytest.raises(DataError, match=fault(tmp_path, None, NAME.format("dev"), "-dev-subtaskA.xml", received="[]")):
        qatar_living.load(tmp_path)
    save(tmp_path, NAME.format("dev"), thread("D", "y", GOOD))
    with pytest.raises(
        DataError,
        match=fault(tmp_path, None, NAME.format("train-part1"), "ql2015_lemmatised.jsonl", received="-dev.xml'"),
    ):
        qatar_living.load(tmp_path)


@pytest.mark.parametrize(
    ("threads", "head", "line", "expected", "received"),
    [
        ([thread("D", "y", GOOD, ("b", "?"))], "", 8, "RELC_RELEVANCE2RELQ one of Good", "'?'"),
        ([thread("D", "y", GOOD), thread("D", "z", GOOD)], "", 10, "a THREAD_SEQUENCE that was not", "'D'"),
        ([thread("", "y", GOOD)], "", 4, "a THREAD_SEQUENCE that was not", "''"),
        (["<Thread>"], "", 3, "a THREAD_SEQUENCE that was not", "None"),
        (["a & b"], "", 3, "well-formed XML", "not well-formed"),
        (["a"], '<!DOCTYPE xml [\n<!ENTITY many "x">]>', 3, "no entity declarations", "'many'"),
        ([], "", None, "at least one Thread", "'none'"),
    ],
)
def test_bad_xml(tmp_path, threads, head, line, expected, received):
    path = save(tmp_path, NAME.format("dev"), *threads, head=head)
    with pytest.raises(DataError, match=fault(path, line, expected, received=received)):
        qatar_living.load(tmp_path)


def test_bytes_that_are_not_in_the_stated_encoding(tmp_path):
    path = save(tmp_path, NAME.format("dev"), thread("D", "y", GOOD))
    path.write_bytes(path.read_bytes().replace(b"of it", b"of \xff"))
    with pytest.raises(
        DataError, match=fault(path, 5, "well-formed XML in its stated encoding", received="invalid token")
    ):
        qatar_living.load(tmp_path)


@pytest.mark.parametrize(
    ("row", "expected", "received"),
    [
        ({"id": "a", "subject": "b", "comments": []}, "the key 'body'", "['comments', 'id', 'subject']"),
        (DEV | {"comments": [["a"]]}, "comments [text, label]", "['a']"),
        (DEV | {"comments": [[3, "Good"]]}, "comments [text, label]", "[3, 'Good']"),
        (DEV | {"comments": [["a", "Fine"]]}, "label one of Good", "'Fine'"),
    ],
)
def test_bad_json(tmp_path, row, expected, received):
    save(tmp_path, NAME.format("dev"), thread("D", "y", GOOD))
    path = save_json(tmp_path, "train_part1_recovered.derived.jsonl", DEV, row)
    with pytest.raises(DataError, match=fault(path, 2, expected, received=received)):
        qatar_living.load(tmp_path)


def test_an_id_in_two_parts(tmp_path):
    save(tmp_path, NAME.format("dev"), thread("D", "y", GOOD))
    save(tmp_path, NAME.format("train-part1"), thread("P", "x", GOOD))
    path = save(tmp_path, NAME.format("train-part2"), thread("P", "z", GOOD))
    with pytest.raises(DataError, match=fault(path, None, "thread ids that are not in", "part1.xml", received="'P'")):
        qatar_living.load(tmp_path)


def test_real_splits_survive_writing(tmp_path):
    splits = qatar_living.load(real_data("qatarliving")).splits
    qatar_living.write(splits, tmp_path)
    assert qatar_living.load(tmp_path).splits == splits


def test_written_splits_are_read_back(tmp_path):
    def group(name):
        return Group(f"{name}<1>", (f"{name} <&\"'\x00", "\tbody"), (("",), ("a\nb > \ud800\ufffe😀",)), (0.0, 1.0))

    splits = {name: [group(name)] for name in ("train", "dev", "test")}
    qatar_living.write(splits, tmp_path)
    assert qatar_living.load(tmp_path).splits == {
        name: [Group(f"{name}<1>", (f"{name} <&\"' body",), (("",), ("a b > 😀",)), (0.0, 1.0))] for name in splits
    }
