"""Decomposable attention on Quora's pairs: the zoo's, and what stands in its place where it is written straight down.

256 pairs, 30 tokens, 300 numbers a word, networks of 400 and 200 units over windows of three words. The straightforward
form multiplies every position of the batch, padding too, and sums the vectors of a token's n-grams from a padded
lookup. Its whole step takes Keras' Adam, which moves every row of the table, or the LazyAdam that ours has too, beside
the Adagrad of the recipes.
"""

import keras
from keras import ops

from layers.masking import masked_softmax
from tests.benchmarks.measure import Contestant
from tests.benchmarks.recurrent import step_of, table
from tests.benchmarks.texts import pairs
from zoo import optimizers
from zoo.datasets import quora
from zoo.models import parts
from zoo.models.decatt import decatt

BATCH, LENGTH, SIZE, UNITS = 256, 30, 300, (400, 200)
ROWS = 1_000_000


def families(data):
    """Title to contestants and the names of the bases."""
    words = pairs(quora.load, data / "quora", BATCH, LENGTH)
    ngrams = {rows: pairs(quora.load, data / "quora", BATCH, LENGTH, ngram_rows=rows) for rows in (ROWS, ROWS // 10)}

    def step(name, make, optimizer, rows):
        return Contestant(name, make, {"ids": ngrams[rows], "ngram_rows": rows, "optimizer": optimizer})

    # In two tables: the contestants of one are alive at once, and all of these need more than 24 GB.
    whole = [
        step("straight, Adam", straight, keras.optimizers.Adam, ROWS),
        step("straight, LazyAdam", straight, optimizers.LazyAdam, ROWS),
        step("DecAtt, LazyAdam", zoo_model, optimizers.LazyAdam, ROWS),
    ]
    sizes = [
        step(f"DecAtt, {optimizer.__name__}, {rows:,}", zoo_model, optimizer, rows)
        for optimizer in (optimizers.LazyAdam, optimizers.Adagrad)
        for rows in (ROWS // 10, ROWS)
    ]
    net = {"straight": straight, "DecAtt": zoo_model}
    return {
        f"DecAtt net, frozen words, {'training' if training else 'inference'}": (
            [Contestant(name, make, {"ids": words, "training": training}) for name, make in net.items()],
            ["straight"],
        )
        for training in (True, False)
    } | {
        f"DecAtt whole step, {ROWS:,} trained rows of 300 numbers for character 5-grams": (
            whole,
            ["straight, Adam", "straight, LazyAdam"],
        ),
        "DecAtt whole step, by rows of the table": (sizes, [sizes[0].name]),
    }


def zoo_model(ids, training=True, ngram_rows=0, optimizer=None):
    """Ours."""
    embeddings = (ngram_rows + 2, SIZE) if ngram_rows else table()
    model = decatt(
        embeddings, char_ngrams=bool(ngram_rows), trainable_embeddings=bool(ngram_rows), units=UNITS, dropout=0.0
    )
    return _step(model, ids, training, optimizer)


def straight(ids, training=True, ngram_rows=0, optimizer=None):
    """The equations as they are printed, by the layers of Keras."""
    query, candidate = parts.pair_inputs(bool(ngram_rows))
    if ngram_rows:
        embedding = keras.layers.Embedding(ngram_rows + 2, SIZE)

        def vectors(x):
            return ops.sum(ops.where(ops.expand_dims(x > 0, -1), embedding(x), 0.0), axis=-2)
    else:
        vectors = keras.layers.Embedding(len(table()), SIZE, weights=[table()], trainable=False)

    attend, compare = (
        [keras.layers.Dense(units, "relu", name=f"{name}_{units}") for units in UNITS] for name in ("attend", "compare")
    )

    def run(network, x):
        for layer in network:
            x = layer(x)
        return x

    def windows(x):
        around = ops.pad(x, [[0, 0], [1, 1], [0, 0]])
        return ops.concatenate([around[:, :-2], x, around[:, 2:]], axis=-1)

    b = candidate[:, 0]
    query_mask, b_mask = (parts.real_tokens(x, bool(ngram_rows)) for x in (query, b))
    first, second = windows(vectors(query)), windows(vectors(b))
    e = ops.matmul(run(attend, first), ops.swapaxes(run(attend, second), 1, 2))
    beta = ops.matmul(masked_softmax(e, ops.expand_dims(b_mask, 1)), second)
    alpha = ops.matmul(ops.swapaxes(masked_softmax(e, ops.expand_dims(query_mask, 2), axis=1), 1, 2), first)
    pair = [
        ops.sum(ops.where(ops.expand_dims(mask, -1), run(compare, ops.concatenate([own, other], axis=-1)), 0.0), axis=1)
        for own, other, mask in ((first, beta, query_mask), (second, alpha, b_mask))
    ]
    score = parts.feedforward_head(ops.expand_dims(ops.concatenate(pair, axis=-1), 1), units=UNITS, dropout=0.0)
    return _step(keras.Model({"query": query, "candidate": candidate}, score), ids, training, optimizer)


def _step(model, ids, training, optimizer):
    inputs = {side: ids[side] for side in ("query", "candidate")}
    return step_of(model, inputs, ids["labels"], training, optimizer and optimizer(1e-3))
