"""Question retrieval with gated convolutions (Lei et al., NAACL 2016), and the other encoders of its Table 3."""

import keras
from keras import ops

from layers.gated_conv import GatedConv
from layers.list_wise import ListWise
from layers.masked_pooling import MaskedPooling
from layers.norm_penalty import NormPenalty
from zoo.models import parts

READERS = ("rcnn", "cnn", "lstm", "gru")


def rcnn(
    embeddings,
    *,
    fields=("title", "body"),
    read_fields=None,
    reader="rcnn",
    units=400,
    order=2,
    gate="vector",
    filter_mode="additive",
    output_gate=False,
    pooling="last",
    idf=None,
    num_unread=0,
    trainable_embeddings=False,
    dropout=0.1,
    penalty=1e-5,
    initial_range=0.05,
):
    """One shared encoder reads each field of a question; the score is the cosine of two questions.

    The states of a field are brought to length 1 and pooled, so that all fields weigh the same; the mean of the
    fields is the question's vector. The encoder is the layer named ``encoder``, from a dictionary of ids
    ``[..., T]`` to vectors ``[..., d]`` of length 1. A question without words is the zero vector, and scores 0.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        fields: names of a question's fields.
        read_fields: those that are read; all if None.
        reader: ``"rcnn"``, gated convolutions; or ``"cnn"``, ``"lstm"``, ``"gru"``.
        units: d. The paper's sizes have about as many weights each: 400, and 667, 240, 280.
        order: width n of the n-grams of ``rcnn`` and ``cnn``.
        gate, filter_mode, output_gate: of `GatedConv`.
        pooling: ``"last"``, ``"mean"`` or ``"max"``.
        idf: float array ``[V]`` that the word vectors are multiplied with, before any training of theirs; or None.
        num_unread: ids up to this one are not read: a recurrence goes past them, in a window of ``cnn`` they are
            zeros. The paper's code takes unknown words out of a text beforehand.
        trainable_embeddings: the paper fixes them.
        dropout: rate on the word vectors and on the question's vector. Unlike the paper's, a word loses the same
            numbers wherever it stands in the batch, see `parts.token_vectors`.
        penalty: factor of the norm of each kernel in the loss.
        initial_range: weights and biases begin in U(-initial_range, initial_range).

    Returns:
        A model from ``{"query_title": [B, T], "candidate_title": [B, L, T], ...}`` to scores ``[B, L]``, the
        cosine of query and candidate.

    Raises:
        ValueError: for an unknown reader.
    """
    if idf is not None:
        embeddings = (embeddings * idf[:, None]).astype("float32")
    fields = tuple(fields)
    last = pooling == "last" and reader != "cnn"  # a recurrence hands its last state over itself
    read = _reader(reader, units, order, gate, filter_mode, output_gate, penalty, initial_range, last)
    texts = {field: keras.Input((None,), dtype="int32", name=field) for field in fields}
    read_texts = [texts[field] for field in read_fields or fields]
    words, places = parts.token_vectors(read_texts, embeddings, trainable=trainable_embeddings, dropout=dropout)
    pool = None if last else MaskedPooling(pooling, name="pooling")
    vectors = []
    for ids, place in zip(read_texts, places, strict=True):
        mask = ids > num_unread
        read_text = parts.unit_length(read(words, place, mask))
        vectors.append(pool(read_text, mask=mask) if pool else read_text)
    question = sum(vectors[1:], vectors[0]) / len(vectors)
    if dropout:
        question = keras.layers.Dropout(dropout, name="question_dropout")(question)
    text_encoder = keras.Model(texts, parts.unit_length(question), name="text_encoder")
    encoder = ListWise(text_encoder, name="encoder")
    query, candidate = parts.field_inputs(fields)
    query_vector, candidate_vector = encoder([query, candidate])
    score = ops.sum(ops.expand_dims(query_vector, 1) * candidate_vector, axis=-1)
    inputs = {tensor.name: tensor for side in (query, candidate) for tensor in side.values()}
    return keras.Model(inputs, ops.cast(score, "float32"), name=reader)


def openness(model, ids, num_unread=0):
    """How much of each word every unit of a model's reader takes in: ``1 - l_t`` of `GatedConv`.

    Args:
        model: an ``rcnn``.
        ids: ``[n, T]`` of one field.
        num_unread: as in the model.

    Returns:
        ``[n, T, d]``, with one unit for a scalar gate; 1 where nothing is read.
    """
    text_encoder = model.get_layer("encoder").layer
    vectors = text_encoder.get_layer("embedding")(ids)
    return 1 - text_encoder.get_layer("reader").decay(vectors, mask=ids > num_unread)


def _reader(reader, units, order, gate, filter_mode, output_gate, penalty, initial_range, last):
    """A function of (words ``[U, E]``, places ``[n, T]``, mask ``[n, T]``) to states ``[n, T, d]``.

    With ``last`` a recurrence gives the last one alone, ``[n, d]``.
    """

    def settings(*kernels):
        initial = {f"{name}_initializer": _uniform(initial_range) for name in (*kernels, "bias")}
        return initial | {"name": "reader"}

    if reader == "rcnn":
        layer = GatedConv(
            units,
            order,
            gate,
            filter_mode,
            output_gate,
            return_sequences=not last,
            return_state=True,
            kernel_regularizer=NormPenalty(penalty),
            **settings("kernel", "recurrent"),
        )
        return lambda words, places, mask: layer(places, mask=mask, words=words)[0]
    if reader == "cnn":
        layer = keras.layers.Conv1D(
            units,
            order,
            padding="causal",
            activation="tanh",
            kernel_regularizer=NormPenalty(penalty),
            **settings("kernel"),
        )
        # Words that are not read are zeros in a window, as padding is.
        return lambda words, places, mask: layer(
            ops.take(words, places, axis=0) * ops.cast(ops.expand_dims(mask, -1), words.dtype)
        )
    if reader in ("lstm", "gru"):
        of_kind = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[reader]
        layer = of_kind(
            units,
            return_sequences=not last,
            return_state=True,
            kernel_regularizer=NormPenalty(penalty),
            recurrent_regularizer=NormPenalty(penalty),
            use_cudnn=False,  # cuDNN refuses a text without tokens, and its kernel would be in the export
            **({"reset_after": False} if reader == "gru" else {"unit_forget_bias": False}),  # the paper's equations
            **settings("kernel", "recurrent"),
        )
        return lambda words, places, mask: layer(ops.take(words, places, axis=0), mask=mask)[0]
    raise ValueError(f"reader must be one of {', '.join(READERS)}. Received: reader={reader!r}")


def _uniform(initial_range):
    return keras.initializers.RandomUniform(-initial_range, initial_range)
