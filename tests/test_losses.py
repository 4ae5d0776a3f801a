"""List losses against loops that read like their equations, on TensorFlow and JAX, in every precision."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo import losses

LOSSES = {
    "pointwise": losses.pointwise,
    "pairwise_hinge": losses.pairwise_hinge(0.5),
    "listwise": losses.listwise,
}
LABELS = np.array(
    [
        [1, 0, 0, 1, -1, -1],
        [0, 0, 1, -1, -1, -1],
        [0, 0, 0, 0, 0, 0],
        [1, 1, -1, -1, -1, -1],
        [1, -1, -1, -1, -1, -1],
        [-1, -1, -1, -1, -1, -1],
        [0, 2, 0, 1, 0, 0],
    ],
    "float32",
)
SCORES = np.random.default_rng(5).normal(size=LABELS.shape).astype("float32") * 2


def loop(name, labels, scores):
    terms = []
    for row_labels, row_scores in zip(labels, scores.astype("float64"), strict=True):
        pairs = [(y, s) for y, s in zip(row_labels, row_scores, strict=True) if y >= 0]
        positive = [s for y, s in pairs if y > 0]
        negative = [s for y, s in pairs if y == 0]
        if name == "pointwise":
            for y, s in pairs:
                p = np.exp([0.0, s]) / np.exp([0.0, s]).sum()
                terms.append(-np.log(p[1] if y > 0 else p[0]))
        elif name == "pairwise_hinge" and negative:
            terms += [max(0.0, 0.5 + max(negative) - s) for s in positive]
        elif name == "listwise" and positive:
            total = sum(np.exp(s) for _, s in pairs)
            terms.append(-np.mean([np.log(np.exp(s) / total) for s in positive]))
    return np.mean(terms) if terms else 0.0


def value_and_gradient(loss, labels, scores):
    scores = tf.constant(scores)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = keras.ops.mean(loss(labels, scores))
    return value, tape.gradient(value, scores).numpy()


@pytest.fixture(scope="module")
def jax_results():
    code = """
import json, sys
import jax, jax.numpy as jnp
from zoo import losses
given = json.load(sys.stdin)
labels, scores = jnp.array(given["labels"]), jnp.array(given["scores"])
out = {}
for name, loss in {
    "pointwise": losses.pointwise,
    "pairwise_hinge": losses.pairwise_hinge(0.5),
    "listwise": losses.listwise,
}.items():
    value, gradient = jax.jit(jax.value_and_grad(lambda s: jnp.mean(loss(labels, s))))(scores)
    out[name] = [float(value), gradient.tolist()]
json.dump(out, sys.stdout)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({"labels": LABELS.tolist(), "scores": SCORES.tolist()}),
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_the_loop_and_with_jax(name, jax_results):
    value, gradient = value_and_gradient(LOSSES[name], LABELS, SCORES)
    assert value.shape == ()
    assert float(value) == pytest.approx(loop(name, LABELS, SCORES), abs=1e-6)
    assert float(value) == pytest.approx(jax_results[name][0], abs=1e-6)
    np.testing.assert_allclose(gradient, jax_results[name][1], atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_is_the_slope_of_the_loop(name):
    _, gradient = value_and_gradient(LOSSES[name], LABELS, SCORES)
    for place in np.ndindex(LABELS.shape):
        step = np.zeros(LABELS.shape)
        step[place] = 1e-5
        slope = (loop(name, LABELS, SCORES + step) - loop(name, LABELS, SCORES - step)) / 2e-5
        assert gradient[place] == pytest.approx(slope, abs=1e-5)
        assert LABELS[place] >= 0 or gradient[place] == 0


@pytest.mark.parametrize("name", LOSSES)
def test_padding_and_order_change_nothing(name):
    loss = LOSSES[name]
    once = float(value_and_gradient(loss, LABELS, SCORES)[0])
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(LABELS)), rng.permutation(LABELS.shape[1])
    shuffled, _ = value_and_gradient(loss, LABELS[rows][:, columns], SCORES[rows][:, columns])
    assert float(shuffled) == pytest.approx(once, abs=1e-6)
    wide = ((0, 2), (0, 3))
    labels = np.pad(LABELS, wide, constant_values=-1)
    for filler in (0.0, 1e4, np.nan, -np.inf):
        value, gradient = value_and_gradient(loss, labels, np.pad(SCORES, wide, constant_values=filler))
        assert float(value) == pytest.approx(once, abs=1e-6)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label", [-1.0, 0.0, 1.0])
def test_lists_of_one_kind_are_finite(name, label):
    labels = np.full((2, 3), label, "float32")
    value, gradient = value_and_gradient(LOSSES[name], labels, SCORES[:2, :3])
    assert np.isfinite(float(value)) and np.isfinite(gradient).all()
    if label < 0 or (name, label) in {("pairwise_hinge", 0), ("pairwise_hinge", 1), ("listwise", 0)}:
        assert float(value) == 0 and not gradient.any()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_every_precision_is_safe_at_the_ends_of_its_range(name, dtype):
    labels = np.array([[1, 0, -1], [0, 1, 0], [-1, -1, -1]], "int32")
    scores = tf.cast([[-6e4, 6e4, 0.0], [6e4, -6e4, 1.0], [0.0, 0.0, 0.0]], dtype)
    # The call of a Keras loss object, which itself casts everything to float32.
    loss = getattr(LOSSES[name], "call", LOSSES[name])
    value, gradient = value_and_gradient(loss, labels, scores)
    assert value.dtype == (tf.float64 if dtype == "float64" else tf.float32)
    assert float(value) == pytest.approx(loop_in_logs(name), rel=5e-3)
    assert gradient.dtype == tf.as_dtype(dtype).as_numpy_dtype
    assert np.isfinite(gradient.astype("float64")).all()


def loop_in_logs(name):
    # The same lists by hand: exp of 6e4 does not fit the loop above.
    return {
        "pointwise": (6e4 * 4 + np.log1p(np.e)) / 5,
        "pairwise_hinge": 1.2e5 + 0.5,
        "listwise": 1.2e5,
    }[name]


@pytest.mark.parametrize("name", LOSSES)
def test_a_value_per_row_lets_keras_divide_by_the_number_of_replicas(name):
    # A scalar would pass undivided, and a mirrored training would take steps twice as long.
    call = getattr(LOSSES[name], "call", LOSSES[name])
    assert call(LABELS, SCORES).shape == (len(LABELS),)
    assert call(LABELS[:0], SCORES[:0]).shape == (0,)


@pytest.mark.parametrize("name", LOSSES)
def test_equal_scores_have_a_finite_gradient(name):
    _, gradient = value_and_gradient(LOSSES[name], LABELS, np.zeros_like(SCORES))
    assert np.isfinite(gradient).all()


def test_listwise_of_cosines_spreads_them_first():
    loss = losses.ListwiseOfCosines(4.0)
    np.testing.assert_allclose(loss.call(LABELS, SCORES), losses.listwise(LABELS, 4 * SCORES), rtol=1e-6)
    assert type(loss).from_config(loss.get_config()).scale == 4.0
    half = tf.cast([[6e4, -6e4, 0.0]], "float16")
    assert np.isfinite(losses.ListwiseOfCosines().call(np.array([[1, 0, 0]]), half)).all()
    with pytest.raises(ValueError, match="Received: scale=0"):
        losses.ListwiseOfCosines(0)


def test_hinge_is_zero_once_the_margin_is_won_and_ignores_easy_negatives():
    labels = np.array([[1, 0, 0]], "float32")
    assert float(losses.pairwise_hinge(1.0)(labels, np.array([[2.0, 1.0, -9.0]], "float32"))) == 0
    assert float(losses.pairwise_hinge(1.0)(labels, np.array([[0.5, 1.0, -9.0]], "float32"))) == 1.5


@pytest.mark.parametrize("name", LOSSES)
def test_survives_the_keras_file_of_a_compiled_model(name, tmp_path):
    candidates = keras.Input((None, 2))
    model = keras.Model(candidates, keras.ops.squeeze(keras.layers.Dense(1)(candidates), -1))
    model.compile("sgd", LOSSES[name])
    x = np.random.default_rng(0).normal(size=(*LABELS.shape, 2)).astype("float32")
    model.save(tmp_path / "model.keras")
    before = model.evaluate(x, LABELS, verbose=0)
    assert before == pytest.approx(loop(name, LABELS, model.predict(x, verbose=0)), abs=1e-5)
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.evaluate(x, LABELS, verbose=0) == pytest.approx(before, abs=1e-6)
    if name == "pairwise_hinge":
        assert again.loss.margin == 0.5


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("labels", "scores"), [((4,), (4, 1)), ((4, 3), (4, 2)), ((4, 3, 1), (4, 3))])
def test_refuses_shapes_that_would_broadcast(name, labels, scores):
    call = getattr(LOSSES[name], "call", LOSSES[name])
    received = rf"Received: y_true.shape=\({', '.join(map(str, labels))},?\), y_pred.shape=\({scores[0]}, "
    with pytest.raises(ValueError, match=received):
        call(np.zeros(labels, "float32"), np.zeros(scores, "float32"))


@pytest.mark.parametrize("margin", [-0.1, float("nan")])
def test_hinge_refuses_a_margin_below_zero(margin):
    with pytest.raises(ValueError, match=rf"at least 0. Received: margin={margin}"):
        losses.pairwise_hinge(margin)


def on_a_scale():
    """Labels from 1 to 5 with padding, and scores."""
    random = np.random.default_rng(3)
    labels = np.round(random.uniform(1, 5, (4, 3)), 1).astype("float32")
    labels[0, 0], labels[1, 1:], labels[3] = 5.0, -1, -1
    return labels, random.uniform(1, 5, (4, 3)).astype("float32")


def test_squared_error_is_the_mean_over_real_pairs():
    labels, scores = on_a_scale()
    terms = [((y - s) / 4) ** 2 for y, s in zip(labels.ravel(), scores.ravel(), strict=True) if y >= 0]
    assert len(terms) == 7
    value, gradient = value_and_gradient(losses.SquaredError(4.0), labels, scores)
    np.testing.assert_allclose(value, np.mean(terms), rtol=1e-6)
    assert not gradient[labels < 0].any()
    wider = np.pad(labels, ((0, 2), (0, 1)), constant_values=-1)
    padded, _ = value_and_gradient(losses.SquaredError(4.0), wider, np.pad(scores, ((0, 2), (0, 1))))
    np.testing.assert_allclose(padded, value, rtol=1e-6)


def test_neighbour_divergence_is_the_divergence_from_two_numbers():
    labels, _ = on_a_scale()
    logits = np.random.default_rng(4).normal(size=(*labels.shape, 5)).astype("float32")
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    terms = []
    for y, row in zip(labels.ravel(), log_probabilities.reshape(-1, 5).astype("float64"), strict=True):
        if y < 0:
            continue
        target = np.zeros(5)
        below = int(np.floor(y))
        target[below - 1] += below + 1 - y
        if y > below:
            target[below] += y - below
        terms.append(sum(t * (np.log(t) - row[i]) for i, t in enumerate(target) if t > 0))
    value, gradient = value_and_gradient(losses.NeighbourDivergence(5.0), labels, log_probabilities)
    np.testing.assert_allclose(value, np.mean(terms), rtol=1e-5)
    assert np.isfinite(gradient).all() and not gradient[labels < 0].any()
    six = np.full((1, 1, 6), np.log(1 / 6), "float32")
    zero, _ = value_and_gradient(losses.NeighbourDivergence(5.0), np.zeros((1, 1), "float32"), six)
    np.testing.assert_allclose(zero, np.log(6), rtol=1e-5)  # a scale from 0


@pytest.mark.parametrize("loss", [losses.SquaredError(2.0), losses.NeighbourDivergence(4.0)])
def test_losses_of_values_come_back_from_their_configuration(loss):
    again = keras.saving.deserialize_keras_object(json.loads(json.dumps(keras.saving.serialize_keras_object(loss))))
    assert type(again) is type(loss) and again.get_config() == loss.get_config()


def test_losses_of_values_refuse_what_they_cannot_use():
    with pytest.raises(ValueError, match="Received: span=0"):
        losses.SquaredError(0)
    with pytest.raises(ValueError, match=r"Received: shape=\(2, 3\)"):
        losses.NeighbourDivergence()(np.ones((2, 3), "float32"), np.ones((2, 3), "float32"))
    with pytest.raises(ValueError, match="Received: y_true.shape="):
        losses.SquaredError()(np.ones((2, 3), "float32"), np.ones((2, 4), "float32"))
