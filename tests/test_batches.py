"""Batches are the groups again, whatever the list size."""

import keras
import numpy as np
import pytest
from keras import ops

from zoo.batches import Batches, predict_split, score_split
from zoo.data import Group
from zoo.encoded import TokenIds, distinct_texts, document_frequency, encode_split, joined
from zoo.negatives import Negatives
from zoo.text import TextEncoder

GROUPS = [
    Group("1", ("a b",), (("a",), ("b c",), ("",)), (1.0, 0.0, 0.0)),
    Group("2", ("",), (("c",),), (0.0,)),
    Group("3", ("a b",), tuple((f"c {'b ' * n}",) for n in range(5)), (0.0, 0.0, 1.0, 1.0, 0.0)),
]


@pytest.fixture(scope="module")
def split():
    encoder = TextEncoder(["a", "b", "c"], "word", oov_buckets=1)  # ids: unknown 1, a 2, b 3, c 4
    return encode_split(GROUPS, encoder, ("text",), max_query_length=8, max_candidate_length=3)


def pairs_of(batches):
    """Every real pair as (query ids, candidate ids, label), padding cut off."""
    for number in range(len(batches)):
        inputs, labels = batches[number]
        for row, column in zip(*np.nonzero(labels >= 0), strict=True):
            query, candidate = inputs["query"][row], inputs["candidate"][row, column]
            yield (
                tuple(query[query > 0].tolist()),
                tuple(candidate[candidate > 0].tolist()),
                float(labels[row, column]),
            )


EXPECTED = sorted(
    [((2, 3), (2,), 1.0), ((2, 3), (3, 4), 0.0), ((2, 3), (), 0.0), ((), (4,), 0.0)]
    + [((2, 3), (4, *(3,) * min(n, 2)), float(n in (2, 3))) for n in range(5)]
)


@pytest.mark.parametrize("list_size", [1, 2, 3, 10])
@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_each_pair_occurs_once(split, list_size, batch_size):
    batches = Batches(split, batch_size, list_size, shuffle_seed=0)
    shapes = [inputs["candidate"].shape for inputs, _ in map(batches.__getitem__, range(len(batches)))]
    assert {shape[:2] for shape in shapes} == {(batch_size, list_size)}
    assert shapes[0][2] == 4 and all(shape[2] <= 3 for shape in shapes[1:])
    assert sorted(pairs_of(batches)) == EXPECTED


def test_order_depends_on_seed_and_epoch_alone(split):
    batches = Batches(split, 2, 1, shuffle_seed=3)
    first = batches.order.tolist()
    batches.on_epoch_end()
    second = batches.order.tolist()
    assert first != second and sorted(first) == sorted(second)
    again = Batches(split, 2, 1, shuffle_seed=3)
    again.on_epoch_end()
    assert again.order.tolist() == second


def test_a_batch_holds_texts_of_about_one_length():
    groups = [Group(str(n), ("a",), ((f"{'b ' * (n % 40)}",),), (0.0,)) for n in range(2000)]
    made = encode_split(groups, TextEncoder(["a", "b"], "word", oov_buckets=1), ("text",), 64, 64)
    batches = Batches(made, 16, 1, shuffle_seed=0)
    counts = [(inputs["candidate"] > 0).sum(-1) for inputs, _ in map(batches.__getitem__, range(len(batches)))]
    assert max(int(count.max() - count.min()) for count in counts[:-1]) <= 5
    means = [float(count.mean()) for count in counts]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.3  # and their order is random


def test_both_sides_of_a_batch_hold_little_padding():
    random = np.random.default_rng(0)
    groups = [
        Group(str(n), ("a " * a,), (("b " * b,),), (0.0,)) for n, (a, b) in enumerate(random.integers(1, 41, (2000, 2)))
    ]
    made = encode_split(groups, TextEncoder(["a", "b"], "word", oov_buckets=1), ("text",), 64, 64)
    batches = Batches(made, 16, 1, shuffle_seed=0)
    sides = [ids for number in range(1, len(batches)) for ids in batches[number][0].values()]
    # Sorted by the candidates alone it would be 1.44.
    assert sum(ids.size for ids in sides) / sum((ids > 0).sum() for ids in sides) < 1.4


def test_padding_has_label_minus_one(split):
    inputs, labels = Batches(split, 8, 4)[0]  # four lists, sorted by length, two of them of group 3
    assert labels.tolist()[:4] == [[0, -1, -1, -1], [1, 0, 0, -1], [0, 0, 1, 1], [0, -1, -1, -1]]
    assert (labels[4:] == -1).all()
    assert (inputs["candidate"][labels < 0] == 0).all() and (inputs["query"][4:] == 0).all()


def test_scores_come_back_in_file_order(split):
    class Length:
        """Scores a candidate by its number of tokens."""

        def predict(self, batches, verbose):
            return np.concatenate(
                [(inputs["candidate"] > 0).sum(-1) for inputs, _ in map(batches.__getitem__, range(len(batches)))]
            )

    scores = score_split(Length(), split, batch_size=2)
    assert scores.tolist() == [1, 2, 0, 1, 1, 2, 3, 3, 3]
    assert [len(group) for group in split.per_group(scores)] == [3, 1, 5]


def test_no_pairs():
    empty = encode_split([], TextEncoder(["a"], "word", oov_buckets=1), ("text",), 4, 4)
    assert score_split(None, empty).shape == (0,)
    assert TokenIds(np.zeros(0, "int32"), np.zeros(2, "int64")).padded(np.array([0, -1]), 2).tolist() == [
        [0, 0],
        [0, 0],
    ]


def test_fields_are_inputs_of_their_own():
    groups = [Group("1", ("a", "b b"), (("b", "a"),), (1.0,))]
    encoder = TextEncoder(["a", "b"], "word", oov_buckets=1)
    inputs, _ = Batches(encode_split(groups, encoder, ("title", "body"), 4, 4), 1, 1)[0]
    assert {name: ids.tolist() for name, ids in inputs.items()} == {
        "query_title": [[2, 0]],
        "query_body": [[3, 3, 0]],
        "candidate_title": [[[3, 0]]],
        "candidate_body": [[[2, 0]]],
    }


def drawn_lists(batches):
    """Every list as (query, the relevant candidate, the set of the others)."""
    for number in range(len(batches)):
        inputs, labels = batches[number]
        for row in np.flatnonzero(labels[:, 0] >= 0):
            assert labels[row, 0] == 1 and not (labels[row, 1:] > 0).any()
            texts = [tuple(ids[ids > 0].tolist()) for ids in inputs["candidate"][row]]
            others = {text for text, label in zip(texts[1:], labels[row, 1:], strict=True) if label == 0}
            yield tuple(inputs["query"][row][inputs["query"][row] > 0].tolist()), texts[0], others


POSITIVE = [((2, 3), (2,)), ((2, 3), (4, 3, 3)), ((2, 3), (4, 3, 3))]


def test_negatives_of_the_list(split):
    batches = Batches(split, 2, negatives=Negatives(5), shuffle_seed=0)
    found = sorted(drawn_lists(batches))
    assert [(query, positive) for query, positive, _ in found] == POSITIVE
    # All that there are: fewer than asked for, the rest is padding. The last candidate of group 3 is cut to the
    # ids of its relevant ones.
    assert [others for _, _, others in found] == [{(3, 4), ()}, *[{(4,), (4, 3)}] * 2]


def test_negatives_are_redrawn_by_seed_and_epoch_alone(split):
    def epoch(batches):
        return [list(drawn_lists(batches))]

    batches = Batches(split, 2, negatives=Negatives(1), shuffle_seed=3)
    epochs = []
    for _ in range(8):
        epochs.append(epoch(batches))
        batches.on_epoch_end()
    assert len({str(lists) for lists in epochs}) > 2
    again = Batches(split, 2, negatives=Negatives(1), shuffle_seed=3)
    for _ in range(5):
        again.on_epoch_end()
    assert epoch(again) == epochs[5]


def test_negatives_of_the_corpus_are_never_relevant_to_their_query():
    encoder = TextEncoder(["a", "b", "c"], "word", oov_buckets=1)
    groups = [
        Group("1", ("a",), (("a a",), ("b b",)), (1.0, 1.0)),
        Group("2", ("b",), (("c c",), ("a b",)), (1.0, 0.0)),
    ]
    split = encode_split(groups, encoder, ("text",), 8, 8)
    seen = {}
    batches = Batches(split, 2, negatives=Negatives(3, "corpus"), shuffle_seed=1)
    for _ in range(20):
        for query, _, others in drawn_lists(batches):
            seen.setdefault(query, set()).update(others)
        batches.on_epoch_end()
    assert seen == {(2,): {(4, 4), (2, 3)}, (3,): {(2, 2), (3, 3), (2, 3)}}


@pytest.mark.parametrize("source", ["list", "corpus"])
def test_what_is_relevant_in_another_group_or_spelling_is_no_negative(source):
    encoder = TextEncoder(["a", "b", "c"], "word", oov_buckets=1)
    groups = [
        Group("1", ("a",), (("a a",), ("B  b",), ("c",)), (1.0, 0.0, 0.0)),
        Group("2", ("A",), (("b b",), ("A A",), ("c c",)), (1.0, 0.0, 0.0)),
    ]
    split = encode_split(groups, encoder, ("text",), 8, 8)
    batches, seen = Batches(split, 2, negatives=Negatives(1, source), shuffle_seed=1), set()
    for _ in range(20):
        for _, _, others in drawn_lists(batches):
            seen |= others
        batches.on_epoch_end()
    assert seen == {(4,), (4, 4)}


def test_negatives_of_the_batch_are_the_others_that_are_not_relevant():
    encoder = TextEncoder(["a", "b", "c", "d"], "word", oov_buckets=1)
    groups = [
        Group("1", ("a",), (("a a",), ("b b",)), (1.0, 1.0)),
        Group("2", ("b",), (("a a",), ("d",)), (1.0, 0.0)),
        Group("3", ("d d d",), (("b",),), (1.0,)),
    ]
    split = encode_split(groups, encoder, ("text",), 8, 8)
    inputs, labels = Batches(split, 5, negatives=Negatives(1, "batch"), shuffle_seed=1)[0]
    assert inputs["candidate"].shape[1] == 1
    query, candidate = (["".join(map(str, ids[ids > 0])) for ids in texts] for texts in (
        inputs["query"], inputs["candidate"][:, 0]))  # fmt: skip
    assert sorted(query) == ["", "2", "2", "3", "555"]
    relevant = {("2", "22"), ("2", "33"), ("3", "22"), ("555", "3")}
    for row, asked in enumerate(query):
        for column, text in enumerate(candidate):
            padding = not asked or not text
            # Another's is no negative if it is relevant too, or is the query itself.
            known = (asked, text) in relevant or asked == text
            expected = -1 if padding else 1 if row == column else -1 if known else 0
            assert labels[row, column] == expected, (asked, text)


@pytest.mark.parametrize("source", ["list", "corpus"])
def test_a_query_is_no_negative_of_its_own(source):
    encoder = TextEncoder(["a", "b", "c"], "word", oov_buckets=1)
    groups = [
        Group("1", ("a",), (("b",), ("A",), ("c",)), (1.0, 0.0, 0.0)),
        Group("2", ("b",), (("a",), ("b",), ("c",)), (1.0, 0.0, 0.0)),
    ]
    split = encode_split(groups, encoder, ("text",), 8, 8)
    batches = Batches(split, 2, negatives=Negatives(2, source), shuffle_seed=1)
    assert all(others == {(4,)} for _, _, others in drawn_lists(batches))


def test_no_text_is_twice_in_a_list():
    encoder = TextEncoder(["a"], "word", oov_buckets=1)
    groups = [Group("1", ("a",), tuple(("a " * n,) for n in range(1, 6)), (1.0, 0.0, 0.0, 0.0, 0.0))]
    split = encode_split(groups, encoder, ("text",), 8, 8)
    for seed in range(20):
        inputs, labels = Batches(split, 1, negatives=Negatives(4, "corpus"), shuffle_seed=seed)[0]
        texts = [tuple(ids) for ids in inputs["candidate"][0].tolist()]
        assert len(set(texts)) == 5 and labels.tolist() == [[1, 0, 0, 0, 0]]


def test_negatives_of_the_batch_need_two_queries():
    split = encode_split([Group("1", ("a",), (("a a",), ("b",)), (1.0, 1.0))], TextEncoder(["a", "b"]), ("text",), 8, 8)
    with pytest.raises(ValueError, match="Received: 2 relevant pairs of 2, source='batch'"):
        Batches(split, 2, negatives=Negatives(1, "batch"), shuffle_seed=1)


@pytest.mark.parametrize("source", ["list", "corpus"])
@pytest.mark.parametrize("labels, relevant", [((1.0, 1.0), 2), ((0.0, 0.0), 0)])
def test_without_a_negative_or_a_relevant_pair_nothing_can_be_drawn(source, labels, relevant):
    encoder = TextEncoder(["a"], "word", oov_buckets=1)
    split = encode_split([Group("1", ("a",), (("a",), ("a a",)), labels)], encoder, ("text",), 8, 8)
    with pytest.raises(ValueError, match=f"Received: {relevant} relevant pairs of 2, source='{source}'"):
        Batches(split, 2, negatives=Negatives(2, source), shuffle_seed=1)


def test_a_remainder_is_dropped_unless_it_is_all(split):
    assert len(Batches(split, 4, 1, drop_remainder=True)) == 2
    assert len(Batches(split, 4, 1)) == 3
    assert len(Batches(split, 64, 1, drop_remainder=True)) == 1


@pytest.mark.parametrize("count, source", [(0, "list"), (3, "moon")])
def test_negatives_refuse(count, source):
    with pytest.raises(ValueError, match=f"count={count}, source='{source}'"):
        Negatives(count, source)


def test_a_model_may_give_more_than_a_score(split):
    def with_class(model):
        return keras.Model(model.input, {"score": model.output, "class": ops.stack([model.output] * 3, axis=-1)})

    query, candidate = keras.Input((None,), name="query"), keras.Input((None, None), name="candidate")
    model = keras.Model(
        {"query": query, "candidate": candidate}, ops.sum(candidate, axis=-1) + ops.sum(query, axis=-1, keepdims=True)
    )
    np.testing.assert_array_equal(score_split(with_class(model), split), score_split(model, split))


def test_outputs_by_name_are_in_the_order_of_the_file(split):
    query, candidate = keras.Input((None,), name="query"), keras.Input((None, None), name="candidate")
    score = ops.sum(candidate, axis=-1) + ops.sum(query, axis=-1, keepdims=True)
    model = keras.Model(
        {"query": query, "candidate": candidate}, {"score": score, "two": ops.stack([score, -score], axis=-1)}
    )
    outputs = predict_split(model, split, batch_size=2)
    expected = [sum(group_query) + sum(text) for group_query, text in texts_of_pairs(split)]
    np.testing.assert_allclose(outputs["score"], expected)
    np.testing.assert_allclose(outputs["two"], np.stack([expected, np.negative(expected)], axis=-1))


def texts_of_pairs(split):
    def text(ids, number):
        return ids["text"].flat[ids["text"].offsets[number] : ids["text"].offsets[number + 1]].tolist()

    for pair, group in enumerate(split.group_of_pair):
        yield (
            text(split.query_ids, split.query_of_group[group]),
            text(split.candidate_ids, split.candidate_of_pair[pair]),
        )


def test_joined_splits_are_one_after_the_other(split):
    encoder = TextEncoder(["a", "b", "c"], "word", oov_buckets=1)
    other = encode_split(GROUPS[1:], encoder, ("text",), 8, 3)
    both = joined([split, other, split])
    assert list(texts_of_pairs(both)) == [*texts_of_pairs(split), *texts_of_pairs(other), *texts_of_pairs(split)]
    np.testing.assert_array_equal(both.labels, np.concatenate([split.labels, other.labels, split.labels]))
    np.testing.assert_array_equal(np.diff(both.group_offsets), [3, 1, 5, 1, 5, 3, 1, 5])
    assert joined([split]) is split
    each = [*pairs_of(Batches(split, 2)), *pairs_of(Batches(other, 2)), *pairs_of(Batches(split, 2))]
    assert sorted(pairs_of(Batches(both, 2, 3))) == sorted(each)


def test_texts_of_ngrams_are_as_wide_as_their_widest_token():
    rows = np.array([[0, 0, 0], [4, 0, 0], [5, 6, 0], [7, -1, 8]])
    texts = TokenIds(np.array([1, 2, 3, 1]), np.array([0, 2, 2, 4]), rows)
    assert texts.padded(np.array([0, 1, -1]), 3).tolist() == [[[4, 0], [5, 6], [0, 0]], [[0, 0]] * 3, [[0, 0]] * 3]
    assert texts.padded(np.array([[2]]), 2).tolist() == [[[[7, -1, 8], [4, 0, 0]]]]
    assert texts.padded(np.array([1]), 1, 4).shape == (1, 1, 4)
    assert texts.padded(np.array([-1]), 1).tolist() == [[[0]]]


def test_no_two_batches_of_ngrams_but_equal_ones_have_the_width_of_the_first():
    encoder = TextEncoder([], oov_buckets=50, ngram_sizes=[3])
    groups = [Group(str(n), ("a " * n,), (("bc" * n,),), (1.0,)) for n in range(1, 9)]
    batches = Batches(encode_split(groups, encoder, ("text",), 20, 20), 2)
    widths = [batches[number][0]["candidate"].shape[-1] for number in range(len(batches))]
    assert widths[0] > max(widths[1:]) and widths[1:] == sorted(widths[1:])


def test_splits_of_ngrams_are_joined_with_their_rows():
    encoder = TextEncoder([], oov_buckets=50, ngram_sizes=[3])
    parts = [
        encode_split([Group(text, (text,), ((text[::-1],),), (1.0,)) for text in texts], encoder, ("text",), 9, 9)
        for texts in (["ab abcdef", ""], ["abc", "xyzzy x ab"])
    ]
    whole = joined(parts).query_ids["text"]
    for number, (part, place) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        expected = parts[part].query_ids["text"].padded(np.array([place]), 4, 9)
        np.testing.assert_array_equal(whole.padded(np.array([number]), 4, 9), expected)


def test_both_sides_have_one_of_few_lengths(split):
    batches = Batches(split, 2, shuffle_seed=1, length_step=4)
    assert sorted(pairs_of(batches)) == sorted(pairs_of(Batches(split, 2)))
    for number in range(len(batches)):
        inputs, _ = batches[number]
        assert inputs["query"].shape[-1] == inputs["candidate"].shape[-1]
        assert inputs["query"].shape[-1] % 4 == 0


def test_distinct_texts_and_in_how_many_of_them_an_id_occurs(split):
    texts = distinct_texts([split, split])
    # Of both sides once: "a b", "", "a", "b c", "c", "c b" and "c b b", cut to three words.
    assert sorted(map(tuple, texts)) == [(), (2,), (2, 3), (3, 4), (4,), (4, 3), (4, 3, 3)]
    assert document_frequency(texts, 6).tolist() == [0, 0, 2, 4, 4, 0]
