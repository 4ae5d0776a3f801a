"""`check_layer` and `check_model`: every layer and every model keeps the same promises."""

import doctest
import inspect
import json

import keras
import numpy as np

from tests.promises import POLICIES, Promises, assert_close


def check_layer(layer_class, arguments, inputs, masks=None):
    """Holds a layer to every promise of the house; an AssertionError names the one that is broken.

    All but the configuration is checked twice, with random weights: with the defaults, and with `arguments`.

    Args:
        layer_class: the layer.
        arguments: for every argument of `__init__`, a value other than its default.
        inputs: name of an argument of `call` -> array, in the order of `call`: float32 vectors `[..., T, m]` or
            integer ids `[..., T]`, of which 0 is padding. Three rows or more, of different lengths.
        masks: name of an argument of `call` -> bool array `[..., T]`: `x_mask` masks `x`, `mask` the only input.
    """
    _check_configuration(layer_class, arguments)
    arrays = inputs | (masks or {})
    required = {name: arguments[name] for name, default in _parameters(layer_class) if default is _REQUIRED}
    for chosen in (required, arguments):
        check_mode(layer_class, chosen, arrays)
    _check_example(layer_class)


def check_mode(layer_class, arguments, arrays):
    """Holds a layer of these arguments to all promises but those of its configuration and its example.

    Args:
        layer_class, arguments: the layer.
        arrays: the inputs and masks of `check_layer` in one.
    """
    layer = layer_class(**arguments)
    layer(**arrays)
    _randomize(layer)
    promises = Promises(layer, arrays)
    promises.knows_its_output_shape()
    promises.keeps_rows_apart()
    promises.ignores_padding(zero_outputs=True)
    promises.is_finite_without_tokens()
    promises.takes_unknown_sizes()
    promises.has_gradients()
    promises.comes_back_from_a_file()
    for policy in POLICIES:
        other = layer_class(**arguments, dtype=policy)
        under = promises.is_the_same_under(policy, other, other.compute_dtype)
        if policy == "float64":
            under.has_gradients_that_are_slopes()


def check_model(model, inputs, make=None):
    """Holds a built model, from ids of query and candidate to scores `[B, L]`, to the promises of the house.

    Args:
        model: the model, with the weights it is to be checked with.
        inputs: integer ids `query` `[B, Tq]` and `candidate` `[B, L, Ta]`, or `query_<field>` and
            `candidate_<field>` of each field; three rows or more, of different lengths.
        make: builds the model anew, without arguments; if given, the model is also built under each dtype policy,
            with the same weights, and its scores stay float32.
    """
    assert sorted(model.input) == sorted(inputs), "the model's inputs are named by side, and by field if several"
    candidates = {name: array for name, array in inputs.items() if name.startswith("candidate")}
    num_lists, list_size = next(iter(candidates.values())).shape[:2]
    promises = Promises(model, inputs)
    (scores,) = promises.expected
    assert scores.shape == (num_lists, list_size), f"scores are [B, L], not {scores.shape}"
    assert scores.dtype == "float32", f"scores are float32, not {scores.dtype}"
    promises.keeps_rows_apart(empty_batch=False)  # Keras's LSTM takes none; the export pads to one row
    promises.ignores_padding(zero_outputs=False)
    promises.is_finite_without_tokens()
    promises.takes_unknown_sizes()
    promises.has_gradients()
    promises.comes_back_from_a_file()
    order = np.random.default_rng(0).permutation(list_size)
    shuffled = promises.run(inputs | {name: array[:, order] for name, array in candidates.items()})
    assert_close(shuffled, [scores[:, order]], "permuted candidates have permuted scores")
    before = keras.config.dtype_policy()
    for policy in POLICIES if make else ():
        keras.config.set_dtype_policy(policy)
        try:
            promises.is_the_same_under(policy, make(), "float32")
        finally:
            keras.config.set_dtype_policy(before)


_REQUIRED = inspect.Parameter.empty


def _parameters(layer_class):
    """Name and default of each argument of `__init__` but self and the keywords of the base class."""
    if layer_class.__init__ is keras.layers.Layer.__init__:
        return []
    parameters = inspect.signature(layer_class.__init__).parameters.values()
    return [(p.name, p.default) for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD]


def _check_configuration(layer_class, arguments):
    parameters = dict(_parameters(layer_class))
    assert set(arguments) == set(parameters), (
        f"`arguments` must name every argument of {layer_class.__name__}. "
        f"Missing: {set(parameters) - set(arguments)}; unknown: {set(arguments) - set(parameters)}"
    )
    registered = keras.saving.get_registered_name(layer_class)
    assert registered == f"pairzoo>{layer_class.__name__}", f"registered for saving, as {registered}"
    base = {"name": "a_name", "dtype": "mixed_bfloat16", "trainable": False}
    config = layer_class(**arguments, **base).get_config()
    required = {name: arguments[name] for name, default in parameters.items() if default is _REQUIRED}
    default = layer_class(**required).get_config()
    for name in parameters:
        assert name in config, f"get_config() holds `{name}`"
        assert name in required or config[name] != default[name], f"`{name}` is given a value but its default"
    again = layer_class.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config, "the configuration makes the round trip"
    assert (again.name, again.dtype_policy.name, again.trainable) == tuple(base.values()), "base arguments too"
    for name in parameters:
        assert hasattr(again, name), f"the layer has an attribute `{name}`"


def _check_example(layer_class):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False)
    examples = finder.find(layer_class, globs={"np": np, layer_class.__name__: layer_class})
    assert examples, f"the docstring of {layer_class.__name__} holds an example"
    assert runner.run(examples[0]).failed == 0, "the example in the docstring is right"


def _randomize(layer):
    """Initial zeros and ones would hide faults. Statistics (weights without training) stay positive."""
    random = np.random.default_rng(7)
    for weight in layer.weights:
        low, high = (-1, 1) if weight.trainable else (0.5, 1.5)
        weight.assign(random.uniform(low, high, weight.shape))
