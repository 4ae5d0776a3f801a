"""Seconds of a training step of group, global and local self-attention at several lengths.

    python -m tests.benchmarks.self_attention [--lengths 50 200 800 3200] [--tokens 6400]

The batch holds the same number of tokens at each length, so what is linear in length stays level. ``im2col`` is local
attention as the paper describes it: every word's window is copied out. Figures are seconds of CPU time, which other
processes on the machine do not add to, of one step with all gradients; the least of several.
"""

import argparse
import time

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from layers.group_self_attention import GroupSelfAttention
from layers.masking import masked_softmax


class Im2ColAttention(GroupSelfAttention):
    """Local attention that gathers the window of each word, as a convolution by im2col does."""

    def call(self, inputs, mask=None):
        (batch, time), reach, size = ops.shape(inputs)[:2], self.group_size // 2, inputs.shape[-1]
        heads = (self.num_heads, size // self.num_heads)
        q, k, v = ops.split(ops.matmul(inputs, self.kernel), 3, axis=-1)
        window = ops.arange(time)[:, None] + ops.arange(2 * reach + 1)

        def windows(x):
            padded = ops.pad(x, [[0, 0], [reach, reach], [0, 0]])
            return ops.reshape(ops.take(padded, window, axis=1), (batch, time, 2 * reach + 1, *heads))

        q = ops.reshape(q, (batch, time, *heads)) * heads[1] ** -0.5
        real = ops.take(ops.pad(mask, [[0, 0], [reach, reach]]), window, axis=1)
        weights = masked_softmax(ops.einsum("bthd,btwhd->bthw", q, windows(k)), real[:, :, None])
        attended = ops.reshape(ops.einsum("bthw,btwhd->bthd", weights, windows(v)), (batch, time, size))
        return ops.matmul(attended, self.output_kernel)


FORMS = {
    "group": lambda: GroupSelfAttention(6, 10, (0, 0, 0, 5, 5, 5)),
    "local": lambda: GroupSelfAttention(6, 10, window=True),
    "im2col": lambda: Im2ColAttention(6, 10, window=True),
    "global": lambda: GroupSelfAttention(6, None),
}


def step_of(form, batch, length, size):
    """A function that runs one forward and backward pass."""
    keras.utils.set_random_seed(1)
    layer = FORMS[form]()
    x = tf.constant(np.random.default_rng(0).normal(size=(batch, length, size)).astype("float32"))
    mask = tf.ones((batch, length), tf.bool)
    layer(x[:1, :50], mask=mask[:1, :50])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x, mask=mask))
        return tape.gradient(loss, [x, *(weight.value for weight in layer.trainable_weights)])

    return step


def main(arguments=None):
    """Prints one row per form."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.self_attention", description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[50, 200, 800, 3200])
    parser.add_argument("--tokens", type=int, default=6400)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--repeat", type=int, default=5)
    flags = parser.parse_args(arguments)
    print("form      " + "".join(f"{f'L={length}':>10}" for length in flags.lengths))
    for form in FORMS:
        row = []
        for length in flags.lengths:
            step = step_of(form, max(1, flags.tokens // length), length, flags.size)
            step()
            seconds = []
            for _ in range(flags.repeat):
                before = time.process_time()
                step()
                seconds.append(time.process_time() - before)
            row.append(min(seconds))
        print(f"{form:10}" + "".join(f"{second:10.3f}" for second in row), flush=True)


if __name__ == "__main__":
    main()
