"""The recipes of the DecAtt paper together: noise, a run started from it, the parts it takes, figures of the runs."""

import dataclasses

import numpy as np
import pytest

from recipes import decatt_figures, decatt_noisy, decatt_quora
from zoo import samples, tuning
from zoo.datasets import quora
from zoo.training import Options, train

TINY = {"embedding_size": 8, "units": 8, "ngram_rows": 500, "epochs": 1, "noisy_epochs": 1, "noisy_pairs": 300}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quora")
    samples.quora(folder)
    dataset = quora.load(folder)
    return dataclasses.replace(dataset, splits={name: groups[:200] for name, groups in dataset.splits.items()})


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """A run on noisy pairs of clusters."""
    folder = tmp_path_factory.mktemp("paralex")
    samples.paralex(folder / "data")
    recipe = decatt_noisy.recipe(tuning.hyperparameters(**TINY))
    return trained(recipe, folder / "run", recipe.load(folder / "data"))


def trained(recipe, folder, dataset, lines=None, **options):
    say = (lambda line: None) if lines is None else lines.append
    return train(recipe, folder, dataset, Options(say=say, **options))


def recipe(**knobs):
    return decatt_quora.recipe(tuning.hyperparameters(**TINY | knobs))


def test_figures_of_a_curve_and_the_table_of_examples(pairs, tmp_path, capsys):
    lines = []
    for model in ("decatt_char", "pt_decatt_char"):
        knobs = {"model": model, "train_pairs": 50, "both_orders": True}
        name = tmp_path / "decatt_quora" / model
        run = trained(recipe(**knobs), name, pairs, lines, knobs=knobs)
        assert run.settings["model"] == f"{model}@50"
        assert run.metrics["training"]["num_train"] == 100  # in both orders
        assert "is aligned to in the second" in (name / "report.html").read_text("utf-8")
    assert sum(line.startswith("noise: ") for line in lines) == 1
    assert decatt_figures.main(["--runs", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-4].split() == ["A", "B", "C", "D", "E", "F"]
    assert printed[-3].split() == ["right", "Y", "Y", "N", "Y", "Y", "Y"]
    assert set("".join(printed[-1].split()[-6:])) <= {"Y", "N"}
    assert (tmp_path / "out" / "figure_1.svg").stat().st_size > 1000


def test_a_run_starts_from_noise_with_all_its_weights_or_its_ngrams_alone(pairs, noise, tmp_path):
    paths = {weight.path: np.array(weight) for weight in noise.model.weights}
    frozen = {"learning_rate": 0.0}
    for model, taken in (("pt_decatt_char", set(paths)), ("decatt_noisy_char", {"char_ngram_embedding/table"})):
        run = trained(recipe(model=model, self_attention=True, **frozen), tmp_path / model, pairs, start=noise)
        same = {weight.path for weight in run.model.weights if np.array_equal(weight, paths[weight.path])}
        zeros = {path for path, value in paths.items() if not value.any()}  # biases may begin alike
        assert same - zeros == taken - zeros
    with pytest.raises(ValueError, match=r"Received: ngram_sizes=\(5,\) for \(\)"):
        trained(recipe(model="pt_decatt_word"), tmp_path / "word", pairs, start=noise)


def test_without_runs_there_are_no_figures(tmp_path, capsys):
    with pytest.raises(SystemExit):
        decatt_figures.main(["--runs", str(tmp_path)])
    assert "finished runs of decatt_quora" in capsys.readouterr().err
