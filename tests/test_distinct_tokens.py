"""DistinctTokens, and that the layers which read its words give what they give position by position."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.cross_temporal_cell import CrossTemporalCell
from layers.distinct_tokens import DistinctTokens
from layers.quasi_recurrent import QuasiRecurrent

RANDOM = np.random.default_rng(0)
TABLE = RANDOM.normal(size=(9, 4)).astype("float32")  # row 0 is not zero: padding must not be read


def ids(*shape, lengths):
    tokens = RANDOM.integers(1, 9, shape)
    return np.where(np.arange(shape[-1]) < np.array(lengths)[..., None], tokens, 0).astype("int32")


QUERY = ids(3, 5, lengths=[5, 2, 0])
CANDIDATE = ids(3, 2, 7, lengths=[[7, 1], [0, 4], [3, 6]])


def test_words_at_places_are_the_ids_and_no_word_is_there_twice():
    words, places = DistinctTokens()([QUERY, CANDIDATE])
    assert len(words) == len(set(np.array(words))) == len(np.union1d(QUERY, CANDIDATE))
    for texts, at in zip([QUERY, CANDIDATE], places, strict=True):
        np.testing.assert_array_equal(np.array(words)[at], texts)


def test_rows_of_ids_are_tokens_too():
    query, candidate = (np.stack([x, x % 3 * (x > 4), x * 0], axis=-1) for x in (QUERY, CANDIDATE))
    words, places = DistinctTokens(rows=True)([query[..., :2], candidate])
    assert len(words) == len(np.unique(np.concatenate([query.reshape(-1, 3), candidate.reshape(-1, 3)]), axis=0))
    for texts, at in zip([query, candidate], places, strict=True):
        np.testing.assert_array_equal(np.array(words)[at], texts)
    symbols = [keras.Input(shape, dtype="int32") for shape in ((None, None), (None, None, None))]
    words, places = DistinctTokens(rows=True)(symbols)
    assert [x.shape for x in (words, *places)] == [(None, None), (None, None), (None, None, None)]
    assert DistinctTokens(rows=True).get_config()["rows"]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_of_no_tokens_there_are_no_words(shape):
    words, (places,) = DistinctTokens()([np.zeros(shape, "int32")])
    assert words.shape == (0,) and places.shape == shape


def test_unknown_sizes_and_a_file(tmp_path):
    query, candidate = keras.Input((None,), dtype="int32"), keras.Input((None, None), dtype="int32")
    words, places = DistinctTokens()([query, candidate])
    assert [x.shape for x in (words, *places)] == [(None,), (None, None), (None, None, None)]
    model = keras.Model([query, candidate], [words, *places])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for a, b in zip(model([QUERY, CANDIDATE]), again([QUERY, CANDIDATE]), strict=True):
        np.testing.assert_array_equal(a, b)


LAYERS = {
    "quasi_recurrent": (QuasiRecurrent, {"inputs": QUERY}),
    "quasi_recurrent_same": (lambda units: QuasiRecurrent(units, 3, "same", use_bias=True), {"inputs": QUERY}),
    "cross_temporal_cell": (CrossTemporalCell, {"query": QUERY, "candidate": CANDIDATE}),
    "cross_temporal_cell_of_pairs": (CrossTemporalCell, {"query": QUERY, "candidate": CANDIDATE[:, 0]}),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("masked", [True, False])
def test_words_and_places_give_what_their_vectors_give(name, masked):
    """Outputs, and the gradients by the table and by the weights."""
    make, texts = LAYERS[name]
    masks = {"mask" if key == "inputs" else f"{key}_mask": x != 0 for key, x in texts.items()} if masked else {}
    layer, table = make(5), tf.Variable(TABLE)
    words, places = DistinctTokens()(list(texts.values()))
    expected = _outputs_and_gradients(
        layer, table, masks, lambda: {key: tf.gather(table, x) for key, x in texts.items()}
    )
    given = _outputs_and_gradients(
        layer, table, masks, lambda: dict(zip(texts, places, strict=True)) | {"words": tf.gather(table, words)}
    )
    assert layer.kernel.shape[1] == 4
    for ours, theirs in zip(given, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-5)


def _outputs_and_gradients(layer, table, masks, arguments):
    with tf.GradientTape() as tape:
        outputs = keras.tree.flatten(layer(**arguments(), **masks))
        loss = sum(tf.reduce_sum(tf.sin(3 * output)) for output in outputs)
    return outputs + [tf.convert_to_tensor(g) for g in tape.gradient(loss, [table, *layer.trainable_weights])]


@pytest.mark.parametrize("make", [QuasiRecurrent, CrossTemporalCell])
def test_refuses_vectors_beside_words(make):
    texts = [np.zeros((2, 3, 4))] * (1 if make is QuasiRecurrent else 2)
    with pytest.raises(ValueError, match=r"words.shape=\(9, 4\)"):
        make(5)(*texts, words=TABLE)
