"""A loop over time that runs one step again and again, under every backend, with gradients.

B batch, T time.
"""

import keras
from keras import ops


def time_loop(step, state, inputs, keep):
    """Applies `state = step(state, inputs at t)` along axis 1, from left to right.

    For recurrences that are not linear; those that are have a faster form in `linear_recurrence`.

    Args:
        step: function of (states, inputs), two lists of `[B, ...]`, to the list of the next states, which keep
            their shapes and dtypes.
        state: list of initial states.
        inputs: list of `[B, T, ...]`; T may be 0 or unknown.
        keep: which states, by number, are wanted of every step.

    Returns:
        List of the kept states over time, each `[B, T, ...]`, and the list of final states.
    """
    if keras.backend.backend() == "tensorflow":
        return _looped(step, list(state), inputs, keep)

    def kept_step(state, at_t):
        state = step(state, at_t)
        return state, [state[number] for number in keep]

    state, kept = ops.scan(kept_step, list(state), [ops.moveaxis(x, 1, 0) for x in inputs])
    return [ops.moveaxis(x, 0, 1) for x in kept], state


def _looped(step, state, inputs, keep):
    import tensorflow as tf

    time = tf.shape(inputs[0])[1]
    # Arrays of time steps: a slice of a whole tensor in each step would have a gradient as large as the tensor.
    arrays = [tf.TensorArray(x.dtype, size=time).unstack(tf.transpose(x, _swapped(x))) for x in inputs]
    # The state before the first step is kept beside the others, so that length 0 has something to stack.
    kept = [
        tf.TensorArray(state[number].dtype, size=time + 1, element_shape=state[number].shape).write(0, state[number])
        for number in keep
    ]

    def body(t, state, kept):
        state = step(state, [array.read(t) for array in arrays])
        return t + 1, state, [array.write(t + 1, state[n]) for array, n in zip(kept, keep, strict=True)]

    _, state, kept = tf.while_loop(lambda t, *_: t < time, body, (0, state, kept), maximum_iterations=time)
    return [tf.transpose(x, _swapped(x)) for x in (array.stack()[1:] for array in kept)], state


def _swapped(x):
    return [1, 0, *range(2, len(x.shape))]
