"""Pre-training on noise: which weights are taken over, and what Figure 1 is drawn of."""

from types import SimpleNamespace

import numpy as np
import pytest

from recipes import decatt_figures, decatt_noisy, decatt_quora
from tests.test_recipes import tiny_flags
from tests.toy_models import embeddings
from zoo import command_line, runs, tuning


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """A function of recipe and flags to exit code and newest run; all share a folder."""
    folder = tmp_path_factory.mktemp("runs")

    def run(module, *flags):
        name = module.__name__.split(".")[-1]
        arguments = [*tiny_flags(name, *flags), *flags, "--runs", str(folder)]
        code = command_line.main(module.recipe, module.__doc__, command=arguments)
        return code, runs.load(folder / name / "latest") if code == 0 else None

    return run


@pytest.fixture(scope="module")
def noisy(train):
    return train(decatt_noisy, "--noisy-pairs=400")[1]


def test_all_weights_or_the_table_alone_are_taken_over(train, noisy, monkeypatch):
    before_fit = {}
    original = decatt_quora.pretrain

    def pretrain(model, encoded, fit, **settings):
        told = original(model, encoded, fit, **settings)
        before_fit[fit.recipe.model] = {weight.path: np.array(weight) for weight in model.weights}
        return told

    monkeypatch.setattr(decatt_quora, "pretrain", pretrain)
    start = {weight.path: np.array(weight) for weight in noisy.model.weights}
    for model in ("pt_decatt_char", "decatt_noisy_char"):
        code, run = train(decatt_quora, f"--model={model}", "--self-attention", "--from", str(noisy.folder))
        assert code == 0 and run.settings["model"] == model
        equal = {path for path, value in before_fit[model].items() if np.array_equal(value, start[path])}
        table = {path for path in start if "char_ngram_embedding" in path}
        drawn = {path for path, value in start.items() if value.ndim == 2 and path not in table}
        assert table <= equal and len(drawn) > 5
        assert drawn <= equal if model == "pt_decatt_char" else not drawn & equal


def test_vectors_of_a_file_begin_at_length_one():
    hp = tuning.hyperparameters(model="decatt_glove", units=50)
    encoded = SimpleNamespace(
        embeddings=5 * embeddings(), trainable_embeddings=False, has_vector=np.arange(len(embeddings())) % 2 == 1
    )
    model = decatt_quora.recipe(hp).build(encoded)
    tables = [np.array(weight) for weight in model.weights if weight.shape == embeddings().shape]
    lengths = [np.linalg.norm(table, axis=1) for table in tables]
    np.testing.assert_allclose(np.max(lengths, axis=0), [0] + [1] * (len(embeddings()) - 1), rtol=1e-6)


def test_a_run_of_other_sizes_is_refused(train, noisy, capsys):
    code, _ = train(
        decatt_quora, "--model=pt_decatt_char", "--self-attention", "--units=50", "--from", str(noisy.folder)
    )
    assert code == 1
    assert "pt_decatt_char must find its weights in the run to start from" in capsys.readouterr().err


def test_figures_of_finished_runs(train, noisy, tmp_path, capsys):
    code, run = train(decatt_quora, "--model=decatt_char", "--train-pairs=20")
    assert code == 0
    capsys.readouterr()
    assert decatt_figures.main(["--runs", str(run.folder.parents[1]), "--out", str(tmp_path / "figures")]) == 0
    assert "<svg" in (tmp_path / "figures" / "figure_1.svg").read_text("utf-8")
    _, *lines = capsys.readouterr().out.splitlines()
    texts = [text for query, candidate, _ in decatt_quora.EXAMPLES for text in (query, candidate)]
    assert [line[3:] for line in lines[:12]] == texts
    assert lines[13].split() == ["right", *"YYNYYY"]
    ((name, *answers),) = [line.rsplit(maxsplit=6) for line in lines[14:] if line.startswith("decatt_char")]
    scores = run.score(*([(example[side],) for example in decatt_quora.EXAMPLES] for side in (0, 1)))
    assert name == run.settings["model"] and answers == ["NY"[int(score >= run.threshold)] for score in scores]


def test_figures_need_runs(tmp_path, capsys):
    with pytest.raises(SystemExit):
        decatt_figures.main(["--runs", str(tmp_path)])
    assert "there must be finished runs of decatt_quora" in capsys.readouterr().err


def run_of(model, count, accuracy, seed=1, start=None, **knobs):
    settings = {
        "model": f"{model}, {count:,} pairs" + ("_from_run" if start and not model.startswith("pt") else ""),
        "knobs": {"both_orders": True, "train_pairs": count, "model": model} | knobs,
        "seed": seed,
        "start": start,
    }
    metrics = {"training": {"num_train": 2 * count}, "dev": {"accuracy": accuracy}}
    return SimpleNamespace(folder=object(), settings=settings, metrics=metrics)


def test_a_curve_is_of_one_setting_and_seeds_stand_side_by_side():
    found = decatt_figures.curves(
        [
            run_of("decatt_char", 100, 0.1, ngrams="3"),  # of another setting than the newest
            run_of("decatt_char", 100, 0.6),
            run_of("decatt_char", 100, 0.7, seed=2),
            run_of("decatt_char", 1000, 0.8),
            run_of("pt_decatt_char", 100, 0.9, start="noisy"),
            run_of("ffnn_char", 100, 0.2),
        ]
    )
    assert found == {"not pretrained": {100: [0.6, 0.7], 1000: [0.8]}, "pretrained": {100: [0.9]}}
