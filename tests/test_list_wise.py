"""A text is encoded the same alone, as a query or in a list."""

import keras
import numpy as np
import pytest

from layers.list_wise import ListWise


def encoder():
    return ListWise(keras.Sequential([keras.layers.Embedding(9, 3), keras.layers.GlobalAveragePooling1D()]))


IDS = np.random.default_rng(0).integers(0, 9, (2, 4, 5))


def test_any_leading_axes():
    layer = encoder()
    listed = np.asarray(layer(IDS))
    assert listed.shape == (2, 4, 3) == layer.compute_output_shape((2, 4, 5))
    assert layer.compute_output_shape((None, 4, 5)) == (None, 4, 3)
    np.testing.assert_allclose(listed[:, 1], layer(IDS[:, 1]), atol=1e-6)
    np.testing.assert_allclose(listed.reshape(8, 3), layer(IDS.reshape(8, 5)), atol=1e-6)


def test_several_inputs_are_encoded_in_one_call():
    calls = []

    class Count(keras.layers.Layer):
        def call(self, ids):
            calls.append(ids.shape)
            real = keras.ops.cast(ids > 0, "int32")
            return keras.ops.stack([keras.ops.sum(real, axis=-1), keras.ops.sum(ids, axis=-1)], axis=-1)

        def compute_output_shape(self, ids_shape):
            return (ids_shape[0], 2)

    layer = ListWise(Count())
    inputs = [IDS[:, 0, :3], IDS]
    outputs = layer(inputs)
    assert calls == [(10, 5)]
    assert layer.compute_output_shape([(2, 3), (2, 4, 5)]) == [(2, 2), (2, 4, 2)]
    for output, ids in zip(outputs, inputs, strict=True):
        np.testing.assert_allclose(output, layer(ids))
    several = [keras.Input(shape, dtype="int32") for shape in [(None,), (None, None)]]
    model = keras.Model(several, layer(several))
    shorter = [IDS[:, 0], IDS[:, :, :2]]
    for output, ids in zip(model(shorter), shorter, strict=True):
        np.testing.assert_allclose(output, layer(ids))


def test_keras_file(tmp_path):
    ids = keras.Input((None, None), dtype="int32")
    model = keras.Model(ids, encoder()(ids))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(IDS), model(IDS), atol=1e-6)
    assert len(loaded.trainable_weights) == 1


def test_passes_training_on():
    layer = ListWise(keras.layers.Dropout(0.5))
    ones = np.ones((2, 3, 50), "float32")
    assert np.asarray(layer(ones, training=True)).min() == 0
    assert np.asarray(layer(ones, training=False)).min() == 1


def test_one_axis_is_too_few():
    with pytest.raises(ValueError, match=r"Received: input_shape=\(5,\)"):
        ListWise(keras.layers.Dense(2))(np.ones(5))
