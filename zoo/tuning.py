"""Knobs and their search: the only place that knows KerasTuner.

A recipe is a function of `HyperParameters`: each call as ``hp.Int("filters", ...)`` gives a knob its name,
its published default, its search range and, through `knobs`, its command-line flag.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import keras_tuner

from zoo import runs, unfinished
from zoo.data import DataError, Dataset
from zoo.evaluation import direction
from zoo.recipe import Options, Recipe
from zoo.training import train

TUNERS = {
    "bayesian": keras_tuner.BayesianOptimization,
    "grid": keras_tuner.GridSearch,
    "hyperband": keras_tuner.Hyperband,
    "random": keras_tuner.RandomSearch,
}


def hyperparameters(**values) -> keras_tuner.HyperParameters:
    """Hyperparameters with some knobs set; a recipe that asks for one of these gets the value given here."""
    hp = keras_tuner.HyperParameters()
    for name, value in values.items():
        hp.Fixed(name, value)
    return hp


def knobs(recipe: Callable) -> list:
    """The knobs that a recipe asks for, in its order, as KerasTuner's ``Int``, ``Float``, ``Choice``, ``Boolean``."""
    hp = keras_tuner.HyperParameters()
    recipe(hp)
    return hp.space


def tune(
    recipe: Callable,
    dataset: Dataset,
    root: Path,
    options: Options,
    *,
    values: dict,
    trials: int,
    tuner: str = "bayesian",
    seed: int = 1,
) -> list[runs.Run]:
    """Searches the knobs that are not set for the best dev metric; every trial is an ordinary run.

    Args:
        recipe: function from hyperparameters to a `Recipe`.
        dataset: the loaded data.
        root: folder of the search; the tuner's state lies in it beside one run folder per trial. A search that was cut
            off is searched anew in its folder, where whole trials stand for themselves and one that is not goes on.
        options: how to train.
        values: knobs that are set, and so not searched.
        trials: number of trials.
        tuner: ``"bayesian"``, ``"grid"`` (every value in turn), ``"hyperband"`` or ``"random"``.
        seed: of the search and of each trial.

    Returns:
        The runs of all trials, the best first.

    Raises:
        ValueError: if there is no knob left to search.
        RuntimeError: if every trial failed.
        DataError: for word vectors that do not hold what they must.
    """
    first: Recipe = recipe(hyperparameters(**values))
    if options.start:
        there = options.start.settings["knobs"]
        values = {name: there[name] for name in first.same_as_start if name in there} | values
    space = hyperparameters(**values)
    first = recipe(space)
    left_alone = [name for name in (*first.fixed, *first.dead_knobs(options)) if name in space.values]
    settled = values | {name: space.get(name) for name in left_alone}
    space = hyperparameters(**settled)
    recipe(space)
    free = [knob.name for knob in space.space if knob.name not in settled]
    if not free:
        raise ValueError(f"A search needs a knob that is not set. Received: values={settled}")
    metric = dataset.metrics[0]
    before = {place: runs.load(place) for place in root.glob("trial-*") if unfinished.is_whole(place)}
    finished = {}
    # The tuners are deterministic, and not all of them can read their own state.
    shutil.rmtree(root / "tuner", ignore_errors=True)

    class Search(TUNERS[tuner]):
        """Trains a trial as any run, and hands its dev metric to the tuner."""

        def run_trial(self, trial, **_):
            values = trial.hyperparameters.values
            options.say(f"trial {trial.trial_id}: " + ", ".join(f"{name} {values[name]}" for name in free))
            chosen = recipe(trial.hyperparameters)
            # Hyperband decides how long a trial may train.
            chosen = dataclasses.replace(chosen, epochs=values.get("tuner/epochs", chosen.epochs))
            had = {name: values[name] for name in (*settled, *free)}
            knobs = chosen.live_knobs(had, options) | {"epochs": chosen.epochs}
            chosen_options = dataclasses.replace(options, knobs=knobs)
            try:
                place = root / f"trial-{trial.trial_id}"
                run = before.get(place)
                if not run or run.settings["knobs"] != knobs:
                    run = train(chosen, place, dataset, chosen_options, seed)
            except DataError as error:  # as would any other trial
                raise keras_tuner.errors.FatalError(str(error)) from error
            except Exception as error:
                options.say(f"trial {trial.trial_id} failed: {type(error).__name__}: {error}")
                unfinished.discard(place)
                raise
            if run.metrics["training"]["interrupted"]:
                raise KeyboardInterrupt
            finished[place] = run
            options.say(f"trial {trial.trial_id}: dev {metric} {run.metrics['dev'][metric]:.4f}, {run.folder}")
            return {f"dev_{metric}": run.metrics["dev"][metric]}

    limit = {"max_epochs": first.epochs} if tuner == "hyperband" else {"max_trials": trials}
    if tuner == "bayesian":  # by default three for each knob, those that are set among them, are drawn at random first
        limit["num_initial_points"] = 3 * len(free)
    search = Search(
        objective=keras_tuner.Objective(f"dev_{metric}", direction(metric)),
        hyperparameters=space,
        tune_new_entries=False,
        seed=seed + 1,  # KerasTuner takes 0 for none
        directory=str(root),
        project_name="tuner",
        **limit,
    )
    search.oracle.max_trials = trials  # hyperband has no such argument
    try:
        search.search(verbose=0)
    except keras_tuner.errors.FatalError as error:
        raise error.__cause__ or error from None
    if not finished:
        raise RuntimeError(f"Every trial failed, see above. Received: trials={trials}")
    return sorted(finished.values(), key=lambda run: run.metrics["dev"][metric], reverse=direction(metric) == "max")
