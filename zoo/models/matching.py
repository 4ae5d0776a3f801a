"""What answer-selection models share that read both texts apart: states of words, then composition, then similarity.

A model made by `matching` marks where its texts are encoded, so that long lists can be scored with each text
encoded once (`zoo.batches.score_split`): the layers ``query_encoding_1``, ... give vectors of the query
``[B, ..., d]``, ``candidate_encoding_1``, ... a vector of each candidate ``[B, L, d]``, or its states
``[B, L, T, D]`` and their mask, and what follows needs nothing else. Where both texts become one vector by the
same weights, the layer that does so is named ``encoder``.

Shapes: ``B`` queries, ``L`` candidates of a list, ``T`` tokens, ``D`` size of states, ``K`` hops.
"""

from collections.abc import Callable
from dataclasses import dataclass

import keras
from keras import ops

from layers.attention_pooling import AttentionPooling
from layers.circular_correlation import CircularCorrelation
from layers.list_wise import ListWise
from layers.masked_pooling import MaskedPooling
from layers.masking import token_mask
from layers.multihop_attention import MultihopAttention
from layers.packed_lstm import PackedLSTM
from layers.sequential_attention import SequentialAttention
from layers.tensor_interaction import TensorInteraction
from layers.vector_similarity import VectorSimilarity
from zoo.models import parts

COMPOSITIONS = ("max", "mean", "attention", "multihop", "multihop_mlp")
SIMILARITIES = ("cosine", "gesd", "mlp", "tensor", "holographic")


@dataclass(frozen=True)
class Reader:
    """How texts become states, as functions on tensors.

    Attributes:
        contextual: ids ``[n, T]`` to states ``[n, T, D]`` as a query and as a candidate. It stands in a model of
            its own; a layer that it uses cannot be used by the other two.
        query: None, or function of (states of the query, mask) to the states that are composed.
        candidate: None, or function of (states of the candidate ``[B, L, T, D]``, mean of the query's composed
            states ``[B, 1, D]``, mask ``[B, L, T]``) to the states of the candidate under this query.
    """

    contextual: Callable
    query: Callable | None = None
    candidate: Callable | None = None


def matching(
    reader,
    *,
    name,
    composition="max",
    similarity="cosine",
    num_hops=2,
    slices=5,
    dense_layers=2,
    dense_units=256,
    dropout=0.0,
    l2=0.0,
):
    """A model from the states of both texts to scores.

    Args:
        reader: a `Reader`.
        name: the model's name.
        composition: states to vectors. ``"max"`` or ``"mean"`` over time on both sides; ``"attention"``, the
            candidate's states weighed by the query's largest; ``"multihop"``, several looks at the query, and a
            sequential attention on the candidate for each; ``"multihop_mlp"``, attention pooling for each in its
            place.
        similarity: ``"cosine"`` or ``"gesd"``, summed over hops; ``"mlp"``, a dense head on both vectors;
            ``"holographic"`` (HD-LSTM), one dense layer on their circular correlation and a bilinear form;
            ``"tensor"`` (NTN), a linear layer on ``slices`` tensor slices.
        num_hops: K of the multihop compositions.
        slices: bilinear forms of the tensor similarity.
        dense_layers, dense_units, dropout, l2: of the dense head.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``.

    Raises:
        ValueError: for an unknown composition or similarity.
    """
    if composition not in COMPOSITIONS or similarity not in SIMILARITIES:
        raise ValueError(
            f"composition must be one of {COMPOSITIONS}, similarity one of {SIMILARITIES}. "
            f"Received: composition={composition!r}, similarity={similarity!r}"
        )
    text = keras.Input((None,), dtype="int32", name="text")
    mask = token_mask(text)
    as_query, as_candidate = reader.contextual(text)
    query, candidate = parts.pair_inputs()
    pooled = composition in ("max", "mean")
    pool = MaskedPooling(composition if pooled else "max", name="pooling")
    if pooled and as_query is as_candidate and not reader.candidate:
        encoder = ListWise(keras.Model(text, pool(as_query, mask=mask), name="text_encoder"), name="encoder")
        query_parts, candidate_parts = [encoder(query)], [encoder(candidate)]
    else:
        # Where the two sides have weights of their own, what a side does not use is pruned from the graph.
        read = ListWise(keras.Model(text, [as_query, as_candidate, mask], name="text_reader"), name="reader")
        states, _, mask = read(query)
        states = reader.query(states, mask) if reader.query else states
        look = MultihopAttention(num_hops, name="hops") if composition.startswith("multihop") else pool
        query_parts = [look(states, mask=mask)]
        if reader.candidate:
            query_parts.append(MaskedPooling("mean", name="query_mean")(states, mask=mask))
        _, *candidate_parts = read(candidate)
        if pooled and not reader.candidate:
            candidate_parts = [pool(candidate_parts[0], mask=candidate_parts[1])]
    pair = _vectors(reader.candidate, composition, marked("query", query_parts), marked("candidate", candidate_parts))
    head = {"dense_layers": dense_layers, "dense_units": dense_units, "dropout": dropout, "l2": l2}
    score = _score(*pair, similarity, slices, head)
    return keras.Model({"query": query, "candidate": candidate}, score, name=name)


def marked(side, tensors):
    """The encodings of a ``side``, ``"query"`` or ``"candidate"``, under the names that `zoo.apart` looks for."""
    return [
        keras.layers.Identity(name=f"{side}_encoding_{number}", dtype=x.dtype)(x)
        for number, x in enumerate(tensors, start=1)
    ]


def _vectors(interact, composition, query, candidate):
    """The vectors of each pair, ``[B, 1 or L, d]`` and ``[B, L, d]``; with hops ``[B, ..., K + 1, d]``."""
    vector, *mean = (ops.expand_dims(x, 1) for x in query)
    states, *mask = candidate
    if not mask:
        return vector, states
    if interact:
        states = interact(states, mean[0], mask[0])
    if composition in ("max", "mean"):
        return vector, MaskedPooling(composition, name="candidate_pooling")(states, mask=mask[0])
    if composition == "multihop":
        return vector, SequentialAttention(name="sequential_attention")(states, vector, states_mask=mask[0])
    pool = AttentionPooling(name="attention")
    if composition == "attention":
        return vector, pool(states, vector, states_mask=mask[0])
    hops = [pool(states, vector[:, :, hop], states_mask=mask[0]) for hop in range(vector.shape[2])]
    return vector, ops.stack(hops, axis=2)


def _score(query, candidate, similarity, slices, head):
    if similarity in ("cosine", "gesd"):
        score = VectorSimilarity(similarity, dtype="float32", name="similarity")(query, candidate)
        return ops.sum(score, axis=2) if len(score.shape) == 3 else score
    if len(candidate.shape) == 4:  # the hops side by side
        query, candidate = (keras.layers.Reshape((-1, x.shape[2] * x.shape[3]))(x) for x in (query, candidate))
    query, candidate = query + ops.zeros_like(candidate), candidate + ops.zeros_like(query)
    if similarity == "tensor":
        interaction = TensorInteraction(slices, name="tensor_interaction")(query, candidate)
        return parts.feedforward_head(interaction, units=(), dropout=head["dropout"])
    if similarity == "holographic":
        correlation = CircularCorrelation(name="circular_correlation")(query, candidate)
        mapped = keras.layers.Dense(candidate.shape[-1], use_bias=False, name="bilinear")(candidate)
        bilinear = ops.sum(query * mapped, axis=-1, keepdims=True)
        pair = ops.concatenate([correlation, bilinear], axis=-1)
        return parts.feedforward_head(pair, units=(head["dense_units"],), dropout=head["dropout"])
    return parts.dense_head(query, candidate, None, **head)


def bidirectional_lstm(ids, embeddings, units, *, trainable, projection=0, dropout=0.0):
    """The states of both directions of an LSTM, ``[n, T, 2 units]``; but for `units` see `word_vectors`."""
    if dropout:  # a word differs from position to position, so that no product of it serves all of them
        text, words = word_vectors(ids, embeddings, trainable=trainable, projection=projection, dropout=dropout), None
    else:
        words, (text,) = parts.token_vectors([ids], embeddings, trainable=trainable, projection=projection)
    states = [
        PackedLSTM(units, go_backwards=backwards, name=name)(text, mask=token_mask(ids), words=words)
        for name, backwards in (("forward_lstm", False), ("backward_lstm", True))
    ]
    return ops.concatenate(states, axis=-1)


def word_vectors(ids, embeddings, *, trainable, projection=0, dropout=0.0):
    """The vectors of words ``[n, T, D]``; padding gives zeros.

    Args:
        ids: of the words ``[n, T]``.
        embeddings: float array ``[V, E]``, row 0 zero.
        trainable: whether the word vectors are trained.
        projection: D of a linear map on top of them, 0 for none.
        dropout: rate on the vectors of each position.
    """
    words, (places,) = parts.token_vectors([ids], embeddings, trainable=trainable, projection=projection)
    vectors = keras.layers.Dropout(dropout, name="word_dropout")(ops.take(words, places, axis=0))
    return ops.where(ops.expand_dims(token_mask(ids), -1), vectors, ops.zeros_like(vectors))
