"""The MaLSTM recipe: its sample, its flags, what it trains on, and what a run and its export hold."""

import argparse
import dataclasses
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import recipes.malstm_sick as module
from export.saved_model import export
from layers.manhattan_distance import ManhattanDistance
from recipes import malstm_figures
from recipes.__main__ import main as list_recipes
from tests.data_checks import real_data
from zoo import augmentation, calibration, command_line, runs, samples, tuning
from zoo.data import DataError
from zoo.datasets import sick
from zoo.fitting import Fit
from zoo.models.malstm import malstm
from zoo.recipe import Options
from zoo.training import train

TINY = {"units": 50, "embedding_size": 50, "batch_size": 128, "epochs": 1}


def recipe(**knobs):
    return module.recipe(tuning.hyperparameters(**TINY | knobs))


def flags(**given):
    names = {"data": None, "pretrain": None, "wordnet": None, "synonyms": None, "embeddings": [], "entailment": None}
    names |= {"ablation": False, "pretraining_epochs": None, "pretraining": None, "held_out": None, "calibrate": None}
    return argparse.Namespace(**names | given)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sick")
    samples.sick(folder)
    return folder


def small(dataset, size=60):
    return dataclasses.replace(dataset, splits={name: groups[:size] for name, groups in dataset.splits.items()})


def test_sample_has_all_classes_over_the_whole_scale_and_is_the_same_again(sample, tmp_path):
    dataset = sick.load(sample)
    groups = [group for name in ("train", "dev", "test") for group in dataset.splits[name]]
    labels = np.array([group.labels[0] for group in groups])
    judged = np.array([group.judgements[0] for group in groups])
    assert len(groups) == sum(samples.NUM_QUESTIONS["sick"].values())
    assert set(judged) == set(sick.CLASSES)
    assert labels.min() == 1 and labels.max() == 5
    assert labels[judged == "entailment"].mean() > labels[judged == "contradiction"].mean() > 3
    samples.sick(tmp_path)
    assert sick.load(tmp_path).splits == dataset.splits


def test_names_of_rows():
    assert recipe().model == "malstm"
    rows = [module.recipe(tuning.hyperparameters(**row)).model for row in module.ABLATION]
    assert rows == list(module.PUBLISHED)
    assert recipe(model="gru", calibrate="none", synonyms=0).model == "gru-without-calibration-without-synonyms"
    assert recipe(synonyms=0).train_on == ("train",) and "train_synonyms" in recipe().train_on
    assert recipe(pretraining=False).pretrain is None
    assert float(recipe(optimizer="adam").optimizer().learning_rate) == pytest.approx(1e-3)


def test_without_data_the_sample_is_meant():
    assert module.load(flags(), recipe()) is None


@pytest.mark.parametrize(
    "given, message",
    [
        ({"pretrain": Path("sts")}, "--pretrain: expected --data beside it"),
        ({"wordnet": Path("wordnet")}, "--wordnet: expected --data beside it"),
        ({"data": Path("sick"), "synonyms": 500}, "--synonyms: expected --wordnet beside it"),
        ({"data": Path("sick"), "synonyms": 0}, "--synonyms: expected --wordnet beside it"),
        ({"data": Path("sick"), "pretraining": False}, "--no-pretraining: expected --pretrain beside it"),
        (
            {"data": Path("sick"), "pretrain": Path("sts"), "pretraining": False, "pretraining_epochs": 5},
            "--pretraining-epochs: expected a pre-training. Received: '--no-pretraining'",
        ),
        ({"data": Path("sick"), "pretraining_epochs": 3}, "--pretraining-epochs: expected --pretrain beside it"),
        ({"ablation": True}, "--ablation: expected --data and --pretrain and --wordnet beside it"),
    ],
)
def test_flags_that_would_have_no_effect_are_refused(given, message):
    with pytest.raises(DataError, match=message):
        module.load(flags(**given), recipe())


def test_too_few_pairs_of_a_class_are_told_before_the_training(sample, tmp_path):
    for file in sample.iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace("CONTRADICTION", "NEUTRAL"))
    with pytest.raises(DataError, match=r"or --no-entailment.*'contradiction': 0"):
        module.load(flags(data=tmp_path), recipe())
    assert module.load(flags(data=tmp_path, entailment=False), recipe()).splits["train"]


def test_pretraining_pairs_come_on_the_scale_of_the_data(sample, tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"{i % 6}\tone {i}\ttwo {i}\n" for i in range(20)))
    dataset = module.load(flags(data=sample, pretrain=tmp_path), recipe())
    assert [len(dataset.splits[name]) for name in ("pretrain", "pretrain_dev")] == [14, 6]
    labels = {group.labels[0] for name in ("pretrain", "pretrain_dev") for group in dataset.splits[name]}
    assert labels == {1.0, 1.8, 2.6, 3.4, 4.2, 5.0}
    assert dataset.scored_splits == ("dev", "test") and "pretrain" in dataset.training_splits
    assert {
        "Pairs for rows that are pre-trained: 20; left out, being in dev or test: 0.",
        "No pairs are made with synonyms.",
    } <= {*dataset.notes}


def test_pairs_of_dev_and_test_are_not_pretrained_on(sample, tmp_path):
    dataset = module.load(flags(data=sample), recipe())
    scored = [dataset.splits[name][0] for name in ("dev", "test")]
    lines = [f"1\t{group.candidates[0][0]}\t{group.query[0].upper()}\n" for group in scored]
    (tmp_path / "a.tsv").write_text("".join([*lines, *(f"2\tone {i}\ttwo {i}\n" for i in range(10))]))
    dataset = module.load(flags(data=sample, pretrain=tmp_path), recipe())
    assert sum(len(dataset.splits[name]) for name in ("pretrain", "pretrain_dev")) == 10
    assert "Pairs for rows that are pre-trained: 10; left out, being in dev or test: 2." in dataset.notes


@pytest.fixture(scope="module")
def run(sample, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    pairs = folder / "sts"
    pairs.mkdir()
    (pairs / "a.tsv").write_text("".join(f"{i % 6}\tthe {i % 6} oven\tthe {i} oven\n" for i in range(40)))
    dataset = small(module.load(flags(data=sample, pretrain=pairs), recipe()), 200)
    made = augmentation.augment(dataset.splits["train"], {"the": ("this",), "a": ("one",)}, 50)
    dataset.splits["train_synonyms"] = made
    said, fitted = [], []
    with pytest.MonkeyPatch.context() as patch:
        fit = calibration.fit
        patch.setattr(calibration, "fit", lambda *given: fitted.append(given) or fit(*given))
        train(recipe(units=2), folder / "run", dataset, Options(say=said.append))
    assert any(line.startswith("pretraining epoch") for line in said)
    # The calibration is fitted on the original pairs, not on those made with synonyms.
    ((_, labels),) = fitted
    assert len(made) == 50 and len(labels) == 400
    return runs.load(folder / "run")


def test_run_has_calibrated_scores_entailment_and_pictures(run):
    assert set(run.metrics["test"]) == {"pearson", "spearman", "mse", "entailment"}
    assert 0 < run.metrics["test"]["entailment"] <= 1
    outputs = run.outputs([("the oven",), ("",)], [("a stove",), ("",)])
    assert set(outputs) == {"score", "uncalibrated", *sick.CLASSES}
    assert all(np.isfinite(values).all() for values in outputs.values())
    report = (run.folder / "report.html").read_text()
    for title in ("Table 1", "Table 3", "Figure 2", "Figure 3", "Nearest sentences", "Farthest from their label"):
        assert title in report


def test_calibrated_scores_have_a_smaller_squared_error(run):
    rows = [row for row in runs.read_predictions(run.folder) if row["split"] == "dev"]
    outputs = run.outputs([(row["query"],) for row in rows], [(row["candidate"],) for row in rows])
    labels = np.array([float(row["label"]) for row in rows])
    errors = {name: np.mean((outputs[name] - labels) ** 2) for name in ("score", "uncalibrated")}
    assert errors["score"] < errors["uncalibrated"]


def test_export_serves_all_outputs_and_tells_what_they_mean(run, tmp_path):
    import tensorflow as tf

    version = export(run, tmp_path / "served")
    served = tf.saved_model.load(str(version)).signatures
    page = (version.parent / "README.md").read_text()
    assert "`uncalibrated`: the score before" in page and "`neutral`: decision value" in page
    assert "log_probabilities" not in page
    texts = {"query": ["the oven", ""], "candidate": ["a stove", "word"]}
    outputs = served["serving_default"](**{name: tf.constant(text) for name, text in texts.items()})
    expected = run.outputs(*([(text,) for text in texts[side]] for side in ("query", "candidate")))
    assert set(outputs) == set(expected) and "encode" in served
    for name, values in expected.items():
        np.testing.assert_allclose(outputs[name], values, atol=1e-4)


def test_pictures_show_the_scores_of_the_run(run):
    encoded = SimpleNamespace(encoder=run.text_encoder)
    pairs = malstm_figures.TABLE_1
    expected = run.outputs([(first,) for first, *_ in pairs], [(second,) for _, second, *_ in pairs])["score"]
    np.testing.assert_allclose(malstm_figures.score(run.model, encoded, pairs), expected, rtol=1e-5)


def test_dollars_are_drawn_as_they_are():
    texts = ["from $2.57, or 9%, to $31.90_ {", "no $ here $"] * 10
    vectors = np.random.default_rng(0).normal(size=(20, 4))
    for figure in (malstm_figures._units(texts, vectors), malstm_figures._as_table(["a"], [[texts[0]]], [1.0])):
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg")
        assert "2.57, or 9%, to $31.90_ {" in drawn.getvalue()


@pytest.mark.parametrize("model", [name for name in module.MODELS if name != "malstm"])
def test_other_models_train_on_a_slice_of_the_real_data(model, tmp_path):
    chosen = recipe(model=model, entailment=False, calibrate="dev")
    dataset = small(chosen.load(real_data("sick")))
    run = train(dataclasses.replace(chosen, figures=None), tmp_path, dataset, Options(say=lambda line: None))
    for metric in ("pearson", "spearman"):
        assert -1 <= run.metrics["test"][metric] <= 1
    assert 0 <= run.metrics["test"]["mse"] < 16


def test_synonyms_of_the_real_data(tmp_path):
    pytest.importorskip("nltk")
    wordnet = real_data("wordnet") / "wordnet-3.0-nltk.tar.gz"
    dataset = module.load(flags(data=real_data("sick"), wordnet=wordnet, synonyms=500), recipe())
    assert len(dataset.splits["train_synonyms"]) == 500
    assert "train_synonyms" not in dataset.scored_splits
    origins = {group.id for group in dataset.splits["train"]}
    assert {group.id.rsplit("-", 1)[0] for group in dataset.splits["train_synonyms"]} <= origins


@pytest.mark.parametrize("optimizer, rate", [("adam", 1e-3), ("adadelta", 1.0)])
def test_an_optimizer_has_its_own_rate_on_the_sample_too(optimizer, rate):
    settled = command_line._settled(module.recipe, {"optimizer": optimizer}, sample=True)
    assert settled["epochs"] == 16 and float(recipe(**settled).optimizer().learning_rate) == pytest.approx(rate)


def test_defaults_are_those_of_the_paper():
    chosen, sick_data = recipe_of_defaults(), SimpleNamespace(scale=sick.SCALE)
    encoded = SimpleNamespace(embeddings=np.zeros((5, 300)), trainable_embeddings=False, dataset=sick_data)
    model = chosen.build(encoded)
    lstm = next(layer for layer in model.get_layer("encoder").layer.layers if layer.name == "lstm")
    assert sum(weight.shape.num_elements() for weight in lstm.trainable_weights) == 70_200
    bias = np.array(lstm.get_weights()[2]).reshape(4, 50)
    np.testing.assert_array_equal(bias, np.array([0, 2.5, 0, 0])[:, None] * np.ones(50))
    assert np.std(lstm.get_weights()[0]) == pytest.approx(0.025, rel=0.05)
    optimizer = chosen.optimizer()
    settings = {name: float(getattr(optimizer, name)) for name in ("learning_rate", "rho", "epsilon")}
    assert settings == pytest.approx({"learning_rate": 1.0, "rho": 0.95, "epsilon": 1e-6})
    assert type(optimizer).__name__ == "Adadelta" and optimizer.global_clipnorm == 1.25
    # Labels of 1 and 5 are 0 and 1: two points apart are half of the range.
    loss = chosen.loss()
    assert float(loss(np.array([[5.0]]), np.array([[3.0]]))) == pytest.approx(0.25)
    assert chosen.train_on == ("train", "train_synonyms") and chosen.random_range == 0
    assert module.PUBLISHED["malstm"] == {"pearson": 0.8822, "spearman": 0.8345, "mse": 0.2286, "entailment": 0.842}
    assert module.SYNONYMS == 10_022


def recipe_of_defaults():
    return module.recipe(tuning.hyperparameters())


def test_each_part_is_trained_on_its_own_pairs(sample, tmp_path, monkeypatch):
    (tmp_path / "a.tsv").write_text("".join(f"{i % 6}\tone {i}\ttwo {i}\n" for i in range(20)))
    dataset = small(module.load(flags(data=sample, pretrain=tmp_path), recipe()), 60)
    dataset.splits["train_synonyms"] = dataset.splits["train"][:7]
    batches, calibrated = [], []
    monkeypatch.setattr(Fit, "batches", lambda self, split, **more: batches.append(split) or real(self, split, **more))
    monkeypatch.setattr(
        calibration, "fit", lambda scores, labels: calibrated.append(len(labels)) or (0.0, 5.0, np.arange(512.0))
    )
    for calibrate in ("train", "dev"):
        run = train(
            dataclasses.replace(recipe(units=2, calibrate=calibrate, entailment=False), figures=None),
            tmp_path / calibrate,
            dataset,
            Options(say=lambda line: None),
        )
    assert [len(split.labels) for split in batches] == [14, 67, 14, 67]
    assert calibrated == [120, 60]
    assert run.metrics["training"]["num_train"] == 67
    assert "trained on 67 pairs" in (run.folder / "README.md").read_text()


real = Fit.batches


def test_scores_that_are_no_numbers_end_the_pretraining(sample, tmp_path, monkeypatch):
    (tmp_path / "a.tsv").write_text("".join(f"{i % 6}\tone {i}\ttwo {i}\n" for i in range(20)))
    dataset = small(module.load(flags(data=sample, pretrain=tmp_path), recipe()), 60)
    monkeypatch.setattr("zoo.batches.score_split", lambda model, split: np.full(len(split.labels), np.nan))
    with pytest.raises(RuntimeError, match="pretraining epoch 1"):
        train(recipe(units=2), tmp_path / "run", dataset, Options(say=lambda line: None))


def test_benchmark_is_scored_on_its_own_scale_and_stands_beside_no_figure_of_sick(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"g\tf\ty\t{i}\t{i % 6}.0\tthe {i % 6} oven\tthe {i} oven\n" for i in range(40)]
    for split in ("train", "dev", "test"):
        (tmp_path / f"sts-{split}.csv").write_text("".join(rows))
    arguments = ["--data", ".", "--epochs", "1", "--units", "50", "--embedding-size", "50"]
    tables = {"table": [], "ablation": module.ABLATION}
    settings = {"tables": tables, "add_data_flags": module.add_data_flags, "load": module.load}
    assert command_line.main(module.recipe, "", module.MEANINGS, command=arguments, **settings) == 0
    said = capsys.readouterr().out
    assert "STS-Benchmark" in said and "0.8822" not in said and "malstm-without" not in said
    list_recipes([])
    (told,) = (part for part in capsys.readouterr().out.split("\n\n") if part.startswith("malstm_sick"))
    assert "STS-Benchmark" in told and "paper" not in told.partition("\n")[2]
    report = (tmp_path / "runs" / "malstm_sick" / "latest" / "report.html").read_text()
    assert "the paper, test" not in report and "0.882" not in report
    assert "here, 0 to 5" in report
    for flag in ("--entailment", "--held-out=0.1"):
        assert command_line.main(module.recipe, "", module.MEANINGS, command=[*arguments, flag], **settings)
        assert "SICK as --data" in capsys.readouterr().err


def test_nearest_sentences_of_ones_own(run, capsys):
    assert malstm_figures.main([str(run.folder), "the oven", "A STOVE.", "--count", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6 and lines[0] == "the oven" and lines[3] == "A STOVE."
    with pytest.raises(SystemExit):
        malstm_figures.main([str(run.folder / "absent"), "the oven"])


@pytest.mark.parametrize("p, order", [(1, ["b", "a", "c"]), (2, ["a", "b", "c"])])
def test_nearest_come_first_by_the_distance_of_the_model(p, order, monkeypatch):
    vectors = np.array([[2.0, 2.0], [3.0, 0.0], [9.0, 9.0]], "float32")
    model = SimpleNamespace(layers=[ManhattanDistance(p)])
    monkeypatch.setattr(malstm_figures, "_encode", lambda model, encoded, texts: np.zeros((len(texts), 2), "float32"))
    monkeypatch.setattr(malstm_figures, "score", lambda model, encoded, pairs: np.zeros(len(pairs)))
    found = malstm_figures.nearest(model, None, ["q"], ["a", "b", "c"], vectors)
    assert [text for _, text, _ in found] == order


@pytest.mark.parametrize("drop", [False, True])
def test_words_without_a_vector_are_steps_or_passed_over(drop):
    vectors = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    vectors[[0, 3]] = 0
    encode = malstm(vectors, units=2, drop_unknown=drop).get_layer("encoder")
    with_unknown, without = (np.asarray(encode(np.array([ids], "int32"))) for ids in ([1, 3, 2], [1, 2, 0]))
    assert np.allclose(with_unknown, without) == drop
