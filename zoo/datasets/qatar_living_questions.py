"""QatarLiving, question to question: new questions and ten found ones each; SemEval-2016 task 3, subtask B.

Nakov et al. (2016). Google found ten questions of the forum for each new one; "PerfectMatch" and "Relevant" are
positive, "Irrelevant" is not. A question has a subject and a body. The official scorer's convention: a question
without a relevant one counts as zero, ranks beyond 10 are ignored.

Where to get it: https://alt.qcri.org/semeval2016/task3 (data and tools). Licence: free for general research use.

Files, plain or ``.gz``, in the folder or in the distribution's own subfolders; a form that is named first wins:

| part    | file                                                                      | questions | pairs |
|---------|---------------------------------------------------------------------------|-----------|-------|
| dev     | SemEval2016-Task3-CQA-QL-dev.xml                                          | 50        | 500   |
| test    | SemEval2016-Task3-CQA-QL-test.xml                                         | 70        | 700   |
| train 1 | SemEval2016-Task3-CQA-QL-train-part1.xml                                  | 200       | 1999  |
|         | TRAIN-BASE.csv: the same, but for 41 pairs and the search engine's order  | 200       | 1958  |
| train 2 | SemEval2016-Task3-CQA-QL-train-part2.xml                                  | 67        | 670   |

Train is every part that is there, at least one. The CSV joins the subjects of both questions; a new question's
subject is what its rows begin with alike.

The split ``pretrain`` holds the subject and body of every question of the forum that is there: those of train, with
their relevant ones,
of ``train_part1_recovered.derived.jsonl``, and of the 2015 files (see `zoo.datasets.qatar_living`), but no question
of dev or test, neither new nor found: ASCII letters and digits are compared, and threads of 2015 that come back in
2016's test are known by name. ``heldout`` is drawn from it.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from pathlib import Path

from zoo import files, splits
from zoo.data import DataError, Dataset, Group, Text
from zoo.datasets.qatar_living import TEST_IN_2015, escape, letters
from zoo.metrics import Convention
from zoo.xml_files import XmlFile

FIELDS = ("title", "body")
NUM_HELDOUT = 200

_2016 = "SemEval2016-Task3-CQA-QL-{}.xml"
_2015 = "SemEval2015-Task3-CQA-QL-{}-reformatted-excluding-2016-questions-{}.xml"
_FORMS = {
    "dev": [_2016.format("dev")],
    "test": [_2016.format("test")],
    "train part 1": [_2016.format("train-part1"), "TRAIN-BASE.csv"],
    "train part 2": [_2016.format("train-part2")],
}
_RAW_FORMS = {"train part 1": ["train_part1_recovered.derived.jsonl"]} | {
    f"2015 {split}": [_2015.format(split, "cleansed"), _2015.format(split, "multiline"), "ql2015_lemmatised.jsonl"]
    for split in ("train", "dev", "test")
}
_SUBFOLDERS = (
    *("", "train", "dev", "test", "semeval2016", "semeval2015", "subtaskB_csv"),
    "train-more-for-subtaskA-from-2015",
)
_LABELS = {"PerfectMatch": 1.0, "Relevant": 1.0, "Irrelevant": 0.0}
_COLUMNS = ["feature", "question", "rel_question", "labels"]


def load(folder: str | Path) -> Dataset:
    """Read the parts that are there; the module's docstring says which files are looked for.

    Raises:
        DataError: no dev file or no train part is there, or a file does not hold what it must.
    """
    paths = {part: files.find(folder, forms, _SUBFOLDERS) for part, forms in _FORMS.items()}
    raw_paths = {part: files.find(folder, forms, _SUBFOLDERS) for part, forms in _RAW_FORMS.items()}
    for needed in (["dev"], ["train part 1", "train part 2"]):
        if not any(paths[part] for part in needed):
            raise files.missing(folder, [name for part in needed for name in _FORMS[part]])
    parts = {part: list(_read(path)) for part, path in paths.items() if path}
    train = [group for part in ("train part 1", "train part 2") for group in parts.get(part, ())]
    held_out = {
        _key(text)
        for part in ("dev", "test")
        for group in parts.get(part, ())
        for text in (group.query, *group.candidates)
    }
    texts = [text for group in train for text in (group.query, *group.candidates)]
    texts += [text for part, path in raw_paths.items() if path for text in _read_raw(path, part)]
    distinct = {_key(text): text for text in reversed(texts)}
    similar = {
        _key(group.query): tuple(
            text
            for text, label in zip(group.candidates, group.labels, strict=True)
            if label > 0 and _key(text) not in held_out
        )
        for group in train
    }
    raw = [
        Group(f"P{number}", text, similar.get(key, ()), (1.0,) * len(similar.get(key, ())))
        for number, (key, text) in enumerate(distinct.items(), start=1)
        if key and key not in held_out
    ]
    notes = [f"Not there: {part}." for part in _FORMS if part not in parts]
    notes += [f"Not there, for pre-training: {part}." for part in _RAW_FORMS if raw_paths[part] is None]
    if paths["train part 1"] and paths["train part 1"].name.startswith("TRAIN-BASE"):
        notes.append("Train part 1 is read from TRAIN-BASE.csv: without the search engine's order, 41 pairs short.")
    found = {"train": train, "dev": parts["dev"]} | ({"test": parts["test"]} if "test" in parts else {})
    count = min(NUM_HELDOUT, len(raw) // 10)
    kept, heldout = splits.hold_out(raw, count, splits.SEED) if count else (raw, [])
    heldout = [group._replace(candidates=(), labels=()) for group in heldout]
    hidden = {_key(group.query) for group in heldout}
    kept = [_without(group, hidden) for group in kept]
    found |= {"pretrain": kept} | ({"heldout": heldout} if heldout else {})
    return Dataset(
        "QatarLiving, question to question",
        found,
        Convention(ties="pessimistic", without_positive="zero", cutoff=10),
        ("map", "mrr", "p@1", "p@5"),
        fields=FIELDS,
        files=tuple(dict.fromkeys(path for path in (*paths.values(), *raw_paths.values()) if path)),
        notes=tuple(notes),
    )


def _without(group, hidden):
    """The group without the similar questions whose titles are held out."""
    shown = tuple(text for text in group.candidates if _key(text) not in hidden)
    return group._replace(candidates=shown, labels=(1.0,) * len(shown))


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write train (as part 1), dev and test as the official XML of 2016, without comments.

    What is lost: runs of white space become one space, and characters that XML has none for are dropped.
    """
    for split in ("train", "dev", "test"):
        lines = ['<?xml version="1.0" encoding="utf-8"?>', '<xml version="1.0">']
        for group in splits[split]:
            order = sorted(range(len(group.labels)), key=lambda number: -group.search_scores[number])
            rank = {number: place for place, number in enumerate(order, start=1)}
            for number, (text, label) in enumerate(zip(group.candidates, group.labels, strict=True)):
                name = f"{escape(group.id)}_R{number + 1}"
                relevance = "Relevant" if label > 0 else "Irrelevant"
                lines.append(
                    f'<OrgQuestion ORGQ_ID="{escape(group.id)}">{_xml("OrgQ", group.query)}'
                    f'<Thread THREAD_SEQUENCE="{name}"><RelQuestion RELQ_ID="{name}" '
                    f'RELQ_RANKING_ORDER="{rank[number]}" RELQ_RELEVANCE2ORGQ="{relevance}">'
                    f"{_xml('RelQ', text)}</RelQuestion></Thread></OrgQuestion>"
                )
        name = _2016.format("train-part1" if split == "train" else split)
        files.write_lines(Path(folder) / name, [*lines, "</xml>"])


def _xml(prefix: str, text: Text) -> str:
    subject, body = (escape(files.one_line(part)) for part in text)
    return f"<{prefix}Subject>{subject}</{prefix}Subject><{prefix}Body>{body}</{prefix}Body>"


def _read(path: Path) -> Iterator[Group]:
    if ".csv" in path.name:
        yield from _read_table(path)
        return
    rows = _read_xml(path).rows
    lists: dict[str, list[_Row]] = {}
    for row in rows:
        lists.setdefault(row.query_id, []).append(row)
    if not lists:
        raise DataError(path, None, "at least one OrgQuestion with a RelQuestion", "none")
    for name, of_query in lists.items():
        yield Group(
            name,
            of_query[0].query,
            tuple(row.candidate for row in of_query),
            tuple(row.label for row in of_query),
            search_scores=tuple(1 / row.rank for row in of_query),
        )


def _key(text: Text) -> str:
    """What two copies of a question have in common: its ASCII letters and digits, for the files spell others apart."""
    joined = " ".join(text)
    return re.sub("[^a-z0-9]", "", joined.casefold()) or letters(joined)


def _read_raw(path: Path, part: str) -> Iterator[Text]:
    """The questions of a file that is only read for its texts."""
    if ".jsonl" not in path.name:
        yield from (text for name, text in _read_xml(path).questions if name not in TEST_IN_2015)
        return
    for number, thread in files.read_json_lines(path):
        for key in ("id", "subject", "body"):
            if not isinstance(thread.get(key), str):
                raise DataError(path, number, f"a text under the key {key!r}", thread.get(key))
        if part.startswith("2015 ") and thread.get("origin2015") != part.removeprefix("2015 "):
            continue
        if thread["id"] not in TEST_IN_2015:
            yield files.one_line(thread["subject"]), files.one_line(thread["body"])


class _Row:
    """One pair of a new and a found question."""

    def __init__(self, query_id: str, query: Text, candidate: Text, label: float, rank: int):
        self.query_id, self.query, self.candidate, self.label, self.rank = query_id, query, candidate, label, rank


def _read_xml(path: Path) -> _Reader:
    reader = _Reader(path)
    reader.file.read()
    return reader


class _Reader:
    """Collects the questions of one file.

    Attributes:
        questions: id and text of every question of the forum.
        rows: the pairs with a new question; none in the files of 2015.
    """

    def __init__(self, path: Path):
        self.questions: list[tuple[str, Text]] = []
        self.rows: list[_Row] = []
        self._query_id: str | None = None
        self._attributes: dict[str, str] = {}
        self._text: dict[str, list[str]] = {}
        self._into: list[str] | None = None
        self._thread = ""
        self.file = XmlFile(path, self._start, self._end, self._characters)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "OrgQuestion":
            self._query_id = attributes.get("ORGQ_ID")
            if not self._query_id:
                raise self.file.error("an ORGQ_ID", attributes)
            self._text = {}
        elif tag == "Thread":
            self._thread = attributes.get("THREAD_SEQUENCE", "")
            self._text = {tag: text for tag, text in self._text.items() if tag.startswith("OrgQ")}
        elif tag == "RelQuestion":
            self._attributes = attributes
        elif tag in ("OrgQSubject", "OrgQBody", "RelQSubject", "RelQBody"):
            self._into = self._text[tag] = []

    def _characters(self, text: str) -> None:
        if self._into is not None:
            self._into.append(text)

    def _end(self, tag: str) -> None:
        if tag in ("OrgQSubject", "OrgQBody", "RelQSubject", "RelQBody"):
            self._into = None
        elif tag == "RelQuestion":
            found = self._question("RelQ")
            self.questions.append((self._thread, found))
            if self._query_id:
                self.rows.append(self._row(found))

    def _question(self, prefix: str) -> Text:
        return tuple(files.one_line("".join(self._text.get(f"{prefix}{part}", ()))) for part in ("Subject", "Body"))

    def _row(self, found: Text) -> _Row:
        label = self._attributes.get("RELQ_RELEVANCE2ORGQ")
        if label not in _LABELS:
            raise self.file.error(f"RELQ_RELEVANCE2ORGQ one of {', '.join(_LABELS)}", label)
        rank = self._attributes.get("RELQ_RANKING_ORDER", "")
        if not rank.isascii() or not rank.isdigit() or int(rank) < 1:
            raise self.file.error("RELQ_RANKING_ORDER, a number of at least 1", rank)
        return _Row(self._query_id, self._question("OrgQ"), found, _LABELS[label], int(rank))


def _repaired(text: str) -> str:
    """The CSV's texts went from UTF-8 through Windows-1252 and Mac Roman to Latin-1, some twice through the first.

    What cannot be read back becomes a space.
    """

    def repair(match):
        try:
            found = match[0].encode("latin-1").decode("mac_roman").encode("cp1252").decode("utf-8")
        except UnicodeError:
            return " "
        try:
            return found.encode("cp1252").decode("utf-8")
        except UnicodeError:
            return found

    return re.sub(r"[^\x00-\x7f]+", repair, text)


def _read_table(path: Path) -> Iterator[Group]:
    """The CSV: rows of one new question follow each other, and have its body in common."""
    reader = csv.reader(line for _, line in files.read_lines(path, keep_ends=True))
    header = next(reader, None)
    if header != _COLUMNS:
        raise DataError(path, 1, f"the header {','.join(_COLUMNS)}", header)
    lists: list[list[list[str]]] = []
    for row in reader:
        row = [_repaired(column) for column in row]
        if len(row) != len(_COLUMNS):
            raise DataError(path, reader.line_num, f"{len(_COLUMNS)} columns", row)
        if row[3] not in _LABELS:
            raise DataError(path, reader.line_num, f"a label out of {', '.join(_LABELS)}", row[3])
        if not lists or lists[-1][0][1] != row[1]:
            lists.append([])
        lists[-1].append(row)
    for number, rows in enumerate(lists, start=1):
        words = [row[0].split() for row in rows]
        shared = len(os.path.commonprefix(words))
        yield Group(
            f"T{number}",
            (" ".join(words[0][:shared]), files.one_line(rows[0][1])),
            tuple((" ".join(title[shared:]), files.one_line(row[2])) for title, row in zip(words, rows, strict=True)),
            tuple(_LABELS[row[3]] for row in rows),
        )
