"""Pre-training on noise: which weights are taken over, and what Figure 1 is drawn of."""

from types import SimpleNamespace

import numpy as np
import pytest

from recipes import decatt_figures, decatt_noisy, decatt_quora
from tests.test_recipes import tiny_flags
from tests.toy_models import embeddings
from zoo import command_line, figures, runs, tuning
from zoo.data import Group
from zoo.recipe import Options


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


@pytest.mark.parametrize("model", ["pt_decatt_char", "decatt_noisy_char"])
def test_without_a_run_noise_is_made_of_the_training_pairs(train, model, monkeypatch, capsys):
    seen = {}
    original = decatt_quora.pretrain

    def pretrain(built, encoded, fit, *, noise, build):
        def recorded(encoded, **settings):
            other = build(encoded, **settings)
            if settings:
                seen["pre-trained"], seen["settings"] = other, settings
                seen["drawn"] = {weight.path: np.array(weight) for weight in other.weights}
            return other

        told = original(built, encoded, fit, noise=noise, build=recorded)
        seen["built"] = {weight.path: np.array(weight) for weight in built.weights}
        return told

    monkeypatch.setattr(decatt_quora, "pretrain", pretrain)
    code, run = train(decatt_quora, f"--model={model}", "--train-pairs=300")
    assert code == 0 and "all but one" in capsys.readouterr().out
    assert "A word is made of its character n-grams" in (run.folder / "README.md").read_text("utf-8")
    assert seen["settings"] == {"dropout": 0.0} and run.metrics["training"]["num_train"] == 600
    learnt = {weight.path: np.array(weight) for weight in seen["pre-trained"].weights}
    changed = {path for path, value in learnt.items() if not np.array_equal(value, seen["drawn"][path])}
    assert len(changed) > 10
    taken = {path for path in changed if np.array_equal(seen["built"][path], learnt[path])}
    assert taken == (changed if model.startswith("pt") else {"char_ngram_embedding/table"})


def test_the_accumulator_begins_as_asked():
    hp = tuning.hyperparameters(model="decatt_char", accumulator=0.25, learning_rate=0.03)
    optimizer = decatt_quora.recipe(hp).optimizer()
    assert optimizer.initial_accumulator_value == 0.25 and float(optimizer.learning_rate) == np.float32(0.03)


@pytest.mark.parametrize("both_orders", [True, False])
def test_pairs_are_learnt_in_both_orders(both_orders):
    pairs = [Group("1", ("a",), (("b",),), (1.0,))]
    learnt = decatt_quora.recipe(tuning.hyperparameters(both_orders=both_orders)).augment(pairs, 1)
    orders = [(pair.query, pair.candidates[0]) for pair in learnt]
    assert orders == [(("a",), ("b",)), (("b",), ("a",))][: 1 + both_orders]


def test_another_seed_learns_from_other_pairs():
    pairs = [Group(str(number), (f"q{number}",), (("b",),), (1.0,)) for number in range(100)]
    augment = decatt_quora.recipe(tuning.hyperparameters(train_pairs=10, both_orders=False)).augment
    one, again, two = ({pair.id for pair in augment(pairs, seed)} for seed in (1, 1, 2))
    assert one == again and len(one) == len(two) == 10 and one != two


def test_a_search_leaves_alone_what_vectors_of_a_file_give(tmp_path, monkeypatch):
    searched = []

    def train(chosen, place, dataset, options, seed):
        searched.append({*options.knobs})
        raise RuntimeError("enough is known")

    monkeypatch.setattr(tuning, "train", train)
    said = []
    options = Options(embeddings=("vectors.txt",), say=said.append)
    dataset = SimpleNamespace(metrics=("accuracy",))
    settings = {"values": {"model": "decatt_glove"}, "trials": 2, "tuner": "random"}
    with pytest.raises(RuntimeError):
        tuning.tune(decatt_quora.recipe, dataset, tmp_path, options, **settings)
    given = {"embedding_size", "vector_deviation"}
    assert searched and not given & {*searched[0]} and "attend_gain" in searched[0]
    assert "attend_gain" in said[0] and not any(name in said[0] for name in given)


@pytest.mark.parametrize("changed", [{}, {"self_attention": False, "context": 0}])
def test_a_search_from_a_run_takes_its_network(tmp_path, monkeypatch, noisy, changed):
    searched = []

    def train(chosen, place, dataset, options, seed):
        searched.append(options.knobs)
        raise RuntimeError("enough is known")

    monkeypatch.setattr(tuning, "train", train)
    said = []
    there = noisy.settings["knobs"] | changed
    start = SimpleNamespace(settings=noisy.settings | {"knobs": there})
    options = Options(start=start, say=said.append)
    settings = {"values": {"model": "pt_decatt_char"}, "trials": 2, "tuner": "random"}
    with pytest.raises(RuntimeError):
        tuning.tune(decatt_quora.recipe, SimpleNamespace(metrics=("accuracy",)), tmp_path, options, **settings)
    for name in ("units", "embedding_size", "ngrams", "ngram_combiner", "context", "self_attention"):
        assert searched[0][name] == there[name] and name not in said[0]
    assert "learning_rate" in said[0]


@pytest.mark.parametrize("rows", [["pt_decatt_char"], ["decatt_char", "pt_decatt_char"]])
def test_a_table_does_not_start_from_a_run_that_is_not_of_noise(train, noisy, rows, capsys):
    run = train(decatt_quora, "--model=decatt_char", "--self-attention")[1]
    flags = [*tiny_flags("decatt_quora", "--table", "--from"), "--table", "--from", str(run.folder)]
    flags = [flag for flag in flags if not flag.startswith(("--noisy", "--ngram"))]
    table = [{"model": model, "self_attention": True} for model in rows]
    command = [*flags, "--runs", str(run.folder.parents[1])]
    code = command_line.main(decatt_quora.recipe, "", tables={"table": table}, command=command)
    out, err = capsys.readouterr()
    assert "pt_decatt_char is left out: the run to start from is a run of decatt_quora, decatt_char" in out
    assert code == (rows == ["pt_decatt_char"]) and ("No row of the table can go on" in err) == code


def test_a_search_leaves_alone_what_is_learnt_from():
    assert {"train_pairs", "both_orders"} <= {*decatt_quora.recipe(tuning.hyperparameters()).fixed}


@pytest.mark.parametrize(
    "flag",
    [
        *("--noisy-epochs=2", "--noisy-pairs=7", "--noisy-batch-size=32"),
        *("--ngram-rows=20000", "--ngram-vocabulary=9", "--vector-deviation=1", "--attend-gain=2"),
    ],
)
def test_what_a_run_to_start_from_gives_is_refused_beside_it(train, noisy, flag, capsys):
    with pytest.raises(SystemExit):
        train(decatt_quora, "--model=pt_decatt_char", "--self-attention", flag, "--from", str(noisy.folder))
    assert "--from takes the place of this knob" in capsys.readouterr().err


def test_what_a_run_to_start_from_gives_is_not_recorded(train, noisy):
    code, run = train(decatt_quora, "--model=pt_decatt_char", "--self-attention", "--from", str(noisy.folder))
    given = {"noisy_pairs", "noisy_epochs", "noisy_batch_size", "ngram_rows", "vector_deviation", "attend_gain"}
    assert code == 0 and not given & {*run.settings["knobs"]} and {*run.settings["knobs"]} >= {"ngrams", "units"}


def test_a_row_named_for_noise_starts_from_a_training_on_noise(train, capsys):
    code, run = train(decatt_quora, "--model=decatt_char", "--self-attention")
    assert code == 0
    code, _ = train(decatt_quora, "--model=pt_decatt_char", "--self-attention", "--from", str(run.folder))
    told = capsys.readouterr().err
    assert code == 1 and "a run of decatt_quora, decatt_char, where decatt_char of decatt_noisy is needed" in told


@pytest.mark.parametrize("module", [decatt_quora, decatt_noisy])
def test_vectors_of_a_file_are_refused_where_no_model_takes_them(module, tmp_path, capsys):
    (tmp_path / "vectors.txt").write_text("the 1 2\n")
    with pytest.raises(SystemExit):
        command_line.main(module.recipe, "", command=["--embeddings", str(tmp_path / "vectors.txt")])
    assert "--embeddings needs a model that takes word vectors" in capsys.readouterr().err


def test_pairs_of_one_class_are_refused(tmp_path, capsys):
    for split in ("train", "dev", "test"):
        label = "0" if split == "train" else "1"
        lines = [f"{label if number % 2 else '1'}\tq {number}\tc {number}\t{number}\n" for number in range(9)]
        (tmp_path / f"{split}.tsv").write_text("".join(lines), "utf-8")
    command = [*tiny_flags("decatt_quora"), "--data", str(tmp_path), "--runs", str(tmp_path / "runs")]
    assert command_line.main(decatt_quora.recipe, "", command=command) == 2
    assert "expected matches and other pairs in dev" in capsys.readouterr().err


def test_rows_that_cannot_start_from_a_run_are_left_out(train, noisy, monkeypatch, capsys):
    table = [{"model": model, "self_attention": True} for model in ("pt_decatt_word", "pt_decatt_char")]
    name = "decatt_quora"
    flags = [*tiny_flags(name, "--table", "--from"), "--noisy-pairs=1"]
    flags = [flag for flag in flags if not flag.startswith(("--noisy", "--ngram"))]
    code = command_line.main(
        decatt_quora.recipe,
        decatt_quora.__doc__,
        tables={"table": table},
        command=[*flags, "--table", "--from", str(noisy.folder), "--runs", str(noisy.folder.parents[1])],
    )
    out = capsys.readouterr().out
    assert code == 0 and "pt_decatt_word is left out" in out and "pt_decatt_char, seed 1" in out


def test_one_table_at_a_time(capsys):
    tables = {"table": decatt_quora.TABLE, "curve": decatt_quora.CURVE}
    with pytest.raises(SystemExit):
        command_line.main(decatt_quora.recipe, "", tables=tables, command=["--table", "--curve"])
    assert "one table at a time" in capsys.readouterr().err


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
    told = capsys.readouterr().err
    assert "pt_decatt_char must find its weights in the run to start from" in told
    assert "units 8 there, 50 here" in told and len(told) < 500


def test_a_run_under_another_combiner_is_refused(train, noisy, capsys):
    flags = ["--self-attention", "--ngram-combiner=sum", "--from", str(noisy.folder)]
    for model in ("pt_decatt_char", "decatt_noisy_char", "decatt_char"):
        assert train(decatt_quora, f"--model={model}", *flags)[0] == 1
        assert "ngram_combiner sqrtn there, sum here" in capsys.readouterr().err


def test_figures_of_finished_runs(train, noisy, tmp_path, capsys):
    code, run = train(decatt_quora, "--model=decatt_char", "--train-pairs=20")
    assert code == 0
    capsys.readouterr()
    assert decatt_figures.main(["--runs", str(run.folder.parents[1]), "--out", str(tmp_path / "figures")]) == 0
    assert "<svg" in (tmp_path / "figures" / "figure_1.svg").read_text("utf-8")
    _, _, *lines = capsys.readouterr().out.splitlines()
    texts = [text for query, candidate, _ in decatt_quora.EXAMPLES for text in (query, candidate)]
    assert [line[3:] for line in lines[:12]] == texts
    assert lines[13].split() == ["right", *"YYNYYY"]
    ((name, *answers),) = [line.rsplit(maxsplit=6) for line in lines[14:] if line.startswith(run.settings["model"])]
    scores = run.score(*([(example[side],) for example in decatt_quora.EXAMPLES] for side in (0, 1)))
    assert name == run.settings["model"] and answers == ["NY"[int(score >= run.threshold)] for score in scores]


def test_figure_1_needs_runs_of_its_curves(train, monkeypatch, tmp_path, capsys):
    _, run = train(decatt_quora, "--model=ffnn_char")
    monkeypatch.setattr(decatt_figures.comparison, "finished_runs", lambda *_: [run])
    assert decatt_figures.main(["--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "no figure 1: it is drawn of runs of decatt_char and pt_decatt_char" in out and "ffnn_char  " in out
    assert not list(tmp_path.iterdir())


def test_the_alignment_is_drawn(train):
    _, run = train(decatt_quora, "--model=decatt_char")
    encoded = SimpleNamespace(encoder=run.text_encoder)
    ((title, figure),) = decatt_quora.figures(run.model, encoded, []).items()
    axes, bar = figure.axes
    first, second = (text.split() for text in decatt_quora.EXAMPLES[0][:2])
    rows, columns = ([tick.get_text() for tick in ticks] for ticks in (axes.get_yticklabels(), axes.get_xticklabels()))
    assert rows[:3] == first[:3] and columns[:3] == second[:3] and rows[-1] == columns[-1] == "?"
    weights = np.array(axes.images[0].get_array())
    assert weights.shape == (len(rows), len(columns))
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    assert title in (run.folder / "report.html").read_text("utf-8")
    sums = train(decatt_quora, "--model=ffnn_char")[1]
    assert decatt_quora.figures(sums.model, encoded, []) == {}


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
            run_of("decatt_char", 100, 0.3, start="noisy"),  # pre-trained under the other name
            run_of("ffnn_char", 100, 0.2),
        ]
    )
    assert found == {"not pretrained": {100: [0.6, 0.7], 1000: [0.8]}, "pretrained": {100: [0.9]}}
    (axes,) = figures.learning_curves(found, "dev accuracy", "toy").axes
    assert axes.get_legend_handles_labels()[1] == ["not pretrained, mean of 1 to 2 seeds", "pretrained"]
