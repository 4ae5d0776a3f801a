"""What the models share: inputs, word vectors under a projection, the dense head.

Shapes: ``B`` queries of a batch, ``L`` candidates of a list, ``T`` tokens, ``V`` ids, ``E`` word-vector size.
"""

import keras
from keras import ops

from layers.distinct_tokens import DistinctTokens
from layers.list_wise import ListWise
from layers.masking import token_mask
from layers.overlap_features import OverlapFeatures


def pair_inputs():
    """Token ids of a query ``[B, T]`` and of its list of candidates ``[B, L, T]``; 0 is padding."""
    return (
        keras.Input((None,), dtype="int32", name="query"),
        keras.Input((None, None), dtype="int32", name="candidate"),
    )


def word_vectors(ids, embeddings, *, trainable, projection, projection_activation, dropout, l2):
    """Looks up and projects the distinct words of some texts; all texts of one call share both maps.

    Args:
        ids: list of id tensors, each ``[..., T]``.
        embeddings: float array ``[V, E]``, row 0 zero.
        trainable: whether the word vectors are trained; the papers fix theirs.
        projection: units of the projection, 0 for none.
        projection_activation: its activation, None for a linear map.
        dropout: rate on the projected vectors; a word loses the same numbers wherever these texts hold it
            (Gal and Ghahramani 2016, section 4.2); under JAX, each position by itself.
        l2: factor of the squared kernel in the loss.

    Returns:
        The words ``[U, projection]``, and for each id tensor its places in them, ``[..., T]``; the vectors of a
        text are ``words[places]``.
    """
    words, places = DistinctTokens(name="distinct_tokens")(ids)
    size, width = embeddings.shape
    words = keras.layers.Embedding(size, width, weights=[embeddings], trainable=trainable, name="embedding")(words)
    if projection:
        words = keras.layers.Dense(
            projection,
            activation=projection_activation,
            kernel_regularizer=keras.regularizers.L2(l2),
            name="projection",
        )(words)
    if dropout:
        words = keras.layers.Dropout(dropout, name="word_dropout")(words)
    return words, places


def dense_head(query, candidate, features, *, dense_layers, dense_units, dropout, l2):
    """The papers' last part: dense ReLU layers on the pair of vectors, then a softmax of two classes.

    Args:
        query: ``[B, L, d]``, or ``[B, d]`` where queries are encoded once.
        candidate: ``[B, L, d]``.
        features: further numbers of the pair ``[B, L, f]``, or None.
        dense_layers: number of dense layers.
        dense_units: units of each.
        dropout: rate on the pair of vectors and after each dense layer; not on the features.
        l2: factor of the squared kernels in the loss.

    Returns:
        ``[B, L]`` float32: the logit of "matches" less that of "does not", so that its sigmoid is the
        softmax's probability. Unlike the probability it never saturates to ties.
    """
    if len(query.shape) < len(candidate.shape):
        query = ops.expand_dims(query, 1) + ops.zeros_like(candidate)
    x = keras.layers.Dropout(dropout)(keras.layers.Concatenate()([query, candidate]))
    if features is not None:
        x = keras.layers.Concatenate()([x, features])
    for number in range(1, dense_layers + 1):
        x = keras.layers.Dense(
            dense_units,
            activation="relu",
            kernel_regularizer=keras.regularizers.L2(l2),
            name=f"dense_{number}",
        )(x)
        x = keras.layers.Dropout(dropout)(x)
    logits = keras.layers.Dense(2, dtype="float32", kernel_regularizer=keras.regularizers.L2(l2), name="logits")(x)
    return logits[..., 1] - logits[..., 0]


def overlap_features(query, candidate, vocabulary_size, overlap):
    """The four word-overlap numbers of a pair (Severyn and Moschitti 2015, section 3.4), or None.

    ``overlap`` is ``"none"``, ``"share"`` or ``"coverage"``, see `OverlapFeatures`.
    """
    if overlap == "none":
        return None
    return OverlapFeatures(vocabulary_size, coverage=overlap == "coverage", name="overlap")(query, candidate)


def encoded_apart(
    encode,
    embeddings,
    *,
    name,
    trainable_embeddings=False,
    projection=300,
    projection_activation=None,
    word_dropout=0.0,
    dense_layers=1,
    dense_units=128,
    dropout=0.5,
    l2=4e-6,
    overlap="none",
):
    """A model that encodes query and candidate apart with one shared encoder, under the dense head.

    The encoder is the layer named ``encoder``, from ids ``[..., T]`` to vectors ``[..., d]``.

    Args:
        encode: function of (words ``[U, m]``, places in them ``[n, T]``, mask ``[n, T]``) to vectors ``[n, d]``.
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        name: the model's name.
        trainable_embeddings, projection, projection_activation, word_dropout: as in `word_vectors`.
        dense_layers, dense_units, dropout, l2: as in `dense_head`.
        overlap: the four word-overlap features that join the head, see `overlap_features`.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``, the log-odds of a match.
    """
    text = keras.Input((None,), dtype="int32", name="text")
    words, (places,) = word_vectors(
        [text],
        embeddings,
        trainable=trainable_embeddings,
        projection=projection,
        projection_activation=projection_activation,
        dropout=word_dropout,
        l2=l2,
    )
    text_encoder = keras.Model(text, encode(words, places, token_mask(text)), name="text_encoder")
    encoder = ListWise(text_encoder, name="encoder")
    query, candidate = pair_inputs()
    score = dense_head(
        encoder(query),
        encoder(candidate),
        overlap_features(query, candidate, len(embeddings), overlap),
        dense_layers=dense_layers,
        dense_units=dense_units,
        dropout=dropout,
        l2=l2,
    )
    return keras.Model({"query": query, "candidate": candidate}, score, name=name)
