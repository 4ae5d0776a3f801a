"""Every recipe trains: on its sample through the command line, and each of its models on a slice of the real data."""

import dataclasses
from pathlib import Path

import pytest

from recipes.__main__ import modules
from tests.data_checks import real_data
from zoo import command_line, tuning
from zoo.training import Options, train

RECIPES = modules()
TINY = {"filters": 8, "projection": 8, "dense_units": 8, "embedding_size": 8, "batch_size": 256, "epochs": 1}
REAL = {"ctrn_yahoo": "yahooqa", "ctrn_trecqa": "trecqa", "ctrn_qatar": "qatarliving"}


def test_there_are_recipes():
    assert set(RECIPES) >= {"ctrn_yahoo", "ctrn_trecqa", "ctrn_qatar", "malstm_sick", "pairs"}


@pytest.mark.parametrize("name", RECIPES)
def test_on_the_sample(name, tmp_path, capsys):
    module = RECIPES[name]
    knobs = {knob.name for knob in tuning.knobs(module.recipe)}
    flags = [f"--{knob.replace('_', '-')}={value}" for knob, value in TINY.items() if knob in knobs]
    extra = {part: getattr(module, part) for part in ("add_data_flags", "load") if hasattr(module, part)}
    code = command_line.main(module.recipe, module.__doc__, arguments=[*flags, "--runs", str(tmp_path)], **extra)
    lines = capsys.readouterr().out.strip().splitlines()
    assert code == 0
    assert lines[0] == lines[-1] == command_line.SAMPLE
    assert "not comparable to the paper" in lines[0]
    run = tmp_path / name / "latest"
    assert "made-up sample" in (run / "README.md").read_text("utf-8")
    assert "made-up sample" in (run / "report.html").read_text("utf-8")


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("model", ["ctrn", "qrnn", "lstm", "cnn", "bm25", "tfidf", "random"])
def test_on_a_slice_of_the_real_data(name, model, tmp_path):
    folder = real_data(REAL[name])
    recipe = RECIPES[name].recipe(tuning.hyperparameters(**TINY | {"model": model}))
    dataset = recipe.load(Path(folder))
    dataset = dataclasses.replace(
        dataset, splits={split: groups[:12] for split, groups in dataset.splits.items()}, files=()
    )
    run = train(recipe, tmp_path, dataset, Options(say=lambda line: None))
    for split in ("dev", "test"):
        for metric in dataset.metrics:
            assert 0 <= run.metrics[split][metric] <= 1
    assert run.metrics["test"]["num_queries"] == 12
