"""The encoder-decoder that RCNN is pre-trained as: from a question's body, or another text, to its title."""

import keras
from keras import ops

from layers.gated_conv import GatedConv
from layers.list_wise import ListWise
from layers.vocabulary_softmax import VocabularySoftmax
from zoo.models import parts


def title_decoder(model, *, num_words, num_unread=0, num_sampled=0, dropout=0.1, initial_range=0.05):
    """A decoder behind the reader of a question encoder, both of one kind and size, over the same word vectors.

    The decoder begins with the reader's full final state, and sees nothing else of the context. It reads a zero
    vector and then the title's words, and tells at each step the next one; after the last, the end of the title.

    Args:
        model: what `zoo.models.rcnn.rcnn` gave, whose reader and word vectors are shared; not a ``cnn``.
        num_words: targets that are told apart, see `VocabularySoftmax`.
        num_unread: ids up to this one are left out of the context, as in the model.
        num_sampled: words that the softmax is sampled from in training; 0 for all of them.
        dropout: rate on the word vectors and on the decoder's states.
        initial_range: weights and biases of the decoder begin in U(-initial_range, initial_range); the softmax's in
            a thousandth of it, as in the released code.

    Returns:
        A model from ``{"context": [B, Tc], "title": [B, T], "target": [B, T + 1]}``, ids and numbers of the words
        to be told (0 is padding), to minus the log-probability of each target, ``[B, T + 1]``.

    Raises:
        ValueError: if the model's reader keeps no state.
    """
    text_encoder = model.get_layer("encoder").layer
    reader, embedding = text_encoder.get_layer("reader"), text_encoder.get_layer("embedding")
    if not getattr(reader, "return_state", False):
        raise ValueError(
            f"Pre-training needs a reader with a state: rcnn, lstm or gru. Received: {type(reader).__name__}"
        )
    context, title, target = (keras.Input((None,), dtype="int32", name=name) for name in ("context", "title", "target"))
    words, (context_places, title_places) = text_encoder.get_layer("distinct_tokens")([context, title])
    words = embedding(words)
    if dropout:
        words = keras.layers.Dropout(dropout)(words)
    state = _read(reader, words, context_places, context > num_unread)[1:]
    # Row 0, zeros, stands before the title; what is read and what is told are so one step apart.
    words, places = ops.pad(words, [[1, 0], [0, 0]]), ops.pad(title_places + 1, [[0, 0], [1, 0]])
    uniform = keras.initializers.RandomUniform
    config = reader.get_config() | {"name": "decoder", "return_sequences": True}
    config |= {name: uniform(-initial_range, initial_range) for name in config if name.endswith("_initializer")}
    decoder = type(reader).from_config(config)
    states = _read(decoder, words, places, target > 0, state)[0]
    if dropout:
        states = keras.layers.Dropout(dropout)(states)
    tell = VocabularySoftmax(
        num_words, num_sampled, kernel_initializer=uniform(-initial_range / 1000, initial_range / 1000), name="softmax"
    )
    return keras.Model({"context": context, "title": title, "target": target}, tell(states, target))


def title_matcher(model, num_unread=0):
    """Compares titles by the reader's last state alone, as pre-training is watched (Lei et al. 2016, section 5).

    Args:
        model: as above; its reader and word vectors are shared.
        num_unread: as above.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}``, ids of titles, to cosines ``[B, L]``.
    """
    text_encoder = model.get_layer("encoder").layer
    reader, embedding = text_encoder.get_layer("reader"), text_encoder.get_layer("embedding")
    title = keras.Input((None,), dtype="int32", name="title")
    words, (places,) = text_encoder.get_layer("distinct_tokens")([title])
    mask = title > num_unread
    final = _read(reader, embedding(words), places, mask)[1]
    last = final[:, -1] if _is_gated(reader) else final
    encoder = ListWise(keras.Model(title, parts.unit_length(last), name="title_encoder"), name="title_encoders")
    query, candidate = parts.pair_inputs()
    query_vector, candidate_vector = encoder([query, candidate])
    score = ops.sum(ops.expand_dims(query_vector, 1) * candidate_vector, axis=-1)
    return keras.Model({"query": query, "candidate": candidate}, ops.cast(score, "float32"), name="title_matcher")


def _read(reader, words, places, mask, state=None):
    """What the reader gives of its states, and the parts of the final one."""
    if _is_gated(reader):
        return reader(places, mask=mask, words=words, initial_state=state and state[0])
    return reader(ops.take(words, places, axis=0), mask=mask, initial_state=state)


def _is_gated(reader):
    """Whether it is a `GatedConv`, which takes places, and whose state is one array; h is the last of it."""
    return isinstance(reader, GatedConv)
