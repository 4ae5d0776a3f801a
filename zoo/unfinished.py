"""What a command that was cut off, by hand or by power, goes on from when it is run again.

A training writes down after each epoch what the next one starts from, in the folder ``unfinished`` of its run; a
command writes down the folders of its runs. Both are gone when what they stand for is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import BadZipFile

import keras
import numpy as np

from zoo import runs

START = "--from"  # name of the run that a command's trainings start from
_FOLDER = "unfinished"
_CHOICE = ("best", "best_epoch", "wait")  # what `EarlyStopping` knows beside weights


def begin(folder: Path) -> None:
    """Marks a run's folder as not whole."""
    (folder / _FOLDER).mkdir(parents=True, exist_ok=True)


def is_whole(folder: Path) -> bool:
    """Whether a run was trained to its end and written."""
    if not (folder / "recipe.json").is_file() or (folder / _FOLDER).exists():
        return False
    return not json.loads((folder / "metrics.json").read_text("utf-8"))["training"]["interrupted"]


def discard(folder: Path) -> None:
    """Takes the mark away, and all that trainings in this folder, or below it, would go on from."""
    for place in [*folder.rglob(_FOLDER)]:
        gone = place.with_name(f".{_FOLDER}")
        place.rename(gone)  # at once, or not at all
        shutil.rmtree(gone)


@contextlib.contextmanager
def command(root: Path, settings: dict, fresh: bool, say: Callable[[str], None]) -> Iterator[Callable]:
    """The folders of a command's runs; when it is run again after it was cut off, it has the same ones.

    Our own code is among the settings: changed, it begins anew. Of two that run at once, the second has folders of its
    own, which are not written down.

    Args:
        root: where this is written down.
        settings: all that makes two commands the same.
        fresh: whether to begin anew nevertheless.
        say: where a line of what was there goes.

    Yields:
        A function of a run's name and of a function that makes a new folder below ``root``, to the run's folder. Under
        the name `START` it keeps the folder of the run that is started from.
    """
    settings = settings | {"code": _code()}
    key = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{_FOLDER}-{key}.tsv"
    with _locked(path) as file:
        if file is None:
            say("The same command is running: this one begins anew, and could not go on after it was cut off.")
            yield lambda name, make: make()
            return
        begun = _read(file, root)
        if fresh:
            for folder in _of_runs(begun):
                discard(folder)
                if not any(folder.rglob("recipe.json")):
                    shutil.rmtree(folder)
            begun = {}
            file.truncate(0)
        elif parts := [part for folder in _of_runs(begun) for part in [*folder.glob("trial-*")] or [folder]]:
            whole = f"{sum(map(is_whole, parts))} of {len(parts)} runs are whole"
            say(f"This command was cut off: it goes on, {whole} (--fresh begins anew).")

        def folder(name, make):
            if name not in begun:
                begun[name] = make()
                file.write(f"{name}\t{os.path.relpath(begun[name], root)}\n")
                _to_disk(file)
            return begun[name]

        try:
            yield folder
        except BaseException as error:
            if not any(place.exists() for place in _of_runs(begun)):
                path.unlink(missing_ok=True)
            elif isinstance(error, KeyboardInterrupt):
                say("The same command, run again, goes on (--fresh begins anew).")
            raise
        file.truncate(0)  # for one that has opened it by now
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path):
    """The file, opened and locked; None where another process has it. The system unlocks it when the process ends."""
    while True:
        with path.open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file = None
            if file is None or os.fstat(file.fileno()).st_nlink:  # else it was removed while we opened it
                yield file
                return


def _to_disk(file):
    file.flush()
    os.fsync(file.fileno())


def _read(file, root):
    """Names to folders that are still there; a last line that was cut off is taken away."""
    file.seek(0)
    lines, _, rest = file.read().rpartition("\n")
    if rest:
        file.truncate(len(f"{lines}\n".encode()) if lines else 0)
    begun = dict(line.split("\t") for line in lines.splitlines())
    return {name: root / folder for name, folder in begun.items() if (root / folder).is_dir()}


def _of_runs(begun):
    return [folder for name, folder in begun.items() if name != START]


def _code():
    """What runs: our own sources, the versions of the libraries, the backend."""
    home = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for source in sorted(file for package in ("layers", "zoo", "recipes") for file in (home / package).rglob("*.py")):
        digest.update(source.read_bytes())
    return {"sources": digest.hexdigest(), "backend": keras.backend.backend(), **runs.versions()}


class Backup(keras.callbacks.Callback):
    """Writes down after each epoch all that the next one starts from; stands after the callbacks that it is handed.

    These are the trained weights, the optimizer's state, that of random numbers, the best epoch's weights and a row of
    each epoch. Weights that are not trained are made anew, as they were.

    Args:
        folder: of the run.
        label: sets the fits of a run apart.
        settings: what was trained; what was written down under others is passed over.
        best: chooses the epoch; its state is kept and restored.
        rows: a row of each epoch, of numbers; earlier ones are added by `restore`.
        say: where a line goes if the disk is full, or what was written down is of no use.

    Attributes:
        ended: whether training had ended when this was written.
    """

    def __init__(
        self,
        folder: Path,
        label: str,
        settings: dict,
        best: keras.callbacks.EarlyStopping,
        rows: list[dict],
        say: Callable[[str], None],
    ):
        super().__init__()
        self.file, self.label = folder / _FOLDER / f"{label}.npz", label
        self.settings = settings
        self.best, self.rows, self.say = best, rows, say
        self.ended, self._choice, self._best = False, None, []

    def restore(self, model: keras.Model) -> bool:
        """Puts a compiled model, and the rows, where the last whole epoch left them; False if that cannot be."""
        if not self.file.is_file():
            return False
        variables = _variables(model)
        try:
            with np.load(self.file) as there:
                state = json.loads(str(there["state"]))
                values = [there[f"variable_{place}"] for place in range(state["variables"])]
                best = [there[f"best_{place}"] for place in range(state["best_weights"])]
        except (BadZipFile, zlib.error, KeyError, ValueError, OSError, EOFError) as error:  # power was lost
            self.say(f"{self.label}: begins anew, what it would go on from is damaged: {self.file}: {error}")
            return False
        same_shapes = [value.shape for value in values] == [tuple(variable.shape) for variable in variables]
        if state["settings"] != self.settings or not same_shapes:
            self.say(f"{self.label}: begins anew, what it would go on from is of another model: {self.file}")
            return False
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        self.rows[:] = state["rows"]
        self._best, self._choice, self.ended = best, state["choice"], state["ended"]
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
            "settings": self.settings,
            "rows": self.rows,
            "choice": {name: getattr(self.best, name) for name in _CHOICE},
            "ended": bool(self.model.stop_training) or epoch + 1 == self.params["epochs"],
            "variables": len(variables),
            "best_weights": len(self._best),
        }
        arrays = {f"variable_{place}": np.array(variable) for place, variable in enumerate(variables)}
        arrays |= {f"best_{place}": value for place, value in enumerate(self._best)}
        unfinished = self.file.with_suffix(".part")
        try:
            self.file.parent.mkdir(exist_ok=True)
            with unfinished.open("wb") as file:
                np.savez(file, state=json.dumps(state, default=float), **arrays)
                _to_disk(file)
            unfinished.replace(self.file)  # whole, or not there
        except OSError as error:  # a full disk must not end the training
            unfinished.unlink(missing_ok=True)
            self.say(f"this epoch is not written down, if cut off training goes on from an earlier one: {error}")


def _variables(model):
    """The variables that training changes: weights, states of random numbers, the optimizer's."""
    weights = {id(weight) for weight in model.weights}
    random = [variable for variable in model.variables if id(variable) not in weights]
    return [*model.trainable_variables, *random, *model.optimizer.variables]
