"""AskUbuntu: questions of a forum, pairs that its users marked as duplicates, and 400 x 20 pairs judged by experts.

Lei et al. (2016), RCNN. A question has a title and a body of at most 100 tokens. Users' marks are the training
pairs; for each question of dev and test, Lucene's BM25 found 20 candidates, and an expert judged each. The released
code's convention: equal scores keep the order of the file, questions without a similar candidate are left out.

Where to get it: https://github.com/taolei87/askubuntu. Licence: the texts are Stack Exchange's, CC BY-SA.

Files, plain or ``.gz``, fields separated by tabs, ids within a field by spaces:

| part           | file                 | a line                                                          | lines   |
|----------------|----------------------|-----------------------------------------------------------------|---------|
| texts          | text_tokenized.txt   | id, title, body                                                 | 167,765 |
| train          | train_random.txt     | id, similar ids, random ids                                     | 12,584  |
| dev, test      | dev.txt, test.txt    | id, similar ids, 20 candidate ids, their BM25 scores            | 200     |
| held out       | heldout.txt          | id, of a question that pre-training is measured on; may be absent | 1,989   |

Where the files are of another forum, origin.txt may name it in its first line; further lines are notes on the data.

Training groups hold the similar and the random questions. The split ``pretrain`` is the corpus: every question
with those that were marked as similar to it, but the held-out ones and the questions that dev and test ask, nor a
text like theirs (the paper's corpus holds them too). ``heldout`` has no candidates. What train lists is taken as it
is, even a question of dev or test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from zoo import files
from zoo.data import DataError, Dataset, Group, Text
from zoo.metrics import Convention

FIELDS = ("title", "body")
METRICS = ("mrr", "map", "p@1", "p@5")

_TEXTS, _TRAIN, _HELDOUT = "text_tokenized.txt", "train_random.txt", "heldout.txt"
ORIGIN = "origin.txt"
_HINT = (
    "see github.com/taolei87/askubuntu; zoo.datasets.stack_exchange makes them of a dump; bm25 needs dev and test alone"
)


def load(folder: str | Path, needs_text: bool = True, max_positives: int = 10) -> Dataset:
    """Read all parts; the module's docstring says which files are looked for.

    Args:
        folder: where the files lie.
        needs_text: False for what only looks at the BM25 scores: then the texts and the training pairs may be
            absent, and a question's id stands for its title.
        max_positives: training questions with more similar ones are left out, as in the released code.

    Raises:
        DataError: a part is not there, or does not hold what it must.
    """
    paths = {name: files.find(folder, [name]) for name in (_TEXTS, _TRAIN, "dev.txt", "test.txt", _HELDOUT, ORIGIN)}
    for name in ("dev.txt", "test.txt", *((_TEXTS, _TRAIN) if needs_text else ())):
        if paths[name] is None:
            raise files.missing(folder, [name], _HINT)
    name = "AskUbuntu"
    texts = _Texts(paths[_TEXTS])
    splits, notes = {"train": []}, []
    if paths[_TEXTS] and paths[_TRAIN]:
        splits["train"] = list(_training_groups(paths[_TRAIN], texts, max_positives, notes))
    for split in ("dev", "test"):
        splits[split] = list(_judged_groups(paths[f"{split}.txt"], texts))
    if paths[_TEXTS]:
        splits |= _raw_splits(paths[_HELDOUT], texts, splits)
    else:
        notes.append(f"Not there: {_TEXTS}; ids stand for the questions, and nothing can be trained.")
    if paths[ORIGIN]:
        lines = [line for _, line in files.read_lines(paths[ORIGIN])]
        name, notes = next(iter(lines), name), notes + lines[1:]
    return Dataset(
        name,
        splits,
        Convention(ties="file", without_positive="skip"),
        METRICS,
        fields=FIELDS,
        files=tuple(path for path in paths.values() if path),
        notes=tuple(notes),
    )


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write groups as the official files, and every text that occurs in them once.

    The splits are those of `load`; a group's id is its question's. Runs of white space become one space.
    """
    folder, ids = Path(folder), {}
    for groups in splits.values():
        for group in groups:
            ids.setdefault(group.query, group.id)
    taken = set(ids.values())
    numbers = filter(lambda number: number not in taken, map(str, count(1)))

    def names(texts: Iterable[Text]) -> str:
        ids.update({text: next(numbers) for text in texts if text not in ids})
        return " ".join(ids[text] for text in texts)

    def labelled(group: Group, similar: bool) -> str:
        return names(
            [text for text, label in zip(group.candidates, group.labels, strict=True) if (label > 0) == similar]
        )

    def scores(group: Group) -> str:
        return " ".join(f"{score:.6f}" for score in group.search_scores)

    rows = {_TRAIN: [(group.id, labelled(group, True), labelled(group, False)) for group in splits["train"]]} | {
        f"{split}.txt": [
            (group.id, labelled(group, True), names(group.candidates), scores(group)) for group in splits[split]
        ]
        for split in ("dev", "test")
    }
    for name, lines in rows.items():
        files.write_lines(folder / name, map("\t".join, lines))
    files.write_lines(folder / _HELDOUT, [group.id for group in splits.get("heldout", ())])
    # Last: by now every text has its id.
    files.write_lines(folder / _TEXTS, ["\t".join([ids[text], *map(files.one_line, text)]) for text in ids])


class _Texts:
    """Title and body by id; an id stands for its text where there is no corpus."""

    def __init__(self, path: Path | None):
        self.path, self.by_id = path, {}
        for number, line in files.read_lines(path) if path else ():
            fields = line.split("\t")
            if len(fields) != 3 or not fields[0].strip():
                raise DataError(path, number, "id, title and body, separated by tabs", line)
            if fields[0] in self.by_id:
                raise DataError(path, number, "an id that was not there before", fields[0])
            self.by_id[fields[0]] = (fields[1].strip(), fields[2].strip())

    def __contains__(self, identifier: str) -> bool:
        return self.path is None or identifier in self.by_id

    def of(self, identifier: str, path: Path, number: int) -> Text:
        if self.path is None:
            return (identifier, "")
        if identifier not in self.by_id:
            raise DataError(path, number, f"ids of {self.path.name}", identifier)
        return self.by_id[identifier]


def _rows(path: Path, names: tuple[str, ...]) -> Iterator[tuple[int, list[list[str]]]]:
    """Line number and, per field, the ids or numbers in it; the first field is one id."""
    ids = set()
    for number, line in files.read_lines(path):
        fields = [field.split() for field in line.split("\t")]
        if len(fields) != len(names) or len(fields[0]) != 1:
            raise DataError(path, number, f"{', '.join(names)}, separated by tabs", line)
        if fields[0][0] in ids:
            raise DataError(path, number, "an id that was not there before", fields[0][0])
        ids.add(fields[0][0])
        yield number, fields
    if not ids:
        raise DataError(path, None, "at least one line", "an empty file")


def _training_groups(path, texts, max_positives, notes) -> Iterator[Group]:
    num_unknown = num_left_out = 0
    for _, ((query,), similar, others) in _rows(path, ("a question's id", "similar ids", "random ids")):
        known = [[name for name in names if name in texts] for names in (similar, others)]
        num_unknown += len(similar) + len(others) - sum(map(len, known)) + (query not in texts)
        if query not in texts or len(known[0]) > max_positives:
            num_left_out += 1
            continue
        similar, others = known
        others = [name for name in others if name not in similar and name != query]
        candidates = tuple(texts.by_id[name] for name in (*similar, *others))
        yield Group(query, texts.by_id[query], candidates, (1.0,) * len(similar) + (0.0,) * len(others))
    if num_unknown:
        notes.append(f"Ids of {path.name} without a text, left out: {num_unknown}.")
    if num_left_out:
        notes.append(f"Training questions without a text or with over {max_positives} similar ones: {num_left_out}.")


def _judged_groups(path: Path, texts: _Texts) -> Iterator[Group]:
    names = ("a question's id", "similar ids", "candidate ids", "a score for each candidate")
    for number, ((query,), similar, candidates, scores) in _rows(path, names):
        if not candidates or len(scores) != len(candidates):
            raise DataError(path, number, f"{len(candidates)} scores, one for each candidate", len(scores))
        strange = set(similar) - set(candidates)
        if strange:
            raise DataError(path, number, "similar ids that are among the candidates", sorted(strange))
        yield Group(
            query,
            texts.of(query, path, number),
            tuple(texts.of(name, path, number) for name in candidates),
            tuple(float(name in similar) for name in candidates),
            search_scores=tuple(_number(score, path, number) for score in scores),
        )


def _number(text: str, path: Path, number: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise DataError(path, number, "finite scores", text)
    return value


def _raw_splits(path: Path | None, texts: _Texts, splits: dict[str, list[Group]]) -> dict[str, list[Group]]:
    """The corpus to pre-train on, and the questions held out of it."""
    heldout = [(number, name) for number, ((name,),) in _rows(path, ("an id",))] if path else []
    unseen = {name for _, name in heldout} | {group.id for split in ("dev", "test") for group in splits[split]}
    similar = {
        group.id: tuple(text for text, label in zip(group.candidates, group.labels, strict=True) if label > 0)
        for group in splits["train"]
    }
    hidden = {texts.by_id[name] for name in unseen if name in texts}
    corpus = []
    for name, text in texts.by_id.items():
        if name not in unseen and text not in hidden:
            marked = tuple(other for other in similar.get(name, ()) if other not in hidden)
            corpus.append(Group(name, text, marked, (1.0,) * len(marked)))
    found = {"pretrain": corpus}
    if heldout:
        found["heldout"] = [Group(name, texts.of(name, path, number), (), ()) for number, name in heldout]
    return found
