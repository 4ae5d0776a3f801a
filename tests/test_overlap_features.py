"""OverlapFeatures against sets, and the promises of every layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.overlap_features import OverlapFeatures
from tests.checks import check_layer

VOCABULARY = 30
RANDOM = np.random.default_rng(0)
STATISTICS = {
    "idf": RANDOM.uniform(0, 5, VOCABULARY),
    "is_stop": RANDOM.uniform(size=VOCABULARY) < 0.3,
    "mean": RANDOM.normal(size=4),
    "deviation": RANDOM.uniform(0.5, 2, 4),
}


def ids(*shape):
    """Ids in which words repeat, with right padding of different lengths and one empty row."""
    lengths = RANDOM.integers(1, shape[-1] + 1, shape[:-1])
    lengths[-1] = 0
    words = RANDOM.integers(1, VOCABULARY, shape)
    return np.where(np.arange(shape[-1]) < lengths[..., None], words, 0).astype("int32")


def set_features(query, candidate, idf, is_stop, coverage=False):
    """|q & a| / (|q| + |a|), or idf(q & a) / idf(q), and idf(q & a) / (|q| + |a|); with stop words and without."""

    def weight(words):
        return sum(idf[word] for word in words)

    features = []
    for left_out in ({0}, {0, *np.flatnonzero(is_stop)}):
        q, a = set(query.tolist()) - left_out, set(candidate.tolist()) - left_out
        size = len(q) + len(a)
        if coverage:
            features.append(weight(q & a) / weight(q) if q else 0)
        else:
            features.append(len(q & a) / size if size else 0)
        features.append(weight(q & a) / size if size else 0)
    return features


def test_promises():
    inputs = {"query": ids(3, 5), "candidate": ids(3, 2, 7)}
    check_layer(OverlapFeatures, {"vocabulary_size": VOCABULARY, "coverage": True}, inputs)


@pytest.mark.parametrize("coverage", [False, True])
def test_equals_sets(coverage):
    layer = OverlapFeatures(VOCABULARY, coverage)
    layer.set_statistics(STATISTICS["idf"], STATISTICS["is_stop"])
    query, candidate = ids(20, 12), ids(20, 5, 25)
    features = layer(query, candidate)
    expected = [
        [set_features(q, a, STATISTICS["idf"], STATISTICS["is_stop"], coverage) for a in row]
        for q, row in zip(query, candidate, strict=True)
    ]
    assert features.shape == (20, 5, 4)
    np.testing.assert_allclose(features, expected, rtol=1e-6, atol=1e-7)
    layer.set_statistics(**STATISTICS)
    scaled = (np.array(expected) - STATISTICS["mean"]) / STATISTICS["deviation"]
    np.testing.assert_allclose(layer(query, candidate), scaled, rtol=1e-5, atol=1e-6)


def test_by_hand():
    layer = OverlapFeatures(6)
    layer.set_statistics(idf=[0, 1, 2, 3, 4, 5], is_stop=[False, True, False, False, False, False])
    query, candidate = (
        np.array([[1, 2, 2, 3]]),
        np.array([[[3, 1, 3, 5, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]]),
    )
    np.testing.assert_allclose(
        layer(query, candidate)[0],
        [[2 / 6, 4 / 6, 1 / 4, 3 / 4], [1 / 4, 1 / 4, 0, 0], [0, 0, 0, 0]],
    )


def test_order_repetition_and_place_of_padding_do_not_count():
    layer = OverlapFeatures(VOCABULARY)
    layer.set_statistics(**STATISTICS)
    query = np.array([[4, 7, 9]])
    expected = layer(query, np.array([[[7, 9, 11]]]))
    for candidate in ([11, 9, 7, 9, 7, 7], [0, 0, 7, 0, 9, 11]):
        np.testing.assert_allclose(layer(query, np.array([[candidate]])), expected, rtol=1e-6)


def test_before_statistics_words_weigh_one():
    features = OverlapFeatures(9)(np.array([[1, 2]]), np.array([[[2, 3]]]))
    np.testing.assert_allclose(features, [[[0.25, 0.25, 0.25, 0.25]]])


def test_a_deviation_of_0_leaves_its_feature_unscaled():
    layer = OverlapFeatures(9)
    layer.set_statistics(np.ones(9), np.zeros(9), mean=[0.25] * 4, deviation=[0, 0.5, 0, 2])
    features = layer(np.array([[1, 2]]), np.array([[[1, 2]]]))
    np.testing.assert_allclose(features, [[[0.25, 0.5, 0.25, 0.125]]])


def test_float32_under_any_policy():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        layer = OverlapFeatures(VOCABULARY)
    finally:
        keras.config.set_dtype_policy("float32")
    layer.set_statistics(**STATISTICS)
    assert layer(ids(2, 4), ids(2, 3, 4)).dtype == "float32"
    assert layer.trainable_weights == []


def test_statistics_survive_saving_and_export(tmp_path):
    query = keras.Input((None,), dtype="int32", name="query")
    candidate = keras.Input((None, None), dtype="int32", name="candidate")
    layer = OverlapFeatures(VOCABULARY, name="overlap")
    model = keras.Model({"query": query, "candidate": candidate}, layer(query, candidate))
    layer.set_statistics(**STATISTICS)
    inputs = {"query": ids(3, 6), "candidate": ids(3, 2, 9)}
    expected = model(inputs)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), expected)
    np.testing.assert_array_equal(loaded.get_layer("overlap").is_stop, STATISTICS["is_stop"])

    model.export(tmp_path / "saved", verbose=False)
    served = tf.saved_model.load(tmp_path / "saved").signatures["serving_default"]
    (output,) = served(**{name: tf.constant(array) for name, array in inputs.items()}).values()
    np.testing.assert_allclose(output, expected, atol=1e-6)


def test_refuses_a_vocabulary_without_words():
    with pytest.raises(ValueError, match="Received: vocabulary_size=0"):
        OverlapFeatures(0)


@pytest.mark.parametrize("name, size", [("idf", 8), ("is_stop", 31), ("mean", 3), ("deviation", 5)])
def test_refuses_statistics_of_another_size_and_keeps_the_old(name, size):
    layer = OverlapFeatures(VOCABULARY)
    layer.set_statistics(**STATISTICS)
    with pytest.raises(ValueError, match=rf"Received: {name}.shape=\({size},\)"):
        layer.set_statistics(**{n: np.ones_like(v) for n, v in STATISTICS.items()} | {name: np.ones(size)})
    np.testing.assert_allclose(layer.idf, STATISTICS["idf"], rtol=1e-6)
