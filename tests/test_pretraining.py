"""Titles told from contexts: what a batch holds, and that the encoder-decoder trains the encoder's own weights."""

import numpy as np
import pytest

from tests.test_models_rcnn import UNREAD, embeddings, make
from zoo import losses
from zoo.encoded import EncodedSplit, TokenIds
from zoo.models.title_decoder import title_decoder, title_matcher
from zoo.pretraining import END, MAX_TITLE, OTHER, TitleBatches, perplexity, target_numbers


def texts(*rows):
    return TokenIds(np.array([i for row in rows for i in row], "int32"), np.cumsum([0, *map(len, rows)]))


def split():
    """Three questions, to the first of which a fourth is similar; ids up to UNREAD are not read."""
    return EncodedSplit(
        query_ids={"title": texts([5, 2, 6], [6], [1]), "body": texts([9, 9, 9], [], [8])},
        candidate_ids={"title": texts([7, 7]), "body": texts([4])},
        query_of_group=np.array([0, 1, 2]),
        candidate_of_pair=np.array([0]),
        labels=np.array([1.0]),
        group_offsets=np.array([0, 1, 1, 1]),
    )


def numbers(max_words=100):
    return target_numbers(texts([5, 2, 6], [6], [1], [7, 7]), 40, UNREAD, max_words)


def test_the_most_frequent_words_of_titles_are_told_apart():
    assert {i: n for i, n in enumerate(numbers()) if n != OTHER} == {6: 3, 7: 4, 5: 5}
    assert {i: n for i, n in enumerate(numbers(3)) if n != OTHER} == {6: 3}


def rows(batches):
    """Context, title and target of every row, without padding."""
    found = []
    for inputs, target in map(batches.__getitem__, range(len(batches))):
        np.testing.assert_array_equal(inputs["target"], target)
        assert inputs["target"].shape[1] == inputs["title"].shape[1] + 1
        for context, title, told in zip(inputs["context"], inputs["title"], target, strict=True):
            if told.any():
                found.append(tuple(tuple(part[part > 0].tolist()) for part in (context, title, told)))
    return found


def test_what_is_told_from_what():
    found = rows(TitleBatches(split(), numbers(), UNREAD, batch_size=3))
    first, second, similar = ((5, 6), (5, 3, END)), ((6,), (3, END)), ((7, 7), (4, 4, END))
    expected = {
        ((5, 2, 6), *first),
        ((9, 9, 9), *first),
        ((6,), *second),
        ((), *second),
        ((5, 2, 6), *similar),
        ((9, 9, 9), *similar),
        ((7, 7), *first),
        ((4,), *first),
    }
    assert set(found) == expected and len(found) == len(expected)  # the third title has no word that is read
    bodies = rows(TitleBatches(split(), numbers(), UNREAD, batch_size=3, fields=("body",)))
    assert set(bodies) == {row for row in expected if row[0] in [(9, 9, 9), (), (4,)]}


def test_fields_take_turns_over_the_same_rows():
    batches = TitleBatches(split(), numbers(), UNREAD, batch_size=2, shuffle_seed=1)
    assert len(batches) == 4
    for number in (0, 2):
        titles, bodies = batches[number][0], batches[number + 1][0]
        width = min(titles["title"].shape[1], bodies["title"].shape[1])
        np.testing.assert_array_equal(titles["title"][:, :width], bodies["title"][:, :width])


def test_order_depends_on_seed_and_epoch_alone():
    def orders(seed):
        batches, found = TitleBatches(split(), numbers(), UNREAD, 2, shuffle_seed=seed), []
        for _ in range(4):
            found.append(batches.order.tolist())
            batches.on_epoch_end()
        return found

    assert orders(1) == orders(1) != orders(2)
    assert len({tuple(order) for order in orders(1)}) > 1


def test_long_titles_are_cut():
    long = split()
    long.query_ids["title"] = texts(range(4, 4 + MAX_TITLE + 5), [6], [1])
    titles = [title for _, title, _ in rows(TitleBatches(long, np.full(60, OTHER), UNREAD, 3))]
    assert max(map(len, titles)) == MAX_TITLE


def probabilities(model, decoder, inputs):
    """The chain rule by hand: the reader's final state, then one step of the decoder after the other."""
    reader, after = model.get_layer("encoder").layer.get_layer("reader"), decoder.get_layer("decoder")
    softmax, vectors = decoder.get_layer("softmax"), embeddings()
    found = np.zeros(inputs["target"].shape)
    for b, (context, title, target) in enumerate(zip(*inputs.values(), strict=True)):
        context = context[context > UNREAD]
        state = [part.numpy() for part in reader(vectors[context][None])[1:]]
        x = np.zeros((1, 1, vectors.shape[1]), "float32")
        for t, word in enumerate(target[target > 0]):
            given = {"initial_state": state[0] if len(state) == 1 else state}
            states, *state = (part.numpy() for part in after(x, **given))
            logits = np.asarray(softmax.kernel) @ states[0, 0] + np.asarray(softmax.bias)
            found[b, t] = np.log(np.exp(logits.astype("float64")).sum()) - logits[word - 1]
            x = vectors[title[t : t + 1]][None] if t < len(title) else x
    return found


@pytest.mark.parametrize("reader", ["rcnn", "lstm", "gru"])
def test_decoder(reader):
    model = make(reader)
    decoder = title_decoder(model, num_words=12, num_unread=UNREAD, dropout=0, initial_range=0.5)
    decoder.get_layer("softmax").kernel.assign(np.random.default_rng(4).normal(size=(12, 8)))
    random = np.random.default_rng(5)
    inputs = {
        "context": random.integers(1, 40, (3, 6)).astype("int32"),
        "title": random.integers(UNREAD + 1, 40, (3, 4)).astype("int32"),
        "target": random.integers(1, 13, (3, 5)).astype("int32"),
    }
    inputs["target"][1, 3:] = inputs["title"][1, 2:] = inputs["context"][0, 4:] = 0
    expected = probabilities(model, decoder, inputs)
    np.testing.assert_allclose(decoder(inputs), expected, atol=2e-5)
    # Training it moves the encoder.
    before = [np.array(w) for w in model.trainable_weights]
    decoder.compile("sgd", loss=losses.total)
    loss = decoder.train_on_batch(inputs, inputs["target"])
    np.testing.assert_allclose(loss, expected.sum(axis=1).mean(), rtol=1e-2)
    assert all((np.array(w) != b).any() for w, b in zip(model.trainable_weights, before, strict=True))


@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("reader", ["rcnn", "lstm", "gru"])
def test_titles_are_compared_by_the_last_state_whatever_the_pooling(reader, pooling):
    model = make(reader, pooling=pooling, dropout=0.2)
    text_encoder = model.get_layer("encoder").layer
    title = {
        "query": np.array([[5, 9, 7], [6, 1, 0]], "int32"),
        "candidate": np.array([[[8, 5, 0]], [[4, 4, 9]]], "int32"),
    }

    def last(ids):
        read = ids[ids > UNREAD]
        words, mask = text_encoder.get_layer("embedding")(read), np.ones((1, len(read)), bool)
        layer = text_encoder.get_layer("reader")
        if reader == "rcnn":
            states = layer(np.arange(len(read))[None], mask=mask, words=words)[0]
        else:
            states = layer(words[None], mask=mask)[0]
        state = np.asarray(states)[0] if pooling == "last" else np.asarray(states)[0, -1]
        return state / np.linalg.norm(state)

    pairs = zip(title["query"], title["candidate"][:, 0], strict=True)
    expected = [[last(query) @ last(candidate)] for query, candidate in pairs]
    np.testing.assert_allclose(title_matcher(model, UNREAD)(title), expected, atol=1e-5)


def test_perplexity_is_that_of_a_uniform_guess_before_training():
    batches = TitleBatches(split(), numbers(), UNREAD, batch_size=3, fields=("body",))
    decoder = title_decoder(make("rcnn"), num_words=5, num_unread=UNREAD)
    decoder.get_layer("softmax").kernel.assign(np.zeros((5, 8)))
    np.testing.assert_allclose(perplexity(decoder, batches), 5, rtol=1e-5)


def test_perplexity_is_of_words_not_of_titles():
    """Two titles of unequal length, told by a decoder that does not find all words alike."""
    batches = TitleBatches(split(), numbers(), UNREAD, batch_size=1, fields=("body",))
    decoder = title_decoder(make("rcnn"), num_words=5, num_unread=UNREAD, dropout=0, initial_range=0.5)
    decoder.get_layer("softmax").kernel.assign(np.random.default_rng(4).normal(size=(5, 8)))
    inputs = [batches[number][0] for number in range(len(batches))]
    told = [np.asarray(decoder(each))[each["target"] > 0] for each in inputs]
    assert len({len(each) for each in told}) > 1 and np.ptp(np.concatenate(told)) > 0.01
    assert perplexity(decoder, batches) == pytest.approx(np.exp(np.concatenate(told).mean()), rel=1e-5)
    nothing = EncodedSplit(
        **{side: {"title": texts([1]), "body": texts([9])} for side in ("query_ids", "candidate_ids")},
        query_of_group=np.array([0]),
        candidate_of_pair=np.zeros(0, int),
        labels=np.zeros(0),
        group_offsets=np.array([0, 0]),
    )
    with pytest.raises(ValueError, match="Received: none"):
        perplexity(decoder, TitleBatches(nothing, numbers(), UNREAD, batch_size=1))


def test_a_convolution_has_no_state_to_start_from():
    with pytest.raises(ValueError, match="Received: Conv1D"):
        title_decoder(make("cnn"), num_words=5)
