"""From a recipe and a data set to a run: the only place that calls `fit`."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import keras
import numpy as np

from zoo import own_vectors, report, runs
from zoo.batches import Batches, EncodedSplit, Negatives, encode_split, joined, score_split
from zoo.data import Dataset, Group
from zoo.embeddings import RANDOM_RANGE, embedding_matrix, read_words
from zoo.evaluation import best_threshold, direction, evaluate, is_classification, is_ranking
from zoo.metrics import count_queries
from zoo.text import TextEncoder, build_vocabulary

_COMPILED_LENGTHS = 8  # the step between them


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
        output: the output that the loss sees, of a model that gives a dictionary.
        compiled: whether training steps are compiled by XLA, once for each of a few lengths of text, where word
            vectors are given; worth it where a loop over time has much overhead, as that of a recurrent layer of
            few units.
        train_on: the splits that are trained on, as one; those of them that the data has.
        augment: function of the training groups to those that are learnt from: some of them, or more.
        pretrain: function of (model, encoded data set, `Fit`) that trains the model, or parts of it, on
            something else first.
        finish: function of (trained model, encoded data set) to the model that is scored, saved and exported,
            for instance with a calibration fitted on the training pairs.
        measure: function of (finished model, encoded data set) to split to further metrics, beside those of the
            score.
        rescore: function of (data set, split to scores of each group) to the scores that are measured and what the
            run records of it: adds what is known of candidates beside their texts, such as a search engine's
            order. The saved model scores texts alone.
        figures: function of (finished model, encoded data set) to the model's own pictures, title to
            `matplotlib` figure, for the report.
        published: the paper's table: row to metric to value, as fractions; or one such table for each test split,
            by its name.
        batch_size: pairs of a training step.
        list_size: pairs of one query that stand together in a batch; 1 draws pairs independently.
        negatives: how the negatives of a list are drawn; None takes the lists as they are.
        epochs: at most this many; 0 for pre-training alone.
        patience: epochs without a better dev metric before training ends.
        max_query_length, max_candidate_length: tokens kept of a text (of each field).
        tokenizer: ``"word"`` or ``"wordpiece"``.
        oov_buckets: rows that words outside of the vocabulary are hashed to.
        ngram_sizes: if given, tokens are rows of the ids of their character n-grams of these sizes.
        ngram_vocabulary: n-grams of the training texts, the most frequent, with a row of their own; the others
            share ``oov_buckets`` rows, or have none where that is 0.
        max_words: words of the vector files that join the training words in the vocabulary.
        takes_embeddings: whether the vector files of the command line are for this model.
        embedding_size: width of the word vectors where no file is given.
        random_range: words without a vector get numbers up to this, drawn; 0 gives zeros.
        own_vectors: whether these begin as vectors trained on the training texts, see `zoo.own_vectors`, in place
            of random ones.
        task: ``"binary"``: the score is the log-odds of a match; ``"ranking"``: it orders candidates, and has
            no scale; ``"regression"``: it is a value on the labels' scale.
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
    output: str | None = None
    compiled: bool = False
    train_on: tuple[str, ...] = ("train",)
    augment: Callable[[list[Group]], list[Group]] | None = None
    pretrain: Callable[[keras.Model, EncodedDataset, Fit], None] | None = None
    finish: Callable[[keras.Model, EncodedDataset], keras.Model] | None = None
    measure: Callable[[keras.Model, EncodedDataset], dict[str, dict[str, float]]] | None = None
    rescore: Callable[[Dataset, dict], tuple[dict, dict]] | None = None
    figures: Callable[[keras.Model, EncodedDataset], dict] | None = None
    published: dict[str, dict] = field(default_factory=dict)
    batch_size: int = 64
    list_size: int = 1
    negatives: Negatives | None = None
    epochs: int = 25
    patience: int = 5
    max_query_length: int = 50
    max_candidate_length: int = 50
    tokenizer: str = "word"
    oov_buckets: int = 64
    ngram_sizes: tuple[int, ...] = ()
    ngram_vocabulary: int = 0
    max_words: int = 100_000
    takes_embeddings: bool = True
    embedding_size: int = 100
    random_range: float = RANDOM_RANGE
    own_vectors: bool = False
    task: str = "binary"
    fixed: tuple[str, ...] = ("model",)
    on_sample: dict = field(default_factory=dict)


@dataclass(frozen=True)
class EncodedDataset:
    """What a model is built from.

    Attributes:
        encoder: strings to ids.
        splits: the splits as ids.
        embeddings: ``[V, E]`` float32, row 0 zero; E is 0 for n-grams, whose table the model draws itself.
        has_vector: ``[V]`` bool, whether a row is a vector of the files; the others are random.
        trainable_embeddings: true where no vectors were given.
        coverage: one line on how many words have a given vector.
        dataset: the texts themselves, their labels and metrics.
    """

    encoder: TextEncoder
    splits: dict[str, EncodedSplit]
    embeddings: np.ndarray
    has_vector: np.ndarray
    trainable_embeddings: bool
    coverage: str
    dataset: Dataset


@dataclass(frozen=True)
class Options:
    """How to train, as opposed to what.

    Attributes:
        embeddings: word-vector files; several are laid side by side.
        strategy: a `tf.distribute` strategy, or None.
        bar: whether a progress bar is drawn; else a line per epoch.
        start: an earlier run, whose vocabulary and weights are taken where names and shapes agree.
        sample: whether the data is the made-up sample.
        knobs: name to value of every knob, for the run's record.
        data_lines: the data report, for the run's record.
        say: where lines of progress go.
    """

    embeddings: tuple[Path, ...] = ()
    strategy: object | None = None
    start: runs.Run | None = None
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
        text
        for split in dataset.training_splits
        for group in dataset.splits[split]
        for fields in (group.query, *group.candidates)
        for text in fields
    ]
    files = options.embeddings if recipe.takes_embeddings and not recipe.ngram_sizes else ()
    own_words = [] if recipe.ngram_sizes else build_vocabulary(texts, recipe.tokenizer)
    if options.start:
        encoder = options.start.text_encoder
        if tuple(encoder.ngram_sizes) != tuple(recipe.ngram_sizes):
            raise ValueError(
                "The run to start from must give tokens as the model takes them. "
                f"Received: ngram_sizes={tuple(encoder.ngram_sizes)} for {tuple(recipe.ngram_sizes)}"
            )
    elif recipe.ngram_sizes:
        kept = recipe.ngram_vocabulary
        ngrams = build_vocabulary(texts, max_words=kept, ngram_sizes=recipe.ngram_sizes) if kept else []
        encoder = TextEncoder(ngrams, recipe.tokenizer, recipe.oov_buckets, recipe.ngram_sizes)
    else:
        extra = read_words(files, recipe.max_words) if files else ()
        words = build_vocabulary(texts, recipe.tokenizer, extra_words=extra) if extra else own_words
        encoder = TextEncoder(words, recipe.tokenizer, recipe.oov_buckets)
    has_vector = np.zeros(encoder.vocabulary_size, bool)
    if files:
        embeddings, found = embedding_matrix(
            files, encoder.words, encoder.oov_buckets, seed, random_range=recipe.random_range
        )
        missing = set(found.missing)
        has_vector[-len(encoder.words) :] = [word not in missing for word in encoder.words]
        known = set(encoder.words)
        known_words = [word for word in own_words if word in known]
        _, coverage = embedding_matrix(files, known_words, encoder.oov_buckets, seed)
        coverage = str(coverage)
        if len(known_words) < len(own_words):
            coverage += f"; {len(own_words) - len(known_words)} training words are unknown to the run started from"
    else:
        shape = (encoder.vocabulary_size, 0 if recipe.ngram_sizes else recipe.embedding_size)
        embeddings = np.random.default_rng(seed).uniform(-0.25, 0.25, shape).astype("float32")
        embeddings[0] = 0
        kind = "character n-grams" if recipe.ngram_sizes else "no word vectors given"
        coverage = f"{kind}: {shape[0]} rows of {recipe.embedding_size} numbers are trained from random"
    splits = {
        name: encode_split(groups, encoder, dataset.fields, recipe.max_query_length, recipe.max_candidate_length)
        for name, groups in dataset.splits.items()
    }
    if recipe.own_vectors and not files:
        known = [splits[name] for name in dataset.training_splits]
        coverage = own_vectors.train(known, embeddings, 1 + encoder.oov_buckets, encoder.words, seed)
    return EncodedDataset(encoder, splits, embeddings, has_vector, not files, coverage, dataset)


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
    """One line per epoch, and the seconds each took."""

    def __init__(self, label, epochs, say):
        super().__init__()
        self.label, self.epochs, self.say, self.seconds = label, epochs, say, []

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.monotonic()

    def on_epoch_end(self, epoch, logs):
        self.seconds.append(time.monotonic() - self.start)
        numbers = "  ".join(f"{name} {float(value):.4f}" for name, value in logs.items())
        self.say(f"{self.label} {epoch + 1}/{self.epochs}  {numbers}  {self.seconds[-1]:.1f} s")


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
    history, encoded, model = [], None, None
    if recipe.build is None:
        recipe.scorer.fit(dataset.splits["train"])
    else:
        keras.utils.set_random_seed(seed)
        learnt = recipe.augment(dataset.splits["train"]) if recipe.augment else dataset.splits["train"]
        record["num_train"] = sum(len(group.labels) for group in learnt)
        learnt_from = dataclasses.replace(dataset, splits=dataset.splits | {"train": learnt})
        encoded = encode_dataset(recipe, learnt_from, options, seed)
        options.say(f"word vectors: {encoded.coverage}")
        model, history = _fit(recipe, folder, encoded, options, seed, record)
        record["trainable_parameters"] = int(sum(np.prod(w.shape) for w in model.trainable_weights))
    record["train_seconds"] = round(time.monotonic() - started, 1)

    def score(split):
        if model is None:
            return recipe.scorer.score(dataset.splits[split])
        return encoded.splits[split].per_group(score_split(model, encoded.splits[split]))

    scores = {split: score(split) for split in dataset.scored_splits}
    if recipe.rescore:
        scores, found = recipe.rescore(dataset, scores)
        record |= found
    threshold = _threshold(dataset, scores["dev"])
    metrics = {}
    for split in dataset.scored_splits:
        metrics[split] = evaluate(dataset, split, scores[split], threshold)
        if is_ranking(dataset):
            labels = [np.array(group.labels) for group in dataset.splits[split]]
            metrics[split] |= count_queries(labels, dataset.convention)
    if recipe.measure and model is not None:
        for split, found in recipe.measure(model, encoded).items():
            metrics[split] |= found
    figures = recipe.figures(model, encoded) if recipe.figures and model is not None else {}
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
        threshold=threshold,
        history=history,
        record=record,
    )
    report.write(run, recipe.published, options.data_lines, figures)
    return run


def _threshold(dataset, dev_scores):
    """The score from which on a pair is told a match: tuned on dev where pairs are told right or wrong, else 0."""
    if not is_classification(dataset):
        return 0.0
    labels = [label for group in dataset.splits["dev"] for label in group.labels]
    by = "f1" if dataset.metrics[0] == "f1" else "accuracy"
    return best_threshold(np.concatenate(dev_scores), np.array(labels), by)


def _fit(recipe, folder, encoded, options, seed, record):
    """Builds, pre-trains, fits and finishes; returns the finished model and the history of its epochs."""
    dataset = encoded.dataset
    metric = dataset.metrics[0]
    with options.strategy.scope() if options.strategy else contextlib.nullcontext():
        model = recipe.build(encoded)
        if options.start:
            options.say(copy_weights(options.start.model, model))
    fit = Fit(recipe, folder, options, seed)
    if recipe.pretrain:
        recipe.pretrain(model, encoded, fit)

    def measure_dev(model):
        scores = score_split(model, encoded.splits["dev"])
        if not np.isfinite(scores).all():
            raise FloatingPointError
        scores = encoded.splits["dev"].per_group(scores)
        return evaluate(dataset, "dev", scores, _threshold(dataset, scores))

    history = []
    record |= {"best_epoch": 0, "seconds_per_epoch": 0.0}
    if recipe.epochs:  # none: the run is a pre-training alone, to start others from
        history, found = fit(
            model,
            fit.batches(joined([encoded.splits[name] for name in recipe.train_on if name in encoded.splits])),
            loss=recipe.loss,
            optimizer=recipe.optimizer,
            output=recipe.output,
            epochs=recipe.epochs,
            patience=recipe.patience,
            measure=measure_dev,
            metric=metric,
            survives=True,
        )
        record |= found
    if recipe.finish:
        model = recipe.finish(model, encoded)
    return model, history


def copy_weights(source: keras.Model, target: keras.Model) -> str:
    """Copies the weights whose path and shape agree; returns a line that says which, on either side, were left.

    Raises:
        ValueError: if none agree.
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
    if not taken:
        raise ValueError(
            "The run to start from must share weights with the model, by path and shape. "
            f"Received: {sorted(weights)} for {left}"
        )
    unused = sorted(weights.keys() - set(taken))
    return (
        f"{len(taken)} weights taken over; new: {', '.join(left) or 'none'}; not taken: {', '.join(unused) or 'none'}"
    )


class Fit:
    """Fits a model and keeps its best epoch: the training itself, and what a `Recipe.pretrain` is handed.

    Args:
        recipe, folder, options, seed: as `train`.
    """

    def __init__(self, recipe: Recipe, folder: Path, options: Options, seed: int):
        self.recipe, self.folder, self.options, self.seed = recipe, folder, options, seed
        # The optimizers' sums over the rows of word vectors that are trained do not compile.
        self.compiled = recipe.compiled and bool(options.embeddings)

    def scope(self):
        """What variables must be made in."""
        return self.options.strategy.scope() if self.options.strategy else contextlib.nullcontext()

    def batches(self, split: EncodedSplit, **changes) -> Batches:
        """A split in the recipe's batches; ``changes`` are other arguments of `Batches`."""
        recipe, strategy = self.recipe, self.options.strategy
        # A batch of `batch_size` pairs, in whichever lists they come.
        list_size = 1 + recipe.negatives.count if recipe.negatives else recipe.list_size
        lists = max(1, recipe.batch_size // list_size)
        if strategy:
            lists = -(-lists // strategy.num_replicas_in_sync) * strategy.num_replicas_in_sync
        settings = {
            # Replicas share a batch in equal parts: padding would make the rows of one weigh more than the other's.
            "drop_remainder": bool(strategy),
            "batch_size": lists,
            "list_size": recipe.list_size,
            "negatives": recipe.negatives,
            "shuffle_seed": self.seed,
            "length_step": _COMPILED_LENGTHS if self.compiled else 1,
        }
        return Batches(split, **settings | changes)

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
            label: what an epoch is called in the lines of progress.
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
            fitted = keras.Model(model.input, model.output[output] if output else model.output)
            # XLA compiles anew for each length of a batch; without a step between lengths that would be too many.
            fitted.compile(optimizer=optimizer(), loss=loss(), jit_compile=self.compiled)
        progress = _Progress(label, epochs, options.say if not options.bar else lambda line: None)
        best = keras.callbacks.EarlyStopping(
            monitor=f"dev_{metric}" if metric else "loss",
            mode=direction(metric) if metric else "min",
            patience=epochs if patience is None else patience,
            restore_best_weights=metric is not None,
        )
        # Held by hand, so that an interrupted fit still has it.
        history = keras.callbacks.History()
        measured = [_MeasureDev(lambda: measure(model), metric)] if measure else []
        board = keras.callbacks.TensorBoard(self.folder / "tensorboard" / label, write_graph=False)
        found = {}
        try:
            fitted.fit(
                batches,
                epochs=epochs,
                callbacks=[*measured, progress, best, board, history],
                verbose=1 if options.bar else 0,
                shuffle=False,  # the batches shuffle themselves, by seed and epoch
            )
        except (KeyboardInterrupt, FloatingPointError) as stopped:
            diverged = isinstance(stopped, FloatingPointError)
            if not survives or best.best_weights is None:
                if diverged:
                    raise RuntimeError(
                        "Training must keep scores finite; try a lower learning rate. "
                        f"Received: {label} {len(history.epoch) + 1}, knobs={options.knobs}"
                    ) from None
                raise
            options.say(f"{'diverged' if diverged else 'interrupted'}: the best epoch so far is kept")
            found["diverged" if diverged else "interrupted"] = True
            fitted.set_weights(best.best_weights)
        rows = [
            {"epoch": epoch + 1, "seconds": round(seconds, 2)}
            | {name: float(values[index]) for name, values in history.history.items()}
            for index, (epoch, seconds) in enumerate(zip(history.epoch, progress.seconds, strict=False))
        ]
        found["best_epoch"] = best.best_epoch + 1 if metric else len(rows)
        found["seconds_per_epoch"] = round(float(np.mean(progress.seconds)), 2)
        return rows, found
