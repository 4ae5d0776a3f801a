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

from zoo import arguments, comparison, data_report, distribution, files, runs, sensitivity, tuning, unfinished
from zoo.arguments import Parser
from zoo.data import DataError, Dataset
from zoo.evaluation import direction, is_classification, is_ranking
from zoo.recipe import Options, Recipe
from zoo.training import train

_ABOVE_ZERO = ("learning_rate", "attend_gain", "vector_deviation")  # knobs of which 0 would train nothing
_SHARES = ("dropout", "word_dropout", "held_out")  # knobs of which 1 would be all
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
    parser = _parser(doc, space, meanings or {}, tables)
    (add_data_flags or _data_flag)(parser)
    flags = parser.parse_args(command)
    values = {knob.name: getattr(flags, knob.name) for knob in space if getattr(flags, knob.name) is not None}
    try:
        asked = [name for name in tables if getattr(flags, name)]
        rows = [row for name in asked for row in tables[name]]
        _check_use(parser, recipe, flags, values, rows, asked)
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


def _check_use(parser, recipe, flags, values, rows, asked):
    """Refuses flags that would be without effect."""
    if len(asked) > 1:
        parser.error(f"one table at a time. Received: {' '.join(f'--{name}' for name in asked)}")
    if flags.tune and asked:
        parser.error(f"--tune searches one model: leave --{asked[0]} out")
    if flags.tune and flags.seeds > 1:
        parser.error("--tune trains each trial with one seed: leave --seeds out")
    chosen = [recipe(tuning.hyperparameters(**values | row)) for row in rows or [{}]]
    # Of a table those rows start from an earlier run that are meant to.
    starts = [flags.start if not rows or row.continues else None for row in chosen]
    options = [Options(embeddings=tuple(flags.embeddings), start=start) for start in starts]
    dead = set.intersection(*(set(row.dead_knobs(its)) for row, its in zip(chosen, options, strict=True)))
    if flags.tune:
        if chosen[0].build is None:
            parser.error(f"--tune needs a model that is trained. Received: --model {values['model']}")
        if {knob.name for knob in tuning.knobs(recipe)} <= {*values, *chosen[0].fixed, *dead}:
            parser.error(f"--tune needs a knob that is not set. Received: {values}")
    if flags.start:
        if not all((flags.start / name).is_file() for name in ("model.keras", "recipe.json")):
            parser.error(f"--from must name the folder of a run with a trained model. Received: {str(flags.start)!r}")
        if recipe(tuning.hyperparameters(**values)).build is None:
            parser.error(f"--from needs a model that is trained. Received: --model {values['model']}")
    if flags.embeddings and not any(row.build and row.takes_embeddings for row in chosen):
        parser.error(f"--embeddings needs a model that takes word vectors. Received: --model {chosen[0].model}")
    for name in dead & values.keys():
        if all(name in row.without_effect for row in chosen):
            why = "the model that is trained does not have this knob"
        else:
            of_start = flags.start and any(name in row.replaced_by_start for row in chosen)
            why = f"{'--from' if of_start else '--embeddings'} takes the place of this knob"
        parser.error(f"{why}. Received: --{name.replace('_', '-')} {values[name]}")
    if flags.replicas and flags.strategy != "mirrored":
        parser.error(f"--replicas needs --strategy mirrored. Received: --replicas {flags.replicas}")
    if flags.tuner and not flags.tune:
        parser.error(f"--tuner needs --tune. Received: --tuner {flags.tuner}")
    for file in flags.embeddings:
        if not file.is_file():
            parser.error(f"--embeddings must name a file. Received: {str(file)!r}")
    if len({file.resolve() for file in flags.embeddings}) < len(flags.embeddings):
        parser.error(f"--embeddings must name each file once. Received: {[str(file) for file in flags.embeddings]}")


def _parser(doc, space, meanings, tables):
    name = Path(sys.argv[0]).stem
    parser = Parser(
        prog=f"python -m recipes.{name}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--embeddings",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="word vectors, repeatable",
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="where runs are written")
    parser.add_argument("--seeds", type=arguments.positive, default=1, metavar="N", help="train with N seeds")
    parser.add_argument("--seed", type=arguments.count, default=1, help="the first seed")
    for name in tables:
        parser.add_argument(f"--{name}", action="store_true", help=f"train every row of the recipe's {name}")
    parser.add_argument("--from", dest="start", type=Path, metavar="RUN", help="start from an earlier run")
    parser.add_argument(
        "--tune", type=arguments.positive, metavar="N", help="search the knobs that are not set, N trials"
    )
    parser.add_argument("--tuner", choices=sorted(tuning.TUNERS), help="how --tune searches (bayesian)")
    parser.add_argument("--strategy", choices=distribution.STRATEGIES, default="none", help="tf.distribute strategy")
    parser.add_argument(
        "--replicas", type=arguments.positive, metavar="N", help="parts a mirrored strategy splits a CPU into (2)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="begin anew where the same command, cut off before, would go on"
    )
    parser.add_argument("--strict", action="store_true", help="texts shared between splits are an error")
    knobs = parser.add_argument_group("knobs of this recipe (default)")
    for knob in space:
        flag = "--" + knob.name.replace("_", "-")
        kind = type(knob).__name__
        help_ = f"{meanings.get(knob.name, '')} ({knob.default})".replace("%", "%%").lstrip()
        if kind == "Boolean":
            knobs.add_argument(flag, dest=knob.name, action=argparse.BooleanOptionalAction, help=help_)
        elif kind == "Choice":
            of_type = type(knob.values[0])
            knobs.add_argument(flag, dest=knob.name, type=of_type, choices=knob.values, help=help_)
        else:
            number = arguments.count if knob.min_value == 0 else arguments.positive
            if kind == "Float":
                number = arguments.share if knob.name in _SHARES else arguments.rate
                number = arguments.above_zero if knob.name in _ABOVE_ZERO else number
            knobs.add_argument(flag, dest=knob.name, type=number, metavar=kind.upper(), help=help_)
    return parser


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
        rows = [row for row in rows if _can_start(recipe(tuning.hyperparameters(**row)), options.start)]
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
            dead = chosen.dead_knobs(settings)
            knobs = {name: value for name, value in hp.values.items() if name not in dead}
            settings = dataclasses.replace(settings, knobs=knobs)
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


def _can_start(chosen, start):
    """Whether a row of a table can go on from a run; says so where it cannot, before hours of others are trained."""
    given = tuple(start.text_encoder.ngram_sizes)
    if not chosen.continues or given == tuple(chosen.ngram_sizes):
        return True
    print(f"{chosen.model} is left out: the run to start from has n-grams of {given}, it takes {chosen.ngram_sizes}")
    return False


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
