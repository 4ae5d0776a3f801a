"""The linear recurrence c_t = f_t * c_{t-1} + (1 - f_t) * z_t, with a gradient written by hand.

The one module that picks an implementation by backend: loops are fastest on a CPU, the scan on a GPU.
B batch, T time, d size.
"""

import keras
from keras import ops

_MAX_UNROLLED = 128  # longest static length that is unrolled; beyond it the graph grows without gain
_STEPS_PER_ITERATION = 10  # of the while loop: one step each would drown in the loop's own overhead


def linear_recurrence(forget, update, initial=None, implementation="auto"):
    """All states of c_t = f_t * c_{t-1} + (1 - f_t) * z_t along axis 1.

    The recurrence and its gradient run in float32 under half precision (float64 stays float64), because a
    forget gate near 1 loses its distance from 1 otherwise; the result has the dtype of `update`.

    Arguments:
        forget: f, `[B, T, d]`, each in [0, 1]. 1 copies the state, which is how a step is masked.
        update: z, `[B, T, d]`.
        initial: c_0, `[B, d]`; zeros if None.
        implementation: `"sequential"` steps through time (unrolled, or a loop where T is unknown or long);
            `"scan"` is the associative scan, for a static T; `"auto"` takes the scan on a GPU or TPU under
            JAX and the loop otherwise.

    Returns the states, `[B, T, d]`.
    Raises ValueError if `implementation` is none of these, or if `"scan"` meets an unknown T.
    """
    if implementation not in ("auto", "sequential", "scan"):
        raise ValueError(
            "`implementation` must be 'auto', 'sequential' or 'scan'. "
            f"Received: implementation={implementation!r}"
        )
    if implementation == "scan" and forget.shape[1] is None:
        raise ValueError(
            "The associative scan needs a static length: pad to a fixed length or use 'sequential'. "
            f"Received: forget.shape={tuple(forget.shape)}"
        )
    if implementation == "auto":
        implementation = "scan" if _on_jax_accelerator() else "sequential"
    if forget.shape[1] == 0:
        return update
    out_dtype = update.dtype
    dtype = "float64" if keras.backend.standardize_dtype(out_dtype) == "float64" else "float32"
    forget, update = ops.cast(forget, dtype), ops.cast(update, dtype)
    initial = ops.zeros_like(update[:, 0]) if initial is None else ops.cast(initial, dtype)
    solve = _solve_by_scan if implementation == "scan" else _solve_by_steps

    # A closure: TensorFlow unwraps a custom gradient that is passed as an argument of a tf.function.
    @ops.custom_gradient
    def states_of(forget, update, initial):
        states = solve(forget, (1 - forget) * update, initial)

        def gradient(*args, upstream=None):
            # g_t = upstream_t + f_{t+1} g_{t+1}: the same recurrence, backwards in time.
            upstream = args[0] if upstream is None else upstream
            following = ops.concatenate([forget[:, 1:], ops.zeros_like(forget[:, :1])], axis=1)
            g = ops.flip(
                solve(ops.flip(following, 1), ops.flip(upstream, 1), ops.zeros_like(initial)), axis=1
            )
            before = ops.concatenate([ops.expand_dims(initial, 1), states[:, :-1]], axis=1)
            return (before - update) * g, (1 - forget) * g, forget[:, 0] * g[:, 0]

        return states, gradient

    return ops.cast(states_of(forget, update, initial), out_dtype)


def _solve_by_scan(decay, inflow, initial):
    inflow = ops.concatenate([inflow[:, :1] + decay[:, :1] * ops.expand_dims(initial, 1), inflow[:, 1:]], 1)

    def combine(earlier, later):
        return earlier[0] * later[0], later[0] * earlier[1] + later[1]

    return ops.associative_scan(combine, (decay, inflow), axis=1)[1]


def _solve_by_steps(decay, inflow, initial):
    if keras.backend.backend() != "tensorflow":

        def step(state, at_t):
            state = at_t[0] * state + at_t[1]
            return state, state

        xs = (ops.moveaxis(decay, 1, 0), ops.moveaxis(inflow, 1, 0))
        return ops.moveaxis(ops.scan(step, initial, xs)[1], 0, 1)
    time = decay.shape[1]
    if time is not None and time <= _MAX_UNROLLED:
        return _unrolled(decay, inflow, initial)
    return _looped(decay, inflow, initial)


def _unrolled(decay, inflow, initial):
    state, states = initial, []
    for a, b in zip(ops.unstack(decay, axis=1), ops.unstack(inflow, axis=1), strict=True):
        state = a * state + b
        states.append(state)
    return ops.stack(states, axis=1)


def _looped(decay, inflow, initial):
    import tensorflow as tf

    batch, time, size = ops.shape(inflow)
    n = _STEPS_PER_ITERATION
    # Padding at the end only: its states are cut off again.
    rest = -time % n
    chunks = (time + rest) // n

    def chunked(x):
        x = tf.pad(x, [[0, 0], [0, rest], [0, 0]])
        x = tf.transpose(tf.reshape(x, [batch, chunks, n, size]), [1, 0, 2, 3])
        return tf.TensorArray(x.dtype, size=chunks, element_shape=[None, n, x.shape[-1]]).unstack(x)

    decays, inflows = chunked(decay), chunked(inflow)

    def body(i, state, out):
        states = _unrolled(decays.read(i), inflows.read(i), state)
        return i + 1, states[:, -1], out.write(i, states)

    out = tf.TensorArray(inflow.dtype, size=chunks, element_shape=[None, n, inflow.shape[-1]])
    _, _, out = tf.while_loop(lambda i, *_: i < chunks, body, (0, initial, out))
    states = tf.reshape(tf.transpose(out.stack(), [1, 0, 2, 3]), [batch, chunks * n, size])
    return states[:, :time]


def _on_jax_accelerator():
    if keras.backend.backend() != "jax":
        return False
    import jax

    return jax.default_backend() in ("gpu", "tpu")
