"""The paper's table beside what was measured."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from pathlib import Path

import numpy as np

from zoo.data import Dataset
from zoo.evaluation import evaluate, tuned_threshold
from zoo.runs import Run, read_predictions

# A row of a table: metric to (mean, deviation over seeds, number of seeds).
Row = dict[str, tuple[float, float, int]]


def finished_runs(root: Path, recipe: str, content: str | None = None) -> list[Run]:
    """All whole runs of a recipe, or those on data of one content, the newest last; trials of a search are left out.

    What cannot be read, and a training that was interrupted or diverged, is no finished run.
    """
    found = []
    files = [file for file in (root / recipe).glob("*/recipe.json") if not file.parent.is_symlink()]
    for file in sorted(files, key=lambda file: file.stat().st_mtime):
        try:
            run = Run(file.parent)
        except (ValueError, OSError):
            continue
        training = run.metrics["training"]
        is_alike = content in (None, run.settings["data"]["content"])
        if is_alike and not (training["interrupted"] or training["diverged"]):
            found.append(run)
    return found


def measured_rows(runs: list[Run], split: str = "test") -> dict[str, Row]:
    """Mean and deviation over seeds of each model's newest setting.

    Args:
        runs: runs of one recipe, the newest last. Only those on the newest run's data are looked at.
        split: which split's metrics.

    Returns:
        Model name to row.
    """
    if not runs:
        return {}
    content = runs[-1].settings["data"]["content"]
    settings, by_setting = {}, defaultdict(dict)
    for run in runs:
        if run.settings["data"]["content"] != content:
            continue
        knobs = {name: value for name, value in run.settings["knobs"].items() if name != "seed"}
        start = run.settings.get("start")
        setting = json.dumps([knobs, list(run.settings["embeddings"]["files"]), start], sort_keys=True)
        settings[run.settings["model"]] = setting
        by_setting[setting][run.settings["seed"]] = run.metrics[split]
    return {model: _row(list(by_setting[setting].values())) for model, setting in settings.items()}


def _row(metrics: list[dict]) -> Row:
    return {
        name: (float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))
        for name in metrics[0]
        if not name.startswith("num_")
        for values in [[one[name] for one in metrics]]
    }


def averaged(runs: list[Run], dataset: Dataset) -> dict[str, float]:
    """The data set's metrics, of its last split, of the mean of several runs' scores.

    Args:
        runs: runs on ``dataset``, for instance of one setting with several seeds.
        dataset: what they were scored on.
    """
    split = dataset.scored_splits[-1]
    total = dict.fromkeys(("dev", split), 0.0)
    for run in runs:
        scores = {name: array("d") for name in total}
        for row in read_predictions(run.folder):  # may be millions, with their texts
            if row["split"] in scores:
                scores[row["split"]].append(float(row["score"]))
        total = {name: total[name] + np.array(scores[name]) for name in total}

    def mean(name):
        sizes = [len(group.labels) for group in dataset.splits[name]]
        return np.split(total[name] / len(runs), np.cumsum(sizes)[:-1])

    return evaluate(dataset, split, mean(split), tuned_threshold(dataset, mean("dev")))


def published_beside(run: Run, published: dict) -> dict:
    """A recipe's published figures, or none if the run is of other data than the paper's."""
    return published if run.settings["data"].get("in_paper", True) else {}  # runs of before do not tell


def published_on(published: dict, split: str) -> dict[str, dict[str, float]]:
    """A recipe's published table of one split: it holds one for each, by name, or the only one."""
    one_each = any(isinstance(cell, dict) for row in published.values() for cell in row.values())
    return published.get(split, {}) if one_each else published


def table(published: dict[str, dict[str, float]], measured: dict[str, Row], metrics: tuple[str, ...]) -> str:
    """A text table: one line per model, for each metric the published figure, if there is one, and the measured.

    Args:
        published: model to metric to value, as fractions.
        measured: model to row.
        metrics: the columns.
    """
    models = list(dict.fromkeys([*published, *measured]))
    width = max([len("model"), *map(len, models)])
    # Data of one's own has no paper.
    in_paper = {name for row in published.values() for name in row}
    header = "model".ljust(width)
    for name in metrics:
        header += f"  {name + ' paper':>11}  {'measured':>18}" if name in in_paper else f"  {name:>18}"
    lines = [header, "-" * len(header)]
    for model in models:
        line = model.ljust(width)
        for name in metrics:
            if name in in_paper:
                paper = published.get(model, {}).get(name)
                line += f"  {'' if paper is None else f'{paper:.4f}':>11}"
            line += f"  {_number(measured.get(model, {}).get(name)):>18}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _number(cell) -> str:
    if cell is None:
        return ""
    mean, deviation, seeds = cell
    return f"{mean:.4f}" if seeds == 1 else f"{mean:.4f} ±{deviation:.4f} ({seeds})"
