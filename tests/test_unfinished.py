"""A command that was cut off goes on when it is run again, to what it would have become."""

import csv
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.test_training import DATASET, RECIPE, quiet
from zoo import command_line, lexical, losses, optimizers, runs, tuning, unfinished
from zoo.training import train

REPOSITORY = Path(__file__).parents[1]


class Killed(BaseException):
    """Ends a training as a lost machine does: nothing catches it."""


def killed_after(line, folder, recipe):
    """Trains until a line of progress, there is cut off, and trains again; the second time's lines and run."""

    def say(said):
        if line in said:
            raise Killed

    options, lines = quiet()
    with pytest.raises(Killed):
        train(recipe, folder, DATASET, dataclasses.replace(options, say=say))
    assert not unfinished.is_whole(folder)
    run = train(recipe, folder, DATASET, options)
    assert unfinished.is_whole(folder) and not (folder / "unfinished").exists()
    return lines, run


def rows(history):
    """The epochs' rows without their seconds."""
    lines = [line.split(",") for line in history.read_text("utf-8").splitlines()]
    return [[value for name, value in zip(lines[0], line, strict=True) if name != "seconds"] for line in lines]


def assert_same(one, other):
    """Two runs with the same epochs and weights."""
    assert rows(one.folder / "history.csv") == rows(other.folder / "history.csv")
    for ours, theirs in zip(one.model.weights, other.model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=ours.path)
    assert one.metrics["test"] == other.metrics["test"]
    for name in ("best_epoch", "interrupted", "diverged"):
        assert one.metrics["training"][name] == other.metrics["training"][name]


OPTIMIZERS = [
    optimizers.Adam,
    optimizers.LazyAdam,
    lambda: optimizers.RMSprop(1e-3, momentum=0.9),
    lambda: optimizers.Adagrad(0.1),
    lambda: optimizers.Adadelta(1.0),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_training_that_was_killed_becomes_what_it_would_have(optimizer, tmp_path):
    """Its dropout, its order of pairs and its optimizer's state included."""
    recipe = dataclasses.replace(RECIPE, optimizer=optimizer, epochs=4, patience=4)
    whole = train(recipe, tmp_path / "whole", DATASET, quiet()[0])
    lines, run = killed_after("epoch 3/", tmp_path / "killed", recipe)
    assert [line for line in lines if "goes on" in line] == ["goes on after epoch 2"]
    assert [line[:7] for line in lines if line.startswith("epoch ") and "kept" not in line] == ["epoch 3", "epoch 4"]
    assert_same(run, whole)


def test_the_patience_that_was_spent_stays_spent(tmp_path):
    recipe = dataclasses.replace(RECIPE, optimizer=lambda: optimizers.Adam(1e-9), epochs=9, patience=3)  # stands still
    whole = train(recipe, tmp_path / "whole", DATASET, quiet()[0])
    assert whole.metrics["training"]["best_epoch"] == 1
    _, run = killed_after("epoch 3/", tmp_path / "killed", recipe)
    assert len(rows(run.folder / "history.csv")) == 1 + 4
    assert_same(run, whole)


def test_a_training_that_had_ended_is_not_trained_again(tmp_path):
    recipe = dataclasses.replace(RECIPE, epochs=3, patience=3)
    whole = train(recipe, tmp_path / "whole", DATASET, quiet()[0])
    lines, run = killed_after(" of 3 is kept", tmp_path / "killed", recipe)
    assert "goes on after epoch 3, the last" in lines
    assert_same(run, whole)


def test_a_pretraining_that_had_ended_is_not_trained_again(tmp_path):
    def pretrain(model, encoded, fit):
        settings = {"loss": RECIPE.loss, "optimizer": RECIPE.optimizer, "epochs": 2, "label": "pre-training"}
        return fit(model, fit.batches(encoded.splits["train"]), **settings)

    recipe = dataclasses.replace(RECIPE, pretrain=pretrain, epochs=2)
    whole = train(recipe, tmp_path / "whole", DATASET, quiet()[0])
    lines, run = killed_after("epoch 2/", tmp_path / "killed", recipe)
    assert "goes on after pre-training 2, the last" in lines
    assert not any(line.startswith("pre-training 1/") for line in lines)
    assert rows(run.folder / "pretraining.csv") == rows(whole.folder / "pretraining.csv")
    assert_same(run, whole)


def test_an_interrupted_training_keeps_its_best_epoch_and_goes_on_when_asked_again(tmp_path):
    recipe = dataclasses.replace(RECIPE, epochs=4, patience=4)
    whole = train(recipe, tmp_path / "whole", DATASET, quiet()[0])
    options, _ = quiet()

    def say(said):
        if said.startswith("epoch 3/"):
            raise KeyboardInterrupt

    run = train(recipe, tmp_path / "run", DATASET, dataclasses.replace(options, say=say))
    assert run.metrics["training"]["interrupted"] and not unfinished.is_whole(run.folder)
    run = train(recipe, tmp_path / "run", DATASET, options)
    assert unfinished.is_whole(run.folder)
    assert_same(run, whole)


def killed(folder, recipe=RECIPE, seed=1):
    """A training that was cut off in its second epoch."""

    def say(said):
        if said.startswith("epoch 2/"):
            raise Killed

    with pytest.raises(Killed):
        train(recipe, folder, DATASET, dataclasses.replace(quiet()[0], say=say), seed)
    return folder / "unfinished/epoch.npz"


@pytest.mark.parametrize("what", ["cut short", "zeros", "bits", "sizes", "knobs", "seed"])
def test_what_is_damaged_or_of_another_model_is_not_gone_on_with(what, tmp_path):
    file = killed(tmp_path / "killed")
    content = file.read_bytes()
    recipe, (options, lines), seed = RECIPE, quiet(), 1
    if what == "cut short":
        file.write_bytes(content[:1000])
    elif what == "zeros":
        file.write_bytes(bytes(len(content)))
    elif what == "bits":
        file.write_bytes(content[:3000] + bytes(100) + content[3100:])
    elif what == "sizes":
        recipe = dataclasses.replace(recipe, embedding_size=7)
    elif what == "knobs":
        options = dataclasses.replace(options, knobs={"filters": 8})
    else:
        seed = 2
    run = train(recipe, tmp_path / "killed", DATASET, options, seed)
    (told,) = [line for line in lines if "begins anew" in line]
    assert ("is damaged" in told) == (what in ("cut short", "zeros", "bits")) and str(file) in told
    assert_same(run, train(recipe, tmp_path / "whole", DATASET, options, seed))


def test_the_seconds_of_a_training_are_those_of_all_its_parts(tmp_path):
    killed(tmp_path)
    run = train(RECIPE, tmp_path, DATASET, quiet()[0])
    with (run.folder / "history.csv").open(encoding="utf-8") as file:
        of_epochs = sum(float(row["seconds"]) for row in csv.DictReader(file))
    assert run.metrics["training"]["train_seconds"] > of_epochs


def test_a_full_disk_does_not_end_the_training(tmp_path, monkeypatch):
    def full(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zoo.unfinished.np.savez", full)
    options, lines = quiet()
    run = train(RECIPE, tmp_path, DATASET, options)
    assert unfinished.is_whole(run.folder)
    assert sum("not written down" in line and "No space left" in line for line in lines) == RECIPE.epochs


def test_a_run_whose_report_is_not_written_is_not_whole(tmp_path, monkeypatch):
    def cut_off(*_):
        raise Killed

    bm25 = dataclasses.replace(RECIPE, build=None, scorer=lexical.BM25())
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr("zoo.training.report.write", cut_off)
        train(bm25, tmp_path, DATASET, quiet()[0])
    assert (tmp_path / "recipe.json").is_file() and not unfinished.is_whole(tmp_path)
    train(bm25, tmp_path, DATASET, quiet()[0])
    assert unfinished.is_whole(tmp_path) and (tmp_path / "report.html").is_file()


def test_frozen_weights_are_not_written_down(tmp_path):
    embedding = keras.layers.Embedding(1000, 50, trainable=False)
    inputs = keras.Input((3,), dtype="int32")
    model = keras.Model(inputs, keras.layers.Dense(1)(embedding(inputs))[..., 0])
    model.compile(optimizers.Adam(), losses.pointwise)
    model.optimizer.build(model.trainable_variables)
    best = keras.callbacks.EarlyStopping("loss")
    backup = unfinished.Backup(tmp_path, "epoch", {}, best, [], print)
    model.fit(np.ones((4, 3)), np.ones((4, 3)), verbose=0, callbacks=[best, backup])
    assert backup.file.stat().st_size < 20_000


# Commands


def folders(root, settings, names, fresh=False, cut_off=True):
    """The names of the folders that a command had for its runs; it is cut off, or ends."""
    had, said = [], []
    try:
        with unfinished.command(root, settings, fresh, said.append) as folder:
            for name in names:
                had.append(folder(name, lambda name=name: runs.new_folder(root.parent, root.name, name)))
            if cut_off:
                raise Killed
    except Killed:
        pass
    return had, said


def test_the_same_command_has_the_same_folders_until_it_ends(tmp_path):
    root = tmp_path / "toy"
    first, said = folders(root, {"epochs": 2}, ["a"])
    assert not said
    (first[0] / "recipe.json").write_text("{}")
    (first[0] / "metrics.json").write_text('{"training": {"interrupted": false}}')
    again, said = folders(root, {"epochs": 2}, ["a", "b"])
    assert again[0] == first[0] and said == [
        "This command was cut off: it goes on, 1 of 1 runs are whole (--fresh begins anew)."
    ]
    other, said = folders(root, {"epochs": 3}, ["a"])
    assert other[0] not in again and not said
    last, _ = folders(root, {"epochs": 2}, ["a", "b"], cut_off=False)
    assert last == again
    anew, said = folders(root, {"epochs": 2}, ["a", "b"])
    assert not {*anew} & {*again} and not said


def test_fresh_begins_anew_and_takes_away_what_was_left(tmp_path):
    first, _ = folders(tmp_path / "toy", {}, ["a"])
    left = [first[0] / "unfinished", first[0] / "trial-0/unfinished"]
    for place in left:
        place.mkdir(parents=True)
        (place / "epoch.npz").write_bytes(b"gigabytes")
    (first[0] / "trial-0/recipe.json").write_text("{}")
    folders(tmp_path / "toy", {}, ["a", "b"])
    anew, said = folders(tmp_path / "toy", {}, ["a"], fresh=True)
    assert not said and not any(place.exists() for place in left)
    assert (first[0] / "trial-0/recipe.json").is_file()  # a whole one stays
    assert {*anew, first[0]} == {place for place in (tmp_path / "toy").iterdir() if place.is_dir()}  # b is gone
    again, _ = folders(tmp_path / "toy", {}, ["a"])
    assert again == anew


def test_a_line_that_was_cut_off_and_a_folder_that_was_removed_are_passed_over(tmp_path):
    first, _ = folders(tmp_path / "toy", {}, ["a", "b"])
    first[0].rmdir()
    (file,) = (tmp_path / "toy").glob("unfinished-*.tsv")
    with file.open("a") as lines:
        lines.write("c\tnowh")
    names = ["b", "a", "c"]
    again, _ = folders(tmp_path / "toy", {}, names)
    assert again[0] == first[1] and all(map(Path.is_dir, again))
    assert folders(tmp_path / "toy", {}, names)[0] == again


def test_of_two_that_run_at_once_the_second_has_folders_of_its_own(tmp_path):
    root = tmp_path / "toy"
    said = []
    with unfinished.command(root, {}, False, print) as one, unfinished.command(root, {}, False, said.append) as two:
        ours, theirs = (folder("a", lambda: runs.new_folder(tmp_path, "toy", "a")) for folder in (one, two))
        assert ours != theirs and len(said) == 1 and said[0].startswith("The same command is running")
    assert not list(root.glob("unfinished-*"))


def test_a_command_that_did_nothing_leaves_nothing(tmp_path):
    folders(tmp_path / "toy", {}, [])
    assert not list((tmp_path / "toy").iterdir())


def test_a_list_that_is_removed_while_the_command_runs_is_no_loss(tmp_path):
    root = tmp_path / "toy"
    with unfinished.command(root, {}, False, print) as folder:
        begun = folder("a", lambda: runs.new_folder(tmp_path, "toy", "a"))
        (names,) = root.glob("unfinished-*")
        names.unlink()
    assert [*root.iterdir()] == [begun]


def test_what_was_changed_begins_anew(tmp_path, monkeypatch):
    """Our own code above all: who interrupts a training often has a fault to mend."""
    first, _ = folders(tmp_path / "toy", {}, ["a"])
    with monkeypatch.context() as patched:
        patched.setattr("zoo.unfinished.keras.backend.backend", lambda: "another")
        assert folders(tmp_path / "toy", {}, ["a"])[0] != first
    home = tmp_path / "home"
    (home / "zoo").mkdir(parents=True)
    monkeypatch.setattr("zoo.unfinished.__file__", str(home / "zoo/unfinished.py"))
    digests = set()
    for content in ("a = 1", "a = 2"):
        (home / "zoo/made.py").write_text(content)
        digests.add(unfinished._code()["sources"])
    assert len(digests) == 2


def test_the_run_to_start_from_stays_the_same(tmp_path):
    """Though `latest` is another one when the command is run again."""
    root, first, later = tmp_path / "toy", tmp_path / "other/first", tmp_path / "toy/later"
    for start, said in ((first, []), (later, ["This command was cut off: it goes on, 0 of 1 runs are whole"])):
        start.mkdir(parents=True)
        lines = []
        with pytest.raises(Killed), unfinished.command(root, {}, False, lines.append) as folder:
            assert folder(unfinished.START, lambda start=start: start).resolve() == first
            folder("a", lambda: runs.new_folder(tmp_path, "toy", "a"))
            raise Killed
        assert [line.split(" (")[0] for line in lines] == said
    folders(root, {}, [], fresh=True)
    assert first.is_dir()


@pytest.mark.parametrize("error, told", [(KeyboardInterrupt, True), (Killed, False)])
def test_who_interrupts_is_told_what_the_same_command_does(error, told, tmp_path):
    said = []
    with pytest.raises(error), unfinished.command(tmp_path / "toy", {}, False, said.append) as folder:
        folder("a", lambda: runs.new_folder(tmp_path, "toy", "a"))
        raise error
    assert ("The same command, run again, goes on (--fresh begins anew)." in said) == told


def searched(root, tuner, cut_off_at=None):
    """A search of four trials; the knobs and dev metric of each, and the lines said."""
    options, lines = quiet()

    def say(said):
        lines.append(said)
        if cut_off_at and said.startswith(cut_off_at):
            raise Killed

    def recipe(hp):
        epochs = hp.Int("epochs", 1, 50, default=3)
        rate = hp.Choice("learning_rate", [1e-4, 1e-3, 1e-2, 1e-1], default=1e-3)
        return dataclasses.replace(
            RECIPE, optimizer=lambda: optimizers.Adam(rate), epochs=epochs, patience=3, fixed=("epochs",)
        )

    settings = {"values": {"epochs": 3}, "trials": 4, "tuner": tuner, "seed": 0}
    found = tuning.tune(recipe, DATASET, root, dataclasses.replace(options, say=say), **settings)
    return sorted((run.folder.name, run.settings["knobs"], run.metrics["test"]["mrr"]) for run in found), lines


@pytest.mark.parametrize("tuner", ["bayesian", "grid", "random"])
def test_a_search_that_was_killed_becomes_what_it_would_have(tuner, tmp_path):
    whole, _ = searched(tmp_path / "whole", tuner)
    for place in ("epoch 2/", "trial 2: learning_rate"):
        with pytest.raises(Killed):
            searched(tmp_path / "killed", tuner, place)
    again, lines = searched(tmp_path / "killed", tuner)
    assert again == whole and len(again) == 4
    (third,) = [place for place, line in enumerate(lines) if line.startswith("trial 2: learning_rate")]
    assert not any(line.startswith("epoch ") for line in lines[:third])  # the first two were whole


def test_a_killed_table_goes_on_with_what_it_lacks(tmp_path):
    """A real command, killed by the system in its second row."""
    command = [sys.executable, "-u", "-m", "recipes.ctrn_yahoo", "--runs", str(tmp_path), "--seeds", "2"]
    command += ["--model", "qrnn", "--filters", "32", "--epochs", "3", "--patience", "3"]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    running = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True)
    epochs = 0
    for line in running.stdout:
        epochs += line.startswith("epoch 2/")
        if epochs == 2:
            running.kill()
            break
    running.communicate()
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert any("it goes on" in line for line in lines), done.stdout
    assert "goes on after epoch" in done.stdout and "epoch 1/3" not in done.stdout
    trained = [runs.load(folder) for folder in (tmp_path / "ctrn_yahoo").glob("*-qrnn-*")]
    assert sorted(run.settings["seed"] for run in trained) == [1, 2]
    assert all(unfinished.is_whole(run.folder) for run in trained)
    assert "the scores of 2 seeds averaged" in done.stdout
    assert not list((tmp_path / "ctrn_yahoo").glob("unfinished-*"))
    assert json.loads((trained[0].folder / "metrics.json").read_text())["training"]["interrupted"] is False


def test_fresh_is_a_flag_of_every_recipe(tmp_path, monkeypatch, capsys):
    heard = []

    @unfinished.contextlib.contextmanager
    def command(root, settings, fresh, say):
        heard.append((root, settings, fresh))
        raise Killed
        yield

    monkeypatch.setattr("zoo.unfinished.command", command)
    from recipes import ctrn_yahoo

    for flags in ([], ["--fresh"]):
        with pytest.raises(Killed):
            command_line.main(ctrn_yahoo.recipe, "", command=["--runs", str(tmp_path), *flags])
    (root, settings, fresh), (_, same, anew) = heard
    assert root == tmp_path / "ctrn_yahoo" and not fresh and anew and settings == same
