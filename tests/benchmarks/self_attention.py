"""Group, global and local self-attention at several lengths, and Keras' and torch's attention of all to all.

25,600 words at each length, 300 numbers each, six heads, groups of ten in two offsets, so that what is linear in length
stays level. ``im2col`` is local attention as the paper describes it: every word's window is copied out.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from layers.group_self_attention import GroupSelfAttention
from layers.masking import masked_softmax
from tests.benchmarks.measure import Contestant

LENGTHS, TOKENS, SIZE, HEADS = (50, 200, 800, 3200), 25_600, 300, 6
BASES = ["Keras global", "local, im2col"]


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
    "Keras global": lambda: keras.layers.MultiHeadAttention(HEADS, SIZE // HEADS, use_bias=False),
    "group": lambda: GroupSelfAttention(HEADS, 10, (0, 0, 0, 5, 5, 5)),
    "local": lambda: GroupSelfAttention(HEADS, 10, window=True),
    "local, im2col": lambda: Im2ColAttention(HEADS, 10, window=True),
    "global": lambda: GroupSelfAttention(HEADS, None),
}


def families(data):
    """Title to contestants and the names of the bases."""
    return {
        f"self-attention, L {length}, {'training' if training else 'inference'}": (
            [
                Contestant(name, torch_layer if name == "torch global" else layer, settings)
                for name in (*FORMS, "torch global")
                for settings in [{"name": name, "length": length, "training": training}]
            ],
            BASES,
        )
        for length in LENGTHS
        for training in (True, False)
    }


def _inputs(length):
    return np.random.default_rng(0).normal(size=(TOKENS // length, length, SIZE)).astype("float32")


def layer(name, length, training):
    """Forward, and with ``training`` all gradients, those of the inputs too."""
    attention, x = FORMS[name](), tf.constant(_inputs(length))
    # Variables are made outside of the trace, and nothing is computed yet, whose memory the steps could use again.
    attention.build(*[x.shape] * (2 if "Keras" in name else 1))
    mask = tf.ones(x.shape[:2], tf.bool)

    def attend():
        return attention(x, x, query_mask=mask) if "Keras" in name else attention(x, mask=mask)

    @tf.function
    def step():
        if not training:
            return tf.reduce_sum(attend())
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(attend()))
        gradients = tape.gradient(loss, [x, *(weight.value for weight in attention.trainable_weights)])
        return sum(tf.reduce_sum(gradient) for gradient in gradients)

    return lambda: step().numpy()


def torch_layer(name, length, training):
    """Torch's attention of all to all."""
    import torch

    attention = torch.nn.MultiheadAttention(SIZE, HEADS, bias=False, batch_first=True)
    x = torch.from_numpy(_inputs(length)).requires_grad_(training)

    def train():
        attention.zero_grad()
        attention(x, x, x, need_weights=False)[0].square().sum().backward()

    def infer():
        with torch.inference_mode():
            return attention(x, x, x, need_weights=False)[0]

    return train if training else infer
