"""All recipes, the published figure beside the newest measured one: ``python -m recipes [--runs DIR]``."""

import importlib
import pkgutil
import sys
from pathlib import Path

import recipes
from zoo import comparison, tuning
from zoo.arguments import Parser


def modules():
    """Every module of the package that defines a recipe, by name."""
    names = [module.name for module in pkgutil.iter_modules(recipes.__path__) if module.name != "__main__"]
    loaded = {name: importlib.import_module(f"recipes.{name}") for name in names}
    return {name: module for name, module in loaded.items() if hasattr(module, "recipe")}


def main(arguments=None):
    """Prints one table per recipe; returns the exit code."""
    parser = Parser("python -m recipes", description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="where runs were written")
    flags = parser.parse_args(arguments)
    for name, module in modules().items():
        print(f"{name}: {module.__doc__.splitlines()[0]}")
        runs = comparison.finished_runs(flags.runs, name)
        # The published rows may depend on a knob, as TrecQA's on the training set.
        recipe = module.recipe(tuning.hyperparameters(**runs[-1].settings["knobs"] if runs else {}))
        of_paper = comparison.published_beside(runs[-1], recipe.published) if runs else recipe.published
        tests = runs[-1].splits[1:] if runs else [name for name in ("test1", "test2") if name in recipe.published]
        for split in tests or ["test"]:
            published = comparison.published_on(of_paper, split)
            if runs:
                data = runs[-1].settings["data"]
                metrics = [metric for metric in runs[-1].metrics[split] if not metric.startswith("num_")]
                made_up = ", made up: not comparable to the paper's" if data["sample"] else ""
                print(f"measured on {data['name']}, {split}{made_up}")
                print(comparison.table(published, comparison.measured_rows(runs, split), metrics))
            elif published:
                metrics = list(dict.fromkeys(metric for row in published.values() for metric in row))
                print(comparison.table(published, {}, metrics))
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
