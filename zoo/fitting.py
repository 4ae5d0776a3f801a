"""Fits a model and keeps its best epoch: the only place that calls Keras's `fit`."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

from zoo import apart, unfinished
from zoo.batches import Batches
from zoo.encoded import EncodedSplit
from zoo.evaluation import direction
from zoo.recipe import Options, Recipe

_COMPILED_LENGTHS = 8  # the step between them
STEPS_AT_ONCE = 8  # of the loop over batches


class _MeasureDev(keras.callbacks.Callback):
    """Adds what is measured after each epoch to its logs; it stands before the callbacks that read them."""

    def __init__(self, measure, metric):
        super().__init__()
        self.measure, self.metric = measure, metric

    def on_epoch_end(self, epoch, logs):
        values = self.measure()
        if self.metric and self.metric not in values:
            raise ValueError(
                "The metric that chooses the epoch must be among those measured. "
                f"Received: metric={self.metric!r}, measured={sorted(values)}"
            )
        for name, value in values.items():
            logs[f"dev_{name}"] = value


class _Progress(keras.callbacks.Callback):
    """A line and a row per epoch, with the seconds each took."""

    def __init__(self, label, epochs, say):
        super().__init__()
        self.label, self.epochs, self.say, self.rows = label, epochs, say, []

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.monotonic()

    def on_epoch_end(self, epoch, logs):
        seconds = time.monotonic() - self.start
        values = {name: float(value) for name, value in logs.items()}
        self.rows.append({"epoch": epoch + 1, "seconds": round(seconds, 2)} | values)
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
        self.say(f"{self.label} {epoch + 1}/{self.epochs}  {numbers}  {seconds:.1f} s")


class Fit:
    """Fits a model and keeps its best epoch: the training itself, and what a `Recipe.pretrain` is handed.

    Args:
        recipe, folder, options, seed: as `train`.

    Attributes:
        seconds_before: of epochs that were trained before the run was cut off.
    """

    def __init__(self, recipe: Recipe, folder: Path, options: Options, seed: int):
        self.recipe, self.folder, self.options, self.seed = recipe, folder, options, seed
        self.seconds_before = 0.0
        # The optimizers' sums over the rows of word vectors that are trained do not compile.
        self.compiled = recipe.compiled and bool(options.embeddings)

    def scope(self):
        """What variables must be made in."""
        return self.options.strategy.scope() if self.options.strategy else contextlib.nullcontext()

    def batches(self, split: EncodedSplit, batch_size: int | None = None) -> Batches:
        """A split in batches of so many pairs, by default the recipe's."""
        recipe, strategy = self.recipe, self.options.strategy
        # A batch of `batch_size` pairs, in whichever lists they come.
        list_size, batch_size = recipe.list_size, batch_size or recipe.batch_size
        if recipe.negatives:  # those of the batch are as many texts as one drawn for each
            list_size = 1 + (1 if recipe.negatives.source == "batch" else recipe.negatives.count)
        lists = max(1, batch_size // list_size)
        if recipe.negatives and recipe.negatives.source == "batch" and lists < 2:
            raise ValueError(f"Negatives of the batch need a batch of 4 or more. Received: {batch_size}")
        if strategy:
            lists = -(-lists // strategy.num_replicas_in_sync) * strategy.num_replicas_in_sync
        return Batches(
            split,
            # Replicas share a batch in equal parts: padding would make the rows of one weigh more than the other's.
            drop_remainder=bool(strategy),
            batch_size=lists,
            list_size=recipe.list_size,
            negatives=recipe.negatives,
            shuffle_seed=self.seed,
            length_step=_COMPILED_LENGTHS if self.compiled else 1,
        )

    def __call__(
        self,
        model: keras.Model,
        batches: keras.utils.PyDataset,
        *,
        loss: Callable[[], object],
        optimizer: Callable[[], keras.optimizers.Optimizer],
        epochs: int,
        output: str | None = None,
        patience: int | None = None,
        measure: Callable[[keras.Model], dict[str, float]] | None = None,
        metric: str | None = None,
        label: str = "epoch",
        survives: bool = False,
    ) -> tuple[list[dict], dict]:
        """Trains ``model`` in place; it ends with the weights of its best epoch.

        Where the run's folder holds what a training of this ``label`` wrote down before it was cut off, it goes on
        from there, to what that would have become.

        Args:
            model: what is trained.
            batches: of ``(inputs, labels)``.
            loss, optimizer: functions without arguments that make them.
            epochs: at most this many.
            output: the output that the loss sees, of a model that gives a dictionary.
            patience: epochs without a better metric before training ends; None trains all of them.
            measure: function of the model to metrics of dev, called after each epoch; the logs name each with
                ``dev_`` before it. A FloatingPointError ends the training.
            metric: which of them chooses the epoch. Without it, the last epoch is kept.
            label: what an epoch is called in the lines of progress; each fit of a run has its own.
            survives: whether training that is interrupted or diverges after its best epoch ends with that.

        Returns:
            One row per epoch, and what the run records: ``best_epoch``, ``seconds_per_epoch``, and
            ``interrupted`` or ``diverged`` where training ended so and survived.

        Raises:
            ValueError: if ``metric`` is not measured.
            RuntimeError: if the scores are no numbers.
            KeyboardInterrupt: if interrupted.
        """
        if metric and not measure:
            raise ValueError(
                f"A metric that chooses the epoch must be measured. Received: metric={metric!r}, measure=None"
            )
        options = self.options
        with self.scope():
            # A view of the model, so that its scoring, of batches of any length, is not compiled as well.
            if getattr(batches, "within_batch", False):
                fitted = self._within_batch(model, output)
            else:
                fitted = keras.Model(model.input, model.output[output] if output else model.output)
            # XLA compiles anew for each length of a batch; without a step between lengths that would be too many.
            fitted.compile(
                optimizer=optimizer(),
                loss=loss(),
                jit_compile=self.compiled,
                # Keras' loop costs some milliseconds each time that it comes round; under a strategy it fails.
                steps_per_execution=1 if options.strategy else min(STEPS_AT_ONCE, len(batches)),
            )
        progress = _Progress(label, epochs, options.say if not options.bar else lambda line: None)
        best = keras.callbacks.EarlyStopping(
            monitor=f"dev_{metric}" if metric else "loss",
            mode=direction(metric) if metric else "min",
            patience=epochs if patience is None else patience,
            restore_best_weights=metric is not None,
        )
        rows = progress.rows
        settings = {"knobs": options.knobs, "model": self.recipe.model, "seed": self.seed}
        backup = unfinished.Backup(self.folder, label, settings, best, rows, options.say)
        with self.scope():
            fitted.optimizer.build(fitted.trainable_variables)
            if backup.restore(fitted):
                options.say(f"goes on after {label} {len(rows)}{', the last' if backup.ended else ''}")
                self.seconds_before += sum(row["seconds"] for row in rows)
                batches.epoch = len(rows) - 1
                batches.on_epoch_end()
        measured = [_MeasureDev(lambda: measure(model), metric)] if measure else []
        board = keras.callbacks.TensorBoard(self.folder / "tensorboard" / label, write_graph=False)
        found = {}
        try:
            fitted.fit(
                batches,
                epochs=epochs,
                initial_epoch=epochs if backup.ended else len(rows),
                callbacks=[*measured, progress, best, backup, board],
                verbose=1 if options.bar else 0,
                shuffle=False,  # the batches shuffle themselves, by seed and epoch
            )
        except (KeyboardInterrupt, FloatingPointError) as stopped:
            diverged = isinstance(stopped, FloatingPointError)
            if not survives or best.best_weights is None:
                if not rows:
                    shutil.rmtree(board.log_dir, ignore_errors=True)  # nothing happened yet
                if diverged:
                    raise RuntimeError(
                        "Training must keep scores finite; try a lower learning rate. "
                        f"Received: {label} {len(rows) + 1}, knobs={options.knobs}"
                    ) from None
                raise
            options.say(f"{'diverged' if diverged else 'interrupted'}: the best epoch so far is kept")
            found["diverged" if diverged else "interrupted"] = True
            fitted.set_weights(best.best_weights)
        found["best_epoch"] = best.best_epoch + 1 if metric else len(rows)
        if metric:
            early = len(rows) < epochs and not found.keys() & {"interrupted", "diverged"}
            why = f"; stopped early, after {patience} without a better one" if early else ""
            options.say(f"{label} {found['best_epoch']} of {len(rows)} is kept, the best by {metric}{why}")
        found["seconds_per_epoch"] = round(float(np.mean([row["seconds"] for row in rows])), 2)
        return rows, found

    def _within_batch(self, model, output):
        if self.options.strategy:
            raise ValueError(
                "Negatives of the batch need the batch in one place: leave the strategy out. "
                f"Received: strategy={type(self.options.strategy).__name__}"
            )
        view = apart.within_batch(model)
        return keras.Model(view.input, view.output[output]) if output else view


def copy_weights(source: keras.Model, target: keras.Model, whole: bool = False) -> str:
    """Copies the weights whose path and shape agree; returns a line that says which, on either side, were left.

    Raises:
        ValueError: if none agree, or, where ``whole``, not all of the target.
    """
    weights = {weight.path: weight for weight in source.weights}
    taken, left = [], []
    for weight in target.weights:
        other = weights.get(weight.path)
        if other is not None and other.shape == weight.shape:
            weight.assign(other)
            taken.append(weight.path)
        else:
            left.append(weight.path)
    if not taken or (whole and left):
        needed = {weight.path: tuple(weight.shape) for weight in target.weights if weight.path in left}
        there = {path: tuple(weights[path].shape) for path in needed if path in weights}
        raise ValueError(
            "The run to start from must share weights with the model, by path and shape: same model, same sizes. "
            f"Received: {there} for {needed}"
        )
    unused = sorted(weights.keys() - set(taken))
    return (
        f"{len(taken)} weights taken over; new: {', '.join(left) or 'none'}; not taken: {', '.join(unused) or 'none'}"
    )
