"""Gradients that are written by hand, in every form of the loop over time, against central differences in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers import fo_pooling, linear_recurrence, time_steps
from layers.cross_temporal_cell import CrossTemporalCell
from layers.gated_conv import GatedConv
from layers.packed_lstm import PackedLSTM
from layers.quasi_recurrent import QuasiRecurrent

TIMES = [1, 5, time_steps.MAX_UNROLLED + 3]
FORMS = {"packed": {}, "columns": {"may_pack": False}, "scan": {"may_pack": False, "prefers_scan": True}}


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    """The forms of a CPU, of XLA, and of an accelerator under JAX."""
    for name, answer in FORMS[request.param].items():
        modules = [module for module in (time_steps, fo_pooling, linear_recurrence) if hasattr(module, name)]
        assert modules, f"{name} is asked somewhere"
        for module in modules:
            monkeypatch.setattr(module, name, lambda answer=answer: answer)
    return request.param


def holes(time, random, *texts):
    """A mask with padding anywhere, of a text without words too."""
    mask = random.random((*texts, time)) < 0.7
    mask[-1] = False
    return mask


def assert_derivatives(layer, function, arrays, form, random):
    """The gradient of a random sum of the outputs, along a random direction of each array and each weight."""
    tensors = [tf.constant(array) for array in arrays]
    upstream = None

    def total(*tensors):
        nonlocal upstream
        outputs = tf.nest.flatten(function(*tensors))
        if upstream is None:
            upstream = [random.normal(size=output.shape) for output in outputs]
        return sum(tf.reduce_sum(output * up) for output, up in zip(outputs, upstream, strict=True))

    total(*tensors)  # eagerly, once
    steps = tensors[0].shape[1] if form == "scan" or tensors[0].shape[1] <= time_steps.MAX_UNROLLED else None
    shapes = [[None, steps, *x.shape[2:]] if x.shape[1:2] == tensors[0].shape[1:2] else x.shape for x in tensors]
    # The batch is known to the scan, which Keras would not run otherwise.
    shapes = [x.shape for x in tensors] if form == "scan" else shapes

    @tf.function(input_signature=[tf.TensorSpec(shape, "float64") for shape in shapes])
    def gradients(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            loss = total(*tensors)
        return tape.gradient(loss, [*tensors, *(weight.value for weight in layer.trainable_weights)])

    found = gradients(*tensors)
    assert len(found) == len(tensors) + len(layer.weights)
    for place, gradient in enumerate(found):
        step = random.normal(size=gradient.shape)
        ends = []
        for sign in (1e-5, -2e-5):
            if place < len(tensors):
                tensors[place] += sign * step
            else:
                layer.weights[place - len(tensors)].assign_add(sign * step)
            ends.append(total(*tensors))
        if place < len(tensors):
            tensors[place] += 1e-5 * step
        else:
            layer.weights[place - len(tensors)].assign_add(1e-5 * step)
        np.testing.assert_allclose(np.sum(gradient * step), (ends[0] - ends[1]) / 2e-5, rtol=2e-6, atol=1e-8)


def randomized(layer, *shapes, **named):
    layer.build(*shapes, **named)
    random = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(random.normal(0, 0.5, size=weight.shape))
    return layer


@pytest.mark.parametrize("time", TIMES)
def test_quasi_recurrent(time, form):
    random = np.random.default_rng(time)
    layer = randomized(QuasiRecurrent(3, use_bias=True, dtype="float64"), (None, None, 4))
    mask = holes(time, random, 3)
    assert_derivatives(layer, lambda x: layer(x, mask=mask), [random.normal(size=(3, time, 4))], form, random)


@pytest.mark.parametrize("cross", ["both", "forget", "output"])
@pytest.mark.parametrize("time", TIMES)
def test_cross_temporal_cell(time, cross, form):
    random = np.random.default_rng(time)
    layer = randomized(CrossTemporalCell(3, cross=cross, dtype="float64"), (None, None, 4), (None, None, None, 4))
    lengths = random.integers(0, time + 1, (2, 4))
    mask = np.arange(time) < lengths[..., None]  # [2, 1 + 3, T]

    def pair(query, candidate):
        return layer(query, candidate, query_mask=mask[:, 0], candidate_mask=mask[:, 1:])

    arrays = [random.normal(size=(2, time, 4)), random.normal(size=(2, 3, time, 4))]
    assert_derivatives(layer, pair, arrays, form, random)


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("gate, filter_mode, output_gate", [
    ("vector", "additive", False),
    ("scalar", "additive", True),
    ("vector", "multiplicative", True),
    ("scalar", "multiplicative", False),
])  # fmt: skip
def test_gated_conv(order, gate, filter_mode, output_gate, form):
    random = np.random.default_rng(order)
    settings = {"gate": gate, "filter_mode": filter_mode, "output_gate": output_gate, "return_state": True}
    layer = randomized(GatedConv(3, order, **settings, dtype="float64"), (None, None, 4))
    mask = holes(5, random, 3)
    arrays = [random.normal(size=(3, 5, 4)), random.normal(size=(3, order + 1, 3))]

    def states_and_gates(x, state):
        return layer(x, mask=mask, initial_state=state), layer.decay(x, mask=mask, initial_state=state)

    assert_derivatives(layer, states_and_gates, arrays, form, random)
    layer.return_sequences = False
    assert_derivatives(layer, states_and_gates, arrays, form, random)


def test_gated_conv_over_many_steps(form):
    time = TIMES[-1]
    random = np.random.default_rng(0)
    layer = randomized(GatedConv(3, return_state=True, dtype="float64"), (None, None, 4))
    mask = holes(time, random, 3)
    assert_derivatives(layer, lambda x: layer(x, mask=mask), [random.normal(size=(3, time, 4))], form, random)


@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("time", TIMES)
def test_packed_lstm(time, go_backwards, form):
    random = np.random.default_rng(time)
    layer = randomized(PackedLSTM(3, go_backwards=go_backwards, dtype="float64"), (None, None, 4))
    mask = holes(time, random, 3)
    assert_derivatives(layer, lambda x: layer(x, mask=mask), [random.normal(size=(3, time, 4))], form, random)


@pytest.mark.parametrize("num_texts", [0, 2])
@pytest.mark.usefixtures("form")
def test_no_step(num_texts):
    x = np.zeros((num_texts, 0, 4), "float32")
    assert QuasiRecurrent(3)(x).shape == (num_texts, 0, 3)
    assert PackedLSTM(3)(x).shape == (num_texts, 0, 3)
    states, final = GatedConv(3, return_state=True)(x)
    assert states.shape == (num_texts, 0, 3) and final.shape == (num_texts, 3, 3)
    h_q, h_a = CrossTemporalCell(3)(x, np.zeros((num_texts, 2, 5, 4), "float32"))
    assert h_q.shape == (num_texts, 2, 0, 3) and h_a.shape == (num_texts, 2, 5, 3)
    assert not np.any(h_a)


def test_nothing_is_computed_at_padding():
    """Under TensorFlow the number of real words alone decides how much is done."""
    mask = np.array([[True, False, False], [True, True, False], [False, False, False]])
    steps = time_steps.time_steps(mask)
    x = keras.ops.convert_to_tensor(np.arange(9).reshape(3, 3, 1))
    np.testing.assert_array_equal(steps.of(x)[:, 0], [3, 0, 4])  # the longest first
    np.testing.assert_array_equal(steps.rows(), [[1, 3, 3], [0, 2, 3], [3, 3, 3]])
    np.testing.assert_array_equal(steps.texts(steps.of(x))[..., 0], np.where(mask, np.arange(9).reshape(3, 3), 0))
