"""The linear recurrence c_t = f_t * c_{t-1} + (1 - f_t) * z_t, with a gradient written by hand.

Loops are fastest on a CPU, the scan on a GPU. B batch, T time, d size.
"""

import keras
from keras import ops

from layers.time_steps import time_loop


def linear_recurrence(forget, update, initial=None, implementation="auto"):
    """All states of c_t = f_t * c_{t-1} + (1 - f_t) * z_t along axis 1.

    The recurrence and its gradient run in float32 under half precision (float64 stays float64), because a
    forget gate near 1 loses its distance from 1 otherwise; the result has the dtype of `update`.

    Args:
        forget: f, `[B, T, d]`, in [0, 1]. 1 copies the state, which is how a step is masked.
        update: z, `[B, T, d]`.
        initial: c_0, `[B, d]`; zeros if None.
        implementation: `"sequential"` steps through time, `"scan"` is the associative scan and needs a static T,
            `"auto"` is the scan where `prefers_scan` says so.

    Returns:
        c, `[B, T, d]`.

    Raises:
        ValueError: if `implementation` is none of these, or if `"scan"` meets an unknown T.
    """
    if implementation not in ("auto", "sequential", "scan"):
        raise ValueError(
            f"`implementation` must be 'auto', 'sequential' or 'scan'. Received: implementation={implementation!r}"
        )
    time = update.shape[1]
    if implementation == "scan" and time is None:
        raise ValueError(
            "implementation='scan' needs a static length: pad to a fixed length or use 'sequential'. "
            f"Received: update.shape={tuple(update.shape)}"
        )
    if time == 0:
        return ops.cast(forget, update.dtype) * update  # as empty, and with gradients
    solve = (
        _associative_scan if implementation == "scan" or (implementation == "auto" and prefers_scan()) else _stepwise
    )
    dtype = "float64" if keras.backend.standardize_dtype(update.dtype) == "float64" else "float32"
    f, z = ops.cast(forget, dtype), ops.cast(update, dtype)
    c_0 = ops.zeros_like(ops.sum(z[:, :1], axis=1)) if initial is None else ops.cast(initial, dtype)

    # Defined here, and never passed on: TensorFlow unwraps a custom gradient given to a tf.function.
    @ops.custom_gradient
    def states(f, z, c_0):
        c = solve(f, (1 - f) * z, c_0)

        def gradient(*args, upstream=None):
            # g_t = upstream_t + f_{t+1} * g_{t+1}: the same recurrence, backwards in time.
            upstream = args[0] if upstream is None else upstream
            next_f = ops.concatenate([f[:, 1:], ops.zeros_like(f[:, :1])], axis=1)
            g = solve(next_f, upstream, ops.zeros_like(c_0), reverse=True)
            previous_c = ops.concatenate([ops.expand_dims(c_0, 1), c[:, :-1]], axis=1)
            # Sums over one step, not an index: a length that turns out to be 0 has no first step.
            return g * (previous_c - z), g * (1 - f), ops.sum(g[:, :1] * f[:, :1], axis=1)

        return c, gradient

    return ops.cast(states(f, z, c_0), update.dtype)


def prefers_scan():
    """Whether the associative scan is faster: under JAX on a GPU or TPU; on a CPU it is several times slower."""
    if keras.backend.backend() != "jax":
        return False
    import jax

    return jax.default_backend() in ("gpu", "tpu")


# Each solves x_t = a_t * x_{t-1} + b_t (or x_{t+1} in reverse) for all t: [B, T, d], [B, T, d], [B, d].


def _stepwise(a, b, x, reverse=False):
    def step(state, at_t):
        x = at_t[0] * state[0] + at_t[1]
        return [x], [x]

    (states,), _ = time_loop(step, [x], [ops.moveaxis(y, 1, 0) for y in (a, b)], reverse=reverse)
    return ops.moveaxis(states, 0, 1)


def _associative_scan(a, b, x, reverse=False):
    def compose(earlier, later):
        return later[0] * earlier[0], later[0] * earlier[1] + later[1]

    decay, inflow = ops.associative_scan(compose, (a, b), reverse=reverse, axis=1)
    # Inside a tf.function Keras loses the rank of the result.
    decay, inflow = (ops.reshape(y, ops.shape(b)) for y in (decay, inflow))
    return decay * ops.expand_dims(x, 1) + inflow
