"""Attentive pooling networks, AP-BiLSTM and AP-CNN (dos Santos et al. 2016)."""

import keras

from layers.attentive_pooling import AttentivePooling
from layers.list_wise import ListWise
from layers.masking import token_mask
from layers.vector_similarity import VectorSimilarity
from zoo.models import parts
from zoo.models.matching import bidirectional_lstm, marked, word_vectors


def attentive_pooling(
    embeddings,
    *,
    encoder="bilstm",
    trainable_embeddings=True,
    projection=0,
    word_dropout=0.0,
    units=141,
    kernel_size=3,
    similarity="cosine",
    dense_layers=2,
    dense_units=256,
    dropout=0.0,
    l2=0.0,
    name="attentive_pooling",
):
    """Both sides are read apart, and pooled together: each word by the best partner that it has.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        encoder: ``"bilstm"`` or ``"cnn"``.
        trainable_embeddings, projection: as in `zoo.models.ggsa`.
        word_dropout: rate on the word vectors.
        units: of the LSTM per direction, or filters of the convolution.
        kernel_size: width of the convolution.
        similarity: ``"cosine"``, ``"gesd"`` or ``"mlp"``.
        dense_layers, dense_units, dropout, l2: of the dense head.
        name: the model's name.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``.

    Raises:
        ValueError: for an unknown encoder.
    """
    if encoder not in ("bilstm", "cnn"):
        raise ValueError(f"encoder must be 'bilstm' or 'cnn'. Received: encoder={encoder!r}")
    words = {"trainable": trainable_embeddings, "projection": projection, "dropout": word_dropout}
    text = keras.Input((None,), dtype="int32", name="text")
    mask = token_mask(text)
    if encoder == "cnn":
        convolution = keras.layers.Conv1D(units, kernel_size, padding="same", name="convolution")
        states = convolution(word_vectors(text, embeddings, **words))
    else:
        states = bidirectional_lstm(text, embeddings, units, **words)
    read = ListWise(keras.Model(text, [states, mask], name="text_reader"), name="reader")
    query, candidate = parts.pair_inputs()
    query_states, query_mask = marked("query", read(query))
    candidate_states, candidate_mask = marked("candidate", read(candidate))
    vectors = AttentivePooling(name="pooling")(
        query_states, candidate_states, query_mask=query_mask, candidate_mask=candidate_mask
    )
    if similarity == "mlp":
        score = parts.dense_head(
            *vectors, None, dense_layers=dense_layers, dense_units=dense_units, dropout=dropout, l2=l2
        )
    else:
        score = VectorSimilarity(similarity, dtype="float32", name="similarity")(*vectors)
    return keras.Model({"query": query, "candidate": candidate}, score, name=name)
