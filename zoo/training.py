"""From a recipe and a data set to a run: the only place that calls `fit`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import keras
import numpy as np

from zoo import report, runs
from zoo.batches import Batches, EncodedSplit, encode_split, score_split
from zoo.data import Dataset
from zoo.embeddings import embedding_matrix, read_words
from zoo.metrics import count_queries, ranking_metrics
from zoo.text import TextEncoder, build_vocabulary


@dataclass(frozen=True)
class Recipe:
    """One model on one data set, with every number; what a recipe module's ``recipe(hp)`` returns.

    Attributes:
        name: the recipe's module name.
        model: the model's name, a row of the paper's table.
        load: function from the data folder to a `Dataset`.
        sample: function that writes the made-up sample into a folder, for ``load``.
        build: function from an `EncodedDataset` to a `keras.Model`; None for a scorer without training.
        module: the module that registers the model's layers, which a loaded run imports.
        scorer: a scorer of `zoo.lexical`, where there is no ``build``.
        loss, optimizer: functions without arguments that make them.
        published: the paper's table: row to metric to value, as fractions.
        batch_size: pairs of a training step.
        list_size: pairs of one query that stand together in a batch; 1 draws pairs independently.
        epochs: at most this many.
        patience: epochs without a better dev metric before training ends.
        max_query_length, max_candidate_length: tokens kept of a text (of each field).
        tokenizer: ``"word"`` or ``"wordpiece"``.
        oov_buckets: rows that words outside of the vocabulary are hashed to.
        max_words: words of the vector files that join the training words in the vocabulary.
        embedding_size: width of the word vectors where no file is given.
        task: ``"binary"``: the score is the log-odds of a match.
        fixed: knobs that a search leaves alone.
        on_sample: values of knobs for the made-up sample, which is smaller than the real data.
    """

    name: str
    model: str
    load: Callable[[Path], Dataset]
    sample: Callable[[Path], None]
    build: Callable[[EncodedDataset], keras.Model] | None = None
    module: str | None = None
    scorer: object | None = None
    loss: Callable[[], object] | None = None
    optimizer: Callable[[], keras.optimizers.Optimizer] | None = None
    published: dict[str, dict[str, float]] = field(default_factory=dict)
    batch_size: int = 64
    list_size: int = 1
    epochs: int = 25
    patience: int = 5
    max_query_length: int = 50
    max_candidate_length: int = 50
    tokenizer: str = "word"
    oov_buckets: int = 64
    max_words: int = 100_000
    embedding_size: int = 100
    task: str = "binary"
    fixed: tuple[str, ...] = ("model",)
    on_sample: dict = field(default_factory=dict)


@dataclass(frozen=True)
class EncodedDataset:
    """What a model is built from.

    Attributes:
        encoder: strings to ids.
        splits: the splits as ids.
        embeddings: ``[V, E]`` float32, row 0 zero.
        trainable_embeddings: true where no vectors were given.
        coverage: one line on how many words have a given vector.
    """

    encoder: TextEncoder
    splits: dict[str, EncodedSplit]
    embeddings: np.ndarray
    trainable_embeddings: bool
    coverage: str


@dataclass(frozen=True)
class Options:
    """How to train, as opposed to what.

    Attributes:
        embeddings: word-vector files; several are laid side by side.
        strategy: a `tf.distribute` strategy, or None.
        bar: whether a progress bar is drawn; else a line per epoch.
        sample: whether the data is the made-up sample.
        knobs: name to value of every knob, for the run's record.
        data_lines: the data report, for the run's record.
        say: where lines of progress go.
    """

    embeddings: tuple[Path, ...] = ()
    strategy: object | None = None
    bar: bool = False
    sample: bool = False
    knobs: dict = field(default_factory=dict)
    data_lines: tuple[str, ...] = ()
    say: Callable[[str], None] = partial(print, flush=True)


def encode_dataset(recipe: Recipe, dataset: Dataset, options: Options, seed: int) -> EncodedDataset:
    """Fits the vocabulary on the training split, adds the words of the vector files, encodes all splits.

    Words that only occur in dev or test are not looked at: the vector files bring theirs, the rest are
    unknown words, as they will be when the model serves.
    """
    texts = [
        text for group in dataset.splits["train"] for fields in (group.query, *group.candidates) for text in fields
    ]
    extra = read_words(options.embeddings, recipe.max_words) if options.embeddings else ()
    own_words = build_vocabulary(texts, recipe.tokenizer)
    words = build_vocabulary(texts, recipe.tokenizer, extra_words=extra) if extra else own_words
    encoder = TextEncoder(words, recipe.tokenizer, recipe.oov_buckets)
    if options.embeddings:
        embeddings, _ = embedding_matrix(options.embeddings, words, recipe.oov_buckets, seed)
        _, coverage = embedding_matrix(options.embeddings, own_words, recipe.oov_buckets, seed)
    else:
        shape = (encoder.vocabulary_size, recipe.embedding_size)
        embeddings = np.random.default_rng(seed).uniform(-0.25, 0.25, shape).astype("float32")
        embeddings[0] = 0
        coverage = f"no word vectors given: {shape[0]} rows of {shape[1]} numbers are trained from random"
    splits = {
        name: encode_split(groups, encoder, dataset.fields, recipe.max_query_length, recipe.max_candidate_length)
        for name, groups in dataset.splits.items()
    }
    return EncodedDataset(encoder, splits, embeddings, not options.embeddings, str(coverage))


class _RankDev(keras.callbacks.Callback):
    """Ranks the whole queries of dev after each epoch; it stands before the callbacks that read the metric."""

    def __init__(self, dataset: Dataset, encoded: EncodedDataset):
        super().__init__()
        self.dataset, self.encoded = dataset, encoded

    def on_epoch_end(self, epoch, logs):
        split = self.encoded.splits["dev"]
        scores = score_split(self.model, split)
        if not np.isfinite(scores).all():
            raise FloatingPointError
        for name, value in evaluate(self.dataset, "dev", split.per_group(scores)).items():
            logs[f"dev_{name}"] = value


class _Progress(keras.callbacks.Callback):
    """One line per epoch, and the seconds each took."""

    def __init__(self, epochs, say):
        super().__init__()
        self.epochs, self.say, self.seconds = epochs, say, []

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.monotonic()

    def on_epoch_end(self, epoch, logs):
        self.seconds.append(time.monotonic() - self.start)
        numbers = "  ".join(f"{name} {float(value):.4f}" for name, value in logs.items())
        self.say(f"epoch {epoch + 1}/{self.epochs}  {numbers}  {self.seconds[-1]:.1f} s")


def evaluate(dataset: Dataset, split: str, scores: list[np.ndarray]) -> dict[str, float]:
    """The data set's metrics of one split, under its convention."""
    labels = [np.array(group.labels) for group in dataset.splits[split]]
    return ranking_metrics(scores, labels, dataset.convention, dataset.metrics)


def train(recipe: Recipe, folder: Path, dataset: Dataset, options: Options, seed: int = 1) -> runs.Run:
    """Trains one model, scores dev and test, and writes the run.

    The epoch with the best dev metric (the data set's first) is kept, and training ends after
    ``recipe.patience`` epochs without a better one. An interrupted training keeps the best epoch so far.

    Args:
        recipe: what to train.
        folder: an empty folder for the run.
        dataset: the loaded data; ``train`` and ``dev`` must have groups.
        options: how to train.
        seed: of weights, order of the data, dropout and random word vectors.

    Returns:
        The run, as `zoo.runs.load` reads it back.

    Raises:
        RuntimeError: if the scores are no numbers after the first epoch.
    """
    started = time.monotonic()
    record = {"dev_metric": dataset.metrics[0], "interrupted": False, "diverged": False}
    if recipe.build is None:
        encoded = model = None
        recipe.scorer.fit(dataset.splits["train"])
        history = []
    else:
        keras.utils.set_random_seed(seed)
        encoded = encode_dataset(recipe, dataset, options, seed)
        options.say(f"word vectors: {encoded.coverage}")
        model, history = _fit(recipe, folder, dataset, encoded, options, seed, record)
        record["trainable_parameters"] = int(sum(np.prod(w.shape) for w in model.trainable_weights))
    record["train_seconds"] = round(time.monotonic() - started, 1)

    metrics, scores = {}, {}
    for name in dataset.splits:
        if name == "train":
            continue
        if model is None:
            scores[name] = recipe.scorer.score(dataset.splits[name])
        else:
            split = encoded.splits[name]
            scores[name] = split.per_group(score_split(model, split))
        labels = [np.array(group.labels) for group in dataset.splits[name]]
        metrics[name] = evaluate(dataset, name, scores[name]) | count_queries(labels, dataset.convention)
    run = runs.write(
        folder,
        recipe=recipe,
        dataset=dataset,
        options=options,
        seed=seed,
        encoder=encoded.encoder if encoded else None,
        coverage=encoded.coverage if encoded else None,
        model=model,
        metrics=metrics,
        scores=scores,
        history=history,
        record=record,
    )
    report.write(run, recipe.published, options.data_lines)
    return run


def _fit(recipe, folder, dataset, encoded, options, seed, record):
    """Builds, compiles and fits; returns the model with the weights of its best epoch, and the history."""
    with options.strategy.scope() if options.strategy else contextlib.nullcontext():
        model = recipe.build(encoded)
        # No XLA: it would compile anew for each length of a batch.
        model.compile(optimizer=recipe.optimizer(), loss=recipe.loss(), jit_compile=False)
    # A batch of `batch_size` pairs, in whichever lists they come.
    lists = max(1, recipe.batch_size // recipe.list_size)
    if options.strategy:
        replicas = options.strategy.num_replicas_in_sync
        lists = -(-lists // replicas) * replicas
    batches = Batches(encoded.splits["train"], lists, recipe.list_size, shuffle_seed=seed)
    best = keras.callbacks.EarlyStopping(
        monitor=f"dev_{dataset.metrics[0]}", mode="max", patience=recipe.patience, restore_best_weights=True
    )
    progress = _Progress(recipe.epochs, options.say if not options.bar else lambda line: None)
    callbacks = [
        _RankDev(dataset, encoded),
        progress,
        best,
        keras.callbacks.TensorBoard(folder / "tensorboard", write_graph=False),
    ]
    # Held by hand, so that an interrupted fit still has it.
    history = keras.callbacks.History()
    try:
        model.fit(
            batches,
            epochs=recipe.epochs,
            callbacks=[*callbacks, history],
            verbose=1 if options.bar else 0,
            shuffle=False,  # the batches shuffle themselves, by seed and epoch
        )
    except (KeyboardInterrupt, FloatingPointError) as stopped:
        diverged = isinstance(stopped, FloatingPointError)
        if best.best_weights is None:
            if diverged:
                raise RuntimeError(
                    "Training must keep scores finite, and did not in its first epoch; try a lower learning rate. "
                    f"Received: knobs={options.knobs}"
                ) from None
            raise
        options.say(f"{'diverged' if diverged else 'interrupted'}: the best epoch so far is kept")
        record["diverged" if diverged else "interrupted"] = True
        model.set_weights(best.best_weights)
    rows = [
        {"epoch": epoch + 1, "seconds": round(seconds, 2)}
        | {name: float(values[index]) for name, values in history.history.items()}
        for index, (epoch, seconds) in enumerate(zip(history.epoch, progress.seconds, strict=False))
    ]
    record["best_epoch"] = best.best_epoch + 1
    record["seconds_per_epoch"] = round(float(np.mean(progress.seconds)), 2)
    return model, rows
