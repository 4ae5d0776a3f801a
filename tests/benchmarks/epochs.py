"""What stands around a step: batches of like length, the making of ids, and Keras' loop.

Quora's questions. A step is that of a QRNN of 256 units on 128 pairs; a row named ``fit`` is timed with its batches, so
that waiting for these is in it.
"""

import keras
import numpy as np
import tensorflow as tf

from layers.masked_pooling import MaskedPooling
from tests.benchmarks.measure import Contestant
from tests.benchmarks.recurrent import table
from tests.benchmarks.texts import VOCABULARY
from zoo import losses, optimizers
from zoo.batches import Batches
from zoo.datasets import quora
from zoo.encoded import encode_split
from zoo.models import parts
from zoo.models.qrnn import qrnn
from zoo.text import TextEncoder, build_vocabulary

PAIRS, BATCH, LONGEST = 4_096, 128, 50
QUESTIONS = 1_024
EPOCH = f"an epoch of {PAIRS:,} pairs, {BATCH} a batch"
LOOP = f"{PAIRS // BATCH} steps, texts in memory"
IDS = f"{QUESTIONS:,} questions to ids"


def families(data):
    """Title to contestants and the names of the bases."""
    drawn = quora.draw(quora.load(data / "quora").splits["train"], PAIRS)
    texts = [text for group in drawn for fields in (group.query, *group.candidates) for text in fields]
    words = build_vocabulary(texts, max_words=VOCABULARY - 2)
    split = encode_split(drawn, TextEncoder(words, oov_buckets=1), ("text",), LONGEST, LONGEST)
    in_time = {"split": split, "reader": "QRNN"}
    return {
        EPOCH: (
            [
                Contestant(f"{reader}, {name}", epoch, {"split": split, "reader": reader, "fixed": fixed})
                for reader in ("LSTM", "QRNN")
                for name, fixed in ((f"padded to {LONGEST}", True), ("like lengths", False))
            ],
            [f"LSTM, padded to {LONGEST}", f"QRNN, padded to {LONGEST}"],
        ),
        LOOP: (
            [
                Contestant("raw loop", epoch, {**in_time, "ready": True}),
                Contestant("fit", fitted, {**in_time, "ready": True}),
                Contestant("fit, batches cut meanwhile", fitted, in_time),
            ],
            ["raw loop"],
        ),
        IDS: (
            [
                Contestant("words", to_ids, {"texts": texts[:QUESTIONS], "words": words}),
                Contestant("words, then padded batches", to_batches, {"split": split}),
            ],
            [],
        ),
    }


def _model(reader):
    if reader == "QRNN":
        return qrnn(table(), filters=256, projection=0)
    text = keras.Input((None,), dtype="int32")
    vectors = keras.layers.Embedding(VOCABULARY, 300, weights=[table()], trainable=False)(text)
    mask = text != 0
    states = keras.layers.LSTM(256, return_sequences=True)(vectors, mask=mask)
    encode = keras.Model(text, MaskedPooling("mean")(states, mask=mask))
    query, candidate = parts.pair_inputs()
    head = {"dense_layers": 1, "dense_units": 128, "dropout": 0.5, "l2": 0.0}
    score = parts.dense_head(encode(query), _of_lists(encode, candidate), None, **head)
    return keras.Model({"query": query, "candidate": candidate}, score)


def _of_lists(encode, candidate):
    """The vectors of lists of one."""
    return encode(candidate[:, 0])[:, None]


def _batches(split, fixed=False, ready=False):
    batches = Batches(split, BATCH, shuffle_seed=1, drop_remainder=True)
    if not fixed and not ready:
        return batches
    made = [batches[number] for number in range(len(batches))]
    if fixed:
        made = [({side: _wide(ids) for side, ids in inputs.items()}, labels) for inputs, labels in made]
    return made


def _wide(ids):
    ids = ids[..., :LONGEST]
    return np.pad(ids, [*[(0, 0)] * (ids.ndim - 1), (0, LONGEST - ids.shape[-1])])


def epoch(split, reader, fixed=False, ready=False):
    """All batches once, through a compiled step of their own lengths."""
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

    batches = _batches(split, fixed, ready)

    def run():
        for number in range(len(batches)):
            inputs, labels = batches[number]
            loss = step({name: tf.constant(ids) for name, ids in inputs.items()}, tf.constant(labels))
        loss.numpy()

    return run


class _Ready(keras.utils.PyDataset):
    def __init__(self, made):
        super().__init__()
        self.made = made

    def __len__(self):
        return len(self.made)

    def __getitem__(self, number):
        return self.made[number]


def fitted(split, reader, ready=False):
    """The same by Keras' own loop, as the recipes train."""
    model = _model(reader)
    model.compile(optimizer=optimizers.Adam(1e-3), loss=losses.pointwise, jit_compile=False)
    batches = _batches(split, ready=ready)
    batches = _Ready(batches) if ready else batches
    return lambda: model.fit(batches, verbose=0, shuffle=False)


def to_ids(texts, words):
    """Strings to padded ids, as in training and in a served model."""
    encoder, texts = TextEncoder(words, oov_buckets=1), tf.constant(texts)
    encode = tf.function(lambda: encoder(texts, LONGEST))
    return lambda: encode()["ids"].numpy()


def to_batches(split):
    """As many questions cut from the flat ids."""
    batches, numbers = Batches(split, BATCH, shuffle_seed=1, drop_remainder=True), range(QUESTIONS // (2 * BATCH))
    return lambda: [batches[number] for number in numbers]
