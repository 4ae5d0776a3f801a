"""A dump becomes AskUbuntu's files: markup and the duplicate banner are gone, and lists are what BM25 finds."""

from xml.sax.saxutils import quoteattr

import pytest

from tests.data_checks import fault
from zoo.data import DataError
from zoo.datasets import ask_ubuntu, stack_exchange

BANNER = """<blockquote>
  <p><strong>Possible Duplicate:</strong><br>
  <a href="https://askubuntu.com/q/1">the answer's title</a>  </p>
</blockquote>

"""
NUM = 400  # of which each of the first 50 is a duplicate of one that shares its number's word


def row(**attributes):
    return "  <row " + " ".join(f"{name}={quoteattr(str(value))}" for name, value in attributes.items()) + " />"


def save(folder, name, *rows):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text('<?xml version="1.0" encoding="utf-8"?>\n<rows>\n' + "\n".join(rows) + "\n</rows>")
    return path


def save_dump(folder):
    posts = [
        row(Id=i, PostTypeId=1, Title=f"how about word{i % 200} ?", Body=f"<p>the word{i % 200} of {i}</p>")
        for i in range(1, NUM + 1)
    ]
    posts.append(row(Id=NUM + 1, PostTypeId=2, Body="an answer"))
    save(folder, "Posts.xml", *posts)
    links = [row(Id=i, PostId=i, RelatedPostId=i + 200, LinkTypeId=3) for i in range(1, 51)]
    links += [
        row(Id=90, PostId=60, RelatedPostId=61, LinkTypeId=1),
        row(Id=91, PostId=60, RelatedPostId=999, LinkTypeId=3),
    ]
    save(folder, "PostLinks.xml", *links)


@pytest.mark.parametrize(
    "body, text",
    [
        ("<p>two</p><p>blocks &amp; <b>bo</b>ld</p>\n<pre><code>x &lt; 1</code></pre>", "two blocks & bold x < 1"),
        (BANNER + "<p>my question</p>", "my question"),
        (BANNER.replace("Duplicate", "Duplicates") + "mine <blockquote>a quote</blockquote>", "mine a quote"),
        ("<blockquote>a quote</blockquote>" + BANNER + "mine", "a quote mine"),
        (
            "<div class='x'><p>This question already has an answer here:</p><ul><li>title</li></ul></div>mine",
            "mine",
        ),
        ("<div><div>This has an answer. already has answers here:</div> <ul><li>title</li></ul></div>mine", "mine"),
        ("<p>It already has an answer here:</p><p>mine</p>", "mine"),
        ("<div><blockquote>Possible Duplicate: title</blockquote><p>mine</p></div>", "mine"),
        (
            "<blockquote>possible duplicate entry in sources.list</blockquote>",
            "possible duplicate entry in sources.list",
        ),
        (
            "<p>I know it already has an answer, but nothing there works: see below.</p><p>log</p>",
            "I know it already has an answer, but nothing there works: see below. log",
        ),
        (
            "<p>My disk is full. Every thread already has answers where people delete kernels. I run 14.04.</p>",
            "My disk is full. Every thread already has answers where people delete kernels. I run 14.04.",
        ),
        ("is this a possible duplicate of mine ?", "is this a possible duplicate of mine ?"),
        ("", ""),
    ],
)
def test_plain_text(body, text):
    assert stack_exchange.plain_text(body) == text


def test_titles_lose_their_mark(tmp_path):
    path = save(tmp_path, "Posts.xml", row(Id=7, PostTypeId=1, Title="  what  is it [duplicate] [closed]", Body="x"))
    assert stack_exchange.read_questions(path) == {"7": ("what is it", "x")}


def test_only_duplicates_are_links(tmp_path):
    links = [(1, 2, 3), (1, 3, 3), (1, 2, 3), (1, 1, 3), (4, 5, 1)]
    path = save(tmp_path, "PostLinks.xml", *(row(PostId=a, RelatedPostId=b, LinkTypeId=kind) for a, b, kind in links))
    assert stack_exchange.read_duplicates(path) == {"1": ["2", "3"]}


def test_convert(tmp_path, capsys):
    save_dump(tmp_path / "dump")
    assert stack_exchange.main([str(tmp_path / "dump"), str(tmp_path / "out")]) == 0
    assert "train: 40 questions\ndev: 5 questions\ntest: 5 questions" in capsys.readouterr().out
    dataset = ask_ubuntu.load(tmp_path / "out")
    num_heldout = (NUM - 10 - 40) // 10
    assert {split: len(groups) for split, groups in dataset.splits.items()} == {
        "train": 40,
        "dev": 5,
        "test": 5,
        "pretrain": NUM - 10 - num_heldout,
        "heldout": num_heldout,
    }
    for split in ("dev", "test"):
        for group in dataset.splits[split]:
            assert len(group.candidates) == 20 and list(group.search_scores) == sorted(group.search_scores)[::-1]
            assert group.labels[0] == 1 and sum(group.labels) == 1  # the only other question with its word
    for group in dataset.splits["train"]:
        word = group.query[0].split()[2]
        assert group.labels[0] == 1 and word in group.candidates[0][0] and 90 < len(group.labels) <= 101
    asked = {group.query for split in ("dev", "test", "heldout") for group in dataset.splits[split]}
    assert not asked & {group.query for group in dataset.splits["pretrain"]}


def test_what_was_posted_again_is_one_question_and_no_list_of_train_holds_what_dev_and_test_ask(tmp_path):
    save_dump(tmp_path / "dump")
    rows = [
        row(Id=i, PostTypeId=1, Title=f"chain{i % 60}", Body="<p>the same</p>")  # each stands there twice
        for i in range(1, 121)
    ]
    rows += [row(Id=i, PostTypeId=1, Title=f"other{i}", Body="") for i in range(121, 161)]
    save(tmp_path / "dump", "Posts.xml", *rows)
    links = [row(Id=i, PostId=i, RelatedPostId=i + 1, LinkTypeId=3) for i in range(1, 120)]
    save(tmp_path / "dump", "PostLinks.xml", *links)
    stack_exchange.convert(tmp_path / "dump", tmp_path / "out")
    dataset = ask_ubuntu.load(tmp_path / "out")
    asked = {group.query for split in ("dev", "test") for group in dataset.splits[split]}
    assert 6 < len(asked) <= 12  # without those whose similar ones are all asked, too
    for group in dataset.splits["train"]:
        assert not asked & {group.query, *group.candidates} and sum(group.labels) >= 1
    corpus = [group.query for group in dataset.splits["pretrain"]]
    assert len(set(corpus)) == len(corpus) and not asked & set(corpus)


@pytest.mark.parametrize(
    "name, rows, line, expected, received",
    [
        ("Posts.xml", [row(Id="x", PostTypeId=1, Title="t")], 3, "an Id that was not there before", "'x'"),
        ("Posts.xml", [row(Id=1, PostTypeId=1, Title="t")] * 2, 4, "an Id that was not there before", "'1'"),
        ("Posts.xml", [row(Id=1, PostTypeId=1)], 3, "a Title", "['Id', 'PostTypeId']"),
        ("Posts.xml", ["<row"], 4, "well-formed XML", "not well-formed"),
        ("PostLinks.xml", [row(PostId=1, LinkTypeId=3)], 3, "a PostId and a RelatedPostId", "['1', '']"),
        ("PostLinks.xml", [row(PostId=1, RelatedPostId=201, LinkTypeId=3)], None, "at least 20 questions", "1"),
    ],
)
def test_faults(tmp_path, name, rows, line, expected, received):
    save_dump(tmp_path)
    path = save(tmp_path, name, *rows)
    with pytest.raises(DataError, match=fault(path, line, expected, received=received)):
        stack_exchange.convert(tmp_path, tmp_path / "out")


def test_entities_and_missing_files(tmp_path, capsys):
    save_dump(tmp_path)
    path = tmp_path / "Posts.xml"
    path.write_text('<!DOCTYPE rows [<!ENTITY a "b">]>\n<rows/>')
    with pytest.raises(DataError, match=fault(path, 1, "no entity declarations", received="'a'")):
        stack_exchange.read_questions(path)
    path.write_text('<?xml version="1.0" encoding="shift_jis"?>\n<rows/>')
    with pytest.raises(
        DataError,
        match=fault(path, 1, "XML in an encoding such as UTF-8", received="multi-byte encodings are not supported"),
    ):
        stack_exchange.read_questions(path)
    (path.parent / "Posts.xml.gz").write_bytes(b"\x1f\x8b\x08\x00")
    path.unlink()
    with pytest.raises(
        DataError, match=fault(path.parent / "Posts.xml.gz", None, "a whole gzip stream", received="ended")
    ):
        stack_exchange.read_questions(path.parent / "Posts.xml.gz")
    (path.parent / "Posts.xml.gz").unlink()
    assert stack_exchange.main([str(tmp_path), str(tmp_path / "out")]) == 2
    assert "Posts.xml" in capsys.readouterr().err
