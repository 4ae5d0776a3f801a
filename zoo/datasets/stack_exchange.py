"""A Stack Exchange dump as a source of AskUbuntu's files: any of its sites, or one's own later crawl.

    python -m zoo.datasets.stack_exchange DUMP FOLDER
    python -m recipes.rcnn_askubuntu --data FOLDER

Where to get it: https://archive.org/details/stackexchange, one archive per site. Licence: CC BY-SA.

Files of the dump, plain or ``.gz``, read as a stream: the questions must fit into memory, the answers need not.

| file          | what is read of a ``<row>``                                                          |
|---------------|--------------------------------------------------------------------------------------|
| Posts.xml     | questions, ``PostTypeId="1"``: ``Id``, ``Title``, ``Body``                           |
| PostLinks.xml | duplicates, ``LinkTypeId="3"``: ``PostId``, ``RelatedPostId``                        |

A body's markup is taken off. So is the banner by which users and moderators marked a duplicate, with the title of the
other question in it: a model would learn to read it, and the paper's authors had to process their corpus again for
that reason (its closing note).

Nobody judged the candidates: dev and test hold questions that were marked as duplicates, with what BM25 finds for
them, and of these the marked ones are similar. Users mark few, so figures are low and only comparable to each other.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from random import Random

from zoo import files, lexical, splits
from zoo.arguments import Parser
from zoo.data import DataError, Group, Text
from zoo.datasets import ask_ubuntu
from zoo.xml_files import XmlFile

_UNJUDGED = (
    "Nobody judged the candidates: those that users marked as duplicates are similar, the others are not. "
    "Figures are low, and not comparable to the paper's."
)
NUM_CANDIDATES = 20  # as Lucene found for AskUbuntu
NUM_RANDOM = 100  # as train_random.txt has them

_QUESTION, _DUPLICATE = "1", "3"
_SAYS = r"(?:possible duplicates?(?:</\w+>)?\s*:|already has (?:an answer|answers) here(?:</\w+>)?\s*:)"
_BANNERS = [
    re.compile(banner, re.IGNORECASE | re.DOTALL)
    for banner in (
        rf"<(blockquote|aside)\b[^>]*>(?:(?!</\1>).)*?{_SAYS}.*?</\1>",
        # The innermost block, and the list of the other questions below it.
        rf"<(div|p)\b[^>]*>(?:(?!<(?:div|p)\b|</\1>).)*?{_SAYS}.*?</\1>(?:\s*<ul\b.*?</ul>)?",
    )
]
_MARK = re.compile(r"(?:\s*\[(?:duplicate|closed|on hold|migrated)\])+\s*$", re.IGNORECASE)
_BLOCKS = {"p", "br", "div", "li", "ul", "ol", "pre", "blockquote", "h1", "h2", "h3", "hr", "td", "tr"}


def read_questions(path: str | Path) -> dict[str, Text]:
    """Title and body of every question, by id.

    Raises:
        DataError: the file is no XML, declares entities, or a question has no id, no title or that of another.
    """
    texts: dict[str, Text] = {}

    def row(attributes, error):
        if attributes.get("PostTypeId") != _QUESTION:
            return
        identifier, title = attributes.get("Id", ""), attributes.get("Title")
        if not identifier.isdigit() or identifier in texts:
            raise error("an Id that was not there before", identifier)
        if title is None:
            raise error("a Title", sorted(attributes))
        texts[identifier] = (files.one_line(_MARK.sub("", title)), plain_text(attributes.get("Body", "")))

    _read_rows(path, row)
    return texts


def read_duplicates(path: str | Path) -> dict[str, list[str]]:
    """The ids that each question was marked as a duplicate of.

    Raises:
        DataError: as `read_questions`.
    """
    found: dict[str, list[str]] = {}

    def row(attributes, error):
        if attributes.get("LinkTypeId") != _DUPLICATE:
            return
        ids = [attributes.get(name, "") for name in ("PostId", "RelatedPostId")]
        if not all(map(str.isdigit, ids)):
            raise error("a PostId and a RelatedPostId", ids)
        of_question = found.setdefault(ids[0], [])
        if ids[1] not in of_question and ids[0] != ids[1]:
            of_question.append(ids[1])

    _read_rows(path, row)
    return found


def plain_text(body: str) -> str:
    """A body without its markup and without the banner of a duplicate, on one line."""
    reader = _TextReader()
    for banner in _BANNERS:
        body = banner.sub(" ", body)
    reader.feed(body)
    reader.close()
    return files.one_line("".join(reader.parts))


def convert(dump: str | Path, folder: str | Path, num_judged: int = 200, num_heldout: int = 2000) -> dict[str, int]:
    """Write a dump as the files that `zoo.datasets.ask_ubuntu` reads.

    Args:
        dump: the folder with the dump's files.
        folder: where to write.
        num_judged: questions of dev, and of test; at most a tenth of the marked ones each.
        num_heldout: questions held out of pre-training; at most a tenth of all.

    Returns:
        Number of questions of each part.

    Raises:
        DataError: a file is not there or does not hold what it must, or too few questions are marked.
    """
    paths = {}
    for name in ("Posts.xml", "PostLinks.xml"):
        paths[name] = files.find(dump, [name])
        if paths[name] is None:
            raise files.missing(dump, [name])
    texts = read_questions(paths["Posts.xml"])
    first: dict[Text, str] = {}
    for name, text in texts.items():
        first.setdefault(text, name)  # a question that was posted again is the same question
    similar: dict[str, dict[Text, None]] = {}
    for name, others in read_duplicates(paths["PostLinks.xml"]).items():
        if name in texts:
            of_question = similar.setdefault(first[texts[name]], {})
            of_question.update((texts[other], None) for other in others if other in texts)
            of_question.pop(texts[name], None)
    marked = [_marked(name, texts[name], others) for name, others in similar.items() if others]
    if len(marked) < 20:
        raise DataError(paths["PostLinks.xml"], None, "at least 20 questions marked as duplicates", len(marked))
    count = min(num_judged, len(marked) // 10)
    train, dev = splits.hold_out(marked, count, splits.SEED)
    train, test = splits.hold_out(train, count, splits.SEED + 1)
    # What dev and test ask is in no list, or training would see it.
    asked = {group.query for group in (*dev, *test)}
    train, dev, test = (
        [
            _marked(group.id, group.query, others)
            for group in groups
            if (others := [text for text in group.candidates if text not in asked])
        ]
        for groups in (train, dev, test)
    )
    archive = {name: text for text, name in first.items() if text not in asked}
    everything = list(archive.values())
    rest = [Group(name, text, (), ()) for name, text in archive.items()]
    in_train = {group.id for group in train}
    unmarked = [group for group in rest if group.id not in in_train]
    _, heldout = splits.hold_out(unmarked, max(1, min(num_heldout, len(unmarked) // 10)), splits.SEED)
    parts = {
        "train": [_with_random(group, everything) for group in train],
        "dev": _with_found(dev, archive),
        "test": _with_found(test, archive),
        "heldout": heldout,
        "pretrain": rest,
    }
    ask_ubuntu.write(parts, folder)
    files.write_lines(Path(folder) / ask_ubuntu.ORIGIN, [f"a Stack Exchange dump, {Path(dump).name}", _UNJUDGED])
    return {name: len(groups) for name, groups in parts.items()}


def _marked(name: str, query: Text, similar) -> Group:
    return Group(name, query, tuple(similar), (1.0,) * len(similar))


def _with_random(group: Group, archive: list[Text]) -> Group:
    drawn = Random(group.id).sample(archive, min(NUM_RANDOM, len(archive)))
    others = tuple(text for text in drawn if text != group.query and text not in group.candidates)
    return group._replace(candidates=group.candidates + others, labels=group.labels + (0.0,) * len(others))


def _with_found(groups: list[Group], archive: dict[str, Text]) -> list[Group]:
    documents = list(dict.fromkeys(archive.values()))
    found = lexical.BM25().search([group.query for group in groups], documents, NUM_CANDIDATES)
    return [
        group._replace(
            candidates=tuple(documents[number] for number, _ in of_query),
            labels=tuple(float(documents[number] in group.candidates) for number, _ in of_query),
            search_scores=tuple(score for _, score in of_query),
        )
        for group, of_query in zip(groups, found, strict=True)
    ]


class _TextReader(HTMLParser):
    """The text of a body; blocks are apart."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        if tag in _BLOCKS:
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append(" ")


def _read_rows(path: str | Path, row: Callable) -> None:
    """Calls ``row`` with the attributes of every ``<row>`` and a function that makes an error at its line."""

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            row(attributes, file.error)

    file = XmlFile(path, start)
    file.read()


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = Parser("python -m zoo.datasets.stack_exchange", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("dump", type=Path, help="folder with Posts.xml and PostLinks.xml")
    parser.add_argument("folder", type=Path, help="where AskUbuntu's files are written")
    flags = parser.parse_args(arguments)
    try:
        counts = convert(flags.dump, flags.folder)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(f"{name}: {count} questions" for name, count in counts.items()))
    print(f"to train on it: python -m recipes.rcnn_askubuntu --data {shlex.quote(str(flags.folder))} --pretrain")
    return 0


if __name__ == "__main__":
    sys.exit(main())
