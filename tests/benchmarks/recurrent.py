"""Recurrences from token ids: QRNN and CTRN against LSTM and GRU, GatedConv against them.

YahooQA's texts, 300 numbers a word; GatedConv and QA-LSTM read insuranceQA's, GatedConv with 200 numbers a word. Texts
are cut to L tokens, and padded to the longest of a batch's questions or answers. The table of word vectors is frozen,
but for QA-LSTM's.
"""

import tempfile
from types import SimpleNamespace

import keras
import numpy as np
import tensorflow as tf

from export import folding
from layers.gated_conv import GatedConv
from layers.masked_pooling import MaskedPooling
from layers.masking import token_mask
from tests.benchmarks.measure import Contestant
from tests.benchmarks.texts import VOCABULARY, pairs
from zoo import losses, optimizers
from zoo.datasets import insurance_qa, yahoo_qa
from zoo.models import parts
from zoo.models.ctrn import ctrn
from zoo.models.lstm import lstm
from zoo.models.matching import Reader, matching
from zoo.models.qa_lstm import qa_lstm
from zoo.models.qrnn import qrnn

SIZE = 300
TOWER = "tower from ids, d 512, m 300, B 256, L 50"


def families(data):
    """Title to contestants and the names of the bases."""
    answers = np.squeeze(pairs(yahoo_qa.load, data / "yahooqa", 256, 50)["candidate"], 1)
    long_answers = np.squeeze(pairs(insurance_qa.load, data / "insuranceqa", 256, 100)["candidate"], 1)
    of_pairs = pairs(yahoo_qa.load, data / "yahooqa", 128, 50)
    long_pairs = pairs(insurance_qa.load, data / "insuranceqa", 64, 200)
    keras_rows = {
        "Keras LSTM": (keras_reader, {"reader": "LSTM", "units": 512}),
        "Keras GRU": (keras_reader, {"reader": "GRU", "units": 512}),
    }
    torch_rows = {f"torch {kind}": (torch_reader, {"reader": kind, "units": 512}) for kind in ("LSTM", "GRU")}
    torch_rows["torch LSTM, packed"] = torch_reader, {"reader": "LSTM", "units": 512, "packed": True}
    # Ours in the same form, which is what a QRNN is to be compared with: no padding, each word multiplied once.
    tower = keras_rows | torch_rows | {"packed LSTM": (tower_of, {"make": lstm}), "QRNN": (tower_of, {"make": qrnn})}
    gated = {
        f"Keras {reader} {units}": (keras_reader, {"reader": reader, "units": units, "size": 200, "pooling": "last"})
        for reader, units in (("LSTM", 240), ("GRU", 280), ("LSTM", 400))  # as many weights, and as many units
    } | {"GatedConv 400": (gated_conv, {})}
    given = {f"{name}, inputs given": (make, {**settings, "given": True}) for name, (make, settings) in gated.items()}
    models = {"Keras LSTM": keras_pairs, "packed LSTM": lstm, "qrnn": qrnn, "ctrn": ctrn}
    whole = {name: (pair_model, {"make": make}) for name, make in models.items()}
    qa = {name: (pair_model, {"make": make}) for name, make in (("Keras", keras_qa_lstm), ("packed", qa_lstm))}
    tables = {
        f"{title}, {'training' if training else 'inference'}": (
            [Contestant(name, make, {"ids": ids, "training": training, **more}) for name, (make, more) in rows.items()],
            bases,
        )
        for title, rows, ids, bases in (
            (TOWER, tower, answers, ["Keras LSTM", "torch LSTM"]),
            (
                f"pair model from ids, d 512, m 300, B 128 pairs, {_lengths(of_pairs)}",
                whole,
                of_pairs,
                ["Keras LSTM", "packed LSTM", "qrnn"],
            ),
            (f"QA-LSTM from ids, d 141 each way, m 300, B 64 pairs, {_lengths(long_pairs)}", qa, long_pairs, ["Keras"]),
            ("from ids, 100,000 weights at m 200, B 256, L 100", gated, long_answers, ["Keras LSTM 240"]),
            ("100,000 weights at m 200, B 256, L 100", given, long_answers, ["Keras LSTM 240, inputs given"]),
        )
        for training in (True, False)
    }
    tables[f"{TOWER}, inference"][0].extend(
        Contestant(f"QRNN, SavedModel{', folded' * folded}", saved_tower, {"ids": answers, "folded": folded})
        for folded in (False, True)
    )
    return tables


def _lengths(ids):
    return f"L {ids['query'].shape[-1]} and {ids['candidate'].shape[-1]}"


def table(size=SIZE):
    """Word vectors, row 0 zero."""
    drawn = np.random.default_rng(0).normal(0, 0.3, (VOCABULARY, size)).astype("float32")
    drawn[0] = 0
    return drawn


def step_of(model, inputs, labels=None, training=True, optimizer=None):
    """One training step, with Adam if nothing else, or one prediction, as a compiled function without arguments."""
    inputs = tf.nest.map_structure(tf.constant, inputs)
    if not training:
        infer = tf.function(lambda: model(inputs, training=False))
        return lambda: tf.nest.map_structure(lambda output: output.numpy(), infer())
    optimizer = optimizer or optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            output = model(inputs, training=True)
            loss = tf.reduce_mean(tf.square(output)) if labels is None else losses.pointwise(labels, output)
        gradients = tape.gradient(loss, [weight.value for weight in model.trainable_variables])
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return lambda: step().numpy()


def keras_reader(ids, training, reader, units, size=SIZE, pooling="mean", given=False):
    """The layers of Keras, as a user stacks them."""
    layer = getattr(keras.layers, reader)(units, return_sequences=pooling != "last")
    return _reader(lambda vectors, mask: layer(vectors, mask=mask), ids, training, size, pooling, given)


def gated_conv(ids, training, size=200, units=400, given=False):
    """Ours, with the same last state."""
    if given:
        layer = GatedConv(units, return_sequences=False)
        return _reader(lambda vectors, mask: layer(vectors, mask=mask), ids, training, size, "last", given=True)
    from zoo.models.rcnn import rcnn

    model = rcnn(table(size), fields=("text",), units=units, dropout=0.0, penalty=0.0)
    return step_of(model.get_layer("encoder").layer, {"text": ids}, training=training)


def _reader(read, ids, training, size, pooling, given):
    text = keras.Input(ids.shape[1:], dtype="int32")
    vectors = inputs = keras.Input((*ids.shape[1:], size))
    if not given:
        vectors = keras.layers.Embedding(VOCABULARY, size, weights=[table(size)], trainable=False)(text)
    mask = text != 0
    states = read(vectors, mask)
    outputs = states if pooling == "last" else MaskedPooling(pooling)(states, mask=mask)
    if not given:
        return step_of(keras.Model(text, outputs), ids, training=training)
    return step_of(keras.Model([text, inputs], outputs), [ids, table(size)[ids]], training=training)


def tower_of(ids, training, make):
    """The text encoder of a model of the zoo."""
    model = make(table(), projection=0)
    return step_of(model.get_layer("encoder").layer, ids, training=training)


def saved_tower(ids, folded):
    """The encoder of a QRNN as it is served, but from ids."""
    model = qrnn(table(), projection=0)
    if folded:
        vocabulary = SimpleNamespace(vocabulary_size=VOCABULARY)
        run = SimpleNamespace(model=model, settings={"model": "qrnn"}, text_encoder=vocabulary)
        model = folding.fold(run, megabytes=2000)[0].model
    signature = [tf.TensorSpec((None, None), "int32")]
    with tempfile.TemporaryDirectory() as folder:
        model.get_layer("encoder").layer.export(folder, input_signature=signature, verbose=False)
        saved, ids = tf.saved_model.load(folder), tf.constant(ids)
    return lambda: saved.serve(ids).numpy()


def keras_pairs(embeddings, filters=512, projection=0):
    """The zoo's LSTM with the layer of Keras, which reads every place of a text, as a user of Keras stacks it."""

    def encode(words, places, mask):
        states = keras.layers.LSTM(filters, return_sequences=True)(keras.ops.take(words, places, axis=0), mask=mask)
        return MaskedPooling("mean")(states, mask=mask)

    return parts.encoded_apart(encode, embeddings, name="lstm", projection=projection)


def keras_qa_lstm(embeddings):
    """QA-LSTM with the layers of Keras: either direction reads every place of a text."""
    embedding = keras.layers.Embedding(*embeddings.shape, weights=[embeddings])
    lstm = keras.layers.Bidirectional(keras.layers.LSTM(141, return_sequences=True))
    return matching(Reader(lambda ids: [lstm(embedding(ids), mask=token_mask(ids))] * 2), name="qa_lstm")


def pair_model(ids, training, make):
    """A whole model of the zoo on pairs."""
    inputs = {side: ids[side] for side in ("query", "candidate")}
    return step_of(make(table()), inputs, ids["labels"], training)


def torch_reader(ids, training, reader, units, packed=False):
    """The same by torch; ``packed`` has it pass over padding, as a user may ask for."""
    import torch

    layer = getattr(torch.nn, reader)(SIZE, units, batch_first=True)
    embedding = torch.nn.Embedding.from_pretrained(torch.from_numpy(table()))
    ids = torch.from_numpy(ids.astype("int64"))
    mask = (ids != 0).float().unsqueeze(-1)
    optimizer = torch.optim.Adam(layer.parameters(), 1e-3)

    def read(vectors):
        if not packed:
            return layer(vectors)[0]
        lengths = mask.sum((1, 2)).clamp(min=1).long()
        rows = torch.nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        return torch.nn.utils.rnn.pad_packed_sequence(layer(rows)[0], True, total_length=ids.shape[1])[0]

    def forward():
        states = read(embedding(ids))
        return (states * mask).sum(1) / mask.sum(1).clamp(min=1)

    def train():
        optimizer.zero_grad()
        forward().square().mean().backward()
        optimizer.step()

    def infer():
        with torch.no_grad():
            return forward()

    return train if training else infer
