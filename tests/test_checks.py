"""`check_layer` and `check_model` notice a broken promise: one wrong layer or model for each."""

import keras
import numpy as np
import pytest
from keras import ops

from layers.masking import masked_mean, token_mask
from tests.checks import check_layer, check_model

X = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")
MASK = np.arange(5) < np.array([5, 3, 2])[:, None]


@keras.saving.register_keras_serializable(package="pairzoo")
class Centred(keras.layers.Layer):
    """A right layer: a scaled distance from the mean of the text, zero at padding.

    >>> Centred()(np.ones((2, 3, 4)), mask=np.ones((2, 3), bool)).shape
    TensorShape([2, 3, 4])
    """

    def __init__(self, power=1, **kwargs):
        super().__init__(**kwargs)
        self.power = power
        self.supports_masking = True

    def build(self, input_shape):
        self.scale = self.add_weight(name="scale", shape=input_shape[-1:], initializer="ones")

    def call(self, inputs, mask):
        centred = inputs - ops.expand_dims(masked_mean(inputs, mask), 1)
        return ops.where(mask[..., None], self.scale * centred**self.power, ops.zeros_like(inputs))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"power": self.power}


def broken(**members):
    """`Centred` with other members, registered alike."""
    return keras.saving.register_keras_serializable(package="pairzoo", name="Broken")(
        type("Broken", (Centred,), members)
    )


def forgetful_config(self):
    return keras.layers.Layer.get_config(self)


def without_mask(self, inputs, mask):
    return self.scale * (inputs - ops.mean(inputs, axis=1, keepdims=True))


def bare_outputs(self, inputs, mask):
    return self.scale * (inputs - ops.expand_dims(masked_mean(inputs, mask), 1))


def ones_at_padding(self, inputs, mask):
    return ops.where(mask[..., None], bare_outputs(self, inputs, mask), ops.ones_like(inputs))


def over_the_batch(self, inputs, mask):
    return Centred.call(self, inputs - ops.mean(inputs, axis=0, keepdims=True), mask)


def divided_by_length(self, inputs, mask):
    count = ops.sum(ops.cast(mask, inputs.dtype), axis=1)[:, None, None]
    return Centred.call(self, inputs, mask) * (count / count)


def traced_length(self, inputs, mask):
    return Centred.call(self, inputs, mask) * (sum(1.0 for _ in range(inputs.shape[1])) * 0 + 1)


def unused_weight(self, inputs, mask):
    return ops.where(mask[..., None], inputs, ops.zeros_like(inputs))


def weight_without_effect(self, inputs, mask):
    return unused_weight(self, inputs, mask) + 0 * self.scale


def always_float32(self, inputs, mask):
    return ops.cast(Centred.call(self, inputs, mask), "float32")


def flat_shape(self, input_shape):
    return input_shape[:-1]


@pytest.mark.parametrize(
    "members, promise",
    [
        ({"get_config": forgetful_config}, r"get_config\(\) holds `power`"),
        ({"call": without_mask}, "what stands at padding of inputs changes nothing"),
        ({"call": bare_outputs}, "what stands at padding of inputs changes nothing"),
        ({"call": ones_at_padding}, "outputs at padding are zero"),
        ({"call": over_the_batch}, "rows do not see each other"),
        ({"call": divided_by_length}, "finite if"),
        ({"compute_output_shape": flat_shape}, "compute_output_shape is right"),
        ({"call": unused_weight}, "every weight has a gradient, but not .*scale"),
        ({"call": weight_without_effect}, "scale is not zero throughout"),
        ({"call": always_float32}, "outputs under float64 are float64"),
    ],
)
def test_a_broken_layer_is_noticed(members, promise):
    with pytest.raises(AssertionError, match=promise):
        check_layer(broken(**members), {"power": 2}, {"inputs": X}, {"mask": MASK})


def test_a_length_known_only_when_traced_is_noticed():
    with pytest.raises(TypeError):
        check_layer(broken(call=traced_length), {"power": 2}, {"inputs": X}, {"mask": MASK})


def test_a_right_layer_passes_and_every_argument_must_be_given():
    check_layer(Centred, {"power": 2}, {"inputs": X}, {"mask": MASK})
    with pytest.raises(AssertionError, match="the docstring of Broken holds an example"):
        check_layer(broken(), {"power": 2}, {"inputs": X}, {"mask": MASK})
    with pytest.raises(AssertionError, match="Missing: {'power'}"):
        check_layer(Centred, {}, {"inputs": X}, {"mask": MASK})
    with pytest.raises(AssertionError, match="`power` is given a value but its default"):
        check_layer(Centred, {"power": 1}, {"inputs": X}, {"mask": MASK})


def model(pool=masked_mean, score_dtype="float32"):
    query = keras.Input((None,), dtype="int32", name="query")
    candidate = keras.Input((None, None), dtype="int32", name="candidate")
    embedding = keras.layers.Embedding(9, 4)
    q = pool(embedding(query), token_mask(query), axis=1)
    a = pool(embedding(candidate), token_mask(candidate), axis=2)
    product = keras.layers.Dense(3)(ops.expand_dims(q, 1) * a)
    score = ops.squeeze(keras.layers.Dense(1, dtype=score_dtype)(product), -1)
    return keras.Model({"query": query, "candidate": candidate}, score)


IDS = {
    "query": np.array([[1, 2, 3], [4, 0, 0], [5, 6, 0]], "int32"),
    "candidate": np.array([[[1, 2], [3, 0]], [[4, 5], [0, 0]], [[6, 7], [8, 1]]], "int32"),
}


def test_models():
    check_model(model(), IDS, make=model)
    with pytest.raises(AssertionError, match="padding appended to query changes nothing"):
        check_model(model(pool=lambda x, mask, axis: ops.mean(x, axis=axis)), IDS)
    with pytest.raises(AssertionError, match="scores are float32"):
        check_model(model(score_dtype="float64"), IDS)
    with pytest.raises(AssertionError, match="outputs under float64 are float32"):
        check_model(model(), IDS, make=lambda: model(score_dtype=None))
