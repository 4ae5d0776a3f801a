"""QatarLiving: forum questions and the first ten comments below each; SemEval-2016 task 3, subtask A.

Nakov et al. (2016); used by CTRN (Tay, Tuan and Hui, 2018). A comment is positive if it is "Good"; "Bad" and
"PotentiallyUseful" are not. The query is subject and body in one field. The official scorer's convention: a
question without a Good comment counts as zero, ranks beyond 10 are ignored.

Where to get it: https://alt.qcri.org/semeval2016/task3 (data and tools). Licence: free for general research use.

Files, plain or ``.gz``, in the folder or in the distribution's own subfolders; a form that is named first wins:

| part       | file                                                                             | questions |
|------------|----------------------------------------------------------------------------------|-----------|
| dev        | SemEval2016-Task3-CQA-QL-dev.xml (or -dev-subtaskA.xml)                          | 244       |
| test       | SemEval2016-Task3-CQA-QL-test.xml (or -test-subtaskA.xml); may be absent         | 327       |
| train 1    | SemEval2016-Task3-CQA-QL-train-part1.xml (or -subtaskA.xml)                      | 1411      |
|            | train_part1_recovered.derived.jsonl: those that other parts repeat               | 425       |
| train 2    | SemEval2016-Task3-CQA-QL-train-part2.xml (or -subtaskA.xml)                      | 379       |
| train 2015 | SemEval2015-Task3-CQA-QL-{train,dev,test}-reformatted-excluding-2016-questions-  |           |
|            | {cleansed,multiline}.xml                                                         | 3090      |
|            | ql2015_lemmatised.jsonl: the same, lower-cased and lemmatised                    | 3090      |

Train is every part that is there, at least one. Threads with ``SubtaskA_Skip_Because_Same_As_RelQuestion_ID``
repeat others and are skipped. JSON lines have ``id``, ``subject``, ``body``, ``comments`` (text and label) and, for
2015, ``origin2015``.

The 2015 files leave out the questions of 2016's train and dev sets, but not those of the test set, which came
later: 23 of its 327 questions are in them (found by comparing words; ours). Such threads, and any train thread
with the letters and digits of a dev or test question, are left out of train.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from zoo import files
from zoo.data import DataError, Dataset, Group
from zoo.metrics import Convention
from zoo.xml_files import XmlFile

_2016 = "SemEval2016-Task3-CQA-QL-"
_2015 = "SemEval2015-Task3-CQA-QL-{}-reformatted-excluding-2016-questions-{}.xml"
_FORMS = {
    "dev": [f"{_2016}dev.xml", f"{_2016}dev-subtaskA.xml"],
    "test": [f"{_2016}test.xml", f"{_2016}test-subtaskA.xml"],
    "train part 1": [
        f"{_2016}train-part1.xml",
        f"{_2016}train-part1-subtaskA.xml",
        "train_part1_recovered.derived.jsonl",
    ],
    "train part 2": [f"{_2016}train-part2.xml", f"{_2016}train-part2-subtaskA.xml"],
} | {
    f"2015 {split}": [
        _2015.format(split, "cleansed"),
        _2015.format(split, "multiline"),
        "ql2015_lemmatised.jsonl",
    ]
    for split in ("train", "dev", "test")
}
_SUBFOLDERS = ("", "train", "dev", "test", "semeval2016", "semeval2015", "train-more-for-subtaskA-from-2015")
_LABELS = {"Good": 1.0, "PotentiallyUseful": 0.0, "Bad": 0.0}

# Threads of 2015 that are test threads of 2016. Lemmatised text cannot be compared with raw text, so by name.
TEST_IN_2015 = frozenset(
    f"Q{number}"
    for number in (818, 905, 914, 1055, 1350, 1415, 1440, 1687, 1761, 1794, 1834, 1935, 1937, 1938, 1966)
    + (2200, 2227, 2309, 2630, 2656, 2828, 2938, 2956)
)


def load(folder: str | Path, keep_copies: bool = False) -> Dataset:
    """Read the parts that are there; the module's docstring says which files are looked for.

    Args:
        folder: where the files lie.
        keep_copies: keep train threads that are also in dev or test, as the official files have them.

    Raises:
        DataError: no dev file or no train part is there, or a file does not hold what it must.
    """
    paths = {part: files.find(folder, forms, _SUBFOLDERS) for part, forms in _FORMS.items()}
    threads = {part: list(_read(path, part)) for part, path in paths.items() if path}
    parts = {part: [group for group in groups if group.candidates] for part, groups in threads.items()}
    num_empty = sum(map(len, threads.values())) - sum(map(len, parts.values()))
    train_parts = [part for part in _FORMS if part not in ("dev", "test")]
    for needed in (["dev"], train_parts):
        if not any(part in parts for part in needed):
            raise files.missing(folder, dict.fromkeys(name for part in needed for name in _FORMS[part]))
    held_out = {letters(group.query[0]) for part in ("dev", "test") for group in parts.get(part, ())} - {""}
    train, seen, num_copies = [], {}, 0
    for part in train_parts:
        for group in parts.get(part, ()):
            if group.id in seen:
                raise DataError(paths[part], None, f"thread ids that are not in {seen[group.id]}", group.id)
            seen[group.id] = paths[part]
            is_copy = part.startswith("2015") and group.id in TEST_IN_2015
            if (is_copy or letters(group.query[0]) in held_out) and not keep_copies:
                num_copies += 1
            else:
                train.append(group)
    notes = [f"Not there: {part}." for part in _FORMS if part not in parts]
    if num_empty:
        notes.append(f"Threads without comments, left out: {num_empty}.")
    if num_copies:
        notes.append(f"Train threads whose question is in dev or test, left out: {num_copies}.")
    for part, path in paths.items():
        if path and path.name.startswith(("train_part1_recovered", "ql2015_lemmatised")):
            notes.append(f"{part.capitalize()} is read from {path.name}.")
    splits = {"train": train, "dev": parts["dev"]} | ({"test": parts["test"]} if "test" in parts else {})
    return Dataset(
        "QatarLiving",
        splits,
        Convention(ties="pessimistic", without_positive="zero", cutoff=10),
        ("p@1", "map", "mrr"),
        files=tuple(dict.fromkeys(path for path in paths.values() if path)),
        notes=tuple(notes),
    )


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write train (as part 1), dev and test as the official XML of 2016, one thread for each original question.

    The whole query is the body, the subject is empty. What is lost: runs of white space become one space,
    characters that XML has none for are dropped, fields are joined.
    """
    for split, groups in splits.items():
        name = f"{_2016}{'train-part1' if split == 'train' else split}.xml"
        lines = ['<?xml version="1.0" encoding="utf-8"?>', '<xml version="1.0">']
        for number, group in enumerate(groups, start=1):
            lines += _thread_lines(f"Q{number}", group)
        files.write_lines(Path(folder) / name, [*lines, "</xml>"])


def _thread_lines(question_id: str, group: Group) -> Iterator[str]:
    thread, query = escape(group.id), escape(files.one_line(group.query))
    yield f'<OrgQuestion ORGQ_ID="{question_id}"><OrgQSubject/><OrgQBody>{query}</OrgQBody>'
    yield f'<Thread THREAD_SEQUENCE="{thread}"><RelQuestion RELQ_ID="{thread}" RELQ_RELEVANCE2ORGQ="PerfectMatch">'
    yield f"<RelQSubject/><RelQBody>{query}</RelQBody></RelQuestion>"
    for number, (comment, label) in enumerate(zip(group.candidates, group.labels, strict=True), start=1):
        good = "Good" if label > 0 else "Bad"
        yield (
            f'<RelComment RELC_ID="{thread}_C{number}" RELC_RELEVANCE2ORGQ="{good}" RELC_RELEVANCE2RELQ="{good}">'
            f"<RelCText>{escape(files.one_line(comment))}</RelCText></RelComment>"
        )
    yield "</Thread></OrgQuestion>"


def escape(text: str) -> str:
    kept = (char for char in text if char >= " " and not "\ud800" <= char <= "\udfff" and char not in "\ufffe\uffff")
    escaped = "".join(kept).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace('"', "&quot;")


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _read(path: Path, part: str) -> Iterator[Group]:
    if ".jsonl" in path.name:
        yield from _read_json_lines(path, part)
        return
    reader = _ThreadReader(path)
    reader.file.read()
    if not reader.groups:
        raise DataError(path, None, "at least one Thread", "none")
    yield from reader.groups


class _ThreadReader:
    """Collects the threads of one file."""

    def __init__(self, path: Path):
        self.groups: list[Group] = []
        self._ids: set[str] = set()
        self._thread: str | None = None
        self._text: dict[str, list[str]] = {}
        self._comments: list[tuple[str, float]] = []
        self._label = 0.0
        self._into: list[str] | None = None
        self.file = XmlFile(path, self._start, self._end, self._characters)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "Thread":
            if "SubtaskA_Skip_Because_Same_As_RelQuestion_ID" in attributes:
                return
            self._thread = attributes.get("THREAD_SEQUENCE")
            if not self._thread or self._thread in self._ids:
                raise self.file.error("a THREAD_SEQUENCE that was not there before", self._thread)
            self._ids.add(self._thread)
            self._text, self._comments = {}, []
        elif tag == "RelComment" and self._thread:
            label = attributes.get("RELC_RELEVANCE2RELQ")
            if label not in _LABELS:
                raise self.file.error(f"RELC_RELEVANCE2RELQ one of {', '.join(_LABELS)}", label)
            self._label = _LABELS[label]
        elif tag in ("RelQSubject", "RelQBody", "RelCText"):
            self._into = self._text[tag] = []

    def _characters(self, text: str) -> None:
        if self._into is not None:
            self._into.append(text)

    def _end(self, tag: str) -> None:
        if tag in ("RelQSubject", "RelQBody", "RelCText"):
            self._into = None
        elif tag == "RelComment" and self._thread:
            self._comments.append((self._joined("RelCText"), self._label))
            self._text.pop("RelCText", None)
        elif tag == "Thread" and self._thread:
            query = f"{self._joined('RelQSubject')} {self._joined('RelQBody')}"
            self.groups.append(_group(self._thread, query, self._comments))
            self._thread = None

    def _joined(self, tag: str) -> str:
        return "".join(self._text.get(tag, ()))


def _read_json_lines(path: Path, part: str) -> Iterator[Group]:
    for number, thread in files.read_json_lines(path):
        missing = [key for key in ("id", "subject", "body", "comments") if key not in thread]
        if missing:
            raise DataError(path, number, f"the key {missing[0]!r}", sorted(thread))
        if part.startswith("2015 ") and thread.get("origin2015") != part.removeprefix("2015 "):
            continue
        for comment in thread["comments"]:
            if not isinstance(comment, list) or len(comment) != 2 or not isinstance(comment[0], str):
                raise DataError(path, number, "comments [text, label]", comment)
            if comment[1] not in _LABELS:
                raise DataError(path, number, f"label one of {', '.join(_LABELS)}", comment[1])
        comments = [(text, _LABELS[label]) for text, label in thread["comments"]]
        yield _group(str(thread["id"]), f"{thread['subject']} {thread['body']}", comments)


def _group(identifier: str, query: str, comments: list[tuple[str, float]]) -> Group:
    texts = tuple((files.one_line(text),) for text, _ in comments)
    return Group(identifier, (files.one_line(query),), texts, tuple(label for _, label in comments))
