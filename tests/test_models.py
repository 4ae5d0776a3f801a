"""Every model keeps the promises of `check_model`; counts are those of the CTRN paper's Table 2."""

import keras
import numpy as np
import pytest

from tests.checks import check_model
from tests.toy_models import embeddings, ids
from zoo.models.cnn import cnn
from zoo.models.ctrn import ctrn
from zoo.models.lstm import lstm
from zoo.models.qrnn import qrnn

MODELS = {
    "ctrn": lambda e, **s: ctrn(e, **s),
    "qrnn": lambda e, **s: qrnn(e, **s),
    "lstm": lambda e, **s: lstm(e, **s),
    "lstm_last": lambda e, **s: lstm(e, pooling="last", **s),
    "cnn": lambda e, **s: cnn(e, **s),
}
SMALL = {"filters": 8, "projection": 6, "dense_units": 5, "dense_layers": 2}
APART = ["qrnn", "lstm", "lstm_last", "cnn"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("overlap", ["none", "coverage"])
def test_promises(name, overlap):
    def make():
        return MODELS[name](embeddings(), **SMALL, overlap=overlap, trainable_embeddings=True)

    check_model(make(), ids(), make)


@pytest.mark.parametrize("make, layer", [(ctrn, "cross_temporal_cell"), (qrnn, "encoder")])
def test_parameter_count_of_table_2(make, layer):
    model = make(embeddings(50, 20), filters=512, projection=300, kernel_size=2, dense_units=128)
    recurrent = model.get_layer(layer)
    if layer == "encoder":
        recurrent = recurrent.layer.get_layer("quasi_recurrent")
    assert recurrent.count_params() + model.get_layer("dense_1").count_params() == 1_052_800


def test_fixed_embeddings_and_projection_are_shared_and_counted_once():
    model = ctrn(embeddings(), **SMALL)
    names = [weight.path for weight in model.trainable_weights]
    assert len(names) == len(set(names))
    assert not any("embedding" in name for name in names)
    assert sum("projection" in name for name in names) == 2


@pytest.mark.parametrize("name", APART)
def test_encoder_encodes_apart(name):
    model = MODELS[name](embeddings(), **SMALL)
    batch = ids()
    vectors = model.get_layer("encoder")(batch["query"])
    assert vectors.shape == (3, 8)
    one = model.get_layer("encoder")(batch["candidate"])
    assert one.shape == (3, 4, 8)
    np.testing.assert_allclose(one[:, 2], model.get_layer("encoder")(batch["candidate"][:, 2]), atol=1e-6)


def test_score_is_the_log_odds_of_the_two_class_softmax():
    model = ctrn(embeddings(), **SMALL)
    logits = keras.Model(model.inputs, model.get_layer("logits").output)
    probability = np.asarray(keras.ops.softmax(logits(ids())))[..., 1]
    np.testing.assert_allclose(probability, keras.ops.sigmoid(model(ids())), rtol=1e-5)


def test_l2_is_on_kernels_alone():
    small, large = (ctrn(embeddings(), **SMALL, l2=l2) for l2 in (0.5, 1.0))
    large.set_weights(small.get_weights())
    kernels = [w for w in small.trainable_weights if w.path.endswith("kernel")]
    assert len(kernels) == 5  # projection, cell, two dense layers, logits
    expected = sum(float(np.sum(np.square(kernel))) for kernel in kernels)
    np.testing.assert_allclose(float(sum(large.losses)), expected, rtol=1e-5)
    np.testing.assert_allclose(float(sum(small.losses)), expected / 2, rtol=1e-5)
