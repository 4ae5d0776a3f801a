"""What a person reads of a run: ``report.html`` (one file, no network) and the model card ``README.md``."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import jinja2

from zoo.comparison import finished_runs, measured_rows, published_beside, published_on
from zoo.encoded import input_name
from zoo.runs import Run, read_predictions

_METRIC_NAMES = {"map": "MAP", "mrr": "MRR"}
_TIES = {
    "file": "equal scores keep the order of the file",
    "pessimistic": "equal scores count against the system",
    "average": "equal scores count as the mean over their orders",
}
_WITHOUT_POSITIVE = {
    "skip": "queries without a relevant candidate are left out",
    "zero": "queries without a relevant candidate count as zero",
    "error": "every query has a relevant candidate",
}


def write(run: Run, published: dict[str, dict[str, float]], data_lines: list[str], figures: dict) -> None:
    """Writes both files into the run's folder.

    Args:
        run: a finished run.
        published: the paper's table, see `zoo.comparison.published_on`; values are fractions.
        data_lines: the data report, one line each.
        figures: title to `matplotlib` figure, the model's own pictures.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=jinja2.select_autoescape(["html"]),
    )
    published = published_beside(run, published)
    metric_keys = [name for name in run.metrics[run.splits[-1]] if not name.startswith("num_")]
    columns = []
    for split in run.splits:
        columns.append((split, run.metrics[split]))
        # Most papers' figures are of test alone.
        told = published_on(published, split) if split != "dev" or "dev" in published else {}
        if told:
            columns.append((f"the paper, {split}", told.get(run.settings["model"], {})))
    history = _read_history(run.folder / "history.csv")
    content = {
        "settings": run.settings,
        "knobs": run.settings["knobs"],
        "columns": [heading for heading, _ in columns],
        "metrics": [
            (_METRIC_NAMES.get(name, name), [column.get(name) for _, column in columns]) for name in metric_keys
        ],
        "metric_keys": metric_keys,
        "splits": [(split, run.metrics[split]) for split in run.splits],
        "is_ranking": "num_queries" in run.metrics["dev"],
        "convention": ", ".join(
            [
                _TIES[run.metrics["convention"]["ties"]],
                _WITHOUT_POSITIVE[run.metrics["convention"]["without_positive"]],
            ]
            + (["ranks after {cutoff} are ignored"] if run.metrics["convention"]["cutoff"] else [])
        ).format(**run.metrics["convention"]),
        "training": run.metrics["training"],
        "data_lines": data_lines,
        "curves": _curves(history) if history else "",
        "figures": [(title, _svg(figure)) for title, figure in figures.items()],
        "examples": _missed(run),
        "far_off": _far_off(run) if run.settings["task"] == "regression" else [],
        "has_model": run.settings["module"] is not None,
        "others": _others(run),
    }
    for template, name in (("report.html", "report.html"), ("model_card.md", "README.md")):
        (run.folder / name).write_text(environment.get_template(template).render(content), "utf-8")


def _others(run):
    """The newest run of every other model on the same data that there is by now: name to metric to mean."""
    alike = finished_runs(run.folder.parent.parent, run.settings["recipe"], run.settings["data"]["content"])
    rows = measured_rows(alike, run.splits[-1])
    rows.pop(run.settings["model"], None)
    return {model: {name: mean for name, (mean, _, _) in row.items()} for model, row in rows.items()}


def _read_history(path):
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _curves(history) -> str:
    """Loss and dev metrics by epoch, as one SVG."""
    from matplotlib.figure import Figure  # slow to import, and only needed here

    figure = Figure(figsize=(9, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = [int(row["epoch"]) for row in history]
    left.plot(epochs, [float(row["loss"]) for row in history], marker="o", markersize=3)
    left.set(title="training loss", xlabel="epoch")
    for name in history[0]:
        if name.startswith("dev_"):
            label = name.removeprefix("dev_")
            right.plot(
                epochs,
                [float(row[name]) for row in history],
                marker="o",
                markersize=3,
                label=_METRIC_NAMES.get(label, label),
            )
    right.set(title="dev", xlabel="epoch")
    right.legend()
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    return _svg(figure)


def _svg(figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _last_rows(run):
    """The scored pairs of the last split, the fields of a text as one."""
    for row in read_predictions(run.folder):
        if row["split"] == run.splits[-1]:
            joined = {
                side: " | ".join(row[input_name(side, field, run.fields)] for field in run.fields)
                for side in ("query", "candidate")
            }
            yield row | joined


def _far_off(run, limit=10):
    """The pairs of the last split whose score is farthest from their label."""
    return sorted(_last_rows(run), key=lambda row: -abs(float(row["score"]) - float(row["label"])))[:limit]


def _missed(run, limit=10):
    """The queries of the last split whose best-scored candidate is wrong by the widest margin of score."""
    groups = {}
    for row in _last_rows(run):
        groups.setdefault(row["group"], []).append(row)
    missed = []
    for candidates in groups.values():
        ranked = sorted(candidates, key=lambda row: -float(row["score"]))
        right = [row for row in ranked if float(row["label"]) > 0]
        if right and float(ranked[0]["label"]) <= 0:
            missed.append((float(ranked[0]["score"]) - float(right[0]["score"]), ranked[0], right[0]))
    missed.sort(key=lambda entry: -entry[0])
    return [(wrong, right) for _, wrong, right in missed[:limit]]
