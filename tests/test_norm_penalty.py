"""The penalty is the norm, and has a gradient everywhere."""

import doctest

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers import norm_penalty
from layers.norm_penalty import NormPenalty


@pytest.mark.parametrize("weight", [np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)])
def test_norm_and_gradient(weight):
    variable = tf.Variable(weight)
    with tf.GradientTape() as tape:
        penalty = NormPenalty(0.1)(variable)
    norm = np.sqrt(np.sum(weight**2))
    np.testing.assert_allclose(penalty, 0.1 * norm, atol=1e-6)
    np.testing.assert_allclose(tape.gradient(penalty, variable), 0.1 * weight / max(norm, 1e-6), atol=1e-6)


def test_configuration_and_example():
    again = keras.regularizers.deserialize(keras.regularizers.serialize(NormPenalty(0.5)))
    assert again.factor == 0.5
    assert doctest.testmod(norm_penalty, extraglobs={"np": np}).failed == 0


def test_negative_factor():
    with pytest.raises(ValueError, match="Received: factor=-1"):
        NormPenalty(-1)
