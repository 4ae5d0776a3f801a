"""Masked softmax, mean, max and last state against loops over the real positions."""

import numpy as np
import pytest
import tensorflow as tf

from layers.masking import last_state, masked_max, masked_mean, masked_softmax, token_mask

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(4, 6, 3))
MASK = np.arange(6) < np.array([6, 1, 4, 0])[:, None]
DTYPES = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}


def of_real_rows(function):
    """A function of the real rows `[len, d]` of each sequence, zeros where there is none."""
    return np.stack([function(x[m]) if m.any() else np.zeros(3) for x, m in zip(X, MASK, strict=True)])


POOLS = {
    "mean": (masked_mean, of_real_rows(lambda x: x.mean(axis=0))),
    "max": (masked_max, of_real_rows(lambda x: x.max(axis=0))),
    "last": (last_state, of_real_rows(lambda x: x[-1])),
}


def test_token_mask_is_false_at_id_0():
    np.testing.assert_array_equal(token_mask(np.array([[3, 0, 1]])), [[True, False, True]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POOLS)
def test_pools(name, dtype):
    pool, expected = POOLS[name]
    garbage = np.where(MASK[..., None], X, 1e4)
    output = pool(tf.cast(garbage, dtype), MASK)
    assert output.dtype == dtype
    np.testing.assert_allclose(tf.cast(output, "float64"), expected, atol=DTYPES[dtype])


@pytest.mark.parametrize("name", POOLS)
def test_pools_of_lists(name):
    pool, expected = POOLS[name]
    x, mask = X.reshape(2, 2, 6, 3), MASK.reshape(2, 2, 6)
    output = pool(x, mask) if name == "last" else pool(x, mask, axis=2)
    np.testing.assert_allclose(output, expected.reshape(2, 2, 3))
    shared = pool(x, mask[:, :1]) if name == "last" else pool(x, mask[:, :1], axis=-2)
    np.testing.assert_allclose(shared[:, 0], expected.reshape(2, 2, 3)[:, 0], err_msg="a mask with an axis of 1")


@pytest.mark.parametrize("name", POOLS)
def test_pools_of_nothing_are_zero_with_zero_gradient(name):
    for x, mask in ((tf.constant(X), np.zeros_like(MASK)), (tf.constant(X[:, :0]), MASK[:, :0])):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = POOLS[name][0](x, mask)
        np.testing.assert_array_equal(output, np.zeros((4, 3)))
        np.testing.assert_array_equal(tape.gradient(output, x), np.zeros(x.shape))


def test_last_state_is_the_last_real_one_on_either_side():
    left = MASK[:, ::-1]
    np.testing.assert_allclose(last_state(X, left)[:3], X[:3, -1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax(dtype):
    weights = masked_softmax(tf.cast(X, dtype), MASK, axis=1)
    assert weights.dtype == dtype
    expected = np.zeros_like(X)
    for x, mask, row in zip(X, MASK, expected, strict=True):
        if mask.any():
            row[mask] = np.exp(x[mask]) / np.exp(x[mask]).sum(axis=0)
    np.testing.assert_allclose(tf.cast(weights, "float64"), expected, atol=DTYPES[dtype])


def test_softmax_over_the_last_axis_of_attention_logits():
    logits = RANDOM.normal(size=(4, 2, 6)).astype("float32")
    weights = masked_softmax(logits, MASK[:, None, :]).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1)[:3], 1, rtol=1e-6)
    assert not weights[3].any()


@pytest.mark.parametrize("scale", [6e4, 1e30])
def test_softmax_of_extreme_logits_is_finite(scale):
    logits = tf.constant([[-scale, scale, scale], [-scale, -scale, scale]], "float16" if scale < 1e5 else "float32")
    with tf.GradientTape() as tape:
        tape.watch(logits)
        weights = masked_softmax(logits, np.array([[True, True, False], [False, True, False]]))
    np.testing.assert_array_equal(weights, [[0, 1, 0], [0, 1, 0]])
    assert np.isfinite(tape.gradient(weights, logits)).all()


def test_half_precision_sums_in_float32():
    ones = tf.ones((1, 4000, 1), "float16")
    assert float(masked_mean(ones, np.ones((1, 4000), bool))[0, 0]) == 1  # a float16 sum stops at 2048
