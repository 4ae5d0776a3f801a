"""What the models share: inputs, word vectors under a projection, the dense head.

Shapes: ``B`` queries of a batch, ``L`` candidates of a list, ``T`` tokens, ``G`` character n-grams of a token,
``V`` ids, ``E`` word-vector size.
"""

import keras
import numpy as np
from keras import ops

from layers.char_ngram_embedding import CharNgramEmbedding
from layers.distinct_tokens import DistinctTokens
from layers.list_wise import ListWise
from layers.masking import token_mask
from layers.overlap_features import OverlapFeatures
from layers.word_embedding import WordEmbedding


def pair_inputs(char_ngrams=False):
    """Token ids of a query ``[B, T]`` and of its list of candidates ``[B, L, T]``; 0 is padding.

    With ``char_ngrams`` a token is a row of the ids of its n-grams: ``[B, T, G]`` and ``[B, L, T, G]``.
    """
    token = (None,) if char_ngrams else ()
    return (
        keras.Input((None, *token), dtype="int32", name="query"),
        keras.Input((None, None, *token), dtype="int32", name="candidate"),
    )


def real_tokens(ids, char_ngrams=False):
    """True at the tokens of ids ``[..., T]``, or ``[..., T, G]`` with ``char_ngrams``; False at padding."""
    return token_mask(ids[..., 0] if char_ngrams else ids)


def field_inputs(fields):
    """Token ids as in `pair_inputs` of texts with fields: field to query, and field to candidate."""
    if len(fields) == 1:
        return tuple({fields[0]: side} for side in pair_inputs())
    return (
        {field: keras.Input((None,), dtype="int32", name=f"query_{field}") for field in fields},
        {field: keras.Input((None, None), dtype="int32", name=f"candidate_{field}") for field in fields},
    )


def unit_length(x):
    """Vectors ``[..., d]`` divided by their length, in float32 at least; the zero vector stays zero."""
    if keras.backend.standardize_dtype(x.dtype) != "float64":
        x = ops.cast(x, "float32")
    # The maximum keeps the gradient finite at zero.
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=-1, keepdims=True), 1e-16))


def token_vectors(
    ids,
    embeddings,
    *,
    char_ngrams=False,
    trainable=True,
    projection=0,
    activation=None,
    use_bias=True,
    l2=0.0,
    dropout=0.0,
    deviation=0.01,
    combiner="sum",
):
    """Looks up the distinct tokens of some texts, by word or as sums of character n-grams.

    All texts of one call share the table and the projection.

    Args:
        ids: list of id tensors, each ``[..., T]``, or ``[..., T, G]`` with ``char_ngrams``.
        embeddings: float array ``[V, E]``, row 0 zero; or the shape alone, for a table that is drawn.
        char_ngrams: whether tokens are rows of n-grams.
        trainable: whether the table is trained; or for words a boolean array ``[V]`` of the rows that are.
        projection: units of a dense layer on top, 0 for none.
        activation, use_bias: of the projection; None for a linear map.
        l2: factor of the projection's squared kernel in the loss.
        dropout: rate on the vectors; a word loses the same numbers wherever these texts hold it
            (Gal and Ghahramani 2016, section 4.2); under JAX, each position by itself.
        deviation: a drawn table is from N(0, deviation^2); Tomar et al. 2017 have 0.01.
        combiner: of n-grams, see `CharNgramEmbedding`.

    Returns:
        The tokens' vectors ``[U, d]``, and for each id tensor its places in them, ``[..., T]``; the vectors of a
        text are ``vectors[places]``.
    """
    tokens, places = DistinctTokens(rows=char_ngrams, name="distinct_tokens")(ids)
    given = isinstance(embeddings, np.ndarray)
    size, width = embeddings.shape if given else embeddings
    drawn = keras.initializers.RandomNormal(stddev=deviation)
    chosen = not char_ngrams and not isinstance(trainable, bool)
    if char_ngrams:
        table = CharNgramEmbedding(size, width, drawn, combiner, name="char_ngram_embedding")
    else:
        table = WordEmbedding(size, width, drawn, trainable=not chosen and trainable, name="embedding")
    vectors = table(tokens)
    if given:
        table.set_weights([embeddings])
    if chosen:
        learns = WordEmbedding(size, 1, trainable=False, name="learns")
        vectors += learns(tokens) * WordEmbedding(size, width, "zeros", name="learnt")(tokens)
        learns.set_weights([np.asarray(trainable, "float32")[:, None]])
    if projection:
        vectors = keras.layers.Dense(
            projection,
            activation=activation,
            use_bias=use_bias,
            kernel_regularizer=keras.regularizers.L2(l2) if l2 else None,
            name="projection",
        )(vectors)
    if dropout:
        vectors = keras.layers.Dropout(dropout, name="word_dropout")(vectors)
    return vectors, places


def feedforward_head(x, *, units, dropout, initializer="glorot_uniform"):
    """ReLU layers of some ``units`` on the vector of a pair, each under dropout, then a softmax of two classes.

    Args:
        x: ``[B, L, d]``.
        units: of each layer.
        dropout: rate after each layer.
        initializer: of the kernels.

    Returns:
        ``[B, L]`` float32, the log-odds of a match, as `dense_head`.
    """
    for number, size in enumerate(units, start=1):
        x = keras.layers.Dense(size, activation="relu", kernel_initializer=initializer, name=f"dense_{number}")(x)
        if dropout:
            x = keras.layers.Dropout(dropout, name=f"dropout_{number}")(x)
    return _log_odds(x, kernel_initializer=initializer)


def _log_odds(x, **settings):
    logits = keras.layers.Dense(2, dtype="float32", name="logits", **settings)(x)
    return logits[..., 1] - logits[..., 0]


def dense_head(query, candidate, features, *, dense_layers, dense_units, dropout, l2, compare=False):
    """The papers' last part: dense ReLU layers on the pair of vectors, then a softmax of two classes.

    Args:
        query: ``[B, L, d]``, or ``[B, d]`` where queries are encoded once.
        candidate: ``[B, L, d]``.
        features: further numbers of the pair ``[B, L, f]``, or None.
        dense_layers: number of dense layers.
        dense_units: units of each.
        dropout: rate on the pair of vectors and after each dense layer; not on the features.
        l2: factor of the squared kernels in the loss.
        compare: whether ``|u - v|`` and ``u v`` join the pair of vectors.

    Returns:
        ``[B, L]`` float32: the logit of "matches" less that of "does not", so that its sigmoid is the
        softmax's probability. Unlike the probability it never saturates to ties.
    """
    if len(query.shape) < len(candidate.shape):
        query = ops.expand_dims(query, 1) + ops.zeros_like(candidate)
    pair = [query, candidate, ops.abs(query - candidate), query * candidate] if compare else [query, candidate]
    x = keras.layers.Dropout(dropout)(keras.layers.Concatenate()(pair))
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
    return _log_odds(x, kernel_regularizer=keras.regularizers.L2(l2))


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
    compare=False,
):
    """A model that encodes query and candidate apart with one shared encoder, under the dense head.

    The encoder is the layer named ``encoder``, from ids ``[..., T]`` to vectors ``[..., d]``.

    Args:
        encode: function of (words ``[U, m]``, places in them ``[n, T]``, mask ``[n, T]``) to vectors ``[n, d]``.
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        name: the model's name.
        trainable_embeddings, projection, projection_activation, word_dropout: see `token_vectors`.
        dense_layers, dense_units, dropout, l2, compare: as in `dense_head`.
        overlap: the four word-overlap features that join the head, see `overlap_features`.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``, the log-odds of a match.
    """
    text = keras.Input((None,), dtype="int32", name="text")
    words, (places,) = token_vectors(
        [text],
        embeddings,
        trainable=trainable_embeddings,
        projection=projection,
        activation=projection_activation,
        l2=l2,
        dropout=word_dropout,
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
        compare=compare,
    )
    return keras.Model({"query": query, "candidate": candidate}, score, name=name)
