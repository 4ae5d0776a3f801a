"""Figure 1 and Table 1 of Tomar et al. 2017 out of finished runs of `recipes.decatt_quora`.

    python -m recipes.decatt_quora --data DIR --curve --seeds 3
    python -m recipes.decatt_figures [--runs DIR] [--out FOLDER]

Writes figure_1.svg, dev accuracy by the number of training pairs, with and without pre-training (the former with
self-attention, as in the paper, unless the runs say otherwise); prints Table 1: the answer of each model's newest run
to the paper's six pairs, Y for a match.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from recipes.decatt_quora import EXAMPLES
from zoo import comparison, figures
from zoo.arguments import Parser

CURVES = {"decatt_char": "not pretrained", "pt_decatt_char": "pretrained"}


def main(arguments=None):
    """Draws and prints; returns the exit code."""
    parser = Parser("python -m recipes.decatt_figures", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="where runs were written")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="where figure_1.svg goes")
    flags = parser.parse_args(arguments)
    runs = comparison.finished_runs(flags.runs, "decatt_quora")
    if not runs:
        parser.error(f"there must be finished runs of decatt_quora. Received: --runs {flags.runs}")
    # What was trained on the data of one run: the newest, and of the made-up sample only if there is no other.
    data = max(runs[::-1], key=lambda run: not run.settings["data"]["sample"]).settings["data"]
    runs = [run for run in runs if run.settings["data"]["content"] == data["content"]]
    print(f"runs on {data['name']}")
    if drawn := curves(runs):
        flags.out.mkdir(parents=True, exist_ok=True)
        figures.learning_curves(drawn, "dev accuracy", data["name"]).savefig(flags.out / "figure_1.svg")
        print(f"wrote {flags.out / 'figure_1.svg'}")
    else:
        print(f"no figure 1: it is drawn of runs of {' and '.join(CURVES)}, and there are none")
    print(table_1(runs))
    return 0


def curves(runs):
    """Name of a curve to number of training pairs to the dev accuracy of each seed's newest run.

    The runs of a curve have the knobs of its newest one, and start from where that starts; one that is not pre-trained
    starts from nowhere.
    """

    def setting(run):
        knobs = {name: value for name, value in run.settings["knobs"].items() if name != "train_pairs"}
        return knobs, run.settings.get("start")

    found = defaultdict(lambda: defaultdict(dict))
    curve = {run.folder: CURVES.get(_row_of(run)[0]) for run in runs}
    newest = {curve[run.folder]: setting(run) for run in runs}
    for run in runs:
        name = curve[run.folder]
        if name and setting(run) == newest[name]:
            count = run.metrics["training"]["num_train"] // (1 + run.settings["knobs"]["both_orders"])
            found[name][count][run.settings["seed"]] = run.metrics["dev"]["accuracy"]
    return {
        name: {count: list(seeds.values()) for count, seeds in points.items()} for name, points in sorted(found.items())
    }


def _row_of(run):
    """Name of the row, and how many training pairs it has."""
    name = run.settings["model"]
    count = run.settings["knobs"].get("train_pairs", 0)
    return name.replace(f", {count:,} pairs", ""), count or float("inf")


def table_1(runs):
    """The six pairs, one line per model, as the paper's columns."""
    newest = {run.settings["model"]: run for run in sorted(runs, key=_row_of)}
    queries, candidates, labels = zip(*EXAMPLES, strict=True)
    width = max(map(len, [*newest, "right"]))
    lines = [
        *(
            f"{letter}  {query}\n   {candidate}"
            for letter, query, candidate in zip("ABCDEF", queries, candidates, strict=True)
        ),
        f"{'':{width}}  A B C D E F",
        f"{'right':{width}}  {' '.join('NY'[label] for label in labels)}",
    ]
    for model, run in newest.items():
        scores = run.score([(text,) for text in queries], [(text,) for text in candidates])
        lines.append(f"{model:{width}}  {' '.join('NY'[int(score >= run.threshold)] for score in scores)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
