"""A folded model scores as the model that it was made of, and looks its words up where that one multiplies."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from export import folding
from export.__main__ import main
from export.saved_model import export
from tests.exported import OOV_BUCKETS, WORDS, write_run
from zoo.models.attentive_pooling import attentive_pooling
from zoo.models.cnn import cnn
from zoo.models.ctrn import ctrn
from zoo.models.lstm import lstm
from zoo.models.qa_lstm import qa_lstm
from zoo.models.qrnn import qrnn
from zoo.models.rcnn import rcnn

VOCABULARY = 1 + OOV_BUCKETS + len(WORDS)


def made(name, filters=5):
    embeddings = np.random.default_rng(0).normal(size=(VOCABULARY, 6)).astype("float32")
    embeddings[0] = 0
    keras.utils.set_random_seed(1)
    if name == "rcnn":
        return rcnn(embeddings, fields=("title", "body"), units=5, num_unread=OOV_BUCKETS)
    if name == "qa_lstm":
        return qa_lstm(embeddings, units=5)
    head = {"projection": 4, "projection_activation": "tanh", "dense_units": 3, "word_dropout": 0.1}
    if name == "ap_lstm":
        return attentive_pooling(embeddings, units=5)
    return {"ctrn": ctrn, "qrnn": qrnn, "lstm": lstm, "cnn": cnn}[name](embeddings, filters=filters, **head)


def run_of(name, folder, **settings):
    text = {"text": {"fields": ["title", "body"]}} if name == "rcnn" else {}
    return write_run(folder, made(name, **settings), **text)


# Shapes of the kernel that is folded, and of each of the tables of a word that stand in its place.
FOLDED = {
    "ctrn": ((2, 4, 15), [5] * 6),
    "qrnn": ((2, 4, 15), [5] * 6),
    "rcnn": ((6, 15), [5] * 3),
    "lstm": ((4, 20), [20]),
    "qa_lstm": ((6, 20), [20] * 2),
    "ap_lstm": ((6, 20), [20] * 2),
}


@pytest.mark.parametrize("name", FOLDED)
def test_scores_are_the_same(name, tmp_path):
    run = run_of(name, tmp_path / "run")
    folded, _ = folding.fold(run)
    ids = np.random.default_rng(2).integers(0, VOCABULARY, (2, 3, 7)).astype("int32")
    inputs = {key: ids[:, 0] if "query" in key else ids for key in (x.name for x in run.model.inputs)}
    np.testing.assert_allclose(folded.model(inputs), run.model(inputs), atol=1e-6)
    version = export(run, tmp_path / "served", fold_in={})  # which compares them on hard texts
    sizes = [np.prod(shape) for _, shape in tf.train.list_variables(str(version / "variables" / "variables"))]
    kernel, widths = FOLDED[name]
    assert kernel in [tuple(weight.shape) for weight in run.model.weights]
    tables = [size for size in sizes if size in (VOCABULARY * widths[0], (VOCABULARY + 1) * widths[0])]
    assert len(tables) == len(widths) and np.prod(kernel) not in sizes
    # The run itself is as it was.
    assert run.model(inputs).shape == (2, 3) and folded.model is not run.model


def test_tables_of_bfloat16_are_half_as_large_and_about_as_good(tmp_path, capsys):
    filters = 4_000_000 // (6 * (VOCABULARY + 1))  # as many numbers in all, in six tables
    run = run_of("ctrn", tmp_path / "run", filters=filters)
    assert folding.fold(run)[1] == {"dtype": "float32", "megabytes": 16}
    assert main([str(run.folder), str(tmp_path / "served"), "--fold", "bfloat16"]) == 0
    assert "stands in tables of bfloat16, 8 MB" in capsys.readouterr().out
    assert "stands in tables of bfloat16, 8 MB." in (tmp_path / "served" / "README.md").read_text("utf-8")
    kinds = tf.train.load_checkpoint(str(tmp_path / "served" / "1" / "variables" / "variables"))
    assert "bfloat16" in {dtype.name for dtype in kinds.get_variable_to_dtype_map().values()}


def test_a_recurrence_without_products_of_words_is_refused(tmp_path, capsys):
    run = run_of("cnn", tmp_path / "run")
    assert main([str(run.folder), str(tmp_path / "served"), "--fold"]) == 2
    assert (
        "without dropout of words. Received: model='cnn'" in capsys.readouterr().err
        and not (tmp_path / "served").exists()
    )


def test_vectors_of_words_that_two_directions_read_are_computed_once(tmp_path, monkeypatch):
    run, computed = run_of("qa_lstm", tmp_path / "run"), []
    predict = keras.Model.predict_on_batch
    monkeypatch.setattr(keras.Model, "predict_on_batch", lambda model, x: computed.append(len(x)) or predict(model, x))
    folding.fold(run)
    assert computed == [VOCABULARY]


def test_a_limit_is_one_of_tables(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), str(tmp_path / "served"), "--fold-limit", "9"])
    assert "Received: --fold-limit 9" in capsys.readouterr().err


def test_tables_have_a_limit(tmp_path, monkeypatch):
    run = run_of("qrnn", tmp_path / "run")
    with pytest.raises(
        ValueError, match=f"take 1 MB: .* Received: megabytes=0, vocabulary={VOCABULARY}, dtype='float32'"
    ):
        folding.fold(run, megabytes=0)
    with pytest.raises(ValueError, match="Received: dtype='int8'"):
        folding.fold(run, dtype="int8")
