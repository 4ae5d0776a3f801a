"""Training keeps its best epoch, repeats with its seed, and leaves a run that scores as it did."""

import csv
import dataclasses
import json
import re
from functools import partial
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from matplotlib.figure import Figure

from zoo import fitting, lexical, losses, optimizers, runs
from zoo.batches import Batches, score_split
from zoo.data import Dataset, Group
from zoo.fitting import copy_weights
from zoo.metrics import Convention
from zoo.models.qrnn import qrnn
from zoo.negatives import Negatives
from zoo.recipe import Options, Recipe
from zoo.training import encode_dataset, train


def groups(count, seed):
    """The right candidate starts with the query's first word."""
    random = np.random.default_rng(seed)
    words = [f"w{number}" for number in range(12)]
    made = []
    for number in range(count):
        first, *others = random.permutation(words)[:4].tolist()
        candidates = [(f"{word} x",) for word in (first, *others)]
        order = random.permutation(4)
        made.append(
            Group(
                f"{seed}-{number}",
                (f"{first} é?",),
                tuple(candidates[i] for i in order),
                tuple(float(i == 0) for i in order),
            )
        )
    return made


DATASET = Dataset(
    "toy", {"train": groups(40, 0), "dev": groups(15, 1), "test": groups(15, 2)}, Convention(), ("mrr", "p@1")
)
RECIPE = Recipe(
    name="toy",
    model="qrnn",
    module="zoo.models.qrnn",
    load=None,
    sample=None,
    build=lambda encoded: qrnn(
        encoded.embeddings,
        trainable_embeddings=encoded.trainable_embeddings,
        filters=8,
        projection=0,
        dense_units=8,
        dropout=0.1,
    ),
    loss=lambda: losses.pointwise,
    optimizer=partial(optimizers.Adam, 0.03),
    batch_size=16,
    epochs=3,
    embedding_size=6,
    published={"qrnn": {"mrr": 0.5}},
)


def quiet(**changes):
    said = []
    return Options(say=said.append, **changes), said


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(RECIPE, tmp_path_factory.mktemp("run"), DATASET, quiet(knobs={"filters": 8})[0])


def test_run_holds_what_it_promises(run):
    names = {path.name for path in run.folder.iterdir()}
    assert names >= {
        "recipe.json",
        "vocabulary.txt",
        "model.keras",
        "history.csv",
        "metrics.json",
        "predictions.tsv",
        "tensorboard",
        "report.html",
        "README.md",
    }
    assert run.settings["knobs"] == {"filters": 8}
    assert run.metrics["test"]["num_queries"] == 15
    assert run.metrics["convention"] == {"ties": "pessimistic", "without_positive": "skip", "cutoff": None}
    with open(run.folder / "history.csv") as file:
        history = list(csv.DictReader(file))
    assert [row["epoch"] for row in history] == ["1", "2", "3"]
    best = max(range(3), key=lambda index: float(history[index]["dev_mrr"]))
    assert run.metrics["training"]["best_epoch"] == best + 1
    np.testing.assert_allclose(run.metrics["dev"]["mrr"], float(history[best]["dev_mrr"]), rtol=1e-6)
    assert "http" not in (run.folder / "report.html").read_text().replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("https://matplotlib.org", "").replace("http://creativecommons.org", "")


def test_loaded_run_scores_as_it_did(run):
    with open(run.folder / "predictions.tsv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) == 2 * 15 * 4
    scores = runs.load(run.folder).score([(row["query"],) for row in rows], [(row["candidate"],) for row in rows])
    np.testing.assert_allclose(scores, [float(row["score"]) for row in rows], rtol=1e-4, atol=1e-5)


def test_score_does_not_depend_on_company(run):
    pairs = [("w1 é?", "w1 x"), ("", ""), ("w2", "w3 " * 500), ("日本 🙂", "w1")]
    queries, candidates = [(q,) for q, _ in pairs], [(c,) for _, c in pairs]
    together = run.score(queries, candidates)
    alone = [run.score([q], [c])[0] for q, c in zip(queries, candidates, strict=True)]
    assert np.isfinite(together).all()
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_same_seed_same_run_and_other_seed_another(run, tmp_path):
    again = train(RECIPE, tmp_path / "again", DATASET, quiet()[0])
    other = train(RECIPE, tmp_path / "other", DATASET, quiet()[0], seed=2)
    read = lambda one: (one.folder / "predictions.tsv").read_text()  # noqa: E731
    assert read(again) == read(run)
    assert read(other) != read(run)


def test_steps_at_once_train_as_one_by_one(run, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "STEPS_AT_ONCE", 1)
    one_by_one = train(RECIPE, tmp_path / "run", DATASET, quiet(knobs={"filters": 8})[0])
    assert len(Batches(encode_dataset(RECIPE, DATASET, quiet()[0], 1).splits["train"], RECIPE.batch_size)) > 2
    assert one_by_one.metrics["test"] == run.metrics["test"]
    for ours, theirs in zip(one_by_one.model.get_weights(), run.model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_training_stops_without_a_better_epoch(tmp_path):
    lame = dataclasses.replace(RECIPE, epochs=30, patience=2, optimizer=partial(optimizers.Adam, 0.0))
    options, said = quiet()
    run = train(lame, tmp_path, DATASET, options)
    assert run.metrics["training"]["best_epoch"] == 1
    assert sum(bool(re.match("epoch ./30 ", line)) for line in said) == 3
    assert said[-1] == "epoch 1 of 3 is kept, the best by mrr; stopped early, after 2 without a better one"


def test_what_fails_in_its_first_epoch_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("zoo.batches.score_split", lambda model, split: np.full(len(split.labels), np.nan))
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(RuntimeError, match="try a lower learning rate. Received: epoch 1, knobs="):
        train(RECIPE, folder, DATASET, quiet()[0])
    assert not folder.exists()


def test_interrupt_keeps_the_best_epoch(tmp_path):
    options, said = quiet()

    def say(line):
        said.append(line)
        if line.startswith("epoch 2/"):
            raise KeyboardInterrupt

    run = train(RECIPE, tmp_path, DATASET, dataclasses.replace(options, say=say))
    assert run.metrics["training"]["interrupted"]
    assert run.metrics["training"]["best_epoch"] in (1, 2)
    assert (tmp_path / "model.keras").is_file()


def test_scorer_without_weights(tmp_path):
    recipe = Recipe(name="toy", model="bm25", load=None, sample=None, scorer=lexical.BM25())
    run = train(recipe, tmp_path, DATASET, quiet()[0])
    assert run.metrics["test"]["p@1"] == 1.0  # one word shared with the right candidate alone
    with pytest.raises(ValueError, match="bm25 is a scorer without weights"):
        run.model  # noqa: B018


def test_word_vectors_are_fixed_and_only_their_words_added(tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("w1 1 0 0\nunseen 0 1 0\n")
    options, said = quiet(embeddings=(vectors,))
    run = train(dataclasses.replace(RECIPE, epochs=1), tmp_path / "run", DATASET, options)
    assert "unseen" in run.text_encoder.words
    row = 1 + RECIPE.oov_buckets + run.text_encoder.words.index("unseen")
    table = run.model.get_layer("encoder").layer.get_layer("embedding").get_weights()[0]
    assert table[row].tolist() == [0, 1, 0]
    assert not table[0].any()
    assert any("have a vector" in line for line in said)


def test_not_a_run(tmp_path):
    with pytest.raises(ValueError, match=f"Received: folder='{tmp_path}'"):
        runs.load(tmp_path)


def test_words_without_a_vector_are_unknown_where_a_recipe_says_so(tmp_path):
    words = sorted({group.query[0].split()[0] for group in DATASET.splits["train"]})
    (tmp_path / "vectors.txt").write_text("".join(f"{word} 1.0 2.0\n" for word in [*words[:3], "beyond"]))
    options, _ = quiet(embeddings=(tmp_path / "vectors.txt",))
    all_words = encode_dataset(RECIPE, DATASET, options, 1)
    known = encode_dataset(dataclasses.replace(RECIPE, only_with_vector=True), DATASET, options, 1)
    assert {*words, "beyond"} <= set(all_words.encoder.words)
    assert sorted(known.encoder.words) == sorted([*words[:3], "beyond"])
    assert known.has_vector.sum() == 4 and "training words are left out, without a vector" in known.coverage
    assert len(known.embeddings) == 1 + RECIPE.oov_buckets + 4


def test_latest_points_to_the_newest_that_is_worth_as_much(tmp_path):
    def made(name, **settings):
        ended = {"interrupted": False, "diverged": False} | settings
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "recipe.json").write_text(json.dumps({"data": {"sample": ended.pop("sample", False)}}))
        (folder / "metrics.json").write_text(json.dumps({"training": ended}))
        return runs.Run(folder)

    for name, settings, taken in (
        ("broken off sample", {"sample": True, "interrupted": True}, True),
        ("sample", {"sample": True}, True),
        ("another broken off sample", {"sample": True, "interrupted": True}, False),
        ("broken off", {"interrupted": True}, True),
        ("one", {}, True),
        ("tuning/trial", {}, True),
        ("diverged", {"diverged": True}, False),
        ("another sample", {"sample": True}, False),
        ("two", {}, True),
    ):
        run = made(name, **settings)
        assert runs.link_latest(run, tmp_path) is taken, name
        assert ((tmp_path / "latest").resolve() == run.folder) is taken, name


def test_new_folders_never_collide(tmp_path):
    folders = {runs.new_folder(tmp_path, "toy", "qrnn-1") for _ in range(3)}
    assert len(folders) == 3


def test_a_folder_need_not_be_quoted(tmp_path):
    folder = runs.new_folder(tmp_path, "toy", "decatt_char, 1,000 pairs-1")
    assert folder.name.endswith("-decatt_char-1000-pairs-1")


def test_settings_name_the_data(run, tmp_path):
    file = tmp_path / "data.txt"
    file.write_text("x")
    dataset = dataclasses.replace(DATASET, files=(file,), notes=("Own split.",))
    settings = train(dataclasses.replace(RECIPE, epochs=1), tmp_path / "run", dataset, quiet()[0]).settings
    assert json.loads((tmp_path / "run" / "recipe.json").read_text()) == settings
    assert settings["data"]["files"] == {str(file): "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}
    assert settings["data"]["notes"] == ["Own split."]


def test_mirrored_trains_as_one_device(tmp_path):
    """Two replicas see half a batch each: the same weights but for rounding."""
    script = f"""
import dataclasses, sys
sys.path.insert(0, {str(runs.Path(__file__).resolve().parents[1])!r})
from zoo import distribution
strategy = distribution.strategy("mirrored", 2)
from tests.test_training import DATASET, RECIPE, quiet, qrnn, partial, train, runs
import keras
# Plain gradient steps without dropout, on batches that split evenly: only then must both agree.
recipe = dataclasses.replace(RECIPE, optimizer=partial(keras.optimizers.SGD, 0.1), epochs=2, build=lambda e: qrnn(
    e.embeddings, trainable_embeddings=True, filters=8, projection=0, dense_units=8, dropout=0.0))
train(recipe, runs.Path({str(tmp_path / "mirrored")!r}), DATASET, quiet(strategy=strategy)[0])
train(recipe, runs.Path({str(tmp_path / "one")!r}), DATASET, quiet()[0])
"""
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    mirrored, one = (
        keras.saving.load_model(tmp_path / name / "model.keras", compile=False) for name in ("mirrored", "one")
    )
    for a, b in zip(mirrored.weights, one.weights, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_no_git_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    recipe = Recipe(name="toy", model="bm25", load=None, sample=None, scorer=lexical.BM25())
    assert train(recipe, tmp_path / "run", DATASET, quiet()[0]).settings["commit"] is None


def test_texts_of_any_length_and_ids_with_tabs_come_back(tmp_path):
    long = "x" * 200_000
    groups = [Group("a\tb\n", ("q",), ((long,), ("q",)), (0.0, 1.0))]
    dataset = dataclasses.replace(DATASET, splits=DATASET.splits | {"test": groups})
    recipe = Recipe(name="toy", model="bm25", load=None, sample=None, scorer=lexical.BM25())
    run = train(recipe, tmp_path, dataset, quiet()[0])
    rows = [row for row in runs.read_predictions(run.folder) if row["split"] == "test"]
    assert [row["group"] for row in rows] == ["a b", "a b"]
    assert rows[0]["candidate"] == long


def test_divergence_keeps_the_best_epoch(tmp_path, monkeypatch):
    calls = []

    def score(model, split):
        calls.append(1)
        return np.full(len(split.labels), np.nan if len(calls) == 2 else 0.0)

    monkeypatch.setattr("zoo.batches.score_split", score)
    run = train(RECIPE, tmp_path, DATASET, quiet()[0])
    assert run.metrics["training"]["diverged"] and run.metrics["training"]["best_epoch"] == 1


def test_a_run_goes_on_from_another(run, tmp_path):
    options, said = quiet(start=runs.load(run.folder))
    again = train(dataclasses.replace(RECIPE, epochs=1), tmp_path, DATASET, options, seed=5)
    assert again.text_encoder.words == run.text_encoder.words
    assert again.settings["start"] == str(run.folder)
    assert any(line.endswith("weights taken over; new: none; not taken: none") for line in said)
    # One epoch from the start that was given is better than the first epoch of the other run.
    first = float(list(csv.DictReader((run.folder / "history.csv").open()))[0]["loss"])
    assert float(next(csv.DictReader((again.folder / "history.csv").open()))["loss"]) < first


def test_weights_are_copied_where_path_and_shape_agree():
    def model(filters, dense):
        return qrnn(np.zeros((9, 4), "float32"), filters=filters, projection=3, dense_units=dense)

    source, target = model(4, 5), model(4, 6)
    said = copy_weights(source, target)
    new, unused = said.split("new: ")[1].split("; not taken: ")
    assert "dense_1/kernel" in new and "dense_1/kernel" in unused and "quasi_recurrent" not in said
    kernel = [m.get_layer("encoder").layer.get_layer("quasi_recurrent").kernel.numpy() for m in (source, target)]
    np.testing.assert_array_equal(*kernel)
    with pytest.raises(ValueError, match="must share weights"):
        copy_weights(keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, name="other")]), target)
    with pytest.raises(ValueError, match="same sizes"):
        copy_weights(source, target, whole=True)


def scores_of_pretraining(model, encoded, fit):
    """Trains on the split `pretrain` and then on a loss without a metric."""
    split = encoded.splits["pretrain"]
    rows, found = fit(
        model,
        fit.batches(split, batch_size=5),
        loss=RECIPE.loss,
        optimizer=RECIPE.optimizer,
        epochs=2,
        measure=lambda model: {"sum": float(score_split(model, split).sum())},
        label="pretraining",
    )
    assert [row["epoch"] for row in rows] == [1, 2] and "dev_sum" in rows[0] and found["best_epoch"] == 2


def with_doubled_score(model, encoded):
    score = keras.layers.Rescaling(2.0)(model.output)
    return keras.Model(model.input, {"score": score, "pair": keras.ops.stack([score, -score], axis=-1)})


def picture(model, encoded, pretraining):
    figure = Figure()
    figure.text(0.5, 0.5, f"{len(encoded.dataset.splits['dev'])} queries of dev")
    return {"A picture of one's own": figure}


def test_pretraining_finishing_and_pictures(tmp_path):
    """Further splits, an accuracy with its threshold, and the hooks of a recipe, from training to report."""
    words = [Group("p", ("pretrained words",), (("only here",), ("not there",)), (1.0, 0.0))]
    dataset = dataclasses.replace(
        DATASET,
        splits=DATASET.splits | {"test2": groups(5, 7), "pretrain": words},
        metrics=("accuracy", "f1"),
    )
    recipe = dataclasses.replace(
        RECIPE,
        epochs=2,
        negatives=Negatives(1, "corpus"),
        pretrain=scores_of_pretraining,
        finish=with_doubled_score,
        figures=picture,
    )
    options, said = quiet()
    run = train(recipe, tmp_path, dataset, options)
    assert sum(line.startswith("pretraining") for line in said) == 2
    assert run.splits == ("dev", "test", "test2")
    assert "pretrained" in run.text_encoder.words
    loaded = runs.load(tmp_path)
    assert loaded.threshold == run.settings["threshold"] != 0
    rows = list(runs.read_predictions(tmp_path))
    assert {row["split"] for row in rows} == {"dev", "test", "test2"}
    test = [row for row in rows if row["split"] == "test"]
    np.testing.assert_allclose(
        loaded.score([(row["query"],) for row in test], [(row["candidate"],) for row in test]),
        [float(row["score"]) for row in test],
        atol=1e-4,
    )
    right = [(float(row["score"]) >= loaded.threshold) == (row["label"] == "1") for row in test]
    assert run.metrics["test"]["accuracy"] == pytest.approx(np.mean(right), abs=0.02)
    html = (tmp_path / "report.html").read_text("utf-8")
    assert "A picture of one&#39;s own" in html and "queries counted" not in html


def test_a_lower_error_is_a_better_epoch(tmp_path):
    dataset = dataclasses.replace(DATASET, metrics=("mse",))
    run = train(RECIPE, tmp_path, dataset, quiet()[0])
    history = [float(row["dev_mse"]) for row in csv.DictReader((tmp_path / "history.csv").open())]
    assert run.metrics["training"]["best_epoch"] == int(np.argmin(history)) + 1
    assert run.metrics["dev"]["mse"] == pytest.approx(min(history), abs=1e-5)


NEW_WORD = Group("new", ("novelty x",), (("w1 x",), ("w2 x",)), (1.0, 0.0))


def test_a_run_that_goes_on_keeps_the_encoder_of_the_other(run, tmp_path):
    """Its own settings would shift every id against the weights."""
    recipe = dataclasses.replace(RECIPE, epochs=1, oov_buckets=4)
    words = dataclasses.replace(DATASET, splits=DATASET.splits | {"train": [*groups(9, 3), NEW_WORD]})
    options, said = quiet(start=runs.load(run.folder))
    again = train(recipe, tmp_path / "run", words, options)
    loaded = runs.load(again.folder)
    assert loaded.text_encoder.oov_buckets == run.text_encoder.oov_buckets == 64
    rows = list(runs.read_predictions(again.folder))
    scores = loaded.score([(row["query"],) for row in rows], [(row["candidate"],) for row in rows])
    np.testing.assert_allclose(scores, [float(row["score"]) for row in rows], atol=1e-4)
    assert again.settings["embeddings"]["coverage"].endswith("training words are unknown to it")
    assert f"of the run `{run.folder}`" in (again.folder / "README.md").read_text("utf-8")
    assert again.settings["model"] == f"{RECIPE.model}_from_run"


def fit_in_pretraining(stop_at, error, **arguments):
    """A pretraining of three epochs, of which one ends with an error."""
    measured = []

    def measure(model):
        measured.append(0)
        if len(measured) == stop_at:
            raise error
        return {"loss": 1.0 / len(measured)}

    def pretrain(model, encoded, fit):
        batches = fit.batches(encoded.splits["train"])
        settings = {"loss": RECIPE.loss, "optimizer": RECIPE.optimizer, "epochs": 3, "measure": measure}
        return fit(model, batches, label="pretraining", **settings | arguments)

    return dataclasses.replace(RECIPE, pretrain=pretrain)


def test_batches_of_any_size_are_parted_evenly_among_replicas(tmp_path):
    options, _ = quiet(strategy=SimpleNamespace(num_replicas_in_sync=3))
    split = encode_dataset(RECIPE, DATASET, quiet()[0], 1).splits["train"]
    fit = fitting.Fit(RECIPE, tmp_path, options, 1)
    assert fit.batches(split).batch_size % 3 == 0 and fit.batches(split, batch_size=256).batch_size == 258


@pytest.mark.parametrize("metric", [None, "loss"])
def test_an_interrupted_pretraining_leaves_no_run(tmp_path, metric):
    with pytest.raises(KeyboardInterrupt):
        train(fit_in_pretraining(2, KeyboardInterrupt(), metric=metric), tmp_path, DATASET, quiet()[0])
    assert not (tmp_path / "recipe.json").exists()


def test_an_interrupted_pretraining_that_survives_is_the_run(tmp_path):
    recipe = fit_in_pretraining(3, KeyboardInterrupt(), metric="loss", survives=True)
    run = train(recipe, tmp_path, DATASET, quiet()[0])
    told = run.metrics["training"]
    assert told["interrupted"] and told["pretraining_best_epoch"] == 2 and told["best_epoch"] == 0
    rows = list(csv.DictReader((tmp_path / "pretraining.csv").open()))
    assert [float(row["dev_loss"]) for row in rows] == [1, 0.5]
    assert (tmp_path / "history.csv").read_text() == ""
    assert runs.load(tmp_path).model.weights
    assert "The training was interrupted" in (tmp_path / "README.md").read_text("utf-8")


def test_a_pretraining_that_diverges_says_where(tmp_path):
    with pytest.raises(RuntimeError, match="Received: pretraining 3, knobs="):
        train(fit_in_pretraining(3, FloatingPointError()), tmp_path, DATASET, quiet()[0])


@pytest.mark.parametrize("arguments", [{"metric": "gain"}, {"metric": "loss", "measure": None}])
def test_a_metric_must_be_measured(tmp_path, arguments):
    with pytest.raises(ValueError, match=f"Received: metric='{arguments['metric']}'"):
        train(fit_in_pretraining(9, None, **arguments), tmp_path, DATASET, quiet()[0])


def test_a_lower_perplexity_of_pretraining_is_better(tmp_path):
    said = []

    def pretrain(model, encoded, fit):
        values = iter([3.0, 1.0, 2.0])
        _, found = fit(
            model,
            fit.batches(encoded.splits["train"]),
            loss=RECIPE.loss,
            optimizer=RECIPE.optimizer,
            epochs=3,
            measure=lambda model: {"perplexity": next(values)},
            metric="perplexity",
        )
        said.append(found["best_epoch"])

    train(dataclasses.replace(RECIPE, epochs=1, pretrain=pretrain), tmp_path, DATASET, quiet()[0])
    assert said == [2]
