"""MaLSTM on SICK: how related two sentences are, from 1 to 5, and whether one follows from the other (Mueller and
Thyagarajan 2016, Tables 1 to 4).

Data: SICK of SemEval-2014 (zenodo.org/records/2787612), or the STS-Benchmark. For pre-training any year of STS
(ixa2.si.ehu.eus/stswiki). For synonyms WordNet 3.0 as nltk has it, and `pip install 'pairzoo[wordnet]'`. The paper's
vectors are GoogleNews-vectors-negative300 (word2vec); any will do, and several are laid side by side.

    python -m recipes.malstm_sick                             a made-up sample
    python -m recipes.malstm_sick --data sick --embeddings GoogleNews-vectors-negative300.bin
    python -m recipes.malstm_sick --data sick --pretrain sts/2013 --wordnet wordnet.tar.gz \\
        --embeddings glove.6B.100d.txt --embeddings glove.6B.50d.txt --seeds 5
    ... --ablation       without calibration, pre-training, synonyms: the paper's three
    ... --table          the other encoders and heads
    ... --model classifier --optimizer adam --units 150 --held-out 0    away from the paper

The score that is served is on the scale of the labels. Beside it stand the score before its calibration, and, where
the data has them, one decision value for each of contradiction, entailment and neutral: the largest is the answer.

Departures from the paper: which 30 % of the training pairs choose the epoch is our draw, and synonyms are of the
other pairs alone; a word is replaced by a synonym with a chance of one quarter, only its usual meanings are looked at,
and where vectors are given a synonym must have one near that of the word, as in the authors' code; ten passes, as
there, then find fewer pairs than the paper has (all 10,022, by more passes, cost .015 of Pearson's correlation on dev
and .017 on test, with one seed); the epoch is chosen by Pearson's correlation; the entailment's search for C and gamma
is on 2,000 pairs; the threshold of clipping, the deviation of the first weights, the patience and the kernel of the
regression, which it does not give, are ours.
"""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from recipes import malstm_figures
from recipes.knob_meanings import MEANINGS
from zoo import augmentation, calibration, entailment, losses, optimizers, samples
from zoo.batches import finite_scores, predict_split, score_split
from zoo.command_line import main
from zoo.data import DataError
from zoo.datasets import sick, sts
from zoo.encoded import joined
from zoo.evaluation import evaluate
from zoo.models.malstm import finished, malstm, pair_features
from zoo.recipe import Recipe
from zoo.splits import SEED, hold_out_of, without

PUBLISHED = {  # Tables 2 and 4; the ablation's differences of the text
    "malstm": {"pearson": 0.8822, "spearman": 0.8345, "mse": 0.2286, "entailment": 0.842},
    "malstm-without-calibration": {"pearson": 0.8722},
    "malstm-without-pretraining": {"pearson": 0.8622},
    "malstm-without-synonyms": {"pearson": 0.8422},
}
MODELS = {  # what stands in the place of encoder and similarity
    "malstm": {},
    "gru": {"encoder": "gru"},
    "mean": {"encoder": "mean"},
    "euclidean": {"p": 2},
    "cosine": {"p": "cosine"},
    "classifier": {"head": "classifier"},
}
ABLATION = [{}, {"calibrate": "none"}, {"pretraining": False}, {"synonyms": 0}]
OUTPUTS = {
    "uncalibrated": "the score before its calibration",
    **dict.fromkeys(sick.CLASSES, "decision value: the largest of the three classes' is the answer"),
    "log_probabilities": "of each whole number of the scale; the score before calibration is their mean",
}
_LEFT_OUT = {"calibrate": "calibration", "pretraining": "pretraining", "synonyms": "synonyms"}
SYNONYMS = 10_022  # Semantic relatedness scoring
_RATES = {"adadelta": 1.0, "adam": 1e-3}


def recipe(hp):
    """The recipe under some hyperparameters."""
    model = hp.Choice("model", list(MODELS), default="malstm")
    optimizer = hp.Choice("optimizer", list(_RATES), default="adadelta")  # Training details
    learning_rate = hp.Float("learning_rate", 1e-4, 2.0, sampling="log", default=_RATES[optimizer])  # Zeiler's rule
    clip = hp.Float("clip", 0.1, 10.0, sampling="log", default=1.25)  # "a threshold"; ours
    network = {
        "units": hp.Int("units", 50, 300, step=50, default=50),  # Training details
        "forget_bias": hp.Float("forget_bias", 0.0, 5.0, step=0.5, default=2.5),  # Training details
        "deviation": hp.Float("deviation", 0.01, 0.3, sampling="log", default=0.025),  # "small"; as the authors' code
        "word_dropout": hp.Float("word_dropout", 0.0, 0.5, step=0.1, default=0.0),  # not in the paper
        "drop_unknown": hp.Boolean("drop_unknown", default=False),  # not given; ours
        "hidden": hp.Int("hidden", 50, 300, step=50, default=50),  # of the classifier; Tai et al. 2015
    }
    held_out = hp.Float("held_out", 0.0, 0.5, step=0.05, default=0.3)  # Training details; 0 takes the trial pairs
    synonyms = hp.Int("synonyms", 0, 50_000, default=SYNONYMS)  # pairs made with --wordnet
    pretraining = hp.Boolean("pretraining", default=True)  # on --pretrain, Training details
    calibrate = hp.Choice("calibrate", ["train", "dev", "none"], default="train")  # Semantic relatedness scoring
    judge = hp.Boolean("entailment", default=True)  # Entailment classification
    epochs = hp.Int("epochs", 1, 500, default=60)  # not given; ours
    pretraining_epochs = hp.Int("pretraining_epochs", 1, 100, default=15)  # not given; ours
    patience = hp.Int("patience", 1, 50, default=10)  # not given; ours
    make_optimizer = partial(_optimizer, optimizer, learning_rate, clip)
    left_out = [
        _LEFT_OUT[name]
        for name, on in (("calibrate", calibrate != "none"), ("pretraining", pretraining), ("synonyms", synonyms))
        if not on
    ]
    is_classifier = model == "classifier"
    low, high = sick.SCALE
    loss = partial(losses.NeighbourDivergence, high) if is_classifier else partial(losses.SquaredError, high - low)

    def build(encoded):
        return malstm(
            encoded.embeddings,
            trainable_embeddings=encoded.trainable_embeddings,
            scale=encoded.dataset.scale,
            **network | MODELS[model],
        )

    def pretrain(built, encoded, fit):
        if "pretrain" not in encoded.splits:
            return None
        split, dataset = encoded.splits["pretrain_dev"], encoded.dataset
        return fit(
            built,
            fit.batches(encoded.splits["pretrain"]),
            loss=loss,
            optimizer=make_optimizer,
            output="log_probabilities" if is_classifier else None,
            epochs=pretraining_epochs,
            patience=patience,
            measure=lambda model: evaluate(dataset, "pretrain_dev", finite_scores(model, split)),
            metric="pearson",
            label="pretraining epoch",
            survives=True,
        )

    return Recipe(
        name="malstm_sick",
        model=model + "".join(f"-without-{part}" for part in left_out),
        load=partial(sick.load, held_out=held_out),
        sample=samples.sick,
        build=build,
        module="zoo.models.malstm",
        loss=loss,
        output="log_probabilities" if is_classifier else None,
        optimizer=make_optimizer,
        compiled=True,
        train_on=("train", "train_synonyms") if synonyms else ("train",),
        pretrain=pretrain if pretraining else None,
        finish=partial(_finish, calibrate=calibrate, judge=judge),
        measure=_measure,
        figures=malstm_figures.figures,
        published=PUBLISHED,
        batch_size=hp.Int("batch_size", 16, 256, step=16, default=16),  # not given; ours, by dev
        epochs=epochs,
        patience=patience,
        max_query_length=malstm_figures.MAX_TOKENS,
        max_candidate_length=malstm_figures.MAX_TOKENS,
        embedding_size=hp.Int("embedding_size", 50, 300, step=50, default=100),  # only without a vector file
        random_range=0.0,  # the authors' code: a word without a vector is zeros
        task="regression",
        outputs=OUTPUTS,
        fixed=("model", "held_out", "synonyms", "pretraining", "calibrate", "entailment")
        + ("epochs", "pretraining_epochs", "patience", "embedding_size"),
        without_effect=_without_effect(model),
        on_sample={"optimizer": "adam", "epochs": 16},
    )


def _without_effect(model):
    """The knobs that a row does not have."""
    dead = () if model == "classifier" else ("hidden",)
    return dead + {"mean": ("forget_bias", "deviation"), "gru": ("forget_bias",)}.get(model, ())


def _optimizer(name, learning_rate, clip):
    if name == "adam":
        return optimizers.Adam(learning_rate, global_clipnorm=clip)
    return optimizers.Adadelta(learning_rate, rho=0.95, epsilon=1e-6, global_clipnorm=clip)


def _finish(model, encoded, *, calibrate, judge):
    """Fits the calibration and the entailment's machine on the original training pairs."""
    curve = machine = None
    original = joined([encoded.splits["train"], encoded.splits["dev"]])
    if calibrate != "none":
        split = original if calibrate == "train" else encoded.splits["dev"]
        scores = score_split(model, split)
        curve = calibration.fit(scores, split.labels) if np.ptp(scores) else None
    judgements = _judgements(encoded.dataset)
    if judge and judgements:
        features = predict_split(pair_features(model), original)["features"]
        machine = entailment.fit(features, judgements, sick.CLASSES)
    return finished(model, curve, machine, sick.CLASSES)


def _judgements(dataset):
    """The class of each pair of train and dev; none where the data has no classes."""
    found = [group.judgements for name in ("train", "dev") for group in dataset.splits[name]]
    return [judged for (judged,) in found] if all(found) else []


def _measure(model, encoded):
    """How many pairs are judged right, of each split but dev, whose pairs the machine has seen."""
    if not set(sick.CLASSES) <= set(model.output):
        return {}
    found = {}
    for name in encoded.dataset.scored_splits[1:]:
        outputs = predict_split(model, encoded.splits[name])
        answers = np.argmax([outputs[each] for each in sick.CLASSES], axis=0)
        right = [sick.CLASSES.index(group.judgements[0]) for group in encoded.dataset.splits[name]]
        found[name] = {"entailment": float(np.mean(answers == right))}
    return found


def add_data_flags(parser):
    """Flags that name the files."""
    parser.add_argument("--data", type=Path, metavar="DIR", help="SICK, or the STS-Benchmark (sts-train.csv ...)")
    parser.add_argument("--pretrain", type=Path, metavar="DIR", help="one or more years of STS, to begin with")
    parser.add_argument("--wordnet", type=Path, metavar="PATH", help="WordNet, for synonyms: a folder, .zip or .tar.gz")


def load(flags, recipe):
    """The data set that the flags name, or None."""
    _check_use(flags)
    if flags.data is None:
        return None
    dataset = sts.load(flags.data) if sts.is_benchmark(flags.data) else recipe.load(flags.data)
    _check_judgements(flags, dataset)
    splits, read, notes = dict(dataset.splits), list(dataset.files), list(dataset.notes)
    scored = [group for name in dataset.scored_splits for group in dataset.splits[name]]
    if flags.pretrain:
        pairs, more = sts.read_year(flags.pretrain, dataset.scale)
        kept = without(pairs, scored)
        splits["pretrain"], splits["pretrain_dev"] = hold_out_of(
            flags.pretrain, "enough sentences to hold some out", kept, max(1, round(0.3 * len(kept))), SEED
        )
        read += more
        left_out = f"left out, being in dev or test: {len(pairs) - len(kept)}"
        notes.append(f"Pairs for rows that are pre-trained: {len(kept)}; {left_out}.")
    else:
        notes.append("No pre-training: there is no --pretrain.")
    count = flags.synonyms if flags.synonyms is not None else SYNONYMS
    if flags.wordnet and count:
        words = augmentation.words_of(splits["train"])
        synonyms = augmentation.wordnet_synonyms(words, flags.wordnet, tuple(flags.embeddings))
        made = splits["train_synonyms"] = augmentation.augment(splits["train"], synonyms, count, known=scored)
        fewer = f", where {count} were asked for: {augmentation.PASSES} passes find no more" * (len(made) < count)
        notes.append(f"Pairs made with synonyms of {len(synonyms)} words, for rows that take them: {len(made)}{fewer}.")
        read += [flags.wordnet] if flags.wordnet.is_file() else sorted(flags.wordnet.rglob("*.noun"))
    else:
        notes.append("No pairs are made with synonyms.")
    if flags.calibrate in (None, "train"):
        notes.append("A calibration of the training pairs has seen those of dev: dev's figures are a little too good.")
    return replace(dataset, splits=splits, files=tuple(read), notes=tuple(notes))


def _check_use(flags):
    """Refuses what would train the same model under other names, or have no effect."""
    given = dict(vars(flags))
    if not given.get("ablation"):
        given["ablation"] = None
    for flag, *needed in (
        ("ablation", "data", "pretrain", "wordnet"),
        ("pretrain", "data"),
        ("wordnet", "data"),
        ("pretraining", "pretrain"),
        ("pretraining_epochs", "pretrain"),
        ("synonyms", "wordnet"),
    ):
        absent = [f"--{name}" for name in needed if not given[name]]
        if given[flag] is not None and absent:
            raise DataError(_spelt(flag, given[flag]), None, f"{' and '.join(absent)} beside it", "none")
    if flags.pretraining is False and flags.pretraining_epochs is not None:
        raise DataError("--pretraining-epochs", None, "a pre-training", "--no-pretraining")
    if flags.data and sts.is_benchmark(flags.data):
        for flag in ("held_out", "entailment"):
            if given[flag] is not None:
                received = "the STS-Benchmark, which has its own dev set, and no classes"
                raise DataError(_spelt(flag, given[flag]), None, "SICK as --data", received)


def _spelt(flag, value):
    return f"--{'no-' if value is False else ''}{flag.replace('_', '-')}"


def _check_judgements(flags, dataset):
    """Before the training, not after it: each class needs its pairs."""
    judgements = _judgements(dataset)
    if judgements and flags.entailment is not False:
        try:
            entailment.check(judgements, sick.CLASSES)
        except ValueError as error:
            raise DataError(flags.data, None, "pairs of each class, or --no-entailment", error) from None


if __name__ == "__main__":
    tables = {"table": [{"model": model} for model in MODELS], "ablation": ABLATION}
    sys.exit(main(recipe, __doc__, MEANINGS, tables=tables, add_data_flags=add_data_flags, load=load))
