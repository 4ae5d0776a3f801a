import pytest

from tests.data_checks import counts, fault, real_data
from zoo.data import DataError, Group
from zoo.datasets import trec_qa

XML = """<QApairs id='7'>
<question>
who\tis\t<num>\t&\tco\t?
WP\tVB\tCD\tCC\tNN\t.
</question>
<positive>
<num>\tmen
CD\tNNS
</positive>
<negative>

</negative>
</QApairs>
<QApairs id='8'>
<question>
empty\t?
</question>
</QApairs>
"""
GROUP = Group("7", ("who is <num> & co ?",), (("<num> men",), ("",)), (1.0, 0.0))


def save_xml(folder, xml=XML):
    for name in ("TRAIN", "DEV", "TEST"):
        (folder / f"{name}.xml").write_text(XML, encoding="utf-8")
    (folder / "TRAIN.xml").write_text(xml, encoding="utf-8")


def save_tokens(folder, **contents):
    columns = {
        "a.toks": "q ?\nq ?\nr\n",
        "b.toks": "a  b\nc\n\n",
        "sim.txt": "1\n0\n0\n",
        "id.txt": "1\n1\n2.1\n",
    }
    for name in ("train", "train-all", "raw-dev", "raw-test"):
        (folder / name).mkdir(exist_ok=True, parents=True)
        for file, content in columns.items():
            if name == "train":
                content = contents.get(file.partition(".")[0], content)
            (folder / name / file).write_text(content, encoding="utf-8")


def link(folder, *names):
    for name in names:
        (folder / name).symlink_to(real_data("trecqa").resolve() / name)


def counts_of(dataset):
    return {split: counts(groups) for split, groups in dataset.splits.items()}


RAW = {"dev": (81, 1148, 222), "test": (95, 1517, 284)}
CLEAN = {"dev": (65, 1117, 205), "test": (68, 1442, 248)}


def test_real_train():
    dataset = trec_qa.load(real_data("trecqa"))
    assert counts_of(dataset) == {"train": (93, 4718, 348)} | RAW
    assert dataset.name == "TrecQA (TRAIN)" and dataset.metrics == ("map", "mrr")
    assert (dataset.convention.ties, dataset.convention.without_positive) == ("pessimistic", "zero")
    assert dataset.notes == tuple(
        f"Queries without candidates, left out of {split}: {number}."
        for split, number in (("train", 1), ("dev", 1), ("test", 5))
    )
    without = [sum(not any(g.labels) for g in groups) for groups in dataset.splits.values()]
    full = [sum(all(g.labels) for g in groups) for groups in dataset.splits.values()]
    assert (without, full) == ([10, 3, 6], [5, 13, 21])


def test_real_train_all_and_clean():
    dataset = trec_qa.load(real_data("trecqa"), train_set="all", clean=True)
    assert counts_of(dataset) == {"train": (1229, 53417, 6403)} | CLEAN
    assert dataset.name == "TrecQA (TRAIN-ALL, clean)"
    assert len({group.id for group in dataset.splits["train"]}) == 1229


def test_real_token_files(tmp_path):
    link(tmp_path, "castorini")
    dataset = trec_qa.load(tmp_path)
    assert counts_of(dataset) == {"train": (93, 4718, 348)} | RAW and dataset.notes == ()
    assert counts_of(trec_qa.load(tmp_path, clean=True)) == {"train": (93, 4718, 348)} | CLEAN
    of_xml = trec_qa.load(real_data("trecqa")).splits["test"]
    assert [g.id for g in dataset.splits["test"]] == [g.id for g in of_xml]
    with pytest.raises(
        DataError,
        match=fault(tmp_path, None, "TRAIN-ALL.xml", "train-all/b.toks", "POSInput", received="['castorini']"),
    ):
        trec_qa.load(tmp_path, train_set="all")


def test_real_clean_token_folders_alone(tmp_path):
    for name in ("train", "clean-dev", "clean-test"):
        (tmp_path / name).symlink_to(real_data("trecqa").resolve() / "castorini" / name)
    assert counts_of(trec_qa.load(tmp_path, clean=True)) == {"train": (93, 4718, 348)} | CLEAN
    with pytest.raises(
        DataError,
        match=fault(tmp_path, None, "DEV.xml, raw-dev/a.toks", received="['clean-dev', 'clean-test', 'train']"),
    ):
        trec_qa.load(tmp_path)


def test_real_pos_input(tmp_path):
    link(tmp_path, "jacana_xml", "trainall_jacana")
    dataset = trec_qa.load(tmp_path, train_set="all")
    assert counts_of(dataset) == {"train": (1229, 53417, 6410)} | RAW
    rebuilt = trec_qa.load(real_data("trecqa"), train_set="all").splits["train"]
    assert [g.candidates for g in rebuilt] == [g.candidates for g in dataset.splits["train"]]


def test_xml_like(tmp_path):
    save_xml(tmp_path)
    dataset = trec_qa.load(tmp_path)
    assert dataset.splits == {"train": [GROUP], "dev": [GROUP], "test": [GROUP]}
    assert dataset.files == (tmp_path / "TRAIN.xml", tmp_path / "DEV.xml", tmp_path / "TEST.xml")


def test_token_files(tmp_path):
    save_tokens(tmp_path)
    expected = [Group("1", ("q ?",), (("a b",), ("c",)), (1.0, 0.0)), Group("2.1", ("r",), (("",),), (0.0,))]
    dataset = trec_qa.load(tmp_path, train_set="all")
    assert dataset.splits == {"train": expected, "dev": expected, "test": expected}
    assert trec_qa.load(tmp_path, clean=True).splits["test"] == expected[:1]
    assert trec_qa.load(tmp_path, clean=True).splits["train"] == expected


def test_unknown_train_set(tmp_path):
    with pytest.raises(ValueError, match="Received: train_set='both'"):
        trec_qa.load(tmp_path, train_set="both")


@pytest.mark.parametrize(
    ("old", "new", "line", "expected", "received"),
    [
        ("<question>\nempty", "<query>\nempty", 15, "<QApairs id='..'>, <question>", "'<query>'"),
        ("<QApairs id='8'>", "<QApairs>", 14, "<QApairs id='..'>", "'<QApairs>'"),
        ("<QApairs id='8'>", "<QApairs id='7'>", 14, "an id that was not there before", "'7'"),
        ("<question>\nempty\t?\n</question>\n", "", 15, "<question> in the block of id '8'", "'</QApairs>'"),
        ("</QApairs>\n<QA", "<QA", 13, "<QApairs id='..'>", "\"<QApairs id='8'>\""),
        (
            "<question>\nempty\t?\n</question>",
            "<negative>\n</negative>",
            15,
            "<question> before",
            "'<negative>'",
        ),
        ("?\n</question>\n</QApairs>\n", "?", 15, "</question> below", "'the end of the file'"),
        (
            "?\n</question>\n</QApairs>\n",
            "?\n</question>",
            14,
            "</QApairs> below",
            "'the end of the file'",
        ),
    ],
)
def test_bad_xml_like(tmp_path, old, new, line, expected, received):
    assert XML.count(old) == 1
    save_xml(tmp_path, XML.replace(old, new))
    with pytest.raises(DataError, match=fault(tmp_path / "TRAIN.xml", line, expected, received=received)):
        trec_qa.load(tmp_path)


def test_nothing_in_it(tmp_path):
    save_xml(tmp_path, "")
    with pytest.raises(
        DataError,
        match=fault(tmp_path / "TRAIN.xml", None, "at least one question with a candidate", received="'none'"),
    ):
        trec_qa.load(tmp_path)


@pytest.mark.parametrize(
    ("contents", "file", "line", "expected", "received"),
    [
        ({"b": "a\n"}, "b.toks", None, "3 lines, as a.toks has", "1"),
        ({"sim": "1\n0\n2\n"}, "sim.txt", 3, "label 0 or 1", "'2'"),
        ({"id": "1\n1\n1\n"}, "a.toks", 3, "one question with the id '1'", "'r'"),
    ],
)
def test_bad_token_files(tmp_path, contents, file, line, expected, received):
    save_tokens(tmp_path, **contents)
    with pytest.raises(DataError, match=fault(tmp_path / "train" / file, line, expected, received=received)):
        trec_qa.load(tmp_path)


def test_bad_table(tmp_path):
    save_xml(tmp_path)
    path = tmp_path / "train_all.derived.tsv"
    path.write_text("1\t1\tq\ta\n\n1\t1\tq\n")
    with pytest.raises(DataError, match=fault(path, 3, "4 columns", received=r"'1\t1\tq'")):
        trec_qa.load(tmp_path, train_set="all")
    path.write_text("1\tx\tq\ta\n")
    with pytest.raises(DataError, match=fault(path, 1, "label 0 or 1", received="'x'")):
        trec_qa.load(tmp_path, train_set="all")


def save_pos_input(folder, question="<Q 1 >\nwho\nis ?\n</Q>\n<Q 2 >\nno ?\n</Q>\n"):
    save_xml(folder)
    (folder / "Train1-2393.Question.POSInput").write_text(question)
    (folder / "Train1-2393.Positive-M.POSInput").write_text("<A 1 >\nyes\n</A>\n")
    (folder / "Train1-2393.Negative-M.POSInput").write_text("<A 1 >\nno\n\n</A>\n<A 2 >\n</A>\n")


def test_pos_input(tmp_path):
    save_pos_input(tmp_path)
    dataset = trec_qa.load(tmp_path, train_set="all")
    assert dataset.splits["train"] == [Group("1", ("who is ?",), (("yes",), ("no",), ("",)), (1.0, 0.0, 0.0))]
    assert dataset.notes[0] == "Queries without candidates, left out of train: 1."


@pytest.mark.parametrize(
    ("question", "line", "expected", "received"),
    [
        ("\nwho\n", 2, "<Q number >", "'who'"),
        ("<Q 1 >\nwho ?\n", 1, "</Q> below", "'the end of the file'"),
    ],
)
def test_bad_pos_input(tmp_path, question, line, expected, received):
    save_pos_input(tmp_path, question)
    with pytest.raises(
        DataError, match=fault(tmp_path / "Train1-2393.Question.POSInput", line, expected, received=received)
    ):
        trec_qa.load(tmp_path, train_set="all")


def test_real_splits_survive_writing(tmp_path):
    splits = trec_qa.load(real_data("trecqa")).splits
    trec_qa.write(splits, tmp_path)
    assert trec_qa.load(tmp_path).splits == splits


def test_written_splits_are_read_back(tmp_path):
    group = Group("it's", ("a  'q\u3000?",), (("",), ("😀\tb <num>",), ("one",)), (0.0, 1.0, 0.0))
    splits = {"train": [group], "dev": [group], "test": [group], "train-all": [group, group._replace(id="2")]}
    trec_qa.write(splits, tmp_path)
    read = Group("it s", ("a 'q ?",), (("",), ("😀 b <num>",), ("one",)), (0.0, 1.0, 0.0))
    assert trec_qa.load(tmp_path).splits == {"train": [read], "dev": [read], "test": [read]}
    assert trec_qa.load(tmp_path, train_set="all").splits["train"] == [read, read._replace(id="2")]
    trec_qa.write({split: [group] for split in ("train", "dev", "test")}, tmp_path)
    assert trec_qa.load(tmp_path, train_set="all").splits["train"] == [read]
