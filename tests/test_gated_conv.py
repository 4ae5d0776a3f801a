"""GatedConv against a loop that reads like the paper's equations, and the parameter counts of its Table 3."""

import itertools

import keras
import numpy as np
import pytest

from layers.gated_conv import GatedConv
from tests.checks import check_layer, check_mode

ARGUMENTS = {
    "units": 5,
    "order": 3,
    "gate": "scalar",
    "filter_mode": "multiplicative",
    "output_gate": True,
    "return_state": True,
    "return_sequences": False,
    "kernel_initializer": "he_normal",
    "recurrent_initializer": "orthogonal",
    "bias_initializer": "ones",
    "kernel_regularizer": keras.regularizers.L2(0.1),
}
VARIANTS = list(itertools.product((1, 2, 3), ("vector", "scalar"), ("additive", "multiplicative"), (False, True)))


def texts(batch=4, time=6, size=3):
    x = np.random.default_rng(0).normal(size=(batch, time, size)).astype("float32")
    return x, np.arange(time) < np.array([6, 3, 0, 5])[:, None]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def equations(x, length, weights, state, *, order, gate, filter_mode, output_gate):
    """Section 4.1 for one text, in float64: all h, all gates, and the final c^1 ... c^n and h."""
    kernel, recurrent, gate_bias, b = (np.asarray(w, "float64") for w in weights)
    d = len(b)
    size = d if gate == "vector" else 1
    w_gate, w_out = kernel[:, :size], kernel[:, size + order * d :]
    w = [kernel[:, size + i * d : size + (i + 1) * d] for i in range(order)]
    *c, h = np.asarray(state, "float64")
    states, gates = np.zeros((len(x), d)), np.zeros((len(x), size))
    for t in range(length):
        x_t = x[t].astype("float64")
        decay = sigmoid(x_t @ w_gate + h @ recurrent[:, :size] + gate_bias[:size])
        out = sigmoid(x_t @ w_out + h @ recurrent[:, size:] + gate_bias[size:]) if output_gate else 1.0
        new = [decay * c[0] + (1 - decay) * (x_t @ w[0])]
        for i in range(1, order):
            grown = c[i - 1] + x_t @ w[i] if filter_mode == "additive" else new[i - 1] * (x_t @ w[i])
            new.append(decay * c[i] + (1 - decay) * grown)
        c, h = new, out * np.tanh(new[-1] + b)
        states[t], gates[t] = h, decay
    return states, gates, np.stack([*c, h])


def built(**settings):
    layer = GatedConv(5, return_state=True, **settings)
    layer.build((None, None, 3))
    random = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


@pytest.mark.parametrize("order, gate, filter_mode, output_gate", VARIANTS)
def test_equations(order, gate, filter_mode, output_gate):
    settings = {"order": order, "gate": gate, "filter_mode": filter_mode, "output_gate": output_gate}
    layer = built(**settings)
    x, mask = texts()
    initial = np.random.default_rng(2).normal(size=(4, order + 1, 5)).astype("float32")
    states, final = layer(x, mask=mask, initial_state=initial)
    decay = layer.decay(x, mask=mask, initial_state=initial)
    for row, length in enumerate(mask.sum(axis=1)):
        wanted = equations(x[row], length, layer.get_weights(), initial[row], **settings)
        for got, expected in zip((states[row], decay[row], final[row]), wanted, strict=True):
            np.testing.assert_allclose(got, expected, atol=2e-6)


def test_promises():
    x, mask = texts()
    check_layer(GatedConv, ARGUMENTS, {"inputs": x}, {"mask": mask})


def test_promises_of_all_states_in_the_other_modes():
    x, mask = texts()
    check_mode(GatedConv, ARGUMENTS | {"return_sequences": True}, {"inputs": x, "mask": mask})


@pytest.mark.parametrize(("all_states", "final"), list(itertools.product((False, True), repeat=2)))
def test_the_mask_goes_with_all_states(all_states, final):
    x, mask = texts()
    layer = GatedConv(5, return_sequences=all_states, return_state=final)
    passed_on = mask if all_states else None
    given = layer.compute_mask(x, mask)
    assert (given[0] is passed_on and given[1] is None) if final else given is passed_on


def test_a_layer_saved_before_there_was_return_sequences_gives_all_states():
    config = {name: value for name, value in built().get_config().items() if name != "return_sequences"}
    assert GatedConv.from_config(config).return_sequences


def test_the_last_state_alone():
    x, mask = texts()
    layer = built()
    states, final = layer(x, mask=mask)
    last = GatedConv(5, return_sequences=False)
    last.build((None, None, 3))
    last.set_weights(layer.get_weights())
    np.testing.assert_allclose(last(x, mask=mask), final[:, -1], atol=1e-6)
    assert last.compute_output_shape((4, 6, 3)) == (4, 5) and last.compute_mask(x, mask) is None


@pytest.mark.parametrize("place", ["left", "right", "between"])
def test_masked_steps_copy_the_state(place):
    layer = built()
    x, _ = texts()
    x = x[:, :3]
    steps = {"left": [2, 3, 4], "right": [0, 1, 2], "between": [0, 2, 4]}[place]
    padded, mask = np.full((4, 5, 3), 9, "float32"), np.zeros((4, 5), bool)
    padded[:, steps], mask[:, steps] = x, True
    states, final = layer(x)
    padded_states, padded_final = layer(padded, mask=mask)
    np.testing.assert_allclose(np.asarray(padded_states)[:, steps], states, atol=1e-6)
    np.testing.assert_allclose(padded_final, final, atol=1e-6)
    assert not np.asarray(padded_states)[~mask].any()


def test_a_text_may_be_read_in_two_parts():
    layer = built()
    x, _ = texts()
    states, final = layer(x)
    first, state = layer(x[:, :2])
    second, end = layer(x[:, 2:], initial_state=state)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), states, atol=1e-6)
    np.testing.assert_allclose(end, final, atol=1e-6)


def test_places_in_words():
    layer = built()
    words, places = np.random.default_rng(3).normal(size=(4, 3)).astype("float32"), np.array([[0, 3, 3], [1, 2, 0]])
    for got, expected in zip(layer(places, words=words), layer(words[places]), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_gates_under_half_precision():
    x, mask = texts()
    layer = GatedConv(5, dtype="mixed_bfloat16")
    layer(x, mask=mask)
    other = GatedConv(5)
    other.build(x.shape)
    other.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer.decay(x, mask=mask), other.decay(x, mask=mask), atol=1e-6)
    words, places = x.reshape(-1, 3), np.arange(24).reshape(4, 6)
    np.testing.assert_allclose(other.decay(places, mask, words), other.decay(x, mask), atol=1e-6)


def test_states_under_half_precision():
    """Over a long text, states kept in bfloat16 would be off by tenths where little is let in at a time."""
    x = np.repeat(np.random.default_rng(4).normal(size=(2, 1, 3)), 2000, axis=1).astype("float32")
    layer, other = GatedConv(5, dtype="mixed_bfloat16"), GatedConv(5)
    for each in (layer, other):
        each.build(x.shape)
    layer.gate_bias.assign(np.full(5, 6.0))
    other.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(x)[0], other(x)[0], atol=0.02)


def test_without_decay_it_is_the_causal_convolution():
    layer = built(order=3)
    layer.gate_bias.assign(np.full(5, -1e4))
    convolution = keras.layers.Conv1D(5, 3, padding="causal", activation="tanh")
    convolution.build((None, None, 3))
    # The oldest word of a window meets W_1.
    filters = np.split(layer.get_weights()[0], 4, axis=1)[1:]
    convolution.set_weights([np.stack(filters), layer.get_weights()[3]])
    x, _ = texts()
    np.testing.assert_allclose(layer(x)[0], convolution(x), atol=1e-6)


def test_parameter_counts_of_table_3():
    layers = {
        400_800: GatedConv(400, order=2),
        423_360: keras.layers.LSTM(240),
        404_040: keras.layers.GRU(280, reset_after=False),
        400_867: keras.layers.Conv1D(667, 3, padding="causal"),
    }
    for count, layer in layers.items():
        layer.build((None, None, 200))
        assert layer.count_params() == count


@pytest.mark.parametrize(
    "settings, received",
    [
        ({"units": 0}, "units=0"),
        ({"units": 3, "order": 1.5}, "order=1.5"),
        ({"units": 3, "gate": "none"}, "gate='none'"),
        ({"units": 3, "filter_mode": "power"}, "filter_mode='power'"),
    ],
)
def test_wrong_arguments(settings, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        GatedConv(**settings)


@pytest.mark.parametrize("inputs, words", [((2, 3), None), ((2, 3, 4), (5, 4)), ((2, 3, None), None)])
def test_wrong_shapes(inputs, words):
    with pytest.raises(ValueError, match=r"Received: inputs.shape=\(2, 3"):
        GatedConv(3).build(inputs, words)
