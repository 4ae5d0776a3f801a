"""The flags of every recipe: those that all share, one for each knob, and which are refused together."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from zoo import arguments, distribution, tuning
from zoo.arguments import Parser
from zoo.recipe import Options

_ABOVE_ZERO = ("learning_rate", "attend_gain", "vector_deviation")  # knobs of which 0 would train nothing
_SHARES = ("dropout", "word_dropout", "held_out")  # knobs of which 1 would be all


def check_use(parser, recipe, flags, values, rows, asked):
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


def parser_of(doc, space, meanings, tables):
    """The parser of a recipe's command, but for the flags that say where its data lies."""
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
