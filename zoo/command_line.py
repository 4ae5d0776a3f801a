"""The command line of every recipe: its knobs are its flags."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from zoo import comparison, data_report, distribution, files, runs, sensitivity, tuning, unfinished
from zoo.data import DataError, Dataset
from zoo.evaluation import direction, is_classification, is_ranking
from zoo.recipe import Options, Recipe
from zoo.recipe_flags import check_use, parser_of
from zoo.training import train

SAMPLE = "This is the built-in, made-up sample: its figures are not comparable to the paper's."


def main(
    recipe: Callable,
    doc: str,
    meanings: dict[str, str] | None = None,
    *,
    tables: dict[str, list[dict]] | None = None,
    add_data_flags: Callable[[argparse.ArgumentParser], None] | None = None,
    load: Callable[[argparse.Namespace, Recipe], Dataset | None] | None = None,
    command: list[str] | None = None,
) -> int:
    """Runs a recipe from the command line.

    Args:
        recipe: the recipe module's function of hyperparameters.
        doc: its docstring, shown as help.
        meanings: knob to what it means, shown as its help.
        tables: flag, without its dashes, to the knobs of each row that it trains; each row's `Recipe.model` is its
            name in the table. ``table``, every value of the knob ``model``, if not given.
        add_data_flags: adds the flags that say where the data lies; ``--data DIR`` if not given.
        load: from the parsed flags to the data set, None where the flags name none and the sample is meant.
        command: the flags, those of ``sys.argv`` if not given.

    Returns:
        The exit code: 0 done, 2 wrong use or data, 1 any other failure, 130 interrupted.
    """
    space = tuning.knobs(recipe)
    tables = tables or {"table": [{"model": model} for model in _models(space)]}
    parser = parser_of(doc, space, meanings or {}, tables)
    (add_data_flags or _data_flag)(parser)
    flags = parser.parse_args(command)
    values = {knob.name: getattr(flags, knob.name) for knob in space if getattr(flags, knob.name) is not None}
    try:
        asked = [name for name in tables if getattr(flags, name)]
        rows = [row for name in asked for row in tables[name]]
        check_use(parser, recipe, flags, values, rows, asked)
        _run(recipe, space, values, rows, flags, load or _load_folder)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if os.environ.get("PAIRZOO_TRACEBACK"):
            raise
        known = isinstance(error, DataError)
        kind = "" if known else f"{type(error).__name__}: "
        hint = "" if known else " (PAIRZOO_TRACEBACK=1 shows where)"
        print(f"error: {kind}{' '.join(str(error).split())}{hint}", file=sys.stderr)
        return 2 if known else 1
    return 0


def _models(space):
    return next(knob.values for knob in space if knob.name == "model")


def _data_flag(parser):
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data set; without it, a made-up sample")


def _load_folder(flags, recipe):
    return recipe.load(flags.data) if flags.data else None


def _run(recipe, space, values, rows, flags, load):
    # Devices are split before anything else touches them.
    strategy = distribution.strategy(flags.strategy, flags.replicas or 2)
    chosen: Recipe = recipe(tuning.hyperparameters(**values))
    try:
        dataset = load(flags, chosen)
    except OSError as error:  # whatever keeps files from being read
        raise DataError(error.filename or "data", None, "a readable file", error) from None
    sample = dataset is None
    if sample:
        print(SAMPLE)
        dataset = chosen.load(_written_sample(chosen, flags.runs / "samples"))
    print(f"data: {dataset.name}")
    report = data_report.report(dataset)
    print("\n".join(report.lines()))
    dataset = dataclasses.replace(dataset, notes=(*dataset.notes, *report.small))
    for note in dataset.notes:
        print(f"note: {note}")
    if flags.strict:
        data_report.check_strict(report)
    if is_ranking(dataset):
        data_report.check_rankable(dataset)
    if is_classification(dataset):
        data_report.check_classes(dataset)
    if sample:
        ours = {name: value for name, value in chosen.on_sample.items() if name not in values}
        print(f"set for the sample{', and so not searched' if flags.tune else ''}: {ours}")
    settings = {
        "flags": {name: value for name, value in vars(flags).items() if name not in ("runs", "fresh")},
        "data": [runs.content_fingerprint(dataset), runs.fingerprints(dataset.files)],
        "embeddings": runs.fingerprints(flags.embeddings),
    }
    with unfinished.command(flags.runs / chosen.name, settings, flags.fresh, partial(print, flush=True)) as folder:
        # Written down as well: `latest` is another run as soon as the first of this command is whole.
        start = runs.load(folder(unfinished.START, flags.start.resolve)) if flags.start else None
        if start and _ended_early(start):
            print(f"note: the training of {start.folder} did not end, what starts from it begins with its best epoch")
        options = Options(
            embeddings=tuple(flags.embeddings),
            strategy=strategy,
            start=start,
            bar=sys.stderr.isatty() and sys.stdout.isatty(),
            sample=sample,
            data_lines=tuple(report.lines()),
        )
        if flags.tune:
            _tune(recipe, dataset, flags, options, _settled(recipe, values, sample), folder)
        else:
            _train_rows(recipe, _models(space), dataset, flags, options, rows, values, folder)
    if sample:
        print(SAMPLE)


def _settled(recipe, values, sample):
    """The knobs of a row: those that are set, and on the sample those that its model has for it."""
    return (recipe(tuning.hyperparameters(**values)).on_sample if sample else {}) | values


def _written_sample(recipe, root):
    """The folder of the recipe's sample; files are moved into place whole, for another command may be reading."""
    folder = root / recipe.name
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".") as unfinished:
        recipe.sample(Path(unfinished))
        for file in sorted(path for path in Path(unfinished).rglob("*") if path.is_file()):
            place = folder / file.relative_to(unfinished)
            if place.is_file() and files.read_bytes(place) != files.read_bytes(file):
                raise DataError(
                    place,
                    None,
                    "the made-up sample as it was written; name files of your own by flags, and take this one away",
                    f"other content, {place.stat().st_size} bytes",
                )
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
    return folder


def _tune(recipe, dataset, flags, options, values, folder):
    chosen = recipe(tuning.hyperparameters(**values))
    root = folder("tuning", lambda: runs.new_folder(flags.runs / chosen.name, "tuning", chosen.model))
    found = tuning.tune(
        recipe,
        dataset,
        root,
        options,
        values=values,
        trials=flags.tune,
        tuner=flags.tuner or "bayesian",
        seed=flags.seed,
    )
    best = found[0]
    _link_latest(best, flags.runs / chosen.name)
    print(f"report: {sensitivity.write(found, root, dataset.metrics[0])}")
    print(f"best of {len(found)} finished trials: {best.settings['knobs']}")
    _say_metrics(best, dataset)
    _say_next([best], dataset)


def _train_rows(recipe, models, dataset, flags, options, rows, values, folder_of):
    """Trains the rows; the models without weights cost nothing and stand beside every one that is trained."""

    def is_trained(row):
        return recipe(tuning.hyperparameters(**row)).build is not None

    is_table = bool(rows)  # of which --from is for those rows that are meant to start from another run
    rows = [values | row for row in rows or [{}]]
    if any(map(is_trained, rows)):
        scorers = [row for row in (values | {"model": model} for model in models) if not is_trained(row)]
        rows = [*scorers, *rows]
    rows = [_settled(recipe, row, options.sample) for row in rows]
    all_trained, without_vectors = [], []
    if is_table and options.start:
        rows = [row for row in rows if _can_start(recipe, row, options)]
        if not rows:
            raise ValueError(f"No row of the table can go on from that run. Received: {str(options.start.folder)!r}")
    for number, row in enumerate(row for place, row in enumerate(rows) if row not in rows[:place]):
        hp = tuning.hyperparameters(**row)
        chosen = recipe(hp)
        seeds = range(flags.seed, flags.seed + (1 if chosen.build is None else flags.seeds))
        trained = []
        for seed in seeds:
            label = f"{chosen.model}-{seed}"
            folder = folder_of(f"{number} {label}", partial(runs.new_folder, flags.runs, chosen.name, label))
            settings = options
            if is_table and not chosen.continues:
                settings = dataclasses.replace(settings, start=None)
            settings = dataclasses.replace(settings, knobs=chosen.live_knobs(hp.values, settings))
            whole = unfinished.is_whole(folder)
            run = runs.load(folder) if whole else train(chosen, folder, dataset, settings, seed)
            _say_metrics(run, dataset)
            trained.append(run)
            if chosen.build is not None:
                all_trained.append(run)
                if chosen.takes_embeddings and not chosen.ngram_sizes and not run.settings["embeddings"]["files"]:
                    without_vectors.append(chosen.model)
                _link_latest(run, folder.parent)
            if run.metrics["training"]["interrupted"]:
                raise KeyboardInterrupt
        if len(trained) > 1:
            numbers = _numbers(comparison.averaged(trained, dataset))
            print(f"{chosen.model}, the scores of {len(trained)} seeds averaged: {dataset.scored_splits[-1]} {numbers}")
    finished = comparison.finished_runs(flags.runs, chosen.name, run.settings["data"]["content"])
    # Most papers' figures are of test alone.
    of_paper = comparison.published_beside(run, chosen.published)
    has_dev = "dev" in of_paper
    for split in dataset.scored_splits if has_dev else dataset.scored_splits[1:] or dataset.scored_splits:
        published = comparison.published_on(of_paper, split) if split != "dev" or has_dev else {}
        measured = comparison.measured_rows(finished, split)
        print(f"\nmeasured on {dataset.name}, {split}: the newest run of each model on this data")
        # A recipe may measure more than the data set's metrics.
        metrics = dict.fromkeys([*dataset.metrics, *(name for row in measured.values() for name in row)])
        print(comparison.table(published, measured, tuple(metrics)))
    if not options.sample:
        # A run of before may be of a model that is gone.
        newest = {run.settings["model"]: run for run in finished if run.settings["knobs"].get("model") in models}
        _say_other_knobs(recipe, newest)
    for note in dataset.notes:
        print(f"note: {note}")
    if without_vectors and of_paper:
        names = ", ".join(dict.fromkeys(without_vectors))
        print(f"note: trained without word vectors of a file (--embeddings), unlike the paper's: {names}")
    _say_next(all_trained, dataset)


def _say_other_knobs(recipe, newest):
    """Which rows of the tables were not trained under the recipe's own knobs."""
    of_rows = {}
    for model, run in newest.items():
        knobs = run.settings["knobs"]
        own = tuning.hyperparameters(model=knobs["model"])
        if recipe(own).build is not None:
            values = own.values
            differ = [f"{name} {value}" for name, value in knobs.items() if values.get(name, value) != value]
            of_rows.setdefault(", ".join(differ), []).append(model)
    for differ, models in of_rows.items():
        if differ:
            print(f"note: other knobs than the recipe's own: {'; '.join(models)}: {differ}")


def _can_start(recipe, row, options):
    """Whether a row of a table can go on from a run; says so where it cannot, before hours of others are trained."""
    hp = tuning.hyperparameters(**row)
    chosen = recipe(hp)
    unlike = chosen.continues and chosen.unlike_start(options.start, chosen.live_knobs(hp.values, options))
    if unlike:
        print(f"{chosen.model} is left out: the run to start from is {unlike}")
    return not unlike


def _say_next(trained, dataset):
    """What can be done with the best of the runs, if they have a model that was trained to its end."""
    whole = [run for run in trained if run.metrics["training"]["best_epoch"] and not _ended_early(run)]
    if whole:
        metric = dataset.metrics[0]
        best = max if direction(metric) == "max" else min
        run = best(whole, key=lambda run: run.metrics["dev"][metric])
        print(f"\nreport: {shlex.quote(str(run.folder / 'report.html'))}")
        print(f"to serve it: python -m export {shlex.quote(str(run.folder))} served")
    for run in trained:
        if not run.metrics["training"]["best_epoch"] and not _ended_early(run):  # a pre-training alone
            print(f"\nreport: {shlex.quote(str(run.folder / 'report.html'))}")
            print(f"to go on from it: --from {shlex.quote(str(run.folder))}")


def _ended_early(run):
    return run.metrics["training"]["interrupted"] or run.metrics["training"]["diverged"]


def _link_latest(run, root):
    if not runs.link_latest(run, root):
        why = "did not train to its end" if _ended_early(run) else "is on the made-up sample"
        print(f"{root / 'latest'} is left at {(root / 'latest').resolve().name}: this run {why}")


def _say_metrics(run, dataset):
    for split in dataset.scored_splits:
        print(f"{run.settings['model']}, seed {run.settings['seed']}: {split} {_numbers(run.metrics[split])}")
    print(f"run: {run.folder}")


def _numbers(metrics):
    return "  ".join(f"{name} {value:.4f}" for name, value in metrics.items() if not name.startswith("num_"))
