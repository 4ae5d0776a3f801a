"""CharNgramEmbedding against the sum that it is, and that a large table is only touched where a batch has n-grams."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.char_ngram_embedding import CharNgramEmbedding
from tests.checks import check_layer

IDS = np.array([[[1, 2, 2], [3, 0, 0]], [[4, 5, 0], [0, 0, 0]], [[2, -1, 0], [6, 1, 3]]], "int32")


def test_promises():
    check_layer(
        CharNgramEmbedding, {"num_ngrams": 9, "units": 4, "initializer": "ones", "combiner": "sqrtn"}, {"ids": IDS}
    )


@pytest.mark.parametrize("combiner", ["sum", "sqrtn"])
def test_equals_the_loop(combiner):
    layer = CharNgramEmbedding(7, 4, combiner=combiner)
    found = np.array(layer(IDS))
    table = np.array(layer.table).astype("float64")
    for place in np.ndindex(IDS.shape[:-1]):
        expected = sum((table[ngram] for ngram in IDS[place] if ngram > 0), np.zeros(4))
        if combiner == "sqrtn":
            expected /= np.sqrt(max(1, (IDS[place] > 0).sum()))
        np.testing.assert_allclose(found[place], expected, atol=1e-6)
    assert 0.005 < table.std() < 0.02


def test_the_gradient_holds_the_rows_of_the_batch_alone_and_no_operation_reads_the_table():
    layer = CharNgramEmbedding(1000, 4)
    layer.build(IDS.shape)

    @tf.function
    def gradient(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids))
        return tape.gradient(loss, layer.table.value)

    found = gradient(IDS)
    assert isinstance(found, tf.IndexedSlices)
    assert sorted(found.indices.numpy()) == [1, 2, 3, 4, 5, 6]  # each once, and no padding
    assert tf.convert_to_tensor(found).numpy()[2].tolist() == [3.0] * 4  # it stands there three times
    operations = gradient.get_concrete_function(IDS).graph.get_operations()
    assert "ResourceGather" in {operation.type for operation in operations}
    # One is left over from asking for the table's shape; it does not run, for nothing takes its value.
    assert not any(operation.outputs[0].consumers() for operation in operations if operation.type == "ReadVariableOp")


def test_half_precision_casts_the_sums_and_not_the_table():
    layer = CharNgramEmbedding(7, 4, dtype="mixed_bfloat16")
    assert layer(IDS).dtype == "bfloat16"
    assert keras.backend.standardize_dtype(layer.table.dtype) == "float32"


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 3), (2, 3, 0)])
def test_nothing_is_summed(shape):
    sums = CharNgramEmbedding(7, 4)(np.zeros(shape, "int32"))
    assert sums.shape == (*shape[:-1], 4) and not np.any(sums)


@pytest.mark.parametrize("name", ["num_ngrams", "units"])
def test_errors(name):
    with pytest.raises(ValueError, match=f"Received: {name}=0"):
        CharNgramEmbedding(**{"num_ngrams": 5, "units": 4, name: 0})


def test_another_combiner_is_refused():
    with pytest.raises(ValueError, match="Received: combiner='mean'"):
        CharNgramEmbedding(5, 4, combiner="mean")
