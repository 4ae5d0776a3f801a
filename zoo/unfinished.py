"""What a command that was cut off, by hand or by power, goes on from when it is run again.

A training writes down after each epoch what the next one starts from, in the folder ``unfinished`` of its run; a
command writes down the folders of its runs. Both are gone when what they stand for is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import BadZipFile

import keras
import numpy as np

_FOLDER = "unfinished"
_CHOICE = ("best", "best_epoch", "wait")  # what `EarlyStopping` knows beside weights


def is_whole(folder: Path) -> bool:
    """Whether a run was trained to its end and written."""
    return (folder / "recipe.json").is_file() and not (folder / _FOLDER).exists()


def discard(folder: Path) -> None:
    """Removes what a training in this folder would go on from."""
    shutil.rmtree(folder / _FOLDER, ignore_errors=True)


@contextlib.contextmanager
def command(root: Path, settings: dict, fresh: bool, say: Callable[[str], None]) -> Iterator[Callable]:
    """The folders of a command's runs; when it is run again after it was cut off, it has the same ones.

    Of two that run at once, the second has folders of its own, which are not written down.

    Args:
        root: where this is written down.
        settings: all that makes two commands the same.
        fresh: whether to begin anew nevertheless.
        say: where a line of what was there goes.

    Yields:
        A function of a run's name and of a function that makes a new folder below ``root``, to the run's folder.
    """
    key = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{_FOLDER}-{key}.tsv"
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given up by the system when the process ends
        except OSError:
            say("The same command is running: this one begins anew, and could not go on after it was cut off.")
            yield lambda name, make: make()
            return
        begun = _read(file, root)
        if fresh:
            for folder in begun.values():
                discard(folder)
            begun = {}
            file.truncate(0)
        elif begun:
            whole = sum(map(is_whole, begun.values()))
            say(f"This command was cut off: it goes on, {whole} of its runs are whole (--fresh begins anew).")

        def folder(name, make):
            if name not in begun:
                begun[name] = make()
                file.write(f"{name}\t{begun[name].relative_to(root)}\n")
                file.flush()
            return begun[name]

        try:
            yield folder
        except BaseException:
            if not any(place.exists() for place in begun.values()):
                path.unlink()
            raise
        path.unlink()


def _read(file, root):
    """Names to folders that are still there; a last line that was cut off is taken away."""
    file.seek(0)
    lines, _, rest = file.read().rpartition("\n")
    if rest:
        file.truncate(len(f"{lines}\n".encode()) if lines else 0)
    begun = dict(line.split("\t") for line in lines.splitlines())
    return {name: root / folder for name, folder in begun.items() if (root / folder).is_dir()}


class Backup(keras.callbacks.Callback):
    """Writes down after each epoch all that the next one starts from; stands after the callbacks that it is handed.

    These are the trained weights, the optimizer's state, that of random numbers, the best epoch's weights and a row of
    each epoch. Weights that are not trained are made anew, as they were.

    Args:
        folder: of the run.
        label: sets the fits of a run apart.
        best: chooses the epoch; its state is kept and restored.
        rows: a row of each epoch, of numbers; earlier ones are added by `restore`.
        say: where a line goes if the disk is full.

    Attributes:
        ended: whether training had ended when this was written.
    """

    def __init__(self, folder: Path, label: str, best: keras.callbacks.EarlyStopping, rows: list[dict], say: Callable):
        super().__init__()
        self.file = folder / _FOLDER / f"{label}.npz"
        self.best, self.rows, self.say = best, rows, say
        self.ended, self._choice, self._best = False, None, []

    def restore(self, model: keras.Model) -> bool:
        """Puts a compiled model, and the rows, where the last whole epoch left them; False if there is none.

        Raises:
            ValueError: if what was written is of another model, or not whole.
        """
        if not self.file.is_file():
            return False
        variables = _variables(model)
        try:
            with np.load(self.file) as there:
                state = json.loads(str(there["state"]))
                values = [there[f"variable_{place}"] for place in range(state["variables"])]
                self._best = [there[f"best_{place}"] for place in range(state["best_weights"])]
        except (BadZipFile, KeyError, OSError, EOFError) as error:
            raise ValueError(f"What a training goes on from must be whole. Received: {self.file}: {error}") from None
        if [tuple(value.shape) for value in values] != [tuple(variable.shape) for variable in variables]:
            raise ValueError(f"What a training goes on from must be of the same model. Received: {self.file}")
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        self.rows[:] = state["rows"]
        self._choice, self.ended = state["choice"], state["ended"]
        return True

    def on_train_begin(self, logs=None):
        if self._choice is None:
            return
        for name in _CHOICE:
            setattr(self.best, name, self._choice[name])
        if self._best:
            trained = iter(self._best)
            self.best.best_weights = [
                next(trained) if weight.trainable else np.array(weight) for weight in self.model.weights
            ]

    def on_epoch_end(self, epoch, logs=None):
        variables = _variables(self.model)
        if self.best.best_weights is not None and self.best.wait == 0:
            weights = zip(self.model.weights, self.best.best_weights, strict=True)
            self._best = [value for weight, value in weights if weight.trainable]
        state = {
            "rows": self.rows,
            "choice": {name: getattr(self.best, name) for name in _CHOICE},
            "ended": bool(self.model.stop_training) or epoch + 1 == self.params["epochs"],
            "variables": len(variables),
            "best_weights": len(self._best),
        }
        arrays = {f"variable_{place}": np.array(variable) for place, variable in enumerate(variables)}
        arrays |= {f"best_{place}": value for place, value in enumerate(self._best)}
        unfinished = self.file.with_suffix(".part.npz")
        try:
            self.file.parent.mkdir(exist_ok=True)
            np.savez(unfinished, state=json.dumps(state, default=float), **arrays)
            unfinished.replace(self.file)  # whole, or not there
        except OSError as error:  # a full disk must not end the training
            unfinished.unlink(missing_ok=True)
            self.say(f"this epoch is not written down, if cut off training goes on from an earlier one: {error}")


def _variables(model):
    """The variables that training changes: weights, states of random numbers, the optimizer's."""
    weights = {id(weight) for weight in model.weights}
    random = [variable for variable in model.variables if id(variable) not in weights]
    return [*model.trainable_variables, *random, *model.optimizer.variables]
