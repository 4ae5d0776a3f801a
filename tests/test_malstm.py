"""MaLSTM's model: its size, its first weights, its outputs, and what is fitted on top of it."""

import keras
import numpy as np
import pytest

from tests.checks import check_model
from tests.toy_models import embeddings, ids
from zoo.models.malstm import finished, malstm, pair_features

VARIANTS = {
    "malstm": {},
    "gru": {"encoder": "gru"},
    "mean": {"encoder": "mean"},
    "euclidean": {"p": 2},
    "cosine": {"p": "cosine"},
    "classifier": {"head": "classifier", "hidden": 3},
}


def shaken(model):
    """The paper's first weights are so small that all texts look alike."""
    random = np.random.default_rng(2)
    for weight in model.trainable_weights:
        weight.assign(random.normal(size=weight.shape) * 0.5)
    return model


@pytest.mark.parametrize("name", VARIANTS)
def test_promises(name):
    def make():
        model = malstm(embeddings(), units=6, trainable_embeddings=True, **VARIANTS[name])
        score = model.output["score"] if isinstance(model.output, dict) else model.output
        return shaken(keras.Model(model.input, score))

    check_model(make(), ids(), make)


def test_promises_of_a_finished_model():
    def make():
        random = np.random.default_rng(3)
        machine = (random.normal(size=(5, 12)), random.normal(size=(5, 2)), random.normal(size=2), 0.1)
        model = shaken(malstm(embeddings(), units=6, trainable_embeddings=True))
        done = finished(model, (1.0, 5.0, np.linspace(1, 5, 9) ** 2 / 5), machine, ("yes", "no"))
        return keras.Model(done.input, done.output["score"])

    check_model(make(), ids(), make)


def test_parameters_of_the_paper():
    model = malstm(embeddings(30, 300))
    assert sum(np.prod(weight.shape) for weight in model.trainable_weights) == 70_200
    lstm = model.get_layer("encoder").layer.get_layer("lstm")
    kernel, recurrent, bias = lstm.get_weights()
    np.testing.assert_array_equal(bias, [0] * 50 + [2.5] * 50 + [0] * 100)
    for weights in (kernel, recurrent):
        assert abs(weights.mean()) < 1e-3 and weights.std() == pytest.approx(0.025, rel=0.05)


def test_score_is_the_equation_on_the_labels_scale():
    model = shaken(malstm(embeddings(), units=6, scale=(0.0, 5.0)))
    batch = ids()
    query, candidate = (np.asarray(model.get_layer("encoder")(batch[side]), "float64") for side in batch)
    expected = [
        [5 * np.exp(-sum(abs(q - a) for q, a in zip(query[i], row, strict=True))) for row in candidate[i]]
        for i in range(3)
    ]
    np.testing.assert_allclose(model(batch), expected, rtol=1e-4)
    same = {"query": batch["query"], "candidate": np.repeat(batch["query"][:, None], 4, axis=1)}
    np.testing.assert_allclose(model(same), 5.0)


def test_both_texts_are_read_by_one_encoder():
    model = malstm(embeddings(), units=6)
    names = [weight.path for weight in model.weights]
    assert len(names) == len(set(names)) == 4  # word vectors, and three of the LSTM


def test_classifier_gives_the_mean_of_its_distribution():
    model = shaken(malstm(embeddings(), units=6, head="classifier", hidden=3, scale=(0.0, 5.0)))
    outputs = model(ids())
    probabilities = np.exp(outputs["log_probabilities"])
    assert probabilities.shape == (3, 4, 6)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(outputs["score"], probabilities @ np.arange(6), rtol=1e-5)


@pytest.mark.parametrize("head", ["similarity", "classifier"])
def test_finished_model_has_all_outputs_and_comes_back(head, tmp_path):
    model = shaken(malstm(embeddings(), units=6, head=head))
    random = np.random.default_rng(3)
    machine = (random.normal(size=(5, 12)), random.normal(size=(5, 2)), random.normal(size=2), 0.1)
    done = finished(model, (1.0, 5.0, np.linspace(5, 1, 9)), machine, ("yes", "no"))
    batch = ids()
    before, after = model(batch), done(batch)
    before = before["score"] if isinstance(before, dict) else before
    assert list(after)[0] == "score" and {"uncalibrated", "yes", "no"} <= set(after)
    np.testing.assert_allclose(after["uncalibrated"], before, rtol=1e-6)
    np.testing.assert_allclose(after["score"], 6 - np.asarray(before), rtol=1e-4)
    features = np.asarray(pair_features(model)(batch)["features"])
    vectors = [np.asarray(model.get_layer("encoder")(batch[side])) for side in ("query", "candidate")]
    np.testing.assert_allclose(features[..., :6], np.abs(vectors[0][:, None] - vectors[1]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(features[..., 6:], vectors[0][:, None] * vectors[1], rtol=1e-5, atol=1e-6)
    assert [w.path for w in done.trainable_weights] == [w.path for w in model.trainable_weights]
    done.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")(batch)
    for name, output in after.items():
        np.testing.assert_allclose(loaded[name], output, rtol=1e-5)


def test_finished_without_anything_is_a_score():
    model = malstm(embeddings(), units=4)
    assert list(finished(model)(ids())) == ["score"]


@pytest.mark.parametrize("argument", [{"encoder": "rnn"}, {"head": "cosine"}])
def test_refuses_another_encoder_or_head(argument):
    with pytest.raises(ValueError, match=f"Received: .*{list(argument)[0]}={list(argument.values())[0]!r}"):
        malstm(embeddings(), **argument)
