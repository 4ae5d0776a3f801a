"""Flags are the knobs; wrong use and broken data end with code 2 and one line."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from recipes import ctrn_trecqa, ctrn_yahoo, pairs
from recipes.__main__ import main as list_recipes
from recipes.__main__ import modules
from recipes.knob_meanings import MEANINGS
from zoo import command_line, comparison, tuning
from zoo.data import Dataset, Group
from zoo.datasets import trec_qa
from zoo.metrics import Convention

ROOT = Path(__file__).parents[1]


def run_pairs(*arguments):
    return command_line.main(
        pairs.recipe,
        pairs.__doc__,
        add_data_flags=pairs.add_data_flags,
        load=pairs.load,
        command=[str(argument) for argument in arguments],
    )


@pytest.fixture
def small_file(tmp_path):
    """Twenty lines with all that a user's file may hold."""
    rows = [("query", "candidate", "label")]
    for word in ("red", "blue", "green", "grey", "pink", "teal"):
        rows += [(f"what is {word}?", f"{word} is a colour 🎨", "1"), (f"what is {word}?", "", "0")]
        rows += [(f"what is {word}?", "a dog", "0")]
    rows += [("what is red?", "x " * 50_000, "0"), ("lonely ✨ query", "nothing fits", "0")]
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join("\t".join(row) for row in rows) + "\n", "utf-8")
    return file


TINY = ["--epochs", 1, "--filters", 8, "--projection", 8, "--dense-units", 8, "--embedding-size", 8]


def test_twenty_lines_train_and_are_compared(small_file, tmp_path, capsys):
    assert run_pairs("--train", small_file, "--runs", tmp_path / "runs", "--seeds", 2, *TINY) == 0
    said = capsys.readouterr().out
    table = said[said.rindex("model ") :]
    report = (tmp_path / "runs/pairs/latest/report.html").read_text("utf-8")
    assert "the newest run of each other model" in report and "<td>bm25</td>" in report
    assert "- trained on " in (tmp_path / "runs/pairs/latest/README.md").read_text("utf-8")
    assert "ctrn" in table and "(2)" in table and "bm25" in table
    assert "not comparable" not in said and "paper" not in table
    assert "epoch 1 of 1 is kept, the best by map\n" in said
    assert re.search(r"1 of \d candidate texts have 128 tokens or more: what follows is cut\n", said)
    trained = [run for run in comparison.finished_runs(tmp_path / "runs", "pairs") if run.settings["module"]]
    best = max(trained, key=lambda run: run.metrics["dev"]["map"])
    assert said.endswith(f"to serve it: python -m export {best.folder} served\n")
    (unlike,) = [line for line in said.splitlines() if line.startswith("note: other knobs")]
    assert unlike.startswith("note: other knobs than the recipe's own: ") and "filters 8" in unlike
    assert "batch_size" not in unlike
    knobs = {knob.name for knob in tuning.knobs(pairs.recipe)}
    for run in comparison.finished_runs(tmp_path / "runs", "pairs"):
        assert set(run.settings["knobs"]) == knobs
        for row in (run.folder / "predictions.tsv").read_text("utf-8").splitlines()[1:]:
            assert abs(float(row.split("\t")[3])) < 1e6
    assert (tmp_path / "runs/pairs/latest/model.keras").is_file()


BROKEN = {
    "missing column": (b"query\tanswer\tlabel\na\tb\t1\n", ":1: expected ", "answer"),
    "label 2": (b"query\tcandidate\tlabel\na\tb\t1\na\tc\t2\n", ":3: expected label", "'2'"),
    "bad UTF-8": (b"query\tcandidate\tlabel\na\tb\t1\na\t\xff\t0\n", ":3: expected ", "xff"),
    "no rows": (b"query\tcandidate\tlabel\n", ": expected ", "Received: "),
    "empty file": (b"", ": expected ", "Received: "),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_ends_with_one_line(name, tmp_path, capsys):
    content, place, received = BROKEN[name]
    file = tmp_path / "broken.tsv"
    file.write_bytes(content)
    assert run_pairs("--train", file, "--runs", tmp_path / "runs") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"{file}{place}" in line and received in line
    assert not list((tmp_path / "runs").rglob("recipe.json"))


def folders(root):
    return sorted(f.name.split("-", 2)[2] for f in root.iterdir() if f.is_dir() and not f.is_symlink())


def test_a_scorer_is_run_once(small_file, tmp_path):
    assert run_pairs("--train", small_file, "--runs", tmp_path / "runs", "--model", "bm25") == 0
    assert folders(tmp_path / "runs/pairs") == ["bm25-1"]


def test_rows_of_a_table_and_a_run_that_goes_on(small_file, tmp_path, capsys):
    """A recipe names its rows; the scorers stand beside them once."""

    def recipe(hp):
        made = pairs.recipe(hp)
        return dataclasses.replace(made, model=f"{made.model}, wide") if hp.get("filters") == 16 else made

    def run(*arguments):
        tables = {"widths": [{"model": "qrnn"}, {"model": "qrnn", "filters": 16}, {"model": "bm25"}]}
        flags = {"add_data_flags": pairs.add_data_flags, "load": pairs.load, "tables": tables}
        files = ["--train", small_file, "--runs", tmp_path / "runs"]
        return command_line.main(recipe, "", command=[str(a) for a in [*files, *TINY, *arguments]], **flags)

    assert run("--widths") == 0
    rows = ["bm25-1", "qrnn-1", "qrnn-wide-1", "random-1", "tfidf-1"]
    assert folders(tmp_path / "runs/pairs") == rows
    said = capsys.readouterr().out
    assert "measured on" in said and "qrnn, wide" in said[said.rindex("measured on") :]
    (first,) = (tmp_path / "runs/pairs").glob("*-qrnn-1")
    assert run("--model", "qrnn", "--from", first) == 0
    said = capsys.readouterr().out
    assert "new: none; not taken: none" in said
    measured = comparison.measured_rows(comparison.finished_runs(tmp_path / "runs", "pairs"))
    assert measured["qrnn"]["mrr"][2] == 1  # not a second seed of the run that it started from
    with pytest.raises(SystemExit):
        run("--model", "bm25", "--from", first)
    assert "--from needs a model that is trained. Received: --model bm25" in capsys.readouterr().err


def test_a_vector_file_counts_once(tmp_path, capsys):
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2\n")
    twice = ["--embeddings", str(file), "--embeddings", f"{tmp_path}/../{tmp_path.name}/vectors.txt"]
    with pytest.raises(SystemExit):
        command_line.main(pairs.recipe, "", add_data_flags=pairs.add_data_flags, load=pairs.load, command=twice)
    assert "--embeddings must name each file once" in capsys.readouterr().err


def test_a_changed_sample_is_not_overwritten(tmp_path, capsys):
    arguments = ["--runs", tmp_path / "runs", "--model", "random"]
    assert run_pairs(*arguments) == 0 and run_pairs(*arguments) == 0
    file = tmp_path / "runs/samples/pairs/pairs.tsv"
    file.write_text("mine")
    assert run_pairs(*arguments) == 2
    assert f"{file}: expected the made-up sample" in capsys.readouterr().err
    assert file.read_text() == "mine"


@pytest.mark.parametrize("flag, value", [("--test", "a.tsv"), ("--query", "question"), ("--negatives", "4")])
def test_flags_of_files_need_pairs_to_train_on(flag, value, tmp_path, capsys):
    assert run_pairs(flag, value, "--runs", tmp_path / "runs") == 2
    assert f"{flag} {value}: expected --train FILE beside it" in capsys.readouterr().err


def test_right_pairs_alone_need_negatives(tmp_path, capsys):
    file = tmp_path / "faq.tsv"
    file.write_text("query\tcandidate\tlabel\n" + "".join(f"what is {i}\tit is {i}\t1\n" for i in range(20)))
    arguments = ["--train", file, "--runs", tmp_path / "runs", "--model", "bm25"]
    assert run_pairs(*arguments) == 2
    assert "wrong candidates (label 0) beside the right ones" in capsys.readouterr().err
    assert run_pairs(*arguments, "--negatives", 3) == 0
    said = capsys.readouterr().out
    assert "note: Queries without a wrong candidate have up to 3 drawn" in said
    assert said.count("note: Figures of test are rough: it has few queries") == 2  # before, and below the table


def test_missing_file(tmp_path, capsys):
    assert run_pairs("--train", tmp_path / "no.tsv", "--runs", tmp_path / "runs") == 2
    assert "no.tsv" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        run_pairs("--embeddings", tmp_path / "no.txt")
    assert end.value.code == 2
    assert f"Received: '{tmp_path / 'no.txt'}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--nonsense"], "--nonsense"),
        (["--model", "bert"], "ctrn"),  # lists what there is
        (["--dropout", "-1"], "Received: '-1'"),
        (["--dropout", "1.5"], "expected a share: at least 0 and below 1. Received: '1.5'"),
        (["--learning-rate", "0"], "expected a number above 0. Received: '0'"),
        (["--filters", "many"], "expected a whole number of at least 1. Received: 'many'"),
        (["--seeds", "0"], "Received: '0'"),
        (["--epochs", "0"], "Received: '0'"),
        (["--tune", "2", "--table"], "leave --table out"),
        (["--tune", "2", "--seeds", "2"], "leave --seeds out"),
        (["--tune", "2", "--model", "bm25"], "Received: --model bm25"),
        (["--from", "no-such-run"], "Received: 'no-such-run'"),
        (["--seed", "-1"], "Received: '-1'"),
        (["--replicas", "3"], "--replicas needs --strategy mirrored"),
        (["--tuner", "random"], "--tuner needs --tune"),
        (["--epoch", "1"], "--epoch"),  # no abbreviations: a new flag must not change an old command
    ],
)
def test_wrong_use(arguments, said, capsys):
    with pytest.raises(SystemExit) as end:
        run_pairs(*arguments)
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_vectors_of_none_of_the_words_are_refused(small_file, tmp_path, capsys):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("Wort 1.0 2.0\n")
    runs = tmp_path / "runs"
    assert run_pairs("--train", small_file, "--runs", runs, "--embeddings", vectors, *TINY[:-2]) == 2
    assert f"{vectors}: expected vectors of words of the training texts. Received: " in capsys.readouterr().err
    assert folders(runs / "pairs") == ["bm25-1", "random-1", "tfidf-1"]  # no folder without a run
    # A search would fail in each of its trials.
    assert run_pairs("--train", small_file, "--runs", runs, "--embeddings", vectors, "--tune", 2, *TINY[:-2]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{vectors}: expected vectors of words of the training texts. Received: " in line


def test_vectors_of_a_file_have_their_size(small_file, tmp_path, capsys):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1.0 2.0\n")
    with pytest.raises(SystemExit):
        run_pairs("--train", small_file, "--runs", tmp_path / "runs", "--embeddings", vectors, *TINY)
    assert "--embeddings takes the place of this knob. Received: --embedding-size 8" in capsys.readouterr().err


def test_strict_refuses_shared_queries(tmp_path, capsys):
    rows = "query\tcandidate\tlabel\na b\tc\t1\na b\td\t0\n"
    (tmp_path / "train.tsv").write_text(rows)
    (tmp_path / "dev.tsv").write_text(rows)
    files = ["--train", tmp_path / "train.tsv", "--dev", tmp_path / "dev.tsv", "--runs", tmp_path / "runs"]
    assert run_pairs(*files, "--strict") == 2
    assert "train and dev share 1 queries" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_every_knob_is_a_flag_with_its_default(capsys):
    for module in modules().values():
        with pytest.raises(SystemExit):
            command_line.main(module.recipe, module.__doc__, MEANINGS, command=["--help"])
        help_ = _without_spaces(capsys.readouterr().out)  # lines are broken anywhere
        space = tuning.knobs(module.recipe)
        assert len(space) >= 12
        for knob in space:
            assert f"--{knob.name.replace('_', '-')}" in help_
            assert _without_spaces(f"{MEANINGS[knob.name]} ({knob.default})") in help_
        assert _without_spaces(module.__doc__.splitlines()[0]) in help_


def _without_spaces(text):
    return "".join(text.split())


def test_no_meaning_is_of_a_knob_that_is_gone():
    assert MEANINGS.keys() == {knob.name for module in modules().values() for knob in tuning.knobs(module.recipe)}


def test_flags_reach_the_recipe():
    recipe = ctrn_yahoo.recipe(tuning.hyperparameters(model="qrnn", batch_size=7, epochs=3))
    assert (recipe.model, recipe.batch_size, recipe.epochs) == ("qrnn", 7, 3)


def test_train_set_sets_the_paper_s_epochs():
    epochs = {name: ctrn_trecqa.recipe(tuning.hyperparameters(train_set=name)).epochs for name in ("train", "all")}
    assert epochs == {"train": 25, "all": 5}


def test_search_leaves_an_ordinary_run_and_says_the_best(small_file, tmp_path, capsys):
    arguments = ["--train", small_file, "--runs", tmp_path / "runs", "--tune", 2, "--tuner", "random"]
    fixed = [
        "--learning-rate",
        0.001,
        "--l2",
        1e-6,
        "--alignment",
        "ratio",
        "--batch-size",
        8,
        "--word-dropout",
        0,
    ]
    assert run_pairs(*arguments, *TINY, *fixed) == 0
    said = capsys.readouterr().out
    assert "best of 2 finished trials" in said
    best = Path(said[said.rindex("run: ") + 5 :].splitlines()[0])
    assert (best / "model.keras").is_file() and (best / "report.html").is_file()
    assert (tmp_path / "runs" / "pairs" / "latest").resolve() == best.resolve()


def test_search_without_a_free_knob(small_file, tmp_path, capsys):
    every = [flag for knob in tuning.knobs(pairs.recipe) for flag in (f"--{knob.name.replace('_', '-')}", knob.default)]
    with pytest.raises(SystemExit):
        run_pairs("--train", small_file, "--runs", tmp_path / "runs", "--tune", 2, *every)
    assert "a knob that is not set. Received: {" in capsys.readouterr().err


def test_list_of_recipes(capsys):
    assert list_recipes(["--runs", "no-such-folder"]) == 0
    said = capsys.readouterr().out
    for name in ("ctrn_yahoo", "ctrn_trecqa", "ctrn_qatar", "pairs"):
        assert f"{name}: " in said
    assert "0.7712" in said and "0.6010" in said


def test_module_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "recipes.ctrn_yahoo", "--data", "/no/such/folder"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()  # TensorFlow's own are held back
    assert "/no/such/folder" in line


def test_a_default_that_depends_on_another_knob_holds_on_the_command_line(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(command_line, "train", lambda recipe, *_: seen.append(recipe.epochs) or sys.exit(9))
    for train_set, epochs in (("train", 25), ("all", 5)):
        seen.clear()
        with pytest.raises(SystemExit):
            command_line.main(
                ctrn_trecqa.recipe,
                "",
                load=lambda flags, recipe: recipe.load(_tiny_trec(tmp_path)),
                command=["--train-set", train_set, "--runs", str(tmp_path / "runs")],
            )
        assert seen == [epochs]


def _tiny_trec(folder):
    group = [Group("1", ("a",), (("b",), ("c",)), (1.0, 0.0))]
    trec_qa.write({"train": group, "dev": group, "test": group}, folder)
    return folder


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_split_that_ranks_alike_whatever_the_scores(split, small_file, tmp_path, capsys):
    # Pairs without a second candidate: every scorer would look perfect.
    alike = tmp_path / "alike.tsv"
    alike.write_text("query\tcandidate\tlabel\na\tb\t1\nc\td\t0\n")
    assert run_pairs("--train", small_file, f"--{split}", alike, "--runs", tmp_path / "runs") == 2
    assert f"a query in {split} that has both" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_divergence_is_a_failure_and_not_wrong_use(small_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("zoo.batches.score_split", lambda model, split: np.full(len(split.labels), np.nan))
    assert run_pairs("--train", small_file, "--runs", tmp_path / "runs", *TINY) == 1
    assert "try a lower learning rate. Received: epoch 1, knobs=" in capsys.readouterr().err
    assert folders(tmp_path / "runs/pairs") == ["bm25-1", "random-1", "tfidf-1"]


def test_interrupt_ends_the_whole_command(small_file, tmp_path, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras.Model.fit", interrupt)
    assert run_pairs("--train", small_file, "--runs", tmp_path / "runs", "--seeds", 3, *TINY) == 130
    assert capsys.readouterr().out.count("word vectors:") == 1
    assert folders(tmp_path / "runs/pairs") == ["bm25-1", "random-1", "tfidf-1"]


def test_runs_that_are_not_whole_are_passed_over(tmp_path):
    for name, content in (("broken", "{"), ("empty", "")):
        (tmp_path / "pairs" / name).mkdir(parents=True)
        (tmp_path / "pairs" / name / "recipe.json").write_text(content)
    assert comparison.finished_runs(tmp_path, "pairs") == []
    assert comparison.measured_rows([]) == {}


def test_mirrored_strategy_from_the_command_line(small_file, tmp_path):
    command = [sys.executable, "-m", "recipes.pairs", "--train", small_file, "--runs", tmp_path / "runs"]
    flags = ["--strategy", "mirrored", "--replicas", "2", *TINY]
    done = subprocess.run([str(part) for part in [*command, *flags]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/pairs/latest/model.keras").is_file()


def test_scores_of_several_seeds_are_averaged(tmp_path):
    groups = [Group(str(i), ("q",), (("c",),), (float(i),)) for i in range(3)]
    dataset = Dataset("toy", {"dev": groups, "test": groups}, Convention(), ("mse", "accuracy"))
    trained = []
    for number, scores in enumerate([[0, 0, 3], [0, 2, 1]]):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = [f"{split}\t{i}\t{i}\t{score}\tq\tc" for split in ("dev", "test") for i, score in enumerate(scores)]
        (folder / "predictions.tsv").write_text(
            "\n".join(["split\tgroup\tlabel\tscore\tquery\tcandidate", *rows]) + "\n"
        )
        trained.append(SimpleNamespace(folder=folder))
    assert comparison.averaged(trained, dataset) == {"mse": 0.0, "accuracy": 1.0}
