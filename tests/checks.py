"""The promises that every layer (`check_layer`) and every model (`check_model`) is held to, in one place each.

A text is a row of `inputs`: floats `[..., T, m]`, masked by a bool array `[..., T]`, or ids `[..., T]`, of which
0 is padding. What stands before time is the batch, and the list of candidates where there is one.
"""

import inspect
import json
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

TOLERANCE = 1e-5
# How far a policy may be from float32, as a share of the largest output.
POLICIES = {"float32": 1e-6, "float64": 1e-5, "mixed_float16": 2e-2, "mixed_bfloat16": 1e-1}


def check_layer(layer_class, arguments, inputs, masks=None, policies=tuple(POLICIES)):
    """Holds a layer to every promise of the house; an AssertionError names the one that is broken.

    All but the configuration is checked twice: with the defaults, and with `arguments`.

    Args:
        layer_class: the layer.
        arguments: for every argument of `__init__`, a value other than its default.
        inputs: name of an argument of `call` -> array, in the order of `call`. Three rows or more, of
            different lengths.
        masks: name of an argument of `call` -> bool array: `x_mask` masks `x`, `mask` the only input.
        policies: the dtype policies that the layer is run under.
    """
    _check_configuration(layer_class, arguments)
    masks = masks or {}
    required = {name: arguments[name] for name, default in _parameters(layer_class) if default is _REQUIRED}
    for chosen in (required, arguments):
        layer = layer_class(**chosen)
        layer(**inputs, **masks)
        _randomize(layer)
        check = _Check(layer, inputs, masks)
        check.output_shape()
        check.rows()
        check.padding(zero_outputs=True)
        check.all_padding()
        check.graphs()
        check.gradients()
        check.masked_inputs_have_no_gradient()
        check.keras_file()
        for policy in policies:
            other = layer_class(**chosen, dtype=policy)
            check.policy(other, policy, compute_dtype=other.compute_dtype)
            if policy == "float64":
                _Check(other, inputs, masks).gradients_are_slopes()


def check_model(model, inputs, make=None):
    """Holds a built model, from `query` and `candidate` ids to scores `[B, L]`, to the promises of the house.

    Args:
        model: the model, with the weights it is to be checked with.
        inputs: ids `query` `[B, Tq]` and `candidate` `[B, L, Ta]`; three rows or more, of different lengths.
        make: builds the model anew, without arguments; if given, the model is also built under the dtype
            policies of half and double precision, with the same weights.
    """
    assert list(inputs) == ["query", "candidate"], "inputs are named query and candidate"
    assert sorted(model.input) == ["candidate", "query"], "the model's inputs are named query and candidate"
    check = _Check(model, inputs, {})
    (scores,) = check.expected
    assert scores.shape == inputs["candidate"].shape[:2], f"scores are [B, L], not {scores.shape}"
    assert scores.dtype == "float32", f"scores are float32, not {scores.dtype}"
    check.rows(empty_batch=False)  # Keras's LSTM has no batch of 0 rows; the export pads to one
    check.padding()
    check.all_padding()
    check.graphs()
    check.gradients()
    check.keras_file()
    order = np.random.default_rng(0).permutation(scores.shape[1])
    shuffled = check.run(inputs | {"candidate": inputs["candidate"][:, order]}, {})
    _assert_close(shuffled, [scores[:, order]], "permuted candidates have permuted scores")
    for policy in POLICIES if make else ():
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(policy)
        try:
            check.policy(make(), policy, compute_dtype="float32")
        finally:
            keras.config.set_dtype_policy(before)


class _Check:
    """A built layer or model, its inputs, and what it makes of them."""

    def __init__(self, layer, inputs, masks):
        self.layer, self.inputs, self.masks = layer, dict(inputs), dict(masks)
        self.is_model = isinstance(layer, keras.Model)
        for name, mask in self.masks.items():
            assert mask.dtype == bool and not mask.all(), f"`{name}` masks something"
        self.expected = self.run(inputs, masks)
        assert all(np.isfinite(output).all() for output in self.expected), "outputs are finite"

    def call(self, inputs, masks):
        outputs = self.layer(dict(inputs)) if self.is_model else self.layer(**inputs, **masks)
        return keras.tree.flatten(outputs)

    def run(self, inputs, masks):
        return [_numpy(output) for output in self.call(inputs, masks)]

    def mask_name(self, name):
        """The argument that masks the input `name`, or None."""
        return next((mask for mask in (f"{name}_mask", "mask") if mask in self.masks), None)

    def padded(self, name, time=0, rows=0):
        """Inputs and masks with padding appended to one input: `time` positions, `rows` candidates."""
        inputs, masks, array = dict(self.inputs), dict(self.masks), self.inputs[name]
        axis = _time_axis(array)
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, time)
        widths[1] = (0, rows) if rows else widths[1]
        inputs[name] = np.pad(array, widths, constant_values=0 if _is_ids(array) else 9)
        if mask := self.mask_name(name):
            masks[mask] = np.pad(masks[mask], widths[: axis + 1])
        return inputs, masks

    def emptied(self, names):
        """Inputs and masks with nothing but padding in the inputs `names`."""
        inputs, masks = dict(self.inputs), dict(self.masks)
        for name in names:
            if _is_ids(inputs[name]):
                inputs[name] = np.zeros_like(inputs[name])
            else:
                masks[self.mask_name(name)] = np.zeros_like(masks[self.mask_name(name)])
        return inputs, masks

    def can_pad(self, name):
        return _is_ids(self.inputs[name]) or self.mask_name(name) is not None

    def output_shape(self):
        shapes = [array.shape for array in self.inputs.values()]
        unknown = [
            (*[None] * (_time_axis(a) + 1), *a.shape[_time_axis(a) + 1 :]) for a in self.inputs.values()
        ]
        real = [output.shape for output in self.expected]
        assert _shapes(self.layer.compute_output_shape(*shapes)) == real, "compute_output_shape is right"
        for shape, known in zip(_shapes(self.layer.compute_output_shape(*unknown)), real, strict=True):
            assert len(shape) == len(known), f"compute_output_shape of unknown sizes: {shape}, is {known}"
            assert all(s in (None, k) for s, k in zip(shape, known, strict=True)), f"{shape} is {known}"

    def rows(self, empty_batch=True):
        num = len(self.expected[0])
        order = np.random.default_rng(0).permutation(num)
        assert num >= 3, "three rows or more"
        _assert_close(
            self.select(order), [e[order] for e in self.expected], "permuted rows: permuted outputs"
        )
        for i in range(num):
            one = slice(i, i + 1)
            _assert_close(self.select(one), [e[one] for e in self.expected], "batched equals one by one")
        if empty_batch:
            shapes = [output.shape for output in self.select(slice(0, 0))]
            assert shapes == [(0, *e.shape[1:]) for e in self.expected], "a batch of 0 rows gives 0 rows"

    def select(self, rows):
        return self.run(*({k: a[rows] for k, a in arrays.items()} for arrays in (self.inputs, self.masks)))

    def padding(self, zero_outputs=False):
        """Padding changes nothing: neither what stands there, nor its length, nor rows of the list."""
        for name, array in self.inputs.items():
            if not self.can_pad(name):
                continue
            if not _is_ids(array):
                real = self.masks[self.mask_name(name)][..., None]
                outputs = self.run(
                    self.inputs | {name: np.where(real, array, -7).astype(array.dtype)}, self.masks
                )
                _assert_close(outputs, self.expected, f"what stands at padding of {name} changes nothing")
            outputs = self.run(*self.padded(name, time=3))
            cropped = [o[tuple(map(slice, e.shape))] for o, e in zip(outputs, self.expected, strict=True)]
            _assert_close(cropped, self.expected, f"padding appended to {name} changes nothing")
            for output, crop in zip(outputs, cropped, strict=True):
                crop[...] = 0  # a view
                assert not zero_outputs or not output.any(), "outputs at padding are zero"
            if _time_axis(array) == 2:
                outputs = self.run(*self.padded(name, rows=2))
                cropped = [o[:, : e.shape[1]] for o, e in zip(outputs, self.expected, strict=True)]
                _assert_close(cropped, self.expected, f"empty rows of the list {name} change nothing")
                assert all(np.isfinite(o).all() for o in outputs), "outputs of empty rows are finite"

    def all_padding(self):
        names = [name for name in self.inputs if self.can_pad(name)]
        for emptied in [*([name] for name in names), names]:
            inputs, masks = self.emptied(emptied)
            assert all(np.isfinite(o).all() for o in self.run(inputs, masks)), f"finite if {emptied} is empty"
            gradients = self.gradients_of(inputs, masks)
            assert all(np.isfinite(g).all() for g in gradients.values()), f"gradients: {emptied} is empty"

    def graphs(self):
        """Unknown sizes, with and without XLA, give what eager execution gives."""

        def spec(array, time_axis):
            return tf.TensorSpec((*[None] * (time_axis + 1), *array.shape[time_axis + 1 :]), array.dtype)

        specs = [
            {name: spec(a, _time_axis(a)) for name, a in self.inputs.items()},
            {name: spec(m, m.ndim - 1) for name, m in self.masks.items()},
        ]
        for jit in (False, True):
            function = tf.function(self.call, input_signature=specs, jit_compile=jit)
            outputs = [_numpy(output) for output in function(self.inputs, self.masks)]
            _assert_close(outputs, self.expected, f"a graph of unknown sizes, jit_compile={jit}")
            first = [{k: a[:1] for k, a in arrays.items()} for arrays in (self.inputs, self.masks)]
            outputs = [_numpy(output) for output in function(*first)]
            _assert_close(outputs, [e[:1] for e in self.expected], f"its second shape, jit_compile={jit}")

    def gradients(self):
        gradients = self.gradients_of(self.inputs, self.masks)
        for weight in self.layer.trainable_weights:
            gradient = gradients[weight.path]
            assert np.isfinite(gradient).all(), f"the gradient of {weight.path} is finite"
            assert gradient.any(), f"the gradient of {weight.path} is not zero throughout"

    def projection(self, outputs):
        random = np.random.default_rng(3)
        return sum(tf.reduce_sum(o * tf.cast(random.normal(size=o.shape), o.dtype)) for o in outputs)

    def gradients_of(self, inputs, masks, wanted=()):
        """Of a random projection of the outputs: path of each trainable weight, and name of `wanted` -> array."""
        weights = {weight.path: weight.value for weight in self.layer.trainable_weights}
        inputs = {name: tf.constant(array) for name, array in inputs.items()}
        with tf.GradientTape() as tape:
            tape.watch([inputs[name] for name in wanted])
            loss = self.projection(self.call(inputs, masks))
        sources = weights | {name: inputs[name] for name in wanted}
        gradients = tape.gradient(loss, sources)
        missing = [name for name, gradient in gradients.items() if gradient is None]
        assert not missing, f"every weight has a gradient, but not {missing}"
        return {name: _numpy(tf.convert_to_tensor(gradient)) for name, gradient in gradients.items()}

    def masked_inputs_have_no_gradient(self):
        names = [name for name, array in self.inputs.items() if not _is_ids(array) and self.mask_name(name)]
        gradients = self.gradients_of(self.inputs, self.masks, names)
        for name in names:
            padding = gradients[name][~self.masks[self.mask_name(name)]]
            assert not padding.any(), f"{name} has no gradient at padding"

    def policy(self, other, policy, compute_dtype):
        """`other` is the same thing under another policy; it gives the same up to its precision."""
        other(self.inputs) if self.is_model else other(**self.inputs, **self.masks)
        other.set_weights(self.layer.get_weights())
        check = _Check(other, self.inputs, self.masks)
        outputs = check.call(self.inputs, self.masks)
        dtypes = {keras.backend.standardize_dtype(output.dtype) for output in outputs}
        assert dtypes == {compute_dtype}, f"outputs under {policy} are {compute_dtype}, not {dtypes}"
        for output, expected in zip(check.expected, self.expected, strict=True):
            difference = np.abs(output - expected).max() / max(np.abs(expected).max(), 1e-3)
            assert difference <= POLICIES[policy], f"{policy} is {difference} from float32"
        gradients = check.gradients_of(self.inputs, self.masks)
        assert all(np.isfinite(g).all() for g in gradients.values()), f"gradients under {policy} are finite"

    def gradients_are_slopes(self):
        """Each gradient, along a random direction, is a difference quotient in float64."""
        random = np.random.default_rng(5)
        names = [name for name, array in self.inputs.items() if not _is_ids(array)]
        inputs = {k: a.astype("float64") if k in names else a for k, a in self.inputs.items()}
        gradients = self.gradients_of(inputs, self.masks, names)
        points = {w.path: _numpy(w) for w in self.layer.trainable_weights} | {n: inputs[n] for n in names}
        for name, gradient in gradients.items():
            direction, values = random.normal(size=gradient.shape), []
            for step in (1e-5, -1e-5):
                moved = points[name] + step * direction
                if name in names:
                    values.append(self.projection(self.call(inputs | {name: moved}, self.masks)))
                else:
                    weight = next(w for w in self.layer.trainable_weights if w.path == name)
                    weight.assign(moved)
                    values.append(self.projection(self.call(inputs, self.masks)))
                    weight.assign(points[name])
            slope, expected = (
                (float(values[0]) - float(values[1])) / 2e-5,
                float(np.sum(gradient * direction)),
            )
            assert abs(slope - expected) <= 1e-6 * max(1.0, abs(slope)), (
                f"{name}: gradient {expected}, slope {slope}"
            )

    def keras_file(self):
        model = self.layer
        if not self.is_model:
            symbolic = [
                {
                    name: keras.Input(
                        (*[None] * (axis := time_axis(a)), *a.shape[axis + 1 :]), dtype=str(a.dtype)
                    )
                    for name, a in arrays.items()
                }
                for arrays, time_axis in ((self.inputs, _time_axis), (self.masks, lambda m: m.ndim - 1))
            ]
            outputs = self.call(*symbolic)
            for output, expected in zip(outputs, self.expected, strict=True):
                assert (output.dtype, len(output.shape)) == (str(expected.dtype), expected.ndim), (
                    "symbolic output"
                )
            model = keras.Model(symbolic, outputs)
            inputs = [self.inputs, self.masks]
        else:
            inputs = self.inputs
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.keras"
            model.save(path)
            loaded = keras.models.load_model(path)
        outputs = [_numpy(output) for output in keras.tree.flatten(loaded(inputs))]
        _assert_close(outputs, self.expected, "a .keras file gives the same model back", tolerance=1e-6)
        for weight, saved in zip(self.layer.weights, loaded.weights, strict=True):
            np.testing.assert_array_equal(_numpy(saved), _numpy(weight), err_msg=f"{weight.path} is saved")
            assert saved.trainable == weight.trainable, f"trainable of {weight.path} is saved"


# Configuration.

_REQUIRED = inspect.Parameter.empty


def _parameters(layer_class):
    """Name and default of each argument of `__init__` but self and the keywords of the base class."""
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
    assert (again.name, again.dtype_policy.name, again.trainable) == tuple(base.values()), (
        "base arguments too"
    )
    for name in parameters:
        assert hasattr(again, name), f"the layer has an attribute `{name}`"


# Arrays.


def _is_ids(array):
    return np.issubdtype(array.dtype, np.integer)


def _time_axis(array):
    return array.ndim - 1 if _is_ids(array) else array.ndim - 2


def _shapes(shapes):
    """A list of tuples, from what compute_output_shape returns."""
    shapes = shapes if isinstance(shapes[0], (tuple, list)) else [shapes]
    return [tuple(shape) for shape in shapes]


def _numpy(tensor):
    """numpy has no bfloat16."""
    tensor = keras.ops.convert_to_tensor(tensor)
    half = keras.backend.standardize_dtype(tensor.dtype) in ("float16", "bfloat16")
    return np.array(keras.ops.convert_to_numpy(keras.ops.cast(tensor, "float32") if half else tensor))


def _randomize(layer):
    """Initial zeros and ones would hide faults. Statistics (weights without training) stay positive."""
    random = np.random.default_rng(7)
    for weight in layer.weights:
        low, high = (-1, 1) if weight.trainable else (0.5, 1.5)
        weight.assign(random.uniform(low, high, weight.shape))


def _assert_close(outputs, expected, promise, tolerance=TOLERANCE):
    for output, wanted in zip(outputs, expected, strict=True):
        assert output.shape == wanted.shape, f"{promise}: shape {output.shape}, not {wanted.shape}"
        scale = max(1.0, float(np.abs(wanted).max(initial=0)))
        difference = float(np.abs(output - wanted).max(initial=0))
        assert difference <= tolerance * scale, f"{promise}: off by {difference}"
