"""InsuranceQA: questions to an insurance library, each with a pool of 500 answers of which few are right.

Used by GGSA (Xu et al. 2019, version 1); the figure is P@1 over pools of 500. Version 1 has lemmatised questions
and pools drawn at random, version 2 raw text and pools from a search engine, which are much harder.

Where to get it: https://github.com/shuzi/insuranceQA. Licence: "provided as is and for research purpose only".

Files, plain or ``.gz``, in the folder itself or in ``V1`` or ``V2``; tab-separated, texts as words ``idx_N``:

=========  ==================================================================  ===============================
version 1  ``vocabulary``                                                      idx_N, word
..         ``question.train.token_idx.label``                                  text, right answers
..         ``question.{dev,test1,test2}.label.token_idx.pool``                 right answers, text, pool
..         ``answers.label.token_idx``                                         answer, text
version 2  ``vocabulary``                                                      idx_N, word
..         ``InsuranceQA.question.anslabel.raw.100.pool.solr.train.encoded``   domain, text, right answers, pool
..         the same with ``500`` and ``valid``, ``test``
..         ``InsuranceQA.label2answer.raw.encoded`` or ``answers_en.tsv``      answer, text (not encoded in the last)
=========  ==================================================================  ===============================

Where version 1 comes without its answers, their text is taken from version 2's by the map
``v1_to_v2_answer_map.derived.tsv`` (version 1's answer, version 2's answer, how sure), and lemmatised with simplemma,
as version 1's texts are; the answers that it lacks are empty texts, and are left out of training.

Training questions are read with their right answers alone: wrong ones are drawn from all others. A right answer
that is not in its pool does not count (version 2); a question without any counts as wrong. An answer that stands
twice in a pool stays there twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from zoo import files
from zoo.data import DataError, Dataset, Group
from zoo.metrics import Convention

# Numbers and compounds stay whole, as in version 1: 401k, $500,000, long-term.
_WORD = re.compile(r"\$?\w+(?:[-',.]\w+)*|\S")
_POOL_V1 = "question.{}.label.token_idx.pool"
_TRAIN_V1 = "question.train.token_idx.label"
_ANSWERS_V1 = "answers.label.token_idx"
_MAP = "v1_to_v2_answer_map.derived.tsv"
_POOL_V2 = "InsuranceQA.question.anslabel.raw.{}.pool.solr.{}.encoded"
_ANSWERS_V2 = ("InsuranceQA.label2answer.raw.encoded", "answers_en.tsv")


def load(folder: str | Path, version: int = 1, dev_pool: int = 500) -> Dataset:
    """Read one version; the module's docstring says which files are looked for.

    Args:
        folder: where the files lie.
        version: 1 or 2.
        dev_pool: how many candidates of each dev pool are kept, the right ones among them, to choose epochs
            sooner; the tests always have all.

    Raises:
        DataError: a file is not there, or does not hold what it must.
        ValueError: for another version.
    """
    if version not in (1, 2):
        raise ValueError(f"version must be 1 or 2. Received: version={version!r}")
    train_v2 = _POOL_V2.format(100, "train")
    if version == 2 and not _found(folder, train_v2, "V2") and _found(folder, _TRAIN_V1, "V1"):
        raise DataError(folder, None, f"version 2's files, as {train_v2}", f"version 1's, as {_TRAIN_V1}")
    paths, splits, asked, empty, unsure = (_read_v1 if version == 1 else _read_v2)(Path(folder))
    notes, num_empty, num_answers = (), len(empty), len(asked)
    if num_empty:
        notes += (
            f"The text of {num_empty} of {num_answers} answers ({num_empty / num_answers:.1%}) is missing: "
            "they are empty, rank as such, and are left out of training.",
        )
        lost = {split: sum(map(_is_lost, splits[split])) for split in ("test1", "test2")}
        notes += (
            f"Questions whose right answers are all empty: {lost['test1']} of test1, {lost['test2']} of test2.",
            f"Answers whose text the map is not sure of: {len(unsure & asked)}.",
        )
    if any(len(group.labels) > dev_pool for group in splits["dev"]):
        splits["dev"] = [_thinned(group, dev_pool) for group in splits["dev"]]
        notes += (f"Dev pools are cut to {dev_pool} candidates, so dev figures stand higher than those of test.",)
    return Dataset(
        name=f"insuranceQA V{version}",
        splits=splits,
        convention=Convention(without_positive="zero"),
        metrics=("p@1", "mrr"),
        files=tuple(paths),
        notes=notes,
    )


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write version 1's files, whole words in the vocabulary; what is lost: ids, and train's wrong answers."""
    folder = Path(folder)
    words: dict[str, int] = {}
    answers: dict[str, int] = {}

    def encoded(text):
        return " ".join(f"idx_{words.setdefault(word, len(words) + 1)}" for word in files.one_line(text).split())

    def numbers(group, wanted):
        pairs = zip(group.candidates, group.labels, strict=True)
        return " ".join(
            str(answers.setdefault(files.one_line(text), len(answers) + 1)) for text, label in pairs if wanted(label)
        )

    for split, groups in splits.items():
        if split == "train":
            name = _TRAIN_V1
            lines = [f"{encoded(group.query)}\t{numbers(group, lambda label: label > 0)}" for group in groups]
        else:
            name = _POOL_V1.format(split)
            lines = [
                "\t".join(
                    [numbers(group, lambda label: label > 0), encoded(group.query), numbers(group, lambda label: True)]
                )
                for group in groups
            ]
        files.write_lines(folder / name, lines)
    files.write_lines(folder / _ANSWERS_V1, [f"{number}\t{encoded((text,))}" for text, number in answers.items()])
    files.write_lines(folder / "vocabulary", [f"idx_{number}\t{word}" for word, number in words.items()])


def _read_v1(folder: Path):
    places = ("V1", "")
    paths, unsure = [_need(folder, [name], places) for name in ("vocabulary", _TRAIN_V1)], set()
    words = _read_words(paths[0])
    known = files.find(folder, [_ANSWERS_V1], places)
    if known:
        paths.append(known)
        answers = {number: _decoded(text, words, known, line) for line, number, text in _numbered(known)}
    else:
        paths += [_need(folder, [_ANSWERS_V1, _MAP], places), _need(folder, [_ANSWERS_V2[1]], ("V2", ""))]
        texts = {number: text for _, number, text in _numbered(paths[-1])}
        answers = {}
        for line, ours, theirs, how_sure in _columns(paths[-2], 3):
            if theirs not in texts:
                raise DataError(paths[-2], line, f"an answer of {paths[-1]}", theirs)
            answers[ours] = _lemmatised(texts[theirs])
            if how_sure != "exact":
                unsure.add(ours)
    splits, asked = {}, set()
    rows = [(line, text, right, None) for line, text, right in _columns(paths[1], 2)]
    splits["train"] = _groups(rows, words, answers, asked, paths[1], bool(known))
    for split in ("dev", "test1", "test2"):
        path = _need(folder, [_POOL_V1.format(split)], places)
        paths.append(path)
        rows = [(line, text, right, pool) for line, right, text, pool in _columns(path, 3)]
        splits[split] = _groups(rows, words, answers, asked, path, bool(known))
    return paths, splits, asked, asked - answers.keys(), unsure


def _lemmatised(text: str) -> str:
    return " ".join([_lemma(word) for word in _WORD.findall(text)])


@cache
def _lemma(word: str) -> str:
    import simplemma  # slow to import, and only needed here

    return simplemma.lemmatize(word, lang="en")


def _is_lost(group: Group) -> bool:
    """Whether no right candidate has a text."""
    return not any(text for (text,), label in zip(group.candidates, group.labels, strict=True) if label > 0)


def _read_v2(folder: Path):
    places = ("V2", "")
    paths = [_need(folder, names, places) for names in (["vocabulary"], _ANSWERS_V2)]
    words = _read_words(paths[0])
    answers = {
        number: _decoded(text, words, paths[1], line) if "label2answer" in paths[1].name else text
        for line, number, text in _numbered(paths[1])
    }
    splits, asked = {}, set()
    for split, size, name in (("train", 100, "train"), ("dev", 500, "valid"), ("test", 500, "test")):
        path = _need(folder, [_POOL_V2.format(size, name)], places)
        paths.append(path)
        rows = [
            (line, text, right, None if split == "train" else pool) for line, _, text, right, pool in _columns(path, 4)
        ]
        splits[split] = _groups(rows, words, answers, asked, path, True)
    return paths, splits, asked, set(), set()


def _groups(rows, words, answers, asked, path: Path, whole: bool) -> list[Group]:
    """One group per row (line, text, right answers, pool or None for the right ones alone).

    Args:
        asked: receives the numbers of all answers met.
        whole: whether an answer without text is an error.
    """
    texts = {number: (text,) for number, text in answers.items()}
    groups = []
    for line, text, right, pool in rows:
        right = right.split()
        numbers = right if pool is None else pool.split()
        asked.update(numbers)
        if whole and (unknown := [number for number in numbers if number not in texts]):
            raise DataError(path, line, "answers whose text is there", unknown[0])
        if pool is None:
            numbers = [number for number in numbers if number in texts]
        if not numbers:
            if whole or pool is not None:
                raise DataError(path, line, "at least one answer", text)
            continue
        candidates = tuple(texts.get(number, ("",)) for number in numbers)
        labels = tuple(float(number in right) for number in numbers)
        groups.append(Group(str(line), (_decoded(text, words, path, line),), candidates, labels))
    if not groups:
        raise DataError(path, None, "at least one question", "no line")
    return groups


def _thinned(group: Group, size: int) -> Group:
    """The right candidates and some others, ``size`` in all, drawn by their text, and their number of equal ones."""

    def drawn_at(place):
        if group.labels[place] > 0:
            return b""
        copy = group.candidates[:place].count(group.candidates[place])
        return hashlib.blake2b("\n".join([*group.query, *group.candidates[place], str(copy)]).encode()).digest()

    kept = sorted(sorted(range(len(group.labels)), key=drawn_at)[:size])
    return group._replace(
        candidates=tuple(group.candidates[place] for place in kept), labels=tuple(group.labels[place] for place in kept)
    )


def _found(folder: str | Path, name: str, place: str) -> Path | None:
    return files.find(Path(folder), [name], (place, ""))


def _need(folder: Path, names: Iterable[str], places: Iterable[str]) -> Path:
    path = files.find(folder, list(names), places)
    if path is None:
        raise files.missing(folder, names)
    return path


def _columns(path: Path, count: int) -> Iterator[tuple]:
    """Line number and columns of each line that is not blank."""
    for line, content in files.read_lines(path):
        if not content.strip():
            continue
        columns = content.split("\t")
        if len(columns) != count:
            raise DataError(path, line, f"{count} columns, tab-separated", content)
        yield line, *columns


def _read_words(path: Path) -> dict[str, str]:
    return {number: word for _, number, word in _numbered(path)}


def _numbered(path: Path) -> Iterator[tuple]:
    """Line, number and text of each line of a file that gives each number once."""
    seen = set()
    for line, number, text in _columns(path, 2):
        if number in seen:
            raise DataError(path, line, "each number once", number)
        seen.add(number)
        yield line, number, text
    if not seen:
        raise DataError(path, None, "at least one line", "no line")


def _decoded(text: str, words: dict[str, str], path: Path, line: int) -> str:
    try:
        return " ".join([words[number] for number in text.split()])
    except KeyError as error:
        raise DataError(path, line, "words of the vocabulary", error.args[0]) from None
