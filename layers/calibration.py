"""Calibration: a curve, fitted elsewhere, that turns a score into a value on another scale."""

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class Calibration(keras.layers.Layer):
    """Reads a score off a curve of equally spaced points, with straight lines between them.

        t = clip((x - low) / (high - low), 0, 1) * (num_points - 1),    i = floor(t)
        y = curve_i + (t - i) * (curve_{i+1} - curve_i)

    Use it to serve scores on the scale of the labels when a regression was fitted to a model's scores after
    training, as MaLSTM does (Mueller and Thyagarajan 2016, a local-linear regression). A score outside of the
    fitted range gets the value at its end.

    The curve is made of weights that are not trained, saved and exported like any other: the straight line from
    (0, 0) to (1, 1) until `set_curve(low, high, curve)`.

    Args:
        num_points: points of the curve, at least 2.

    Input shape:
        Any.

    Output shape:
        The same; float32 whatever the policy, unless `dtype` is given.

    Raises:
        ValueError: for fewer than 2 points, a curve of another length, or a `high` that is not above `low`.

    Example:
        >>> calibration = Calibration(num_points=3)
        >>> calibration.set_curve(0.0, 1.0, [1.0, 2.0, 5.0])
        >>> calibration(np.array([-1.0, 0.25, 0.75, 1.0])).numpy()
        array([1. , 1.5, 3.5, 5. ], dtype=float32)
    """

    def __init__(self, num_points, **kwargs):
        if not isinstance(num_points, int) or num_points < 2:
            raise ValueError(f"`num_points` must be an integer of at least 2. Received: num_points={num_points!r}")
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.num_points = num_points

    def build(self, input_shape):
        def constant(name, shape, initial):
            return self.add_weight(
                name=name, shape=shape, initializer=initial, trainable=False, dtype="float32", autocast=False
            )

        self.low = constant("low", (), "zeros")
        self.high = constant("high", (), "ones")
        self.curve = constant("curve", (self.num_points,), _line)

    def set_curve(self, low, high, curve):
        if not self.built:
            self.build(None)
            self.built = True
        if np.shape(curve) != (self.num_points,):
            raise ValueError(f"`curve` must have {self.num_points} points. Received: curve.shape={np.shape(curve)}")
        if not low < high:
            raise ValueError(f"`low` must be below `high`. Received: low={low!r}, high={high!r}")
        self.low.assign(low)
        self.high.assign(high)
        self.curve.assign(np.asarray(curve, "float32"))

    def call(self, inputs):
        low, high, curve = (ops.cast(weight, inputs.dtype) for weight in (self.low, self.high, self.curve))
        last = self.num_points - 1
        place = ops.clip((inputs - low) / (high - low), 0, 1) * last
        left = ops.minimum(ops.cast(place, "int32"), last - 1)
        before, after = ops.take(curve, left), ops.take(curve, left + 1)
        return before + (place - ops.cast(left, place.dtype)) * (after - before)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"num_points": self.num_points}


def _line(shape, dtype=None):
    return ops.cast(ops.linspace(0.0, 1.0, shape[0]), dtype)
