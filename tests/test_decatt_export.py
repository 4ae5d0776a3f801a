"""A model of character n-grams served from raw strings: misspelt and unseen words, pairs in either order."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from export.graph_ops import read_signatures
from export.saved_model import export
from tests.exported import write_run
from zoo.models.decatt import decatt
from zoo.models.ffnn import ffnn
from zoo.text import build_vocabulary

ROWS = 500
QUERY, CANDIDATE = "how does paypal work in india ?", "does paypall wrok in indja ? zzyzzx"


@pytest.fixture(scope="module", params=["decatt", "ffnn"])
def served(request, tmp_path_factory):
    """A run and the signatures of its export; the export itself compares the two on hard texts."""
    folder = tmp_path_factory.mktemp(request.param)
    table = np.random.default_rng(0).normal(size=(1 + ROWS, 6)).astype("float32")
    keras.utils.set_random_seed(0)
    if request.param == "decatt":
        model = decatt(table, char_ngrams=True, units=(32, 16), self_attention=True, combiner="sqrtn")
    else:
        model = ffnn(table, char_ngrams=True, units=(8, 4))
    text = {"oov_buckets": ROWS, "ngram_sizes": [5], "max_query_length": 50, "max_candidate_length": 50}
    run = write_run(folder / "run", model, words=[], task="binary", threshold=0.1, text=text)
    version = export(run, folder / "served")
    return run, tf.saved_model.load(str(version)), read_signatures(version)


def test_both_orders_are_answered_as_the_run_does(served):
    run, loaded, _ = served
    score = loaded.signatures["serving_default"]
    one = [QUERY, CANDIDATE, "qqq zzz", ""]
    other = [CANDIDATE, QUERY, "why", "\U0001f600"]
    outputs = score(query=tf.constant(one), candidate=tf.constant(other))
    expected = run.score([(text,) for text in one], [(text,) for text in other])
    np.testing.assert_allclose(outputs["score"], expected, atol=1e-5)
    assert outputs["label"].numpy().tolist() == [int(value >= 0.1) for value in expected]
    assert abs(float(outputs["score"][0] - outputs["score"][1])) > 1e-4  # the model is not symmetric


def test_ids_are_rows_of_ngrams_and_no_word_is_unknown(served):
    run, loaded, _ = served
    readme = (run.folder.parent / "served" / "README.md").read_text("utf-8")
    assert "query: int32 [n, tokens, n-grams]" in readme and "the n-grams of each token" in readme
    ids = loaded.signatures["score_ids"]
    assert ids.structured_input_signature[1]["query"].shape.rank == 3
    diagnose = loaded.signatures["diagnose"](text=tf.constant([CANDIDATE]))
    assert diagnose["oov_rate"].numpy().tolist() == [0.0] and diagnose["num_tokens"].numpy().tolist() == [7]


def test_ngrams_of_a_vocabulary_have_their_rows_and_what_lacks_them_is_unknown(tmp_path):
    ngrams = build_vocabulary([QUERY], ngram_sizes=[5])
    table = np.random.default_rng(0).normal(size=(2 + len(ngrams), 6)).astype("float32")
    model = ffnn(table, char_ngrams=True, units=(8, 4))
    text = {"oov_buckets": 1, "ngram_sizes": [5], "max_query_length": 50, "max_candidate_length": 50}
    run = write_run(tmp_path / "run", model, words=ngrams, text=text)
    signatures = tf.saved_model.load(str(export(run, tmp_path / "served"))).signatures
    one, other = [QUERY, CANDIDATE], ["paypall india", QUERY]
    outputs = signatures["serving_default"](query=tf.constant(one), candidate=tf.constant(other))
    np.testing.assert_allclose(
        outputs["score"], run.score([(text,) for text in one], [(text,) for text in other]), atol=1e-5
    )
    rate = signatures["diagnose"](text=tf.constant([QUERY, "zzyzzx", "paypall zzyzzx"]))["oov_rate"]
    assert rate.numpy().tolist() == [0.0, 1.0, 0.5]


def test_signatures(served):
    _, _, signatures = served
    assert set(signatures) == {"serving_default", "score_ids", "diagnose"}
