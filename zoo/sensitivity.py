"""How the figures depend on the knobs: ``report.html`` of a search, one curve per knob and scored split."""

from __future__ import annotations

import html
import io
from pathlib import Path

import numpy as np

from zoo.runs import Run

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto }}
td, th {{ padding: 0 .9rem .25rem 0; text-align: right }} svg {{ max-width: 100%; height: auto }}</style>
<h1>{title}</h1>
<p>{metric} of {count} trials, best first. A curve is the mean over the trials with one value.</p>
{curves}
<table>{rows}</table>
</html>
"""


def searched(found: list[Run]) -> list[str]:
    """The knobs in which the trials differ."""
    names = dict.fromkeys(name for run in found for name in run.settings["knobs"])
    return [name for name in names if len({str(run.settings["knobs"].get(name)) for run in found}) > 1]


def write(found: list[Run], folder: Path, metric: str) -> Path:
    """Writes the report of a search into its folder.

    Args:
        found: the trials' runs, the best first.
        folder: where ``report.html`` goes.
        metric: what is drawn.
    """
    names, splits = searched(found), found[0].splits
    rows = [[*names, *splits]]
    for run in found:
        knobs = [run.settings["knobs"].get(name, "–") for name in names]  # a trial's model may not have it
        knobs = [f"{knob:.4g}" if isinstance(knob, float) else str(knob) for knob in knobs]
        rows.append([*knobs, *(f"{run.metrics[split][metric]:.4f}" for split in splits)])
    cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    settings = found[0].settings
    page = _PAGE.format(
        title=html.escape(f"{settings['recipe']}: search of {settings['model']} on {settings['data']['name']}"),
        metric=html.escape(metric),
        count=len(found),
        curves=_curves(found, names, splits, metric) if names else "",
        rows="".join(f"<tr>{row}</tr>\n" for row in cells),
    )
    path = folder / "report.html"
    path.write_text(page, "utf-8")
    return path


def _curves(found, names, splits, metric):
    from matplotlib.figure import Figure  # slow to import, and only needed here

    figure = Figure(figsize=(9, 3 * -(-len(names) // 2)), layout="constrained")
    axes = figure.subplots(-(-len(names) // 2), 2, squeeze=False).ravel()
    for place, name in zip(axes, names, strict=False):
        drawn = [run for run in found if name in run.settings["knobs"]]
        values = sorted({run.settings["knobs"][name] for run in drawn}, key=lambda value: (str(type(value)), value))
        numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        for split in splits:
            means = [
                np.mean([run.metrics[split][metric] for run in drawn if run.settings["knobs"][name] == value])
                for value in values
            ]
            place.plot(values if numeric else [str(value) for value in values], means, marker="o", label=split)
        place.set(xlabel=name, ylabel=metric)
        place.grid(alpha=0.3)
        place.legend()
    for place in axes[len(names) :]:
        place.set_visible(False)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
