"""What is trained, and how: a recipe, what its model is built from, and the options of one training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import keras
import numpy as np

from zoo import runs
from zoo.data import Dataset, Group
from zoo.embeddings import RANDOM_RANGE
from zoo.encoded import EncodedSplit
from zoo.negatives import Negatives
from zoo.text import TextEncoder


@dataclass(frozen=True)
class EncodedDataset:
    """What a model is built from.

    Attributes:
        encoder: strings to ids.
        splits: the splits as ids.
        embeddings: ``[V, E]`` float32, row 0 zero; E is 0 for n-grams, whose table the model draws itself.
        has_vector: ``[V]`` bool, whether a row is a vector of the files; the others are random.
        vector_files: the files whose vectors these are.
        coverage: one line on how many words have a given vector.
        dataset: the texts themselves, their labels and metrics.
    """

    encoder: TextEncoder
    splits: dict[str, EncodedSplit]
    embeddings: np.ndarray
    has_vector: np.ndarray
    vector_files: tuple[Path, ...]
    coverage: str
    dataset: Dataset

    @property
    def trainable_embeddings(self) -> bool:
        """True where no vectors were given."""
        return not self.vector_files


@dataclass(frozen=True)
class Options:
    """How to train, as opposed to what.

    Attributes:
        embeddings: word-vector files; several are laid side by side.
        strategy: a `tf.distribute` strategy, or None.
        bar: whether a progress bar is drawn; else a line per epoch.
        start: an earlier run, whose vocabulary and weights are taken where names and shapes agree.
        sample: whether the data is the made-up sample.
        knobs: name to value of every knob but those without effect, for the run's record.
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
        augment: function of (training groups, seed) to those that are learnt from: some of them, or more.
        pretrain: function of (model, encoded data set, `zoo.fitting.Fit`) that trains the model, or parts of it, on
            something else first; it returns what that fit returns, or None.
        continues: whether the model is meant to start from an earlier run; the row of another one that does is
            named apart, with ``_from_run``.
        finish: function of (trained model, encoded data set) to the model that is scored, saved and exported,
            for instance with a calibration fitted on the training pairs.
        measure: function of (finished model, encoded data set) to split to further metrics, beside those of the
            score.
        rescore: function of (data set, split to scores of each group) to the scores that are measured and what the
            run records of it, ``rescored`` being a sentence for the model card: adds what is known of candidates
            beside their texts, such as a search engine's order. The saved model scores texts alone.
        figures: function of (finished model, encoded data set, rows of the pre-training's epochs) to the model's own
            pictures, title to `matplotlib` figure, for the report.
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
        reads_unknown: whether the model reads them, or passes them over.
        ngram_sizes: if given, tokens are rows of the ids of their character n-grams of these sizes.
        ngram_vocabulary: n-grams of the training texts, the most frequent, with a row of their own; the others
            share ``oov_buckets`` rows, or have none where that is 0.
        max_words: words of the vector files that join the training words in the vocabulary.
        only_with_vector: whether words of the training texts that the vector files lack are unknown words, where files
            are given; else they begin as random vectors.
        takes_embeddings: whether the vector files of the command line are for this model.
        embedding_size: width of the word vectors where no file is given.
        random_range: words without a vector get numbers up to this, drawn; 0 gives zeros.
        own_vectors: whether these begin as vectors trained on the training texts, see `zoo.own_vectors`, in place
            of random ones.
        task: ``"binary"``: the score is the log-odds of a match; ``"ranking"``: it orders candidates, and has
            no scale; ``"regression"``: it is a value on the labels' scale.
        outputs: name to meaning of the outputs that the model has, or may have, beside its score.
        fixed: knobs that a search leaves alone.
        without_effect: knobs of networks that the recipe has and this row's network has not: a search leaves them
            alone, a command that sets one for this row alone is refused, and they are not recorded.
        starts_from: the recipe and the models that a run to start from must be of; None for any.
        same_as_start: knobs that must be those of the run to start from; a search leaves them as they are there.
        replaced_by_start, replaced_by_vectors: knobs that an earlier run to start from takes the place of, and those
            that files of word vectors do: refused beside them, not searched and not recorded.
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
    augment: Callable[[list[Group], int], list[Group]] | None = None
    pretrain: Callable[..., tuple[list[dict], dict] | None] | None = None
    continues: bool = False
    finish: Callable[[keras.Model, EncodedDataset], keras.Model] | None = None
    measure: Callable[[keras.Model, EncodedDataset], dict[str, dict[str, float]]] | None = None
    rescore: Callable[[Dataset, dict], tuple[dict, dict]] | None = None
    figures: Callable[..., dict] | None = None
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
    reads_unknown: bool = True
    ngram_sizes: tuple[int, ...] = ()
    ngram_vocabulary: int = 0
    only_with_vector: bool = False
    max_words: int = 100_000
    takes_embeddings: bool = True
    embedding_size: int = 100
    random_range: float = RANDOM_RANGE
    own_vectors: bool = False
    task: str = "binary"
    outputs: dict[str, str] = field(default_factory=dict)
    fixed: tuple[str, ...] = ("model",)
    without_effect: tuple[str, ...] = ()
    starts_from: tuple[str, tuple[str, ...]] | None = None
    same_as_start: tuple[str, ...] = ()
    replaced_by_start: tuple[str, ...] = ()
    replaced_by_vectors: tuple[str, ...] = ("embedding_size",)
    on_sample: dict = field(default_factory=dict)

    def unlike_start(self, start: runs.Run, knobs: dict) -> str:
        """What keeps a model of these knobs from going on from a run, empty if nothing does."""
        settings = start.settings
        recipe, models = self.starts_from or (settings["recipe"], ())
        there = settings["knobs"]
        if settings["recipe"] != recipe or (models and there["model"] not in models):
            return f"a run of {settings['recipe']}, {there['model']}, where {' or '.join(models)} of {recipe} is needed"
        differ = [name for name in self.same_as_start if name in knobs and there.get(name) != knobs[name]]
        return ", ".join(f"{name} {there.get(name)} there, {knobs[name]} here" for name in differ)

    def dead_knobs(self, options: Options) -> tuple[str, ...]:
        """The knobs without effect on a run under these options: what they are of is not there, or given."""
        of_start = self.replaced_by_start if options.start else ()
        of_vectors = self.replaced_by_vectors if options.embeddings and self.takes_embeddings else ()
        return self.without_effect + of_start + of_vectors

    def live_knobs(self, values: dict, options: Options) -> dict:
        """What a run under these options records of the values of all knobs."""
        dead = self.dead_knobs(options)
        return {name: value for name, value in values.items() if name not in dead}
