"""Pictures that more than one recipe draws; each is a `matplotlib` figure for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def literal(text: str) -> str:
    """A text as a picture shows it: matplotlib takes what stands between two dollars for a formula."""
    return text.replace("$", r"\$")


def heat_map(values: np.ndarray, rows: Sequence[str], columns: Sequence[str]):
    """A matrix of weights from 0 on as a picture, with a word beside each row and above each column."""
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(2 + 0.45 * len(columns), 1.5 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    # As dark as its own greatest weight: soft alignments stay far from 1.
    figure.colorbar(axes.imshow(values, cmap="Blues", vmin=0, aspect="auto"), ax=axes)
    axes.set_xticks(range(len(columns)), [literal(word) for word in columns], rotation=60, ha="left")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), [literal(word) for word in rows])
    return figure


def learning_curves(curves: Mapping[str, Mapping[int, Sequence[float]]], metric: str, title: str):
    """One line per name: the mean over seeds at each number of training examples, and the range of the seeds.

    Args:
        curves: name to number of examples to one value per seed.
        metric: what the values are.
        title: of the picture.
    """
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        counts = sorted(points)
        values = [points[count] for count in counts]
        least, most = min(map(len, values)), max(map(len, values))
        seeds = f"{most}" if least == most else f"{least} to {most}"
        label = f"{name}, mean of {seeds} seeds" if most > 1 else name
        (line,) = axes.plot(counts, [np.mean(value) for value in values], marker="o", label=label)
        axes.fill_between(
            counts, *([f(value) for value in values] for f in (min, max)), color=line.get_color(), alpha=0.2
        )
    axes.set(xscale="log", xlabel="training examples", ylabel=metric, title=literal(title))
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
