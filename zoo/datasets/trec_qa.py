"""TrecQA: factoid questions of TREC QA 8 to 13 and the newspaper sentences that may answer them.

Compiled by Wang, Smith and Mitamura (2007), released in this form by Yao et al. (2013); used by CTRN (Tay,
Tuan and Hui, 2018). Raw queries are scored as trec_eval -c does: every query that has candidates counts, one
without a positive as zero. ``clean=True`` keeps dev and test queries that have both kinds of candidates.

| split     | queries | with candidates | pairs | positive |
|-----------|---------|-----------------|-------|----------|
| TRAIN     | 94      | 93              | 4718  | 348      |
| TRAIN-ALL | 1229    | 1229            | 53417 | 6403     |
| DEV       | 82      | 81, clean 65    | 1148  | 222      |
| TEST      | 100     | 95, clean 68    | 1517  | 284      |

Where to get it: https://github.com/castorini/data (``TrecQA``; the XML-like files), the token folders of
https://github.com/castorini/NCE-CNN-Torch (``data/TrecQA``), and the text of TRAIN-ALL in
https://github.com/xuchen/jacana (``tree-edit-data/answerSelectionExperiments``). Licence: none is stated.

Files, plain or ``.gz``, each split from the first that is found; the XML-like files keep the case:

1. ``TRAIN.xml``, ``TRAIN-ALL.xml``, ``DEV.xml``, ``TEST.xml``, also in ``jacana_xml/``: blocks
   ``<QApairs id='..'>`` with ``<question>``, ``<positive>`` and ``<negative>``, whose first line holds the
   tokens. It is no XML.
2. TRAIN-ALL only: ``train_all.derived.tsv``, lines ``query id, label, question, answer``.
3. ``train/``, ``train-all/``, ``raw-dev/``, ``raw-test/`` (``clean-dev/``, ``clean-test/`` for clean splits),
   also in ``castorini/``: the line-parallel ``a.toks``, ``b.toks``, ``sim.txt``, ``id.txt``; lower case.
4. TRAIN-ALL only: jacana's ``Train1-2393.{Question,Positive-M,Negative-M}.POSInput``, also in
   ``trainall_jacana/``; 7 labels differ from castorini's.

A text is its tokens with one space between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from zoo import files
from zoo.data import DataError, Dataset, Group
from zoo.metrics import Convention
from zoo.splits import is_mixed

# As it is read: line, query id, question, answer or None where a query has no candidate, label.
_Row = tuple[int, str, str, str | None, float]

_XML = {"train": "TRAIN.xml", "all": "TRAIN-ALL.xml", "dev": "DEV.xml", "test": "TEST.xml"}
_TOKENS = {"train": "train", "all": "train-all", "dev": "raw-dev", "test": "raw-test"}
_TOKEN_FILES = ("a.toks", "b.toks", "sim.txt", "id.txt")
_TABLE = "train_all.derived.tsv"
_POS_INPUT = (
    ("Train1-2393.Question.POSInput",),
    ("Train1-2393.Positive-M.POSInput.cleaned", "Train1-2393.Positive-M.POSInput"),
    ("Train1-2393.Negative-M.POSInput",),
)


def load(folder: str | Path, train_set: str = "train", clean: bool = False) -> Dataset:
    """Read TRAIN or TRAIN-ALL with DEV and TEST; the module's docstring says which files are looked for.

    Args:
        folder: where the files lie.
        train_set: ``"train"`` (TRAIN) or ``"all"`` (TRAIN-ALL).
        clean: keep only dev and test queries with a positive and a negative.

    Raises:
        DataError: no file is there for a split, or one does not hold what it must.
        ValueError: ``train_set`` is neither.
    """
    if train_set not in ("train", "all"):
        raise ValueError(f"train_set must be 'train' or 'all'. Received: train_set={train_set!r}")
    splits, paths, notes = {}, [], []
    for split, part in (("train", train_set), ("dev", "dev"), ("test", "test")):
        rows, read = _read(Path(folder), part, clean and split != "train")
        groups, num_empty = _groups(rows, read[0])
        if num_empty:
            notes.append(f"Queries without candidates, left out of {split}: {num_empty}.")
        if clean and split != "train":
            groups = [group for group in groups if is_mixed(group)]
        splits[split] = groups
        paths += read
    name = f"TrecQA ({'TRAIN-ALL' if train_set == 'all' else 'TRAIN'}{', clean' if clean else ''})"
    convention = Convention(ties="pessimistic", without_positive="zero")
    return Dataset(name, splits, convention, ("map", "mrr"), files=tuple(paths), notes=tuple(notes))


def write(splits: dict[str, list[Group]], folder: str | Path) -> None:
    """Write ``TRAIN.xml``, ``TRAIN-ALL.xml``, ``DEV.xml`` and ``TEST.xml`` in the XML-like form.

    ``splits`` has the keys ``train``, ``dev``, ``test``, and ``train-all`` where that differs from ``train``.
    The four lines of tags and dependencies below the tokens hold only ``-``. What is lost: runs of white
    space become one space, quotes in ids a space, fields are joined.
    """
    named = {"TRAIN": splits["train"], "TRAIN-ALL": splits.get("train-all", splits["train"])}
    named |= {split.upper(): splits[split] for split in ("dev", "test")}
    for name, groups in named.items():
        files.write_lines(Path(folder) / f"{name}.xml", _xml_lines(groups))


def _xml_lines(groups: Iterable[Group]) -> Iterator[str]:
    for group in groups:
        yield f"<QApairs id='{files.one_line(group.id, chr(39))}'>"
        yield from _xml_block("question", group.query)
        for candidate, label in zip(group.candidates, group.labels, strict=True):
            yield from _xml_block("positive" if label > 0 else "negative", candidate)
        yield "</QApairs>"


def _xml_block(tag: str, text: tuple[str, ...]) -> list[str]:
    tokens = files.one_line(text).split(" ")
    return [f"<{tag}>", "\t".join(tokens), *["\t".join("-" * len(tokens))] * 4, f"</{tag}>"]


def _read(folder: Path, part: str, clean: bool) -> tuple[Iterator[_Row], list[Path]]:
    xml = files.find(folder, [_XML[part]], ("", "jacana_xml"))
    if xml:
        return _xml_rows(xml), [xml]
    table = files.find(folder, [_TABLE]) if part == "all" else None
    if table:
        return _table_rows(table), [table]
    names = [_TOKENS[part]]
    if clean:
        names.append(_TOKENS[part].replace("raw", "clean"))
    for name in names:
        paths = [files.find(folder, [file], (name, f"castorini/{name}")) for file in _TOKEN_FILES]
        if all(paths):
            return _token_rows(*paths), paths
    looked_for = [_XML[part], *(f"{name}/{file}" for name in names for file in _TOKEN_FILES)]
    if part == "all":
        paths = [files.find(folder, names, ("", "trainall_jacana")) for names in _POS_INPUT]
        if all(paths):
            return _pos_input_rows(*paths), paths
        looked_for += [_TABLE, *(names[0] for names in _POS_INPUT)]
    raise files.missing(folder, looked_for)


def _groups(rows: Iterable[_Row], path: Path) -> tuple[list[Group], int]:
    questions: dict[str, str] = {}
    candidates: dict[str, list[tuple[str, float]]] = {}
    for number, identifier, question, answer, label in rows:
        if questions.setdefault(identifier, question) != question:
            raise DataError(path, number, f"one question with the id {identifier!r}", question)
        listed = candidates.setdefault(identifier, [])
        if answer is not None:
            listed.append((answer, label))
    groups = [
        Group(
            identifier,
            (questions[identifier],),
            tuple((answer,) for answer, _ in listed),
            tuple(label for _, label in listed),
        )
        for identifier, listed in candidates.items()
        if listed
    ]
    if not groups:
        raise DataError(path, None, "at least one question with a candidate", "none")
    return groups, len(candidates) - len(groups)


def _xml_rows(path: Path) -> Iterator[_Row]:
    identifier = question = tag = None
    seen: set[str] = set()
    start = 0
    lines = files.read_lines(path)
    for number, line in lines:
        line = line.strip()
        if not line:
            continue
        if line.startswith("<QApairs id=") and line.endswith(">") and identifier is None:
            identifier, question, num_rows = line[len("<QApairs id=") : -1].strip("'\""), None, 0
            start = number
            if identifier in seen:
                raise DataError(path, number, "an id that was not there before", identifier)
            seen.add(identifier)
        elif line == "</QApairs>" and identifier is not None:
            if question is None:
                raise DataError(path, number, f"<question> in the block of id {identifier!r}", line)
            if not num_rows:
                yield number, identifier, question, None, 0.0
            identifier = None
        elif line in ("<question>", "<positive>", "<negative>") and identifier is not None:
            tag = line[1:-1]
            text = _first_line(lines, tag, path, number)
            if tag == "question":
                question = text
            elif question is None:
                raise DataError(path, number, "<question> before the candidates", line)
            else:
                num_rows += 1
                yield number, identifier, question, text, float(tag == "positive")
        else:
            raise DataError(path, number, "<QApairs id='..'>, <question>, <positive>, <negative> or an end", line)
    if identifier is not None:
        raise DataError(path, start, "</QApairs> below", "the end of the file")


def _first_line(lines: Iterator[tuple[int, str]], tag: str, path: Path, start: int) -> str:
    text = None
    for _, line in lines:
        if line.strip() == f"</{tag}>":
            return text or ""
        if text is None:
            text = files.one_line(line)
    raise DataError(path, start, f"</{tag}> below", "the end of the file")


def _table_rows(path: Path) -> Iterator[_Row]:
    for number, line in files.read_lines(path):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 4:
            raise DataError(path, number, "4 columns: query id, label, question, answer", line)
        identifier, label, question, answer = columns
        yield number, identifier, question, answer, _label(label, path, number)


def _token_rows(a_toks: Path, b_toks: Path, sim: Path, ids: Path) -> Iterator[_Row]:
    columns = [[line for _, line in files.read_lines(path)] for path in (a_toks, b_toks, sim, ids)]
    for path, column in zip((b_toks, sim, ids), columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise DataError(path, None, f"{len(columns[0])} lines, as {a_toks.name} has", len(column))
    for number, (question, answer, label, identifier) in enumerate(zip(*columns, strict=True), start=1):
        question, answer = files.one_line(question), files.one_line(answer)
        yield number, identifier.strip(), question, answer, _label(label, sim, number)


def _label(label: str, path: Path, number: int) -> float:
    if label.strip() not in ("0", "1"):
        raise DataError(path, number, "label 0 or 1", label)
    return float(label)


def _pos_input_rows(questions: Path, positives: Path, negatives: Path) -> Iterator[_Row]:
    answers: dict[str, list[tuple[str, float]]] = {}
    for path, label in ((positives, 1.0), (negatives, 0.0)):
        for _, identifier, texts in _pos_input_blocks(path, "A"):
            answers.setdefault(identifier, []).extend((text, label) for text in texts)
    for number, identifier, lines in _pos_input_blocks(questions, "Q"):
        question = " ".join(lines)  # one question spans two lines
        for answer, label in answers.get(identifier) or [(None, 0.0)]:
            yield number, identifier, question, answer, label


def _pos_input_blocks(path: Path, tag: str) -> Iterator[tuple[int, str, list[str]]]:
    identifier, start, texts = None, 0, []
    for number, line in files.read_lines(path):
        line = line.strip()
        if identifier is None and line.startswith(f"<{tag} ") and line.endswith(">"):
            identifier, start, texts = line[len(tag) + 1 : -1].strip(), number, []
        elif line == f"</{tag}>" and identifier is not None:
            yield start, identifier, texts
            identifier = None
        elif identifier is not None:
            texts.append(line)
        elif line:
            raise DataError(path, number, f"<{tag} number >", line)
    if identifier is not None:
        raise DataError(path, start, f"</{tag}> below", "the end of the file")
