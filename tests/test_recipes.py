"""Every recipe trains: on its sample through the command line, and each of its models on a slice of the real data."""

import csv
import dataclasses
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from recipes import question_pairs
from recipes.__main__ import modules
from tests.data_checks import real_data
from tests.toy_models import embeddings
from zoo import command_line, comparison, runs, tuning
from zoo.recipe import Options
from zoo.training import train

RECIPES = modules()
TINY = {
    "filters": 8,
    "projection": 8,
    "dense_units": 8,
    "embedding_size": 8,
    "batch_size": 256,
    "epochs": 1,
    "units": 8,
    "ngram_rows": 10_000,
    "noisy_epochs": 1,
    "pretrain_epochs": 1,
    "noisy_pairs": 500,
    "heads": 2,
    "inner_units": 8,
    "lstm_units": 8,
}
CTRN = ["ctrn", "qrnn", "lstm", "cnn", "bm25", "tfidf", "random"]
REAL = {
    "ctrn_yahoo": ("yahooqa", CTRN),
    "ctrn_trecqa": ("trecqa", CTRN),
    "ctrn_qatar": ("qatarliving", CTRN),
    "decatt_quora": ("quora", question_pairs.MODELS),
    "ggsa_yahoo": ("yahooqa", ["ggsa", "iggsa_attention", "ntn_lstm", "hd_lstm", "ap_cnn", "ap_lstm", "ctrn"]),
    "rcnn_semeval": ("qatarliving", ["rcnn", "cnn", "lstm", "gru", "search", "bm25", "tfidf"]),
}


def test_there_are_recipes():
    assert set(RECIPES) >= {"ctrn_yahoo", "ctrn_trecqa", "ctrn_qatar", "malstm_sick", "pairs"}
    assert set(RECIPES) >= {"decatt_quora", "decatt_noisy", "ggsa_insurance", "ggsa_yahoo"}
    assert set(RECIPES) >= {"rcnn_askubuntu", "rcnn_semeval"}


def tiny(name):
    """The knobs of `TINY` that the recipe has."""
    names = {knob.name for knob in tuning.knobs(RECIPES[name].recipe)}
    return {knob: value for knob, value in TINY.items() if knob in names}


def tiny_flags(name, *flags):
    """The flags that make `TINY` what a command with further ``flags`` trains; one row has not all knobs."""
    of_row = {}
    for flag in flags:
        knob, _, value = flag.removeprefix("--").replace("-", "_").partition("=")
        of_row |= {knob: value} if knob in ("model", "loss", "negatives_from") else {}
    is_table = {"--table", "--curve", "--losses", "--ablation"} & {*flags}
    start, vectors = (any(flag.startswith(name) for flag in flags) for name in ("--from", "--embeddings"))
    options = Options(start="a run" if start else None, embeddings=("a file",) if vectors else ())
    dead = () if is_table else RECIPES[name].recipe(tuning.hyperparameters(**of_row)).dead_knobs(options)
    return [f"--{knob.replace('_', '-')}={value}" for knob, value in tiny(name).items() if knob not in dead]


@pytest.mark.parametrize("name", RECIPES)
def test_on_the_sample(name, tmp_path, capsys):
    module, flags = RECIPES[name], tiny_flags(name)
    extra = {part: getattr(module, part) for part in ("add_data_flags", "load") if hasattr(module, part)}
    code = command_line.main(module.recipe, module.__doc__, command=[*flags, "--runs", str(tmp_path)], **extra)
    lines = capsys.readouterr().out.strip().splitlines()
    assert code == 0
    assert lines[0] == lines[-1] == command_line.SAMPLE
    assert "not comparable to the paper" in lines[0]
    run = tmp_path / name / "latest"
    assert "made-up sample" in (run / "README.md").read_text("utf-8")
    assert "made-up sample" in (run / "report.html").read_text("utf-8")


def test_rows_without_the_papers_vectors_are_named(tmp_path, capsys):
    flags = [*tiny_flags("ctrn_yahoo", "--model=qrnn"), "--model=qrnn", "--runs", str(tmp_path)]
    assert command_line.main(RECIPES["ctrn_yahoo"].recipe, "", command=flags) == 0
    said = capsys.readouterr().out
    assert "note: trained without word vectors of a file (--embeddings), unlike the paper's: qrnn\n" in said


def another(knob):
    """A value of a knob that is not its default, and small."""
    if hasattr(knob, "min_value"):
        return knob.min_value if knob.min_value != knob.default else knob.max_value
    values = getattr(knob, "values", (True, False))
    return next(value for value in values if value != knob.default)


@pytest.mark.parametrize("name", RECIPES)
def test_knobs_without_effect_have_none(name):
    """On the model, its loss, its optimizer and its batches; all such knobs of a row are changed at once."""
    recipe = RECIPES[name].recipe
    encoded = SimpleNamespace(
        embeddings=embeddings(size=24),
        trainable_embeddings=True,
        has_vector=np.zeros(40, bool),
        encoder=SimpleNamespace(vocabulary_size=40, words=["a"] * 39),
        dataset=SimpleNamespace(fields=("title", "body") if "rcnn" in name else ("text",), scale=(1, 5)),
    )
    space = {knob.name: knob for knob in tuning.knobs(recipe)}
    small = {
        knob: value for knob, value in (tiny(name) | {"overlap": "none", "idf_weights": False}).items() if knob in space
    }

    plain = ("model", "task", "list_size", "batch_size", "ngram_sizes", "ngram_vocabulary", "oov_buckets")

    def made(**knobs):
        row = recipe(tuning.hyperparameters(**small | knobs))
        keras.backend.clear_session()  # layers are numbered by their kind
        loss = row.loss()
        described = loss.get_config() if hasattr(loss, "get_config") else loss.__name__
        network = (row.build(encoded).get_config(), row.optimizer().get_config(), described)
        drawn = row.negatives and row.negatives.source != "batch" and row.negatives  # those of the batch have no count
        return [*network, drawn, *(getattr(row, part) for part in plain)]

    for model in space["model"].values:
        row = recipe(tuning.hyperparameters(**small | {"model": model}))
        if row.build:
            # A layer that does not align with itself still holds how it would.
            dead = {*row.without_effect} & {*space} - {"values", "max_distance"}
            changed = {knob: another(space[knob]) for knob in dead}
            assert made(model=model) == made(model=model, **changed), model


def test_negatives_of_the_batch_and_of_the_corpus_and_a_start_from_another_row(tmp_path):
    module, newest = RECIPES["ggsa_insurance"], tmp_path / "ggsa_insurance" / "latest"
    papers = ["--negatives-from=corpus", "--loss=pairwise"]
    for name, flags, most in (
        ("ggsa", ["--model=ggsa"], 6),  # a softmax over the answers of the batch, which as yet knows little
        ("iggsa_from_run", ["--model=iggsa", f"--from={newest}"], 6),
        ("ggsa_pairwise", ["--model=ggsa", *papers], 0.2),  # a margin of 0.1
    ):
        command = [*flags, *tiny_flags("ggsa_insurance", *flags), "--runs", str(tmp_path)]
        assert command_line.main(module.recipe, module.__doc__, command=command) == 0
        run = runs.load(newest)
        assert run.settings["model"] == name
        assert bool(run.settings.get("start")) == name.endswith("from_run")
        (epoch,) = csv.DictReader((run.folder / "history.csv").open(encoding="utf-8"))
        assert most / 12 < float(epoch["loss"]) < most


@pytest.mark.parametrize("name, model", [(name, model) for name, (_, models) in REAL.items() for model in models])
def test_on_a_slice_of_the_real_data(name, model, tmp_path):
    folder = real_data(REAL[name][0])
    recipe = RECIPES[name].recipe(tuning.hyperparameters(**tiny(name) | {"model": model}))
    dataset = recipe.load(Path(folder))
    dataset = dataclasses.replace(
        dataset, splits={split: groups[:12] for split, groups in dataset.splits.items()}, files=()
    )
    run = train(recipe, tmp_path, dataset, Options(say=lambda line: None))
    for split in ("dev", "test"):
        for metric in dataset.metrics:
            assert 0 <= run.metrics[split][metric] <= 1
    if "num_queries" in run.metrics["test"]:
        assert run.metrics["test"]["num_queries"] == 12


@pytest.mark.parametrize("model", ["ggsa", "iggsa_multihop", "cnn_gesd"])
def test_pools_of_insurance_qa(model, tmp_path):
    """Two tests with a published table each, and pools of hundreds, of whose texts the best are written."""
    module = RECIPES["ggsa_insurance"]
    recipe = module.recipe(tuning.hyperparameters(**tiny("ggsa_insurance") | {"model": model, "dev_pool": 20}))
    dataset = recipe.load(real_data("insuranceqa"))
    splits = {split: groups[: 64 if split == "train" else 3] for split, groups in dataset.splits.items()}
    run = train(recipe, tmp_path, dataclasses.replace(dataset, splits=splits, files=()), Options(say=lambda line: None))
    assert run.splits == ("dev", "test1", "test2") and run.metrics["test1"]["num_queries"] == 3
    rows = [row for row in runs.read_predictions(run.folder) if row["split"] == "test1"]
    assert len(rows) == 1500 and 30 <= sum(row["query"] != "" for row in rows) <= 60
    assert comparison.published_on(recipe.published, "test2")[model]["p@1"] == module.PUBLISHED["test2"][model]["p@1"]
