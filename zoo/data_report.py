"""What a data set holds, before anything is trained on it: sizes, doubtful pairs, and leaks between splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from zoo.data import DataError, Dataset, Group, Text
from zoo.evaluation import is_ranking
from zoo.splits import is_mixed, normalise

_COLUMNS = (
    ("groups", "groups"),
    ("pairs", "pairs"),
    ("positives", "positive"),
    ("without_positive", "no positive"),
    ("all_positive", "all positive"),
    ("candidates", "candidates"),
    ("empty_texts", "empty"),
    ("duplicate_pairs", "repeated"),
    ("contradictory_pairs", "contradictory"),
)

_FEW = 30  # queries, of which one moves a figure by more than two papers differ


@dataclass(frozen=True)
class SplitReport:
    """Counts of one split; texts are compared without regard to case and white space.

    Attributes:
        groups, pairs, positives: how many there are; a label above 0 is positive.
        without_positive, all_positive: groups that no ranking can get right, or wrong.
        min_candidates, mean_candidates, max_candidates: per group.
        empty_texts: queries and candidates without any character but white space.
        duplicate_pairs: rows that repeat a query, candidate and label, beyond the first.
        contradictory_pairs: pairs of query and candidate that have several labels.
    """

    groups: int
    pairs: int
    positives: int
    without_positive: int
    all_positive: int
    min_candidates: int
    mean_candidates: float
    max_candidates: int
    empty_texts: int
    duplicate_pairs: int
    contradictory_pairs: int

    @property
    def candidates(self) -> str:
        """Least, mean and most candidates of a group in one word, ``5..5.0..5``."""
        return f"{self.min_candidates}..{self.mean_candidates:.1f}..{self.max_candidates}"


@dataclass(frozen=True)
class Overlap:
    """What two splits share.

    Attributes:
        first, second: the splits.
        queries: query texts that are in both.
        pairs: pairs of query and candidate that are in both, in either role.
        example: one of the shared queries, or a query of the shared pairs; empty where nothing is shared.
    """

    first: str
    second: str
    queries: int
    pairs: int
    example: str


@dataclass(frozen=True)
class Report:
    """The result of `report`.

    Attributes:
        name: the data set's.
        splits: split to its counts.
        overlaps: what each two splits share, but for two that are trained on.
        small: one sentence for each split that is scored and has little to tell models apart by.
    """

    name: str
    splits: dict[str, SplitReport]
    overlaps: tuple[Overlap, ...]
    small: tuple[str, ...] = ()

    @property
    def leaks(self) -> list[str]:
        """One sentence for each two splits that share queries or pairs."""
        return [
            f"{overlap.first} and {overlap.second} share {overlap.queries} queries and {overlap.pairs} pairs, "
            f"e.g. {overlap.example[:50]!r}."
            for overlap in self.overlaps
            if overlap.queries or overlap.pairs
        ]

    def lines(self) -> list[str]:
        """A table with a row for each split, then the leaks."""
        rows = [["split", *(title for _, title in _COLUMNS)]]
        for split, counts in self.splits.items():
            rows.append([split, *(str(getattr(counts, attribute)) for attribute, _ in _COLUMNS)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        legend = (
            "candidates: least, mean and most of a group; repeated: rows beyond the first with one query, candidate "
            "and label; contradictory: pairs with several labels"
        )
        return [*table, legend, *(self.leaks or ["No query or pair is in two splits."])]


def report(dataset: Dataset) -> Report:
    """Count a data set's splits and compare them with one another."""
    # Texts are numbered as they are compared: pools of hundreds repeat the same texts over and over.
    numbers: dict[str, int] = {}
    number = cache(lambda text: numbers.setdefault(normalise(text), len(numbers)))
    pairs = {split: _pairs(groups, number) for split, groups in dataset.splits.items()}
    empty = numbers.get("", -1)
    splits = {split: _count(groups, pairs[split], empty) for split, groups in dataset.splits.items()}
    queries = {split: {query for query, _ in labels} for split, labels in pairs.items()}
    every = {split: {text for pair in labels for text in pair} for split, labels in pairs.items()}
    texts = list(numbers)
    overlaps = []
    for first, second in combinations(dataset.splits, 2):
        if {first, second} <= set(dataset.training_splits):
            continue  # a corpus to pre-train on may hold the training texts
        shared = queries[first] & queries[second]
        common = every[first] & every[second]

        def unordered(split, common=common):
            return {frozenset(pair): pair for pair in pairs[split] if pair[0] in common and pair[1] in common}

        in_first, in_second = unordered(first), unordered(second)
        shared_pairs = in_first.keys() & in_second.keys()
        examples = shared or {in_first[pair][0] for pair in shared_pairs}
        example = min((texts[query] for query in examples), default="")
        overlaps.append(Overlap(first, second, len(shared), len(shared_pairs), example))
    return Report(dataset.name, splits, tuple(overlaps), tuple(_small(dataset)))


def _small(dataset):
    ranking = is_ranking(dataset)
    what = "queries with a right and a wrong candidate" if ranking else "pairs"
    for split in dataset.scored_splits:
        groups = dataset.splits[split]
        count = sum(map(is_mixed, groups)) if ranking else len(groups)
        if count < _FEW:
            yield f"Figures of {split} are rough: it has few {what} ({count})."


def check_strict(report: Report) -> None:
    """Refuse a data set whose splits share queries or pairs.

    Raises:
        DataError: with the leaks.
    """
    if report.leaks:
        raise DataError(report.name, None, "splits that share no query and no pair (--strict)", report.leaks)


def check_classes(dataset: Dataset) -> None:
    """Refuse pairs of which nothing can be learnt, or no threshold tuned.

    Raises:
        DataError: if all pairs of train, or of dev, have one label.
    """
    for name in ("train", "dev"):
        found = {label > 0 for group in dataset.splits[name] for label in group.labels}
        if len(found) == 1:
            label = "a match" if found.pop() else "none"
            raise DataError(dataset.name, None, f"matches and other pairs in {name}", f"{label} in every pair")


def check_rankable(dataset: Dataset) -> None:
    """Refuse splits on which every ranking looks the same.

    Raises:
        DataError: if a split that is scored has no query with both a relevant and another candidate.
    """
    for name in dataset.scored_splits:
        groups = dataset.splits[name]
        if not any(label <= 0 for group in groups for label in group.labels):
            raise DataError(
                dataset.name,
                None,
                f"wrong candidates (label 0) beside the right ones in {name}: a model learns to tell them apart",
                "label 1 for all pairs",
            )
        if not any(is_mixed(group) for group in groups):
            raise DataError(
                dataset.name,
                None,
                f"a query in {name} that has both a right and a wrong candidate, since all else ranks alike "
                "(are pairs of one query given the same query, or the same group?)",
                f"{len(groups)} queries, {sum(len(group.labels) for group in groups)} pairs",
            )


def _pairs(groups: list[Group], number: Callable[[Text], int]) -> dict[tuple[int, int], list[float]]:
    """The labels of each pair of query and candidate, by their numbers."""
    labels: dict[tuple[int, int], list[float]] = {}
    for group in groups:
        query = number(group.query)
        for candidate, label in zip(group.candidates, group.labels, strict=True):
            labels.setdefault((query, number(candidate)), []).append(label)
    return labels


def _count(groups: list[Group], pairs: dict[tuple[int, int], list[float]], empty_text: int) -> SplitReport:
    sizes = [len(group.labels) for group in groups]
    positives = [sum(label > 0 for label in group.labels) for group in groups]
    empty = sum(not normalise(group.query) for group in groups)
    empty += sum(len(labels) for (_, candidate), labels in pairs.items() if candidate == empty_text)
    return SplitReport(
        groups=len(groups),
        pairs=sum(sizes),
        positives=sum(positives),
        without_positive=sum(count == 0 for count in positives),
        all_positive=sum(count == size > 0 for count, size in zip(positives, sizes, strict=True)),
        min_candidates=min(sizes, default=0),
        mean_candidates=sum(sizes) / max(1, len(sizes)),
        max_candidates=max(sizes, default=0),
        empty_texts=empty,
        duplicate_pairs=sum(len(labels) - len(set(labels)) for labels in pairs.values()),
        contradictory_pairs=sum(len(set(labels)) > 1 for labels in pairs.values()),
    )
