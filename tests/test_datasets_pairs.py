import gzip
import json

import pytest

from tests.data_checks import fault
from zoo.data import DataError, Group
from zoo.datasets import pairs
from zoo.splits import is_mixed

LONG = "word " * 20_000
ROWS = [
    ('q1 "it\'s"', "an answer, good", "1"),
    ('q1 "it\'s"', "", "0"),
    ("q2 😀", LONG, "0.0"),
    ("q2 😀", "NA", "true"),
    ('q1 "it\'s"', 'says "no"', "1.0"),
    ("", "x", "False"),
    ("q4", "x", "0"),
    ("q4", "x", "0"),
]
GROUPS = [
    Group("1", ('q1 "it\'s"',), (("an answer, good",), ("",), ('says "no"',)), (1.0, 0.0, 1.0)),
    Group("2", ("q2 😀",), ((LONG,), ("NA",)), (0.0, 1.0)),
    Group("3", ("",), (("x",),), (0.0,)),
    Group("4", ("q4",), (("x",), ("x",)), (0.0, 0.0)),
]
HEADER = ("query", "candidate", "label")


def tsv(*rows, header=HEADER):
    return "".join("\t".join(row) + "\n" for row in (header, *rows))


def quoted(*rows, header=HEADER):
    return "".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in (header, *rows))


def jsonl(*rows, header=HEADER):
    return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)


def save(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def load_all(path, **options):
    """The groups of a file, without a split being drawn."""
    return pairs.load(path, path, path, **options).splits["train"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", tsv(*ROWS)),
        ("a.TXT", tsv(*ROWS)),
        ("a.csv", quoted(*ROWS)),
        ("a.jsonl", jsonl(*ROWS)),
        ("a.ndjson", jsonl(*ROWS)),
    ],
)
@pytest.mark.parametrize("form", ["plain", "gz", "bom and crlf", "no last newline and blank lines"])
def test_formats(tmp_path, name, content, form):
    if form == "bom and crlf":
        content = "\ufeff" + content.replace("\n", "\r\n")
    if form == "no last newline and blank lines":
        content = "\n" + content.replace("\n", "\n\n", 2).rstrip("\n")
    path = save(tmp_path / (name + ".gz" * (form == "gz")), content)
    if form == "gz":
        save(path, gzip.compress(content.encode()))
    assert load_all(path) == GROUPS


def test_label_and_text_types_of_json(tmp_path):
    rows = [("q", "a", True), ("q", "b", 0), ("q", "c", 1.0), ("q", "d", "false")]
    assert load_all(save(tmp_path / "a.jsonl", jsonl(*rows)))[0].labels == (1.0, 0.0, 1.0, 0.0)


def test_quotes_in_tsv_are_text(tmp_path):
    path = save(tmp_path / "a.tsv", tsv(('"q', 'a"', "1"), ('"q', '"b"', "0")))
    assert load_all(path) == [Group("1", ('"q',), (('a"',), ('"b"',)), (1.0, 0.0))]


def test_line_ends_and_tabs_in_csv(tmp_path):
    path = save(tmp_path / "a.csv", 'query,candidate,label\n"q\r\n\tq","a\n\nb",1\n')
    assert load_all(path) == [Group("1", ("q\r\n\tq",), (("a\n\nb",),), (1.0,))]


def test_columns_by_name_number_and_group(tmp_path):
    header = ("good", "other", "answer", "question", "list")
    rows = [("1", "z", "a", "q", "l1"), ("0", "z", "b", "q", "l2"), ("0", "z", "c", "q", "l1")]
    names = {"query": "question", "candidate": "answer", "label": "good"}
    expected = [Group("1", ("q",), (("a",), ("b",), ("c",)), (1.0, 0.0, 0.0))]
    lists = [Group("l1", ("q",), (("a",), ("c",)), (1.0, 0.0)), Group("l2", ("q",), (("b",),), (0.0,))]
    for name, content in (("a.tsv", tsv), ("a.csv", quoted), ("a.jsonl", jsonl)):
        path = save(tmp_path / name, content(*rows, header=header))
        assert load_all(path, **names) == expected
        assert load_all(path, **names, group="list") == lists
    path = save(tmp_path / "b.tsv", tsv(*rows[1:], header=rows[0]))
    assert load_all(path, query="4", candidate="3", label="1") == expected
    assert load_all(path, query="4", candidate="3", label="1", group="5") == lists


@pytest.mark.parametrize(
    ("name", "content", "line", "expected", "received"),
    [
        ("a.tsv", "", None, "at least one row", "'none'"),
        ("a.tsv", tsv(), None, "at least one row", "'none'"),
        ("a.jsonl", "\n", None, "at least one row", "'none'"),
        (
            "a.tsv",
            tsv(header=("query", "answer", "label")),
            1,
            "named 'candidate'",
            "['query', 'answer', 'label']",
        ),
        ("a.tsv", tsv(header=(*HEADER, "label")), 1, "named 'label'", "'label', 'label']"),
        ("a.csv", quoted(header=("Query", "candidate", "label")), 1, "named 'query'", "['Query', "),
        (
            "a.jsonl",
            jsonl(("a", "b", 1)) + '\n{"query": "q", "label": 1}',
            3,
            "'candidate'",
            "['query', 'label']",
        ),
        ("a.tsv", tsv(("a", "b", "1"), ("a", "b", "2")), 3, "label 0 or 1", "'2'"),
        ("a.tsv", tsv(("a", "b", "")), 2, "label 0 or 1", "''"),
        ("a.csv", quoted(("a\nb", "c\n", "1"), ("a", "b", "yes")), 5, "label 0 or 1", "'yes'"),
        ("a.jsonl", jsonl(("a", "b", None)), 1, "label 0 or 1", "None"),
        ("a.jsonl", jsonl(("a", "b", 0.5)), 1, "label 0 or 1", "0.5"),
        ("a.jsonl", jsonl(("a", 5, 1)), 1, "a text as 'candidate'", "5"),
        ("a.jsonl", jsonl((None, "a", 1)), 1, "a text as 'query'", "None"),
        ("a.jsonl", jsonl(("a", "b", 1)) + "{", 2, "a JSON object", "'{'"),
        ("a.tsv", tsv(("a", "b", "c", "1")), 2, "3 columns", "['a', 'b', 'c', '1']"),
        ("a.tsv", tsv(("a", "1")), 2, "3 columns", "['a', '1']"),
        ("a.csv", quoted(("a", "b\n", "1"), ("a", "1")), 4, "3 columns", "['a', '1']"),
        (
            "a.csv",
            quoted(("a", "b", "1")) + '"open,b,1\nc,d,0\n',
            3,
            "a row of CSV",
            "unexpected end of data",
        ),
        ("a.csv", quoted(("a\n", "b", "1")) + '"a"b,c,1\n', 4, "a row of CSV", "expected after"),
        ("a.tsv", tsv(("a", "b", "1")).encode() + b"a\t\xe9\t1\n", 3, "UTF-8 text, but byte 3", r"b'\xe9'"),
        ("a.csv", quoted(("a", "b\nc", "1")).encode() + b"a,\xe9,1\n", 4, "UTF-8 text", r"b'\xe9'"),
        ("a.xlsx", tsv(("a", "b", "1")), None, ".tsv, .txt, .csv, .jsonl", "'a.xlsx'"),
        ("a.gz", tsv(("a", "b", "1")), None, ".tsv, .txt, .csv, .jsonl", "'a.gz'"),
    ],
)
def test_bad_files(tmp_path, name, content, line, expected, received):
    path = save(tmp_path / name, content)
    with pytest.raises(DataError, match=fault(path, line, expected, received=received)):
        pairs.load(path)


def test_bad_columns(tmp_path):
    path = save(tmp_path / "a.tsv", tsv(("a", "b", "1")))
    for number in ("4", "0"):
        with pytest.raises(DataError, match=fault(path, 1, "a column number from 1 to 3", received=number)):
            pairs.load(path, query="1", candidate="2", label=number)
    with pytest.raises(
        DataError, match=fault(path, 1, "label 0 or 1", received="'label'")
    ):  # a header that is not data
        pairs.load(path, query="1", candidate="2", label="3")
    with pytest.raises(
        DataError,
        match=fault(path, 1, "one column named '1' (without a header row, number all columns", received="'candidate'"),
    ):
        pairs.load(path, query="1")
    path = save(tmp_path / "b.tsv", tsv(("a", "b", "1", "g"), ("c", "b", "1", "g"), header=(*HEADER, "list")))
    with pytest.raises(DataError, match=fault(path, 3, "the query 'a', as earlier in group 'g'", received="'c'")):
        pairs.load(path, group="list")
    with pytest.raises(
        DataError, match=fault(tmp_path / "none.tsv", None, "a readable file", received="'No such file or directory'")
    ):
        pairs.load(tmp_path / "none.tsv")


def mixed(*queries):
    return [(query, f"{query} {i}", str(i % 2)) for query in queries for i in range(4)]


def names(groups):
    return {group.query[0] for group in groups}


def test_files_for_each_split(tmp_path):
    paths = [save(tmp_path / f"{name}.tsv", tsv(*mixed(name))) for name in ("a", "b", "c")]
    dataset = pairs.load(*paths)
    assert {split: names(groups) for split, groups in dataset.splits.items()} == {
        "train": {"a"},
        "dev": {"b"},
        "test": {"c"},
    }
    assert dataset.files == tuple(paths) and dataset.notes == () and dataset.name == "a.tsv"
    assert dataset.metrics == ("map", "mrr", "p@1", "ndcg@10")
    assert (dataset.convention.ties, dataset.convention.without_positive) == ("pessimistic", "skip")
    dataset = pairs.load(paths[0], paths[1])
    assert list(dataset.splits) == ["train", "dev"]
    assert dataset.notes == ("There is no test file: figures are of dev, which also chose the epoch.",)


def test_drawn_splits(tmp_path):
    queries = [f"q{i}" for i in range(40)]
    path = save(tmp_path / "a.tsv", tsv(*mixed(*queries)))
    dataset = pairs.load(path)
    parts = [names(groups) for groups in dataset.splits.values()]
    assert list(map(len, parts)) == [32, 4, 4] and set.union(*parts) == set(queries)
    assert dataset.notes == ("Drawn from train by whole queries, seed 2018: dev (4 queries) and test (4 queries).",)
    assert pairs.load(path, seed=1).splits["dev"] != dataset.splits["dev"]
    assert len(pairs.load(path, dev_share=0.25).splits["dev"]) == 10
    dataset = pairs.load(path, test=path)
    assert [len(groups) for groups in dataset.splits.values()] == [36, 4, 40]
    assert list(dataset.splits) == ["train", "dev", "test"]
    for share in (0, 1.0):
        with pytest.raises(ValueError, match=f"Received: dev_share={share}"):
            pairs.load(path, dev_share=share)


def test_twenty_lines(tmp_path):
    rows = mixed("a", "b", "c") + [("d", str(i), "0") for i in range(4)] + [("e", str(i), "1") for i in range(4)]
    splits = pairs.load(save(tmp_path / "a.tsv", tsv(*rows))).splits
    assert [len(groups) for groups in splits.values()] == [3, 1, 1]
    assert all(any(map(is_mixed, groups)) for groups in splits.values())


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (mixed("a", "b"), {"train": 1, "dev": 1}),
        (mixed("a", "b") + [("n", "x", "0")] * 3, {"train": 2, "dev": 1}),
        (mixed("a") + [("n", "x", "0"), ("m", "x", "0")], {"train": 2, "dev": 1}),
        ([(f"q{i}", "x", str(i % 2)) for i in range(3)], {"train": 1, "dev": 1, "test": 1}),
    ],
)
def test_too_few_queries_for_a_test_split(tmp_path, rows, expected):
    dataset = pairs.load(save(tmp_path / "a.tsv", tsv(*rows)))
    assert {split: len(groups) for split, groups in dataset.splits.items()} == expected
    assert ("too few queries for a test split" in dataset.notes[0]) == ("test" not in expected)


def test_one_query_is_too_few(tmp_path):
    path = save(tmp_path / "a.tsv", tsv(*mixed("a", "A ")))
    with pytest.raises(
        DataError, match=fault(path, None, "enough queries to hold out a dev split", received="distinct queries=1")
    ):
        pairs.load(path)


def test_written_splits_are_read_back(tmp_path):
    pairs.write({"train": GROUPS, "dev": [Group("x", ("a\tb", "c"), (("d\n",),), (1.0,))]}, tmp_path / "new")
    splits = pairs.load(tmp_path / "new" / "train.tsv", tmp_path / "new" / "dev.tsv").splits
    stripped = GROUPS[1]._replace(candidates=((LONG.strip(),), ("NA",)))
    assert splits["train"] == [GROUPS[0], stripped, *GROUPS[2:]]
    assert splits["dev"] == [Group("1", ("a b c",), (("d",),), (1.0,))]


def test_negatives_are_drawn_for_queries_without_any(tmp_path):
    rows = [(f"q{i}", f"a{i}", "1") for i in range(30)] + [
        ("q0", "also right", "1"),
        ("q1", "wrong", "0"),
        ("Q2", "A2", "1"),
    ]
    file = save(tmp_path / "a.tsv", tsv(*rows))
    groups = {group.query[0]: group for group in load_all(file, negatives=4)}
    assert groups["q1"].labels == (1.0, 0.0)  # it has its own
    for query, group in groups.items():
        wrong = [text for (text,), label in zip(group.candidates, group.labels, strict=True) if not label]
        right = [text for (text,), label in zip(group.candidates, group.labels, strict=True) if label]
        assert len(wrong) == len({text.lower() for text in wrong}) == (1 if query == "q1" else 4)
        assert not {text.lower() for text in wrong} & {text.lower() for text in right}
    reordered = save(tmp_path / "b.tsv", tsv(*rows[:1], *rows[:0:-1]))
    assert all(set(g.candidates) == set(groups[g.query[0]].candidates) for g in load_all(reordered, negatives=4))
    assert "Queries without a wrong candidate have up to 4 drawn" in pairs.load(file, negatives=4).notes[0]
    few = pairs.with_negatives([Group("1", ("q",), (("a",),), (1.0,)), Group("2", ("r",), (("b",),), (1.0,))], 9)
    assert [group.candidates for group in few] == [(("a",), ("b",)), (("b",), ("a",))]
