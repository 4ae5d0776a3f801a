"""PackedLSTM against the LSTM of Keras, and the promises of every layer."""

import keras
import numpy as np
import pytest

from layers.gated_conv import GatedConv
from layers.packed_lstm import PackedLSTM
from tests.checks import check_layer
from zoo.models.matching import bidirectional_lstm

ARGUMENTS = {
    "units": 5,
    "go_backwards": True,
    "kernel_initializer": "he_normal",
    "recurrent_initializer": "glorot_normal",
    "bias_initializer": "ones",
    "unit_forget_bias": False,
    "kernel_regularizer": keras.regularizers.L2(0.1),
    "recurrent_regularizer": keras.regularizers.L2(0.2),
}


def texts(batch=4, time=6, size=3):
    x = np.random.default_rng(0).normal(size=(batch, time, size)).astype("float32")
    return x, np.arange(time) < np.array([6, 3, 0, 5])[:, None]


def of_keras(layer, x, mask):
    """The same by Keras, zero where masked."""
    other = keras.layers.LSTM(layer.units, go_backwards=layer.go_backwards, return_sequences=True)
    other.build(x.shape)
    other.set_weights(layer.get_weights())
    states = np.array(other(x, mask=mask))
    return np.where(mask[..., None], states[:, ::-1] if layer.go_backwards else states, 0)


@pytest.mark.parametrize("go_backwards", [False, True])
def test_as_the_lstm_of_keras(go_backwards):
    x, mask = texts()
    layer = PackedLSTM(5, go_backwards=go_backwards)
    layer.build(x.shape)
    layer.set_weights([np.random.default_rng(1).normal(size=weight.shape) for weight in layer.weights])
    np.testing.assert_allclose(layer(x, mask=mask), of_keras(layer, x, mask), atol=1e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_both_directions(dropout):
    words = np.concatenate([np.zeros((1, 3)), np.random.default_rng(0).normal(size=(8, 3))]).astype("float32")
    ids = np.array([[1, 2, 2, 8, 5, 1], [3, 1, 2, 0, 0, 0], [0] * 6, [4, 4, 1, 7, 6, 0]])
    text = keras.Input((None,), dtype="int32")
    model = keras.Model(text, bidirectional_lstm(text, words, 5, trainable=False, dropout=dropout))
    forward, backward = (model.get_layer(f"{name}_lstm") for name in ("forward", "backward"))
    expected = [of_keras(layer, words[ids], ids > 0) for layer in (forward, backward)]
    assert backward.go_backwards
    np.testing.assert_allclose(model(ids), np.concatenate(expected, axis=-1), atol=1e-6)
    assert np.allclose(model(ids, training=True), model(ids)) == (not dropout)


def test_weights_begin_as_those_of_keras():
    ours, theirs = PackedLSTM(5), keras.layers.LSTM(5)
    for layer in (ours, theirs):
        layer.build((None, None, 3))
    assert [weight.shape for weight in ours.weights] == [weight.shape for weight in theirs.weights]
    np.testing.assert_array_equal(ours.bias, theirs.cell.bias)
    recurrent = np.array(ours.recurrent_kernel)
    np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(5), atol=1e-5)


def test_promises():
    x, mask = texts()
    check_layer(PackedLSTM, ARGUMENTS, {"inputs": x}, {"mask": mask})


def test_is_not_for_keras_bidirectional():
    """Guards what docstrings say: where this fails, Keras takes layers as ours."""
    for layer in (PackedLSTM(3), GatedConv(3)):
        with pytest.raises((AttributeError, TypeError)):
            keras.layers.Bidirectional(layer)


def test_places_in_words():
    words, places = np.random.default_rng(3).normal(size=(4, 3)).astype("float32"), np.array([[0, 3, 3], [1, 2, 0]])
    layer = PackedLSTM(5)
    expected = np.array(layer(words[places]))
    np.testing.assert_allclose(layer(places, words=words), expected, atol=1e-6)
    layer.fold(words)
    np.testing.assert_allclose(layer(places, words=words), expected, atol=1e-6)
    assert layer.folded_size(4) == 4 * 20


@pytest.mark.parametrize("units", [0, 1.5])
def test_units_are_a_positive_integer(units):
    with pytest.raises(ValueError, match="`units` must be a positive integer"):
        PackedLSTM(units)


@pytest.mark.parametrize("shapes", [((2, 3, None),), ((2, 3),), ((2, 3, 4), (5, 4))])
def test_shapes_are_checked(shapes):
    with pytest.raises(ValueError, match="The input must be"):
        PackedLSTM(5).build(*shapes)
