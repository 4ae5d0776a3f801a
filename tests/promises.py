"""What every layer and model promises, one method each; `tests.checks` says who is held to which.

Arrays are named as the arguments of `call`: vectors (floats) `[..., T, m]`, ids (integers) `[..., T]`, of which 0
is padding, and masks (bools) `[..., T]`: `x_mask` masks `x`, `mask` the only vectors. Before time stand the batch
and, where there is one, the list of candidates.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

TOLERANCE = 1e-5
# How far a policy may be from float32, as a share of the largest output.
POLICIES = {"float32": 1e-6, "float64": 1e-5, "mixed_float16": 2e-2, "mixed_bfloat16": 1e-1}


class Promises:
    """A built layer or model, arrays to call it with, and what it makes of them."""

    def __init__(self, layer, arrays):
        self.layer, self.arrays = layer, dict(arrays)
        self.is_model = isinstance(layer, keras.Model)
        self.inputs = [name for name, array in arrays.items() if array.dtype != bool]
        self.vectors = [name for name in self.inputs if np.issubdtype(arrays[name].dtype, np.floating)]
        self.expected = self.run(arrays)
        assert all(np.isfinite(output).all() for output in self.expected), "outputs are finite"

    def call(self, arrays):
        return keras.tree.flatten(self.layer(dict(arrays)) if self.is_model else self.layer(**arrays))

    def run(self, arrays):
        return [to_numpy(output) for output in self.call(arrays)]

    def select(self, rows):
        return {name: array[rows] for name, array in self.arrays.items()}

    # Padding.

    def mask_of(self, name):
        """The name of the array that says where `name` is real: the ids themselves, a mask, or None."""
        names = (f"{name}_mask", "mask") if name in self.vectors else (name,)
        return next((mask for mask in names if mask in self.arrays), None)

    def padded(self, name, time=0, rows=0):
        """The arrays, with padding appended to one of them: `time` positions, `rows` candidates.

        Further fields of the candidates are as long a list.
        """
        arrays, mask = dict(self.arrays), self.mask_of(name)
        fields = [x for x in self.inputs if rows and x != name and x not in self.vectors and arrays[x].ndim == 3]
        arrays |= {field: np.pad(arrays[field], [(0, 0), (0, rows), (0, 0)]) for field in fields}
        widths = [(0, 0)] * (arrays[mask].ndim - 1) + [(0, time)]
        widths[1] = (0, rows or time if arrays[mask].ndim == 2 else rows)
        if mask != name:
            arrays[name] = np.pad(arrays[name], [*widths, (0, 0)], constant_values=9)
        arrays[mask] = np.pad(arrays[mask], widths)
        return arrays

    def emptied(self, names):
        """The arrays, with nothing but padding in those of `names`."""
        masks = [self.mask_of(name) for name in names]
        return self.arrays | {mask: np.zeros_like(self.arrays[mask]) for mask in masks}

    def ignores_padding(self, zero_outputs):
        """Padding changes nothing: neither what stands there, nor its length, nor empty rows of a list."""
        for name in filter(self.mask_of, self.inputs):
            real = self.arrays[self.mask_of(name)] != 0
            assert not real.all(), f"some of {name} is padding"
            if name in self.vectors:
                other = np.where(real[..., None], self.arrays[name], -7).astype(self.arrays[name].dtype)
                promise = f"what stands at padding of {name} changes nothing"
                assert_close(self.run(self.arrays | {name: other}), self.expected, promise)
            outputs = self.run(self.padded(name, time=3))
            cropped = [o[tuple(map(slice, e.shape))] for o, e in zip(outputs, self.expected, strict=True)]
            assert_close(cropped, self.expected, f"padding appended to {name} changes nothing")
            for output, crop in zip(outputs, cropped, strict=True):
                crop[...] = 0  # a view
                assert not zero_outputs or not output.any(), "outputs at padding are zero"
            if real.ndim == 3:
                outputs = self.run(self.padded(name, rows=2))
                cropped = [o[:, : e.shape[1]] for o, e in zip(outputs, self.expected, strict=True)]
                assert_close(cropped, self.expected, f"empty rows of the list {name} change nothing")
                assert all(np.isfinite(o).all() for o in outputs), "outputs of empty rows are finite"

    def is_finite_without_tokens(self):
        names = list(filter(self.mask_of, self.inputs))
        for emptied in [*([name] for name in names), names]:
            arrays = self.emptied(emptied)
            assert all(np.isfinite(o).all() for o in self.run(arrays)), f"finite if {emptied} is empty"
            gradients = self.gradients_of(arrays).values()
            assert all(np.isfinite(g).all() for g in gradients), f"finite gradients if {emptied} is empty"

    # Rows and shapes.

    def keeps_rows_apart(self, empty_batch=True):
        num = len(self.expected[0])
        assert num >= 3, "three rows or more"
        order = np.random.default_rng(0).permutation(num)
        for rows in [order, *(slice(i, i + 1) for i in range(num)), *([slice(0, 0)] if empty_batch else [])]:
            promise = f"rows do not see each other: {rows} of {num}"
            assert_close(self.run(self.select(rows)), [e[rows] for e in self.expected], promise)

    def knows_its_output_shape(self):
        real = [output.shape for output in self.expected]
        shapes = self.layer.compute_output_shape(*(self.arrays[name].shape for name in self.inputs))
        assert _tuples(shapes) == real, f"compute_output_shape is right: {shapes} is {real}"
        shapes = self.layer.compute_output_shape(*(unknown(self.arrays[name]) for name in self.inputs))
        for shape, known in zip(_tuples(shapes), real, strict=True):
            fits = len(shape) == len(known) and all(s in (None, k) for s, k in zip(shape, known, strict=True))
            assert fits, f"compute_output_shape is right for unknown sizes: {shape} is {known}"

    def takes_unknown_sizes(self):
        """One graph for all sizes, with and without XLA, gives what eager execution gives."""
        specs = {name: tf.TensorSpec(unknown(array), array.dtype) for name, array in self.arrays.items()}
        for jit in (False, True):
            function = tf.function(self.call, input_signature=[specs], jit_compile=jit)
            for rows in (slice(None), slice(0, 1)):
                outputs = [to_numpy(output) for output in function(self.select(rows))]
                promise = f"a graph of unknown sizes, jit_compile={jit}, is right"
                assert_close(outputs, [e[rows] for e in self.expected], promise)

    # Gradients.

    def projection(self, outputs):
        """A loss: random weights, so that no gradient cancels."""
        random = np.random.default_rng(3)
        return sum(tf.reduce_sum(o * tf.cast(random.normal(size=o.shape), o.dtype)) for o in outputs)

    def gradients_of(self, arrays, wanted=()):
        """Path of each trainable weight, and name of each array `wanted` -> gradient of the loss."""
        arrays = {name: tf.constant(array) for name, array in arrays.items()}
        sources = {weight.path: weight.value for weight in self.layer.trainable_weights}
        sources |= {name: arrays[name] for name in wanted}
        with tf.GradientTape() as tape:
            tape.watch([arrays[name] for name in wanted])
            loss = self.projection(self.call(arrays))
        gradients = tape.gradient(loss, sources)
        missing = [name for name, gradient in gradients.items() if gradient is None]
        assert not missing, f"every weight has a gradient, but not {missing}"
        return {name: to_numpy(gradient) for name, gradient in gradients.items()}

    def has_gradients(self):
        gradients = self.gradients_of(self.arrays, self.vectors)
        for name, gradient in gradients.items():
            assert np.isfinite(gradient).all(), f"the gradient of {name} is finite"
            assert gradient.any(), f"the gradient of {name} is not zero throughout"
        for name in filter(self.mask_of, self.vectors):
            padding = gradients[name][~self.arrays[self.mask_of(name)]]
            assert not padding.any(), f"{name} has no gradient at padding"

    def has_gradients_that_are_slopes(self):
        """Each gradient, along a random direction, is a difference quotient; in float64."""
        random, step = np.random.default_rng(5), 1e-5
        arrays = self.arrays | {name: self.arrays[name].astype("float64") for name in self.vectors}
        weights = {weight.path: weight for weight in self.layer.trainable_weights}

        def loss_at(name, value):
            if name not in weights:
                return float(self.projection(self.call(arrays | {name: value})))
            before = to_numpy(weights[name])
            weights[name].assign(value)
            loss = float(self.projection(self.call(arrays)))
            weights[name].assign(before)
            return loss

        for name, gradient in self.gradients_of(arrays, self.vectors).items():
            point = to_numpy(weights[name]) if name in weights else arrays[name]
            move = step * random.normal(size=point.shape)
            slope = (loss_at(name, point + move) - loss_at(name, point - move)) / (2 * step)
            expected = float(np.sum(gradient * move)) / step
            assert abs(slope - expected) <= 1e-6 * max(1, abs(slope)), f"{name}: {expected}, slope {slope}"

    # Policies and files.

    def is_the_same_under(self, policy, other, compute_dtype):
        """`other`, the same thing under another policy, gives the same up to its precision."""
        other(self.arrays) if self.is_model else other(**self.arrays)
        for weight, original in zip(other.weights, self.layer.weights, strict=True):
            weight.assign(to_numpy(original))
        promises = Promises(other, self.arrays)
        dtypes = {keras.backend.standardize_dtype(output.dtype) for output in promises.call(self.arrays)}
        assert dtypes == {compute_dtype}, f"outputs under {policy} are {compute_dtype}, not {dtypes}"
        for output, expected in zip(promises.expected, self.expected, strict=True):
            difference = np.abs(output - expected).max() / max(np.abs(expected).max(), 1e-3)
            assert difference <= POLICIES[policy], f"{policy} is {difference} from float32"
        gradients = promises.gradients_of(self.arrays).values()
        assert all(np.isfinite(g).all() for g in gradients), f"gradients under {policy} are finite"
        return promises

    def comes_back_from_a_file(self):
        model = self.layer
        if not self.is_model:
            symbols = {
                name: keras.Input(batch_shape=unknown(a), dtype=str(a.dtype), name=name)
                for name, a in self.arrays.items()
            }
            outputs = self.call(symbols)
            for output, real in zip(outputs, self.expected, strict=True):
                assert len(output.shape) == real.ndim, f"the symbolic output {output} is like the real one"
                assert output.dtype == str(real.dtype), f"the symbolic output {output} is like the real one"
            model = keras.Model(symbols, outputs)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.keras"
            model.save(path)
            loaded = keras.models.load_model(path)
        outputs = [to_numpy(output) for output in keras.tree.flatten(loaded(self.arrays))]
        assert_close(outputs, self.expected, "a .keras file gives the same model back", tolerance=1e-6)
        for weight, saved in zip(model.weights, loaded.weights, strict=True):
            np.testing.assert_array_equal(to_numpy(saved), to_numpy(weight), f"{weight.path} comes back")
            assert saved.trainable == weight.trainable, f"{weight.path} comes back as trainable as it was"


def unknown(array):
    """The shape with batch, list and time unknown."""
    num = array.ndim - 1 if np.issubdtype(array.dtype, np.floating) else array.ndim
    return (*[None] * num, *array.shape[num:])


def to_numpy(tensor):
    """numpy has no bfloat16, and a gradient may be sparse."""
    tensor = tf.convert_to_tensor(keras.ops.convert_to_tensor(tensor))
    return np.array((tf.cast(tensor, "float32") if tensor.dtype in ("float16", "bfloat16") else tensor).numpy())


def assert_close(outputs, expected, promise, tolerance=TOLERANCE):
    for output, wanted in zip(outputs, expected, strict=True):
        assert output.shape == wanted.shape, f"{promise}: shape {output.shape}, not {wanted.shape}"
        difference = np.abs(output - wanted).max(initial=0)
        scale = max(1.0, np.abs(wanted).max(initial=0))
        assert difference <= tolerance * scale, f"{promise}: off by {difference}"


def _tuples(shapes):
    """A list of tuples, from what compute_output_shape returns."""
    return [tuple(shape) for shape in (shapes if isinstance(shapes[0], (tuple, list)) else [shapes])]
