"""The real steps of a batch of texts, in the order in which a recurrence reads them.

B texts, T time, N real steps of all texts, ``...`` any further axes. The one module that knows how a recurrence is run
under each backend.
"""

import keras
from keras import ops

# The longest length that TensorFlow unrolls. Beyond it the graph grows (and XLA on a CPU collapses), while the loop
# costs 1.2 to 1.4 times the unrolled steps, a few percent of a training step.
MAX_UNROLLED = 128


def time_steps(mask):
    """The steps of texts whose real words are where `mask`, `[B, T]`, is True; the others are never met.

    Under TensorFlow they are packed: step by step the words of those texts alone that are so long, so that nothing is
    computed at padding. Where shapes must be known beforehand, under JAX and XLA, they are whole columns, and at a step
    that is not real the states stay as they are.

    Returns:
        An object with five functions. `of(x)` gives ``[B, T, ...]`` step by step, `texts(x)` gives that back as
        ``[B, T, ...]``, zero where not real. `rows()` is where each word stands step by step, ``[B, T]``.
        `loop(step, state, inputs, reverse)` applies ``state, outputs = step(state, inputs of a step)``:

            step: function of (states, inputs), two lists of arrays with one row per text that is met, to the list of
                the next states, of the same shapes and dtypes, and the list of what else is wanted of the step.
            state: list of initial states, ``[B, ...]``.
            inputs: list of arrays step by step, or of outputs of another loop.
            reverse: whether it runs from the last step to the first.

        and returns the list of outputs and that of the final states, ``[B, ...]``. `whole(x)` is such an output as an
        array step by step; what only another loop reads is never put together.
    """
    mask = ops.cast(mask, "bool")
    return _Packed(mask) if may_pack() else _Columns(mask)


def for_each(x, num):
    """`[B, T]` for each of a list of `num`: `[B * num, T]`; B and `num` may be 0."""
    batch, time = ops.shape(x)
    return ops.reshape(ops.broadcast_to(ops.expand_dims(x, 1), (batch, num, time)), (batch * num, time))


def steps_from(x, start, number):
    """`x[:, start : start + number]`; TensorFlow pads the gradient, which takes less than that of a strided slice."""
    rest = ops.shape(x)[2:]
    return ops.slice(x, (0, start, *[0] * len(rest)), (ops.shape(x)[0], number, *rest))


def may_pack():
    """Whether sizes may depend on what a batch holds: under TensorFlow, but not in what XLA compiles."""
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    return not control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


class _Columns:
    """All texts at every step: arrays are ``[T, B, ...]``."""

    def __init__(self, mask):
        self.num_texts = ops.shape(mask)[0]
        self.real = ops.swapaxes(mask, 0, 1)

    def of(self, x):
        return ops.swapaxes(x, 0, 1)

    def texts(self, x):
        return ops.swapaxes(self._real(x), 0, 1)

    def rows(self):
        time, texts = ops.shape(self.real)
        return ops.expand_dims(ops.arange(texts, dtype="int32"), 1) + texts * ops.arange(time, dtype="int32")

    def loop(self, step, state, inputs, reverse=False):
        def masked(state, at_t):
            *at_t, real = at_t
            after, outputs = step(state, at_t)
            return [ops.where(real, new, old) for new, old in zip(after, state, strict=True)], outputs

        outputs, final = time_loop(masked, state, [*inputs, ops.expand_dims(self.real, -1)], reverse)
        return [self._real(x) for x in outputs], final

    def whole(self, x):
        return x

    def _real(self, x):
        return ops.where(ops.expand_dims(self.real, -1), x, ops.zeros_like(x))


class _Packed:
    """At each step the texts that are so long, longest first: arrays are ``[N, ...]``."""

    def __init__(self, mask):
        import tensorflow as tf

        mask = tf.convert_to_tensor(mask)
        place = tf.cumsum(tf.cast(mask, tf.int32), axis=1) - 1  # which real word of its text each word is
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
        self.order = tf.ensure_shape(tf.argsort(lengths, direction="DESCENDING", stable=True), lengths.shape)
        self.inverse = tf.ensure_shape(tf.argsort(self.order), lengths.shape)
        self.num_texts, self.num_steps = tf.shape(mask)[0], mask.shape[1]
        self.counts = tf.reduce_sum(tf.cast(lengths > tf.range(tf.shape(mask)[1])[:, None], tf.int32), axis=1)
        first = tf.cumsum(self.counts, exclusive=True)
        total = tf.reduce_sum(lengths)
        rows = tf.gather(first, tf.maximum(place, 0)) + self.inverse[:, None]
        self._rows = tf.where(mask, rows, total)  # that of padding is one of zeros behind all others
        positions = tf.where(tf.reshape(mask, [-1]))[:, 0]
        real_rows = tf.gather(tf.reshape(rows, [-1]), positions)
        self.positions = tf.scatter_nd(real_rows[:, None], tf.cast(positions, tf.int32), [total])

    def of(self, x):
        import tensorflow as tf

        return tf.gather(tf.reshape(x, [-1, *x.shape[2:]]), self.positions)

    def texts(self, x):
        import tensorflow as tf

        @tf.custom_gradient
        def texts(x):
            whole = tf.gather(tf.pad(x, [[0, 1], *[[0, 0]] * (len(x.shape) - 1)]), self._rows)
            # Each row has one place: a gather in either direction.
            return whole, lambda upstream: self.of(tf.ensure_shape(upstream, whole.shape))

        return texts(x)

    def rows(self):
        return self._rows

    def loop(self, step, state, inputs, reverse=False):
        import tensorflow as tf

        initial = [tf.gather(x, self.order) for x in state]
        unrolled = self.num_steps and self.num_steps <= MAX_UNROLLED
        outputs, final = (self._unrolled if unrolled else self._looped)(step, initial, inputs, reverse)
        return outputs, [tf.gather(x, self.inverse) for x in final]

    def whole(self, x):
        import tensorflow as tf

        return tf.concat(x, 0) if isinstance(x, list) else x

    # Forwards, texts leave when they end, and their states are their final ones; backwards, they join.

    def _unrolled(self, step, initial, inputs, reverse):
        import tensorflow as tf

        counts = tf.unstack(self.counts, num=self.num_steps)
        steps = list(zip(*(x if isinstance(x, list) else tf.split(x, counts) for x in inputs), strict=True))
        state, met, left, outputs = _no_rows(initial) if reverse else initial, 0, [], []
        for t in reversed(range(self.num_steps)) if reverse else range(self.num_steps):
            if reverse:
                state = _joined(state, initial, met, counts[t])
            else:
                left.append([x[counts[t] :] for x in state])
                state = [x[: counts[t]] for x in state]
            met = counts[t]
            state, of_step = step(state, list(steps[t]))
            outputs.append(of_step)
        rest = [[x[met:] for x in initial]] if reverse else left[::-1]
        over_time = zip(*(outputs[::-1] if reverse else outputs), strict=True)
        return [list(x) for x in over_time], [tf.concat(x, 0) for x in zip(state, *rest, strict=True)]

    def _looped(self, step, initial, inputs, reverse):
        import tensorflow as tf

        # One step more, that no text has: without any there would be nothing to split or to put together.
        counts = tf.pad(self.counts, [[0, 1]])
        time = tf.size(counts)

        def arrays(like, size):
            return [tf.TensorArray(x.dtype, size, infer_shape=False, element_shape=[None, *x.shape[1:]]) for x in like]

        steps = [array.split(x, counts) for array, x in zip(arrays(inputs, time), inputs, strict=True)]
        _, example = step(_no_rows(initial), _no_rows(inputs))  # for shapes and dtypes alone

        def body(number, met, state, outputs, left):
            t = time - 1 - number if reverse else number
            if reverse:
                state = _joined(state, initial, met, counts[t])
            else:
                left = [tails.write(time - t, x[counts[t] :]) for tails, x in zip(left, state, strict=True)]
                state = [x[: counts[t]] for x in state]
            state, of_step = step(state, [x.read(t) for x in steps])
            outputs = [over_time.write(t, x) for over_time, x in zip(outputs, of_step, strict=True)]
            return number + 1, counts[t], state, outputs, left

        variables = (_no_rows(initial) if reverse else initial, arrays(example, time), arrays(initial, time + 1))
        shapes = [tf.TensorShape([None, *x.shape[1:]]) for x in initial]
        array_shapes = [[tf.TensorShape(None)] * len(x) for x in variables[1:]]
        _, met, state, outputs, left = tf.while_loop(
            lambda number, *_: number < time,
            body,
            (0, 0, *variables),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([]), shapes, *array_shapes),
            maximum_iterations=time,
        )
        if reverse:
            final = _joined(state, initial, met, None)
        else:
            final = [tails.write(0, x).concat() for tails, x in zip(left, state, strict=True)]
        return [over_time.concat() for over_time in outputs], final


def _no_rows(arrays):
    return [x[:0] for x in arrays]


def _joined(state, initial, met, count):
    return [ops.concatenate([x, first[met:count]], axis=0) for x, first in zip(state, initial, strict=True)]


def time_loop(step, state, inputs, reverse=False):
    """The loop of `time_steps` over columns that are real throughout, inputs `[T, B, ...]`; T may be 0 or unknown."""
    if keras.backend.backend() == "tensorflow":
        return _looped(step, list(state), inputs, reverse)
    state, outputs = ops.scan(step, list(state), list(inputs), reverse=reverse)
    return outputs, state


def _looped(step, state, inputs, reverse):
    import tensorflow as tf

    time = tf.shape(inputs[0])[0]
    # Arrays of time steps: a slice of a whole tensor in each step would have a gradient as large as the tensor.
    steps = [tf.TensorArray(x.dtype, size=time).unstack(x) for x in inputs]
    # A step of zeros is kept behind the last one, so that length 0 has something to stack.
    _, example = step(state, [_first_of(x) for x in inputs])
    outputs = [
        tf.TensorArray(x.dtype, size=time + 1, element_shape=x.shape).write(time, tf.zeros_like(x)) for x in example
    ]

    def body(number, state, outputs):
        t = time - 1 - number if reverse else number
        state, of_step = step(state, [array.read(t) for array in steps])
        return number + 1, state, [array.write(t, x) for array, x in zip(outputs, of_step, strict=True)]

    _, state, outputs = tf.while_loop(
        lambda number, *_: number < time, body, (0, state, outputs), maximum_iterations=time
    )
    static = inputs[0].shape[0]
    return [
        tf.ensure_shape(x.stack()[:time], [static, *like.shape]) for x, like in zip(outputs, example, strict=True)
    ], state


def _first_of(x):
    """Zeros in the shape of one step of `[T, ...]`."""
    import tensorflow as tf

    return tf.ensure_shape(tf.zeros(tf.shape(x)[1:], x.dtype), x.shape[1:])
