"""The recurrence and its gradient, by every implementation, against a float64 loop."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers import time_steps
from layers.linear_recurrence import linear_recurrence

LONG = time_steps.MAX_UNROLLED + 7


def problem(time, batch=3, size=5):
    random = np.random.default_rng(time)
    f = 1 / (1 + np.exp(-4 * random.normal(size=(batch, time, size))))
    return f, random.normal(size=f.shape), random.normal(size=(batch, size)), random.normal(size=f.shape)


def states_and_gradients(f, z, c_0, upstream):
    """c_t = f_t c_{t-1} + (1 - f_t) z_t, and the derivatives of sum(c * upstream) by the chain rule."""
    c, before = np.zeros_like(f), np.zeros_like(f)
    state = c_0
    for t in range(f.shape[1]):
        before[:, t] = state
        state = f[:, t] * state + (1 - f[:, t]) * z[:, t]
        c[:, t] = state
    df, dz = np.zeros_like(f), np.zeros_like(f)
    dc = np.zeros_like(c_0)
    for t in reversed(range(f.shape[1])):
        dc = dc + upstream[:, t]
        df[:, t] = dc * (before[:, t] - z[:, t])
        dz[:, t] = dc * (1 - f[:, t])
        dc = dc * f[:, t]
    return c, df, dz, dc


def solve(f, z, c_0, upstream, implementation="auto"):
    with tf.GradientTape() as tape:
        tape.watch([f, z, c_0])
        c = linear_recurrence(f, z, c_0, implementation)
        loss = tf.reduce_sum(c * upstream)
    return (c, *tape.gradient(loss, [f, z, c_0]))


def assert_solved(outputs, expected, dtype):
    for output, wanted, tolerance in zip(outputs, expected, (3e-7, 1e-6, 1e-6, 1e-6), strict=True):
        tolerance = tolerance if dtype == "float32" else 1e-14
        scale = max(1.0, np.abs(wanted).max(initial=0))
        np.testing.assert_allclose(output, wanted, rtol=0, atol=tolerance * scale)


def graph(implementation, shape, dtype, **kwargs):
    specs = [tf.TensorSpec(shape if i != 2 else (shape[0], shape[2]), dtype) for i in range(4)]
    return tf.function(lambda *arrays: solve(*arrays, implementation=implementation), input_signature=specs, **kwargs)


def cast(arrays, dtype):
    return [tf.constant(array, dtype) for array in arrays]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("implementation", ["sequential", "scan"])
@pytest.mark.parametrize("time", [1, 2, 7, LONG])
def test_known_length(time, implementation, dtype):
    arrays = problem(time)
    outputs = graph(implementation, (3, time, 5), dtype)(*cast(arrays, dtype))
    assert_solved(outputs, states_and_gradients(*arrays), dtype)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_unknown_length_and_batch(jit_compile):
    function = graph("auto", (None, None, 5), "float32", jit_compile=jit_compile)
    for time, batch in ((1, 3), (2, 3), (LONG, 3), (4, 1), (4, 0)):
        arrays = problem(time, batch)
        assert_solved(function(*cast(arrays, "float32")), states_and_gradients(*arrays), "float32")


def test_unrolled_under_xla():
    arrays = problem(7)
    outputs = graph("sequential", (3, 7, 5), "float32", jit_compile=True)(*cast(arrays, "float32"))
    assert_solved(outputs, states_and_gradients(*arrays), "float32")


@pytest.mark.parametrize("shape", [(3, 0, 5), (None, None, 5)])
def test_length_0(shape):
    function = graph("auto", shape, "float32")
    c, df, dz, _ = function(*cast(problem(0), "float32"))
    assert c.shape == df.shape == dz.shape == (3, 0, 5)


def test_eager_and_default_initial_state():
    f, z, c_0, upstream = problem(6)
    expected = states_and_gradients(f, z, np.zeros_like(c_0), upstream)[0]
    np.testing.assert_allclose(linear_recurrence(f, z), expected, atol=1e-14)


def test_extreme_gates():
    _, z, c_0, upstream = problem(5)
    for gate, states in ((1.0, np.repeat(c_0[:, None], 5, axis=1)), (0.0, z)):
        f = np.full(z.shape, gate)
        outputs = solve(*cast((f, z, c_0, upstream), "float64"))
        np.testing.assert_array_equal(outputs[0], states)
        assert_solved(outputs, states_and_gradients(f, z, c_0, upstream), "float64")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_states_are_float32_inside(dtype):
    f, z, c_0, _ = problem(200)
    f = np.full_like(f, 0.992)  # its distance from 1 survives in half precision, a sum of 200 steps does not
    f, z, c_0 = (tf.cast(tf.cast(array, dtype), "float64") for array in (f, z, c_0))
    exact = states_and_gradients(f.numpy(), z.numpy(), c_0.numpy(), np.zeros(f.shape))[0]
    c = linear_recurrence(tf.cast(f, dtype), tf.cast(z, dtype), tf.cast(c_0, dtype))
    assert c.dtype == dtype
    # What is left is one rounding of the result.
    np.testing.assert_allclose(tf.cast(c, "float64"), exact, rtol=2e-3 if dtype == "float16" else 8e-3, atol=1e-6)


def test_trains_in_fit_and_serves_any_batch_and_length(tmp_path):
    class Smoothing(keras.layers.Layer):
        def build(self, input_shape):
            self.gate = self.add_weight(name="gate", shape=input_shape[-1:], initializer="zeros")

        def call(self, x):
            return linear_recurrence(keras.ops.sigmoid(self.gate) + keras.ops.zeros_like(x), x)

    x = keras.Input((None, 5))
    model = keras.Model(x, Smoothing()(x))
    _, z, c_0, _ = problem(9, batch=32)
    target = states_and_gradients(np.full_like(z, 0.9), z, np.zeros_like(c_0), z)[0]
    model.compile(keras.optimizers.Adam(0.1), "mse")
    losses = model.fit(z, target, epochs=60, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 100
    np.testing.assert_allclose(keras.ops.sigmoid(model.weights[0]), np.full(5, 0.9), atol=0.05)

    model.export(tmp_path, verbose=False)
    served = tf.saved_model.load(tmp_path).signatures["serving_default"]
    for time, batch in ((3, 1), (LONG, 2), (1, 0)):
        z = problem(time, batch)[1].astype("float32")
        (output,) = served(tf.constant(z)).values()
        np.testing.assert_allclose(output, model(z), atol=1e-6)


def test_refuses_an_unknown_implementation():
    with pytest.raises(ValueError, match="Received: implementation='fast'"):
        linear_recurrence(np.ones((1, 2, 3)), np.ones((1, 2, 3)), implementation="fast")


def test_scan_refuses_an_unknown_length():
    with pytest.raises(ValueError, match=r"Received: update.shape=\(3, None, 5\)"):
        graph("scan", (3, None, 5), "float32")(*cast(problem(4), "float32"))
