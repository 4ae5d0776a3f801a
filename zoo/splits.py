"""Splitting by whole queries, and what counts as the same query."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from zoo.data import DataError, Group, Text

SEED = 2018  # of every split that is drawn; apart from a run's seed, so that all seeds of a run share one split


def normalise(text: Text) -> str:
    """A text as it is compared: fields joined, case folded, runs of white space made one space."""
    return " ".join(" ".join(text).casefold().split())


def pair_key(query: Text, candidate: Text) -> frozenset[str]:
    """What a pair and the same pair the other way round have in common."""
    return frozenset((normalise(query), normalise(candidate)))


def pair_keys(groups: Iterable[Group]) -> set[frozenset[str]]:
    """The keys of pairs, that is, of groups of one candidate."""
    return {pair_key(group.query, *group.candidates) for group in groups}


def without(groups: Iterable[Group], others: Iterable[Group]) -> list[Group]:
    """The pairs that are not among others, in either order."""
    known = pair_keys(others)
    return [group for group in groups if pair_key(group.query, *group.candidates) not in known]


def is_mixed(group: Group) -> bool:
    """Whether a group has a positive and another candidate, so that its ranking can be right or wrong."""
    positive = [label > 0 for label in group.labels]
    return any(positive) and not all(positive)


def hold_out(groups: Sequence[Group], count: int, seed: int) -> tuple[list[Group], list[Group]]:
    """Draw ``count`` groups by whole queries: ``(kept, held out)``, each in the order given.

    Groups with the same query text stay on one side. The draw depends on the seed and the texts alone, not on
    the order of the file. Mixed queries are drawn in proportion, at least one where there are two or more,
    and one always stays. Where texts repeat, the count is met as nearly as whole queries allow.

    Raises:
        ValueError: fewer than two distinct queries, or a count below 1.
    """
    units: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        units.setdefault(normalise(group.query), []).append(index)
    if len(units) < 2:
        raise ValueError(
            "at least 2 distinct queries must be there to hold one out. "
            f"Received: number of distinct queries={len(units)}"
        )
    if count < 1:
        raise ValueError(f"count must be at least 1. Received: count={count!r}")

    def drawn_at(text: str) -> bytes:
        return hashlib.blake2b(f"{seed}\n{text}".encode("utf-8", "surrogatepass")).digest()

    order = sorted(units, key=drawn_at)
    mixed = [units[text] for text in order if any(is_mixed(groups[index]) for index in units[text])]
    other = [units[text] for text in order if not any(is_mixed(groups[index]) for index in units[text])]
    num_mixed = sum(map(len, mixed))
    share = max(1, round(count * num_mixed / len(groups)))
    # The last mixed query stays, for training to see one; the last of the others only if none is mixed.
    held = _take(mixed[: len(mixed) - 1], min(share, count))
    held += _take(other if mixed else other[: len(other) - 1], count - len(held))
    chosen = set(held)
    kept = [group for index, group in enumerate(groups) if index not in chosen]
    return kept, [groups[index] for index in sorted(chosen)]


def hold_out_of(path: Path, expected: str, groups: Sequence[Group], count: int, seed: int):
    """`hold_out` of the groups of a file.

    Raises:
        DataError: fewer than two distinct queries; it names the file and what was expected.
    """
    try:
        return hold_out(groups, count, seed)
    except ValueError as error:
        raise DataError(path, None, expected, error) from error


def _take(units: list[list[int]], count: int) -> list[int]:
    taken: list[int] = []
    for unit in units:
        if len(taken) + len(unit) <= count:
            taken += unit
    return taken or (units[0] if units and count > 0 else [])
