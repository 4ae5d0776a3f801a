"""Encoding each text once gives the scores that the whole model gives."""

import keras
import numpy as np
import pytest

from tests.test_ggsa_models import MODELS, embeddings
from zoo import apart
from zoo.batches import score_split
from zoo.encoded import EncodedSplit, TokenIds
from zoo.models.cnn import cnn


@pytest.fixture(scope="module")
def split():
    """Seven queries and nine candidates, one of each empty, in pools that overlap and repeat."""
    random = np.random.default_rng(0)

    def texts(lengths):
        return {"text": TokenIds(random.integers(1, 40, sum(lengths)), np.cumsum([0, *lengths]))}

    sizes = [5, 1, 8, 3, 6, 2, 4, 7]
    return EncodedSplit(
        query_ids=texts([3, 1, 0, 4, 2, 5, 1]),
        candidate_ids=texts([4, 9, 1, 0, 2, 7, 3, 5, 12]),
        query_of_group=np.array([0, 1, 2, 3, 4, 5, 6, 1]),
        candidate_of_pair=random.integers(0, 9, sum(sizes)),
        labels=np.zeros(sum(sizes), "float32"),
        group_offsets=np.cumsum([0, *sizes]),
    )


def one_by_one(model, split):
    (queries,), (candidates,) = split.query_ids.values(), split.candidate_ids.values()
    scores = []
    for group, candidate in zip(split.group_of_pair, split.candidate_of_pair, strict=True):
        query = queries.padded(split.query_of_group[[group]], 6)
        scores.append(float(model({"query": query, "candidate": candidates.padded(np.array([[candidate]]), 13)})[0, 0]))
    return np.array(scores)


@pytest.mark.parametrize(
    "name, batch_size",
    [
        *(("ggsa", 4), ("ggsa", 100), ("ggsa_attention", 4), ("iggsa", 4), ("iggsa_multihop", 5)),
        *(("two_blocks_apart", 3), ("ap_lstm", 3), ("ap_cnn_mlp", 4)),
    ],
)
def test_same_scores(name, batch_size, split, monkeypatch):
    function, arguments = MODELS[name]
    keras.utils.set_random_seed(2)
    model = function(embeddings(size=8), **arguments)
    monkeypatch.setattr(apart, "_BUDGET", 3 * 12 * 8)
    np.testing.assert_allclose(score_split(model, split, batch_size), one_by_one(model, split), atol=1e-5)


@pytest.mark.parametrize("name", ["ggsa", "iggsa", "ap_lstm"])
def test_each_text_is_encoded_once_and_each_pair_matched_once(name, split, monkeypatch):
    function, arguments = MODELS[name]
    parts = apart.parts(function(embeddings(size=8), **arguments))
    seen = {"query": 0, "candidate": 0, "match": 0}

    def counted(name, part):
        run = part.predict_on_batch

        def count(inputs):
            seen[name] += len(keras.tree.flatten(inputs)[0])
            return run(inputs)

        monkeypatch.setattr(part, "predict_on_batch", count)

    for part in seen:
        counted(part, getattr(parts, part))
    apart.score(parts, split, batch_size=2)
    pairs = set(zip(split.query_of_group[split.group_of_pair], split.candidate_of_pair, strict=True))
    assert seen == {"query": 7, "candidate": 9, "match": len(pairs)} and len(pairs) < len(split.labels)


def test_what_marks_no_encodings_is_scored_whole():
    assert apart.parts(cnn(embeddings(size=8), filters=4)) is None
    assert apart.parts(None) is None


def test_a_loaded_model_is_cut_alike(split, tmp_path):
    function, arguments = MODELS["iggsa"]
    model = function(embeddings(size=8), **arguments)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(score_split(loaded, split), score_split(model, split), atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "ggsa",
        "ggsa_attention",
        "ggsa_mlp",
        "iggsa",
        "iggsa_attention_mlp",
        "iggsa_multihop",
        "qa_lstm_multihop_mlp",
        "ntn_lstm",
        "hd_lstm",
        "ap_lstm",
        "ap_cnn_mlp",
    ],
)
def test_within_a_batch_every_query_meets_every_candidate(name, split):
    function, arguments = MODELS[name]
    keras.utils.set_random_seed(3)
    model = function(embeddings(size=8), **arguments)
    (queries,), (candidates,) = split.query_ids.values(), split.candidate_ids.values()
    query, candidate = queries.padded(np.array([0, 2, 5]), 6), candidates.padded(np.array([4, 0, 8]), 13)
    every = model({"query": query, "candidate": np.repeat(candidate[None], 3, axis=0)})
    view = apart.within_batch(model)
    assert view.output_shape == (None, None)
    np.testing.assert_allclose(view({"query": query, "candidate": candidate[:, None]}), every, atol=1e-6)
    assert {id(weight) for weight in view.weights} == {id(weight) for weight in model.weights}


def test_within_a_batch_texts_must_be_encoded_apart():
    model = cnn(embeddings(size=8), filters=4)
    with pytest.raises(ValueError, match=f"Received: model='{model.name}'"):
        apart.within_batch(model)
