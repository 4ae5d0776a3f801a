"""What the two recipes of Tomar et al. 2017 share: its system, the baselines of its table, its knobs."""

from functools import partial

import keras
import numpy as np

from zoo import losses, optimizers
from zoo.models.cnn import cnn
from zoo.models.decatt import decatt
from zoo.models.ffnn import ffnn
from zoo.models.lstm import lstm
from zoo.recipe import Recipe

_SIAMESE = {"siamese_cnn": cnn, "siamese_lstm": lstm}
_FAMILIES = {"ffnn": ffnn, "decatt": decatt}
MODELS = [
    *_SIAMESE,
    "ffnn_word",
    "ffnn_char",
    "decatt_word",
    "decatt_glove",
    "decatt_char",
    "decatt_noisy_char",
    "pt_decatt_word",
    "pt_decatt_char",
    "pt_ffnn_char",  # not in the paper: what pre-training gives without alignment
]
NOISE = ("noisy_pairs", "noisy_epochs", "noisy_batch_size")
# What must be the same where a model takes over another's n-grams, and where it takes all weights.
_OF_NGRAMS = ("ngrams", "ngram_combiner", "embedding_size")
_OF_NETWORK = (*_OF_NGRAMS, "units", "context", "self_attention", "values", "max_distance")
# Small enough to learn the made-up sample within a minute or two.
ON_SAMPLE = {
    "embedding_size": 50,
    "units": 64,
    "ngram_rows": 10_000,
    "epochs": 6,
}
ADAGRAD_ON_SAMPLE = {"learning_rate": 0.02, "accumulator": 1e-4}


def question_pairs(hp, *, models=MODELS, train_pairs=0, augment=None, pretrain=None, **recipe):
    """A recipe of the paper.

    Args:
        hp: hyperparameters.
        models: those that may be chosen.
        train_pairs: stands in the row's name if it is not 0.
        augment: see `Recipe`.
        pretrain: function of (model, encoded data set, `Fit`, knobs of pre-training, builder) for the rows that are
            pre-trained; the builder makes the model anew from (encoded data set, dropout rate).
        recipe: the other attributes of the `Recipe`.
    """
    model = hp.Choice("model", models, default="decatt_char")
    by_char, by_noise = model.endswith("char"), model.startswith("pt_") or "noisy" in model
    siamese = model in _SIAMESE
    sizes = hp.Choice("ngrams", ["3", "4", "5", "3+4", "4+5", "3+4+5"], default="5")  # 4.1, tuned; 5 is best
    rows = hp.Int("ngram_rows", 10_000, 2_000_000, step=10_000, default=200_000)  # not given; ours
    vocabulary = hp.Int("ngram_vocabulary", 0, 2_000_000, default=0)  # not given; 0 hashes every n-gram
    # 3.3: sums. They are long vectors for long words, to which they draw the alignment: by dev, below words. FFNN has
    # the same, so that it differs from DecAtt in alignment alone.
    combiner = hp.Choice("ngram_combiner", ["sqrtn", "sum"], default="sqrtn")
    size = hp.Int("embedding_size", 50, 500, step=50, default=300)  # 4.1
    units = hp.Int("units", 50, 800, step=50, default=400)  # 4.1: every network has 400, 200
    # From small weights every word is aligned with all others alike, and stays so: e_ij must differ from the start.
    network = {
        "context": hp.Int("context", 0, 2, default=1),  # 4.1: context size 1
        # 4.2: it helps the pre-trained character model alone.
        "self_attention": hp.Boolean("self_attention", default=model == "pt_decatt_char"),
        "values": hp.Choice("values", ["token", "window"], default="token"),  # Eq. 4 prints a_j
        "max_distance": hp.Int("max_distance", 1, 20, default=10),  # Parikh et al.
        # Ours, by dev.
        "attend_gain": hp.Float("attend_gain", 0.5, 8.0, sampling="log", default=3.0),
    }
    # Ours, by dev, under sums; 4.1: 0.01. From 0.1 some seeds overshoot at their start, and every training on noise.
    deviation = hp.Float("vector_deviation", 0.001, 1.0, sampling="log", default=0.05)
    dropout = hp.Float("dropout", 0.0, 0.5, step=0.1, default=0.1)  # 4.1, "for tuning"
    # 4.1: 0.1, of Adagrad; that of Adam for the two of Wang et al., who do not give theirs; ours
    learning_rate = hp.Float("learning_rate", 1e-4, 1.0, sampling="log", default=1e-3 if siamese else 0.1)
    # Parikh et al. and TensorFlow 1 begin at 0.1; less lets a small training set learn within few epochs.
    accumulator = hp.Float("accumulator", 1e-8, 1.0, sampling="log", default=0.1)
    noise = pretrain and {
        "pairs": hp.Int("noisy_pairs", 0, 100_000_000, default=0),  # 4.1: 100 million; 0 for one of each question
        "epochs": hp.Int("noisy_epochs", 1, 50, default=3),  # not given; ours
        "batch_size": hp.Int("noisy_batch_size", 16, 1024, step=16, default=256),  # 4.1
    }

    def build(encoded, dropout=dropout):
        if siamese:
            return _SIAMESE[model](
                encoded.embeddings,
                filters=units // 2,
                trainable_embeddings=encoded.trainable_embeddings,
                projection=0,
                compare=True,
                dropout=dropout,
                l2=0.0,
            )
        family, tokens = model.removeprefix("pt_").split("_", 1)
        shape = (
            {"units": (units, units // 2), **network}
            if family == "decatt"
            else {
                "units": (2 * units, units, units // 2)  # 4.1: 800, 400, 200
            }
        )
        if tokens == "glove" and not encoded.trainable_embeddings:
            # The vectors of the file are fixed, those of other words are learnt (section 4). All begin with length 1,
            # as Parikh et al. have them: as long as GloVe's they take three times the epochs and end lower.
            return _FAMILIES[family](
                keras.utils.normalize(encoded.embeddings),
                trainable_embeddings=~encoded.has_vector & (np.arange(len(encoded.has_vector)) > 0),
                dropout=dropout,
                **shape,
            )
        table = (encoded.encoder.vocabulary_size, size)
        return _FAMILIES[family](
            table, char_ngrams=by_char, combiner=combiner, deviation=deviation, dropout=dropout, **shape
        )

    return Recipe(
        model=f"{model}, {train_pairs:,} pairs" if train_pairs else model,
        build=build,
        module=f"zoo.models.{_SIAMESE[model].__name__ if siamese else model.removeprefix('pt_').split('_')[0]}",
        loss=lambda: losses.pointwise,
        optimizer=partial(optimizers.Adam, learning_rate)
        if siamese
        else partial(optimizers.Adagrad, learning_rate, initial_accumulator_value=accumulator),
        augment=augment,
        pretrain=partial(pretrain, noise=noise, build=build) if pretrain and by_noise else None,
        continues=bool(pretrain) and by_noise,
        batch_size=hp.Int("batch_size", 16, 512, step=16, default=64),  # 4.1
        epochs=hp.Int("epochs", 1, 100, default=15),  # not given; ours
        patience=hp.Int("patience", 1, 20, default=3),  # not given; ours
        max_query_length=50,  # Wang et al.
        max_candidate_length=50,
        ngram_sizes=tuple(map(int, sizes.split("+"))) if by_char else (),
        ngram_vocabulary=vocabulary if by_char else 0,
        oov_buckets=(0 if vocabulary else rows) if by_char else 100,  # 100 as Parikh et al.
        takes_embeddings=siamese or model.endswith("glove"),
        embedding_size=size,
        on_sample=ON_SAMPLE if siamese else ON_SAMPLE | ADAGRAD_ON_SAMPLE,
        fixed=("model", "epochs", "patience", *NOISE)
        + ("train_pairs", "both_orders")  # what is learnt from, not how
        + ("self_attention", "ngram_vocabulary"),  # they decide which other knobs there are
        **_of_start(model, pretrain and by_noise),
        replaced_by_start=_replaced_by_start(model, by_char, pretrain and by_noise),
        replaced_by_vectors=("embedding_size", "vector_deviation"),
        without_effect=_without_effect(model, by_char, noise and not by_noise, vocabulary, network["self_attention"]),
        **recipe,
    )


def _of_start(model, by_noise):
    """What a run to start from must be, and which knobs it must have."""
    if not by_noise:
        return {"same_as_start": ("ngram_combiner",)}
    if model.startswith("pt_"):
        return {"starts_from": ("decatt_noisy", (model.removeprefix("pt_"),)), "same_as_start": _OF_NETWORK}
    return {"starts_from": ("decatt_noisy", ("decatt_char", "ffnn_char")), "same_as_start": _OF_NGRAMS}


def _replaced_by_start(model, by_char, by_noise):
    """The knobs that a run to start from takes the place of: it gives the n-grams, and to some rows their weights."""
    replaced = {"ngram_rows", "ngram_vocabulary"} if by_char else set()
    if by_noise:
        replaced |= {*NOISE, "vector_deviation"}
        if model.startswith("pt_decatt"):
            replaced |= {"attend_gain"}
    return tuple(sorted(replaced))


def _without_effect(model, by_char, without_noise, vocabulary, self_attention):
    """The knobs that a row does not have."""
    dead = set()
    if not by_char:
        dead |= {"ngrams", "ngram_rows", "ngram_vocabulary", "ngram_combiner"}
    elif vocabulary:
        dead |= {"ngram_rows"}
    if "decatt" not in model:
        dead |= {"context", "self_attention", "attend_gain"}
    if "decatt" not in model or not self_attention:
        dead |= {"values", "max_distance"}
    if without_noise:
        dead |= set(NOISE)
    if model in _SIAMESE:
        dead |= {"accumulator", "vector_deviation"}
    return tuple(sorted(dead))
