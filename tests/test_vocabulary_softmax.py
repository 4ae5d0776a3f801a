"""The loss of the next word: the full sum against numpy, the sample against the full sum."""

import doctest

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers import vocabulary_softmax
from layers.vocabulary_softmax import VocabularySoftmax

WORDS, SIZE = 50, 4
STATES = np.random.default_rng(0).normal(size=(3, 5, SIZE)).astype("float32")
TARGETS = np.random.default_rng(1).integers(1, WORDS + 1, (3, 5)) * (np.arange(5) < np.array([[5], [2], [0]]))


def built(**settings):
    layer = VocabularySoftmax(WORDS, **settings)
    layer.build(STATES.shape, TARGETS.shape)
    random = np.random.default_rng(2)
    for weight in layer.weights[:2]:
        weight.assign(random.normal(size=weight.shape))
    return layer


def losses(layer):
    """-log softmax(h W + b) at the target; 0 at padding."""
    kernel, bias = (np.asarray(w, "float64") for w in layer.weights[:2])
    found = np.zeros(TARGETS.shape)
    for place in np.argwhere(TARGETS > 0):
        logits = kernel @ STATES[tuple(place)] + bias
        found[tuple(place)] = np.log(np.exp(logits).sum()) - logits[TARGETS[tuple(place)] - 1]
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "mixed_bfloat16"])
def test_full_sum(dtype):
    layer = built(dtype=dtype)
    got = layer(STATES, TARGETS)
    assert got.dtype == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_allclose(got, losses(layer), atol=0.1 if "16" in dtype else 1e-5)


def test_evaluation_takes_the_full_sum():
    layer = built(num_sampled=7)
    np.testing.assert_allclose(layer(STATES, TARGETS, training=False), losses(layer), atol=1e-5)
    assert not np.allclose(layer(STATES, TARGETS, training=True), losses(layer), atol=1e-2)


def test_a_large_sample_is_near_the_full_sum():
    layer = built(num_sampled=200_000, seed=3)
    np.testing.assert_allclose(layer(STATES, TARGETS, training=True), losses(layer), atol=0.05)


@pytest.mark.parametrize("num_sampled", [0, 7])
def test_gradients_and_padding(num_sampled):
    layer, states = built(num_sampled=num_sampled), tf.constant(STATES)
    with tf.GradientTape() as tape:
        tape.watch(states)
        loss = layer(states, TARGETS, training=True)
    gradients = tape.gradient(loss, [states, *(w.value for w in layer.trainable_weights)])
    gradients = [np.asarray(tf.convert_to_tensor(gradient)) for gradient in gradients]
    assert all(np.isfinite(gradient).all() and gradient.any() for gradient in gradients)
    assert not gradients[0][TARGETS == 0].any() and not np.asarray(loss)[TARGETS == 0].any()


def test_comes_back_from_its_configuration_and_a_file(tmp_path):
    layer = built(num_sampled=7, kernel_initializer="zeros", seed=4)
    again = VocabularySoftmax.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    states, targets = keras.Input((None, SIZE)), keras.Input((None,), dtype="int32")
    model = keras.Model([states, targets], layer(states, targets))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded([STATES, TARGETS]), losses(layer), atol=1e-5)


def test_example():
    assert doctest.testmod(vocabulary_softmax, extraglobs={"np": np}).failed == 0


@pytest.mark.parametrize("settings, received", [((0,), "num_words=0"), ((3, -1), "num_sampled=-1")])
def test_wrong_arguments(settings, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        VocabularySoftmax(*settings)
