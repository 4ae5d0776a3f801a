"""QuasiRecurrent against the paper's equations, and the promises of every layer."""

import keras
import numpy as np
import pytest

from layers.masking import last_state
from layers.quasi_recurrent import QuasiRecurrent
from tests.checks import check_layer

LENGTHS = [6, 3, 1, 0]


def texts(*lengths, size=4, seed=0):
    random = np.random.default_rng(seed)
    return [random.normal(size=(length, size)) for length in lengths]


def batch(rows, time=None):
    """Right-padded `[B, T, m]` with garbage at padding, and its mask."""
    time = time or max(len(row) for row in rows)
    x = np.full((len(rows), time, rows[0].shape[-1]), 1e3)
    for i, row in enumerate(rows):
        x[i, : len(row)] = row
    return x, np.arange(time) < np.array([len(row) for row in rows])[:, None]


def loop_gates(x, kernel, bias=None, padding="causal"):
    """Eq. 1 for one text `[T, m]`: Z = tanh(X * W_z), F = sigmoid(X * W_f), O = sigmoid(X * W_o)."""
    k, _, channels = kernel.shape
    first = -(k - 1) if padding == "causal" else -((k - 1) // 2)
    a = np.zeros((len(x), channels))
    for t in range(len(x)):
        for i in range(k):
            if 0 <= t + first + i < len(x):
                a[t] += x[t + first + i] @ kernel[i]
    z, f, o = np.split(a if bias is None else a + bias, 3, axis=-1)
    return np.tanh(z), 1 / (1 + np.exp(-f)), 1 / (1 + np.exp(-o))


def loop_pool(z, f, o):
    """c_t = f_t c_{t-1} + (1 - f_t) z_t, h_t = o_t c_t, for one text."""
    c, h = np.zeros(z.shape[-1]), np.zeros_like(z)
    for t in range(len(z)):
        c = f[t] * c + (1 - f[t]) * z[t]
        h[t] = o[t] * c
    return h


def randomized(layer, *shapes):
    """The layer, built, with every weight drawn from N(0, 1)."""
    layer.build(*shapes)
    random = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def test_promises():
    x, mask = batch(texts(6, 3, 0))
    check_layer(
        QuasiRecurrent,
        {
            "units": 5,
            "kernel_size": 3,
            "padding": "same",
            "use_bias": True,
            "kernel_initializer": "he_normal",
            "bias_initializer": "ones",
            "kernel_regularizer": keras.regularizers.L2(0.1),
        },
        {"inputs": x.astype("float32")},
        {"mask": mask},
    )


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("padding", ["causal", "same"])
@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4])
def test_equations(kernel_size, padding, use_bias):
    layer = QuasiRecurrent(3, kernel_size, padding, use_bias, dtype="float64")
    randomized(layer, (None, None, 4))
    rows = texts(*LENGTHS)
    x, mask = batch(rows, time=8)
    h = layer(x, mask=mask).numpy()
    for i, row in enumerate(rows):
        bias = None if layer.bias is None else layer.bias.numpy()
        expected = loop_pool(*loop_gates(row, layer.kernel.numpy(), bias, padding))
        np.testing.assert_allclose(h[i, : len(row)], expected, rtol=1e-12, atol=1e-14)
        assert not h[i, len(row) :].any()


def test_float32_is_as_exact_as_float32_is():
    x, mask = batch(texts(50, 40, 30, size=30))
    exact = randomized(QuasiRecurrent(20, dtype="float64"), (None, None, 30))
    layer = QuasiRecurrent(20)
    layer.build((None, None, 30))
    exact.kernel.assign(exact.kernel / 8)  # gates of usual size
    layer.set_weights(exact.get_weights())
    np.testing.assert_allclose(layer(x, mask=mask), exact(x, mask=mask), atol=1e-6)


def test_without_mask_everything_is_real():
    layer = randomized(QuasiRecurrent(3, padding="same", kernel_size=3), (None, None, 4))
    x = batch(texts(5, 5))[0]
    np.testing.assert_array_equal(layer(x), layer(x, mask=np.ones((2, 5), bool)))


def test_a_causal_output_sees_nothing_of_what_follows():
    layer = randomized(QuasiRecurrent(3, kernel_size=3), (None, None, 4))
    x = batch(texts(6, 6))[0]
    changed = x.copy()
    changed[:, 4:] += 1
    np.testing.assert_array_equal(layer(x)[:, :4], layer(changed)[:, :4])
    assert not np.allclose(layer(x)[:, 4], layer(changed)[:, 4])


def test_left_and_right_padding_give_the_same_states():
    layer = randomized(QuasiRecurrent(3, kernel_size=3, padding="same"), (None, None, 4))
    x, mask = batch(texts(3, 3), time=7)
    right = layer(x, mask=mask)
    left = layer(np.roll(x, 4, axis=1), mask=np.roll(mask, 4, axis=1))
    np.testing.assert_allclose(left[:, 4:], right[:, :3], atol=1e-6)
    np.testing.assert_allclose(last_state(left, np.roll(mask, 4, axis=1)), last_state(right, mask), atol=1e-6)


def test_reads_and_passes_on_the_mask_of_an_embedding():
    ids = np.array([[1, 2, 3, 0, 0], [4, 0, 0, 0, 0]])
    embedded = keras.layers.Embedding(9, 4, mask_zero=True)(ids)
    layer = QuasiRecurrent(3)
    h = layer(embedded)
    np.testing.assert_array_equal(h, layer(keras.ops.convert_to_numpy(embedded), mask=ids != 0))
    assert not h.numpy()[ids == 0].any()
    np.testing.assert_array_equal(h._keras_mask, ids != 0)


def test_half_as_many_parameters_as_an_lstm():
    for use_bias in (False, True):
        layer = QuasiRecurrent(512, kernel_size=2, use_bias=use_bias)
        layer.build((None, None, 300))
        assert layer.count_params() == 3 * 2 * 300 * 512 + 3 * 512 * use_bias  # 3kmd, Table 2


def test_kernel_regularizer_adds_a_loss():
    layer = randomized(QuasiRecurrent(3, kernel_regularizer=keras.regularizers.L2(0.5)), (None, None, 4))
    np.testing.assert_allclose(layer.losses[0], 0.5 * np.sum(layer.kernel.numpy() ** 2), rtol=1e-6)


@pytest.mark.parametrize(
    "arguments, received",
    [
        ({"units": 0}, "units=0"),
        ({"units": 2.5}, "units=2.5"),
        ({"units": 2, "kernel_size": -1}, "kernel_size=-1"),
        ({"units": 2, "padding": "valid"}, "padding='valid'"),
    ],
)
def test_refuses_arguments(arguments, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        QuasiRecurrent(**arguments)


def test_refuses_inputs_of_another_shape():
    with pytest.raises(ValueError, match=r"Received: inputs.shape=\(2, 3\)"):
        QuasiRecurrent(2)(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"Received: inputs.shape=\(None, None, None\)"):
        QuasiRecurrent(2).build((None, None, None))
