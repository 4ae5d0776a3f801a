"""Manhattan LSTM (Mueller and Thyagarajan, AAAI 2016), and what its paper compares it with.

Shapes: ``B`` queries, ``L`` candidates of a list, ``T`` tokens, ``d`` units, ``C`` classes.
"""

import keras
import numpy as np
from keras import ops

from layers.calibration import Calibration
from layers.list_wise import ListWise
from layers.manhattan_distance import ManhattanDistance
from layers.masked_pooling import MaskedPooling
from layers.masking import token_mask
from layers.radial_basis import RadialBasis
from layers.word_embedding import WordEmbedding
from zoo.models import parts


@keras.saving.register_keras_serializable(package="pairzoo")
class GateBias(keras.initializers.Initializer):
    """The bias of an LSTM: one value for the forget gates, which are the second quarter, and zeros.

    Args:
        forget: the value; Mueller and Thyagarajan 2016 take 2.5, so that the cell forgets little at first.
    """

    def __init__(self, forget):
        self.forget = forget

    def __call__(self, shape, dtype=None):
        quarter = np.arange(shape[0]) // (shape[0] // 4)
        return ops.convert_to_tensor(np.where(quarter == 1, self.forget, 0.0), dtype)

    def get_config(self):
        return {"forget": self.forget}


def malstm(
    embeddings,
    *,
    trainable_embeddings=False,
    encoder="lstm",
    units=50,
    forget_bias=2.5,
    deviation=0.025,
    word_dropout=0.0,
    drop_unknown=False,
    head="similarity",
    p=1,
    hidden=50,
    scale=(1.0, 5.0),
):
    """Both texts are read by one encoder, and one number of the two vectors tells how alike they are.

    The encoder is the layer named ``encoder``, from ids ``[..., T]`` to vectors ``[..., d]``.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        trainable_embeddings: the paper fixes them.
        encoder: ``"lstm"`` or ``"gru"``, whose last state is the text; or ``"mean"`` of the word vectors under a
            learned linear map.
        units: d.
        forget_bias: first bias of the LSTM's forget gates.
        deviation: of the normal distribution that the first weights are drawn from.
        word_dropout: dropout rate on the word vectors; not in the paper.
        drop_unknown: whether a word whose vector is zeros is passed over, as padding is; else it is a step.
        head: ``"similarity"``, which has no weights; or ``"classifier"``, a softmax over the scale's whole
            numbers on ``|a - b|`` and ``a * b`` (Tai et al. 2015, section 4.2), of which the score is the mean.
        p: of the similarity, see `ManhattanDistance`.
        hidden: sigmoid units of the classifier.
        scale: lowest and highest label.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]`` on the labels' scale; for
        the classifier to a dictionary with ``score`` and ``log_probabilities`` ``[B, L, C]``.

    Raises:
        ValueError: for an encoder or a head that is none of these.
    """
    if encoder not in ("lstm", "gru", "mean") or head not in ("similarity", "classifier"):
        raise ValueError(
            'The encoder must be "lstm", "gru" or "mean", the head "similarity" or "classifier". '
            f"Received: encoder={encoder!r}, head={head!r}"
        )
    text = keras.Input((None,), dtype="int32", name="text")
    mask = token_mask(text)
    table = WordEmbedding(*embeddings.shape, trainable=trainable_embeddings, name="embedding")
    vectors = table(text)
    table.set_weights([embeddings])
    if drop_unknown:
        mask = ops.logical_and(mask, ops.any(vectors != 0, axis=-1))
    if word_dropout:
        vectors = keras.layers.Dropout(word_dropout, name="word_dropout")(vectors)
    if encoder == "mean":
        vector = MaskedPooling("mean", name="pooling")(vectors, mask=mask)
        vector = keras.layers.Dense(units, name="projection")(vector)
    else:
        vector = _recurrent(encoder, units, forget_bias, deviation)(vectors, mask=mask)  # the last state
    encode = ListWise(keras.Model(text, vector, name="text_encoder"), name="encoder")
    query, candidate = parts.pair_inputs()
    pair = encode([query, candidate])
    low, high = scale
    if head == "similarity":
        similarity = ManhattanDistance(p, name="similarity")(*pair)
        outputs = low + (high - low) * similarity
    else:
        outputs = _classified(_features(*pair), hidden, np.arange(low, high + 1))
    return keras.Model({"query": query, "candidate": candidate}, outputs, name="malstm")


def _recurrent(encoder, units, forget_bias, deviation):
    settings = {
        "units": units,
        "kernel_initializer": keras.initializers.RandomNormal(stddev=deviation),
        "recurrent_initializer": keras.initializers.RandomNormal(stddev=deviation),
        "use_cudnn": False,  # cuDNN refuses a text without tokens, and its kernel would be in the export
        "name": encoder,
    }
    if encoder == "gru":
        return keras.layers.GRU(**settings)
    return keras.layers.LSTM(bias_initializer=GateBias(forget_bias), unit_forget_bias=False, **settings)


def _features(query, candidate):
    """``|a - b|`` and ``a * b`` of each pair, ``[B, L, 2 d]``."""
    query = ops.expand_dims(query, 1)
    return ops.concatenate([ops.abs(query - candidate), query * candidate], axis=-1)


def _classified(features, hidden, classes):
    hidden = keras.layers.Dense(hidden, activation="sigmoid", name="hidden")(features)
    logits = keras.layers.Dense(len(classes), dtype="float32", name="logits")(hidden)
    log_probabilities = ops.log_softmax(logits, axis=-1)
    score = ops.sum(ops.exp(log_probabilities) * ops.convert_to_tensor(classes, "float32"), axis=-1)
    return {"score": score, "log_probabilities": log_probabilities}


def distances(model, vector, vectors):
    """Those that the model's similarity is made of, Manhattan's under the classifier: `[d]` and `[n, d]` to `[n]`."""
    p = next((layer.p for layer in model.layers if isinstance(layer, ManhattanDistance)), 1)
    return np.asarray(ManhattanDistance(p, similarity=False)(vector[None], vectors[None]))[0]


def pair_features(model):
    """A model of the same inputs to ``|a - b|`` and ``a * b`` of the encoded texts, ``[B, L, 2 d]``."""
    return keras.Model(model.input, {"features": _features(*model.get_layer("encoder").output)})


def finished(model, curve=None, machine=None, classes=()):
    """The trained model with what was fitted on top of it: a dictionary of outputs, ``score`` the first.

    Args:
        model: of `malstm`.
        curve: low, high and points of a `Calibration` of its score, or None.
        machine: vectors, weights, intercepts and gamma of a `RadialBasis` on its `pair_features`, or None.
        classes: names of the machine's classes; each has its decision value ``[B, L]`` among the outputs.

    Returns:
        A model whose outputs are ``score`` (calibrated), ``uncalibrated`` (the score before; only with a curve),
        and the classes.
    """
    outputs = model.output if isinstance(model.output, dict) else {"score": model.output}
    if curve is not None:
        low, high, points = curve
        calibration = Calibration(len(points), name="calibration")
        calibration.set_curve(low, high, points)
        outputs = outputs | {"score": calibration(outputs["score"]), "uncalibrated": outputs["score"]}
    if machine is not None:
        vectors, weights, _, _ = machine
        decide = RadialBasis(*np.shape(weights), name="classes")
        decide.set_vectors(*machine)
        decisions = decide(_features(*model.get_layer("encoder").output))
        outputs = outputs | {name: decisions[..., place] for place, name in enumerate(classes)}
    return keras.Model(model.input, outputs, name=model.name)
