"""From a recipe and a data set to a run."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import keras
import numpy as np

from zoo import own_vectors, report, runs, unfinished
from zoo.batches import finite_scores, score_split
from zoo.data import DataError, Dataset
from zoo.embeddings import embedding_matrix, read_words
from zoo.encoded import encode_split, joined
from zoo.evaluation import evaluate, is_ranking, tuned_threshold
from zoo.fitting import Fit, copy_weights
from zoo.metrics import count_queries
from zoo.recipe import EncodedDataset, Options, Recipe
from zoo.text import TextEncoder, build_vocabulary


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
        _check_vectors(options.start, files)
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
        if files and recipe.only_with_vector:
            _, found = embedding_matrix(files, words, recipe.oov_buckets, seed)
            lacking = set(found.missing)
            words = [word for word in words if word not in lacking]
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
        of_training = found.of(known_words)
        for file, (_, count) in zip(files, of_training.found_in, strict=True):
            if known_words and not count:
                received = f"0 of {len(known_words)}, of which the first are {' '.join(known_words[:5])}"
                raise DataError(file, None, "vectors of words of the training texts", received)
        coverage = f"{embeddings.shape[1]} numbers a word; {of_training}"
        if len(known_words) < len(own_words):
            why = "unknown to the run started from" if options.start else "left out, without a vector"
            coverage += f"; {len(own_words) - len(known_words)} training words are {why}"
    else:
        shape = (encoder.vocabulary_size, 0 if recipe.ngram_sizes else recipe.embedding_size)
        embeddings = np.random.default_rng(seed).uniform(-0.25, 0.25, shape).astype("float32")
        embeddings[0] = 0
        kind = "character n-grams" if recipe.ngram_sizes else "no word vectors given"
        is_taken = options.start and _has_table(options.start.model, (shape[0], recipe.embedding_size))
        origin = "those of the run started from" if is_taken else "random"
        coverage = f"{kind}: {shape[0]} rows of {recipe.embedding_size} numbers are trained from {origin}"
        if options.start:
            coverage += ", whose vocabulary is taken"
        unknown = len(set(own_words) - set(encoder.words)) if options.start else 0
        if unknown:
            coverage += f"; {unknown} of {len(own_words)} training words are unknown to it"
    splits = {
        name: encode_split(groups, encoder, dataset.fields, recipe.max_query_length, recipe.max_candidate_length)
        for name, groups in dataset.splits.items()
    }
    if recipe.own_vectors and not files and not (options.start and _has_table(options.start.model, embeddings.shape)):
        known = [splits[name] for name in dataset.training_splits]
        coverage = own_vectors.train(known, embeddings, 1 + encoder.oov_buckets, encoder.words, seed)
    return EncodedDataset(encoder, splits, embeddings, has_vector, tuple(files), coverage, dataset)


def _has_table(model, shape):
    """Whether word vectors of this shape can be taken over from a model."""
    return any("embedding" in weight.path and tuple(weight.shape) == shape for weight in model.weights)


def _check_vectors(start, files):
    """The word vectors are taken over with the other weights, and so is whether they are trained."""
    wanted = start.settings["embeddings"]["files"]
    if list(runs.fingerprints(files).values()) != list(wanted.values()):
        expected = f"the vectors of the run to start from, {' and '.join(wanted) or 'none'}"
        raise DataError("--embeddings", None, expected, " and ".join(map(str, files)) or "none")


def train(recipe: Recipe, folder: Path, dataset: Dataset, options: Options, seed: int = 1) -> runs.Run:
    """Trains one model, scores dev and test, and writes the run.

    The epoch with the best dev metric (the data set's first) is kept, and training ends after
    ``recipe.patience`` epochs without a better one. An interrupted training keeps the best epoch so far, and goes on
    if it is called again with the same arguments, as one that was killed does.

    Args:
        recipe: what to train.
        folder: of the run, empty but for what a training that was cut off left.
        dataset: the loaded data; ``train`` and ``dev`` must have groups.
        options: how to train.
        seed: of weights, order of the data, dropout and random word vectors; of what is drawn of the training groups,
            and of noise.

    Returns:
        The run, as `zoo.runs.load` reads it back.

    Raises:
        RuntimeError: if the scores are no numbers after the first epoch.
        ValueError: if there is nothing to train: no epoch, and no pre-training.
    """
    try:
        return _train(recipe, folder, dataset, options, seed)
    except BaseException:
        runs.discard_empty(folder)
        raise


def _train(recipe, folder, dataset, options, seed):
    if recipe.build and not recipe.epochs and not recipe.pretrain:
        raise ValueError(f"A run needs an epoch or a pre-training. Received: epochs=0, model={recipe.model!r}")
    if recipe.continues and recipe.build and not (recipe.pretrain or options.start):
        raise ValueError(
            f"A model that goes on from an earlier run's pre-training needs that run (--from). "
            f"Received: start=None, model={recipe.model!r}"
        )
    unlike = options.start and recipe.build and recipe.unlike_start(options.start, options.knobs)
    if unlike:
        raise ValueError(
            f"{recipe.model} must find its weights in the run to start from: same network, same knobs. "
            f"Received: {str(options.start.folder)!r}, {unlike}"
        )
    unfinished.begin(folder)
    started = time.monotonic()
    record = {"dev_metric": dataset.metrics[0], "interrupted": False, "diverged": False}
    pretraining, history, encoded, model = [], [], None, None
    if options.start and recipe.build and not recipe.continues:
        recipe = dataclasses.replace(recipe, model=f"{recipe.model}_from_run")
    if recipe.build is None:
        recipe.scorer.fit(dataset.splits["train"])
    else:
        keras.utils.set_random_seed(seed)
        learnt = recipe.augment(dataset.splits["train"], seed) if recipe.augment else dataset.splits["train"]
        further = [dataset.splits[name] for name in recipe.train_on if name != "train" and name in dataset.splits]
        record["num_train"] = sum(len(group.labels) for groups in (learnt, *further) for group in groups)
        learnt_from = dataclasses.replace(dataset, splits=dataset.splits | {"train": learnt})
        encoded = encode_dataset(recipe, learnt_from, options, seed)
        options.say(f"word vectors: {encoded.coverage}")
        _say_cut(recipe, encoded.splits["train"], options.say)
        model, pretraining, history = _fit(recipe, folder, encoded, options, seed, record)
        record["trainable_parameters"] = int(sum(np.prod(w.shape) for w in model.trainable_weights))
    record["train_seconds"] = round(time.monotonic() - started + record.pop("seconds_before", 0.0), 1)

    def score(split):
        if model is None:
            return recipe.scorer.score(dataset.splits[split])
        return encoded.splits[split].per_group(score_split(model, encoded.splits[split]))

    scores = {split: score(split) for split in dataset.scored_splits}
    if recipe.rescore:
        scores, found = recipe.rescore(dataset, scores)
        record |= found
    threshold = tuned_threshold(dataset, scores["dev"])
    metrics = {}
    for split in dataset.scored_splits:
        metrics[split] = evaluate(dataset, split, scores[split], threshold)
        if is_ranking(dataset):
            labels = [np.array(group.labels) for group in dataset.splits[split]]
            metrics[split] |= count_queries(labels, dataset.convention)
    if recipe.measure and model is not None:
        for split, found in recipe.measure(model, encoded).items():
            metrics[split] |= found
    run = runs.write(
        folder,
        recipe=recipe,
        dataset=dataset,
        options=options,
        seed=seed,
        encoder=encoded.encoder if encoded else None,
        coverage=encoded.coverage if encoded else None,
        vector_files=encoded.vector_files if encoded else (),
        model=model,
        metrics=metrics,
        scores=scores,
        threshold=threshold,
        pretraining=pretraining,
        history=history,
        record=record,
    )
    # After the run is safe: a picture that fails costs no training.
    figures = recipe.figures(model, encoded, pretraining) if recipe.figures and model is not None else {}
    report.write(run, recipe.published, options.data_lines, figures)
    if not record["interrupted"]:
        unfinished.discard(folder)
    return run


def _say_cut(recipe, split, say):
    sides = (
        ("query", split.query_ids, recipe.max_query_length),
        ("candidate", split.candidate_ids, recipe.max_candidate_length),
    )
    for side, texts, limit in sides:
        lengths = np.concatenate([np.diff(field.offsets) for field in texts.values()])
        full = int((lengths == limit).sum())
        if full:
            say(f"{full} of {len(lengths)} {side} texts have {limit} tokens or more: what follows is cut")


def _fit(recipe, folder, encoded, options, seed, record):
    """Builds, pre-trains, fits and finishes; returns the finished model and a row of each epoch of the two."""
    dataset = encoded.dataset
    metric = dataset.metrics[0]
    fit = Fit(recipe, folder, options, seed)
    with fit.scope():
        model = recipe.build(encoded)
        if options.start:
            # A row named for its pre-training must have all of it.
            options.say(copy_weights(options.start.model, model, whole=recipe.continues and not recipe.pretrain))
    pretraining = []
    if recipe.pretrain:
        pretraining, found = recipe.pretrain(model, encoded, fit) or ([], {})
        record |= {f"pretraining_{name}": value for name, value in found.items()}
        record["interrupted"] = found.get("interrupted", False)

    def measure_dev(model):
        scores = finite_scores(model, encoded.splits["dev"])
        return evaluate(dataset, "dev", scores, tuned_threshold(dataset, scores))

    history = []
    record |= {"best_epoch": 0, "seconds_per_epoch": 0.0}
    if recipe.epochs and not record["interrupted"]:  # else the run is a pre-training alone, to start others from
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
    record["seconds_before"] = fit.seconds_before
    if recipe.finish:
        model = recipe.finish(model, encoded)
    return model, pretraining, history
