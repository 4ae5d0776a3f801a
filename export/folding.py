"""Tables in place of what a model computes of single words.

Where word vectors pass through linear maps alone before a recurrence reads them, these can be applied to the whole
vocabulary beforehand: served, the model then looks its words' products up, and multiplies nothing before its head.
"""

from __future__ import annotations

import copy
import math

import keras
import numpy as np
import tensorflow as tf

MEGABYTES = 512  # of tables, unless more is allowed
DTYPES = ("float32", "bfloat16")
# A table of bfloat16 has 8 bits of each number, and what is added up of it is off by as much in proportion.
TOLERANCES = {"float32": 1e-5, "bfloat16": 5e-2}


def fold(run, dtype: str = "float32", megabytes: int = MEGABYTES):
    """A copy of a run whose model reads its words from tables.

    Args:
        run: a `zoo.runs.Run`.
        dtype: of the tables: ``"float32"``, or ``"bfloat16"``, which halves them.
        megabytes: how large they may be in all.

    Returns:
        The copy, and what a report says of its tables: ``{"dtype": ..., "megabytes": ...}``.

    Raises:
        ValueError: if nothing of the model can be folded, or the tables would be larger.
    """
    if dtype not in DTYPES:
        raise ValueError(f"Tables are of {' or '.join(DTYPES)}. Received: dtype={dtype!r}")
    model = type(run.model).from_config(run.model.get_config())
    model.set_weights(run.model.get_weights())
    places = list(_places(model))
    if not places:
        raise ValueError(
            "Folding needs a model that multiplies words before it reads them in order: ctrn, qrnn, the lstm beside "
            "them, rcnn with its gated convolutions, or a bidirectional LSTM without dropout of words. "
            f"Received: model={run.settings['model']!r}"
        )
    words = np.arange(run.text_encoder.vocabulary_size, dtype="int32")
    numbers = sum(reader.folded_size(len(words)) for _, _, reader in places)
    needed = math.ceil(numbers * tf.dtypes.as_dtype(dtype).size / 1e6)
    if needed > megabytes:
        raise ValueError(
            f"The tables would take {needed} MB: allow for them (--fold-limit), or take bfloat16 or a smaller "
            f"vocabulary. Received: megabytes={megabytes}, vocabulary={len(words)}, dtype={dtype!r}"
        )
    computed = {}  # both directions of an LSTM read the same vectors
    for tokens, vectors, reader in places:
        if id(vectors) not in computed:
            of_words = keras.Model(tokens.output[0], vectors)
            parts = [of_words.predict_on_batch(part) for part in np.array_split(words, 1 + len(words) // 8192)]
            computed[id(vectors)] = np.concatenate(parts)
        reader.fold(
            computed[id(vectors)], lambda table: tf.Variable(tf.cast(table, dtype), trainable=False, name="folded")
        )
        tokens.fold()
    folded = copy.copy(run)
    folded.model = model
    return folded, {"dtype": dtype, "megabytes": needed}


def _places(model):
    """Each layer that finds the distinct tokens, with the vectors made of them and the layer that reads these."""
    for layer in model.layers:
        if isinstance(inner := getattr(layer, "layer", None), keras.Model):
            yield from _places(inner)
        if not hasattr(layer, "folded_size"):
            continue
        # Each field of a text is a call of its own, on the words of all.
        vectors = [node.arguments.kwargs.get("words") for node in layer._inbound_nodes]
        tokens = [other for other in model.layers if hasattr(other, "fold") and not hasattr(other, "folded_size")]
        if vectors[0] is not None and len(set(map(id, vectors))) == len(tokens) == 1 and not tokens[0].rows:
            yield tokens[0], vectors[0], layer
