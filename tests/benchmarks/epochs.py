"""What stands around a step: batches of like length, the making of ids, and Keras' loop.

Quora's questions. A step is that of a QRNN or Keras' LSTM of 256 units on 128 pairs. Batches are made beforehand, but
in the row that says otherwise, in which waiting for them is timed too.
"""

import os

import keras
import numpy as np
import tensorflow as tf

from tests.benchmarks.measure import Contestant
from tests.benchmarks.recurrent import keras_pairs, table
from tests.benchmarks.texts import VOCABULARY
from zoo import losses, optimizers
from zoo.batches import Batches
from zoo.datasets import quora
from zoo.encoded import encode_split
from zoo.fitting import STEPS_AT_ONCE
from zoo.models.qrnn import qrnn
from zoo.text import TextEncoder, build_vocabulary

PAIRS, BATCH, LONGEST = 4_096, 128, 50
QUESTIONS = 32_768
EPOCH = f"an epoch of {PAIRS:,} pairs, {BATCH} a batch"
TIMES = 6  # epochs in one: few have as little as 31 steps to spread the start of Keras' loop over
LOOP = f"{TIMES * (PAIRS // BATCH - 1)} steps of a QRNN"
IDS = f"{QUESTIONS:,} questions to ids, and batches cut from these"


def families(data):
    """Title to contestants and the names of the bases."""
    drawn = quora.draw(quora.load(data / "quora").splits["train"], PAIRS)
    texts = [text for group in drawn for fields in (group.query, *group.candidates) for text in fields]
    words = build_vocabulary(texts, max_words=VOCABULARY - 2)
    many = (texts * (1 + QUESTIONS // len(texts)))[:QUESTIONS]
    split = encode_split(drawn, TextEncoder(words, oov_buckets=1), ("text",), LONGEST, LONGEST)
    in_time = {"split": split, "reader": "QRNN", "times": TIMES}
    return {
        EPOCH: (
            [
                Contestant(f"{reader}, {name}", epoch, {"split": split, "reader": reader, "fixed": fixed})
                for reader in ("Keras LSTM", "QRNN")
                for name, fixed in ((f"padded to {LONGEST}", True), ("like lengths", False))
            ],
            [f"Keras LSTM, padded to {LONGEST}", f"QRNN, padded to {LONGEST}"],
        ),
        LOOP: (
            [
                Contestant("raw loop", epoch, in_time),
                Contestant("fit", fitted, in_time),
                Contestant("fit, batches cut meanwhile", fitted, {**in_time, "ready": False}),
            ],
            ["raw loop"],
        ),
        IDS: (
            [
                Contestant("ids, on one core", to_ids, {"texts": many, "words": words, "cores": 1}),
                Contestant("ids", to_ids, {"texts": many, "words": words}),
                Contestant("batches", to_batches, {"split": split}),
            ],
            ["ids, on one core"],
        ),
    }


def _model(reader):
    make = {"QRNN": qrnn, "Keras LSTM": keras_pairs}[reader]
    return make(table(), filters=256, projection=0)


def _batches(split, ready=True, times=1):
    batches = Batches(split, BATCH, shuffle_seed=1, drop_remainder=True)
    # The first batch of all is padded a little further than it needs.
    made = [batches[number] for number in range(1, len(batches))]
    return _Repeated((lambda number: made[number]) if ready else (lambda number: batches[1 + number]), made, times)


class _Repeated(keras.utils.PyDataset):
    def __init__(self, batch, made, times):
        super().__init__()
        self.batch, self.made, self.times = batch, made, times

    def __len__(self):
        return len(self.made) * self.times

    def __getitem__(self, number):
        return self.batch(number % len(self.made))


def _wide(ids):
    ids = ids[..., :LONGEST]
    return np.pad(ids, [*[(0, 0)] * (ids.ndim - 1), (0, LONGEST - ids.shape[-1])])


def epoch(split, reader, fixed=False, times=1):
    """All batches so many times, through a compiled step of their own lengths."""
    model, optimizer = _model(reader), optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)

    @tf.function(reduce_retracing=True)
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(losses.pointwise(labels, model(inputs, training=True))) + sum(model.losses)
        optimizer.apply(
            tape.gradient(loss, [weight.value for weight in model.trainable_variables]), model.trainable_variables
        )
        return loss

    batches = _batches(split).made * times
    if fixed:
        batches = [({side: _wide(ids) for side, ids in inputs.items()}, labels) for inputs, labels in batches]

    def run():
        for inputs, labels in batches:
            loss = step({name: tf.constant(ids) for name, ids in inputs.items()}, tf.constant(labels))
        loss.numpy()

    return run


def fitted(split, reader, times, ready=True):
    """The same by Keras' own loop, as the recipes train."""
    model = _model(reader)
    model.compile(
        optimizer=optimizers.Adam(1e-3),
        loss=losses.pointwise,
        jit_compile=False,
        steps_per_execution=STEPS_AT_ONCE,
    )
    batches = _batches(split, ready, times)
    return lambda: model.fit(batches, verbose=0, shuffle=False)


def to_ids(texts, words, cores=None):
    """Strings to ids without padding, as a data set is encoded."""
    if cores:
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    encoder = TextEncoder(words, oov_buckets=1)
    return lambda: encoder.encode(texts, LONGEST)


def to_batches(split):
    """As many questions as padded batches."""
    batches = Batches(split, BATCH, shuffle_seed=1, drop_remainder=True)
    numbers = [1 + number % (len(batches) - 1) for number in range(QUESTIONS // (2 * BATCH))]
    return lambda: [batches[number] for number in numbers]
