"""What a data set is: groups of one query, its candidates and their labels.

One shape serves every task. Answer selection has a list of candidates per query; a pair task (paraphrase,
similarity) has lists of one. A text is a tuple of fields: most data sets have the one field ``text``,
question retrieval has ``title`` and ``body``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from zoo.metrics import Convention

Text = tuple[str, ...]


class DataError(ValueError):
    """A data file that does not hold what it must.

    Args:
        path: the file.
        line: 1-based line number, or None where the whole file is meant.
        expected: what must hold.
        received: what stands there; long values are cut.
    """

    def __init__(self, path: str | Path, line: int | None, expected: str, received: object):
        place = f"{path}:{line}" if line is not None else f"{path}"
        shown = repr(received)
        if len(shown) > 120:
            shown = shown[:117] + "..."
        super().__init__(f"{place}: expected {expected}. Received: {shown}")


class Group(NamedTuple):
    """One query with its candidates, in the order of the file.

    Attributes:
        id: unique within its split; names the query in ``predictions.tsv``.
        query: the query's fields.
        candidates: one tuple of fields per candidate.
        labels: one number per candidate, none below 0; for ranking, greater than 0 is relevant.
        judgements: a class per candidate beside its label, as SICK's entailment; empty where the data has none.
        search_scores: one number per candidate, larger is better: how the search engine that found the
            candidates ordered them; empty where none did.
    """

    id: str
    query: Text
    candidates: tuple[Text, ...]
    labels: tuple[float, ...]
    judgements: tuple[str, ...] = ()
    search_scores: tuple[float, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """Splits of groups and how they are scored.

    Attributes:
        name: as in the tables, e.g. ``"TrecQA (TRAIN-ALL)"``.
        splits: ``train``, ``dev`` and those that are only scored (``test``, or ``test1`` and ``test2``); the
            name of a further split to train on begins with ``train``, of one to pre-train on with ``pretrain``;
            ``heldout`` is what pre-training measures itself on.
        convention: how ranking metrics treat ties and queries without a positive.
        metrics: the metrics that are reported, see `zoo.evaluation`; the first one chooses the epoch.
        fields: the names of a text's fields.
        scale: lowest and highest label, where labels are values on a scale.
        files: the files that were read, for the run's fingerprints.
        notes: what a reader of the figures must know (own split, missing part), one sentence each.
        in_paper: whether figures that a recipe has from a paper are of this data.
    """

    name: str
    splits: dict[str, list[Group]]
    convention: Convention
    metrics: tuple[str, ...]
    fields: tuple[str, ...] = ("text",)
    scale: tuple[float, float] = (0.0, 1.0)
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    in_paper: bool = True

    @property
    def training_splits(self) -> tuple[str, ...]:
        """The splits that models learn from, and whose words are known."""
        return tuple(name for name in self.splits if name.startswith(("train", "pretrain")))

    @property
    def scored_splits(self) -> tuple[str, ...]:
        """The splits that figures are reported of, dev first; the last one stands beside the paper's."""
        return tuple(name for name in self.splits if name not in (*self.training_splits, "heldout"))
