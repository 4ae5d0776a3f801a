"""Tokens as rows of character n-grams: the same in the graph, for a corpus, and by a plain loop."""

import numpy as np
import pytest
import tensorflow as tf

from zoo import char_ngrams
from zoo.encoded import TokenIds
from zoo.text import TextEncoder, build_vocabulary

TEXTS = ["Where is ''", "", "where wheer ? ca\u00f1\u00f3n \u4f60\u597d", "w" * 50 + " " + "x y " * 20]


def plain_ngrams(token, sizes):
    """The definition: all runs of n characters of the marked token, or the token itself."""
    marked = f"<{token[: char_ngrams.MAX_CHARACTERS]}>"
    runs = [marked[i : i + n] for n in sorted(sizes) for i in range(len(marked) - n + 1)]
    return runs or [marked]


@pytest.mark.parametrize("sizes", [(5,), (3,), (3, 4, 5), (40,)])
def test_ngrams_are_those_of_the_definition(sizes):
    tokens = ["where", "a", "", "ca\u00f1\u00f3n", "\u4f60\u597d", "\U0001f600", "aaaaaaa", "w" * 50]
    found = char_ngrams.ngrams(tf.constant(tokens), sizes).to_list()
    expected = [plain_ngrams(token, sizes) for token in tokens]
    assert [sorted(gram.decode() for gram in row) for row in found] == [sorted(row) for row in expected]


@pytest.mark.parametrize("vocabulary, buckets", [(0, 1000), (10_000, 0), (4, 7)])
@pytest.mark.parametrize("length", [3, 30])
def test_a_corpus_and_the_graph_give_the_same_rows(vocabulary, buckets, length):
    words = build_vocabulary(TEXTS[:1], max_words=vocabulary, ngram_sizes=(3, 5)) if vocabulary else []
    encoder = TextEncoder(words, oov_buckets=buckets, ngram_sizes=(5, 3))
    ids = encoder(TEXTS, length)["ids"].numpy()
    texts = TokenIds(*encoder.encode(TEXTS, length))
    again = texts.padded(np.arange(len(TEXTS)), ids.shape[1])
    width = min(ids.shape[2], again.shape[2])
    np.testing.assert_array_equal(ids[..., :width], again[..., :width])
    assert not ids[..., width:].any() and not again[..., width:].any()
    assert ids.max() < encoder.vocabulary_size and ids.min() >= (0 if buckets else -1)
    tokens = [row[:length] for row in encoder.tokenize(tf.constant(TEXTS)).to_list()]
    np.testing.assert_array_equal((ids[..., 0] != 0).sum(1), [len(row) for row in tokens])
    numbers = [len(plain_ngrams(token.decode(), (3, 5))) for row in tokens for token in row]
    np.testing.assert_array_equal((ids != 0).sum(-1)[ids[..., 0] != 0], numbers)


def test_an_ngram_has_one_id_wherever_it_stands():
    encoder = TextEncoder([], oov_buckets=100_000, ngram_sizes=[5])
    where, somewhere = encoder(["where somewhere"], 2)["ids"].numpy()[0]
    assert set(where[where > 0]) & set(somewhere[somewhere > 0])  # where, here>
    assert where[0] not in somewhere  # <wher


def test_a_vocabulary_of_ngrams_is_by_frequency_and_the_rest_is_unknown():
    words = build_vocabulary(["where where here"], ngram_sizes=[5])
    assert words == ["here>", "<wher", "where", "<here"]
    assert build_vocabulary([], ngram_sizes=[5]) == []
    encoder = TextEncoder(words, oov_buckets=0, ngram_sizes=[5])
    found = encoder(["here there zzz"], 9)
    assert found["ids"].numpy()[0].tolist() == [[4, 1, 0], [-1, -1, 1], [-1, 0, 0]]
    assert found["num_unknown"].numpy().tolist() == [1]
    assert TextEncoder(words, **encoder.get_config()).vocabulary_size == 5


def test_of_hashed_ngrams_none_is_unknown():
    found = TextEncoder([], oov_buckets=9, ngram_sizes=[5])(["zzz yyy", ""], 1)
    assert found["num_unknown"].numpy().tolist() == [0, 0]
    assert found["truncated"].numpy().tolist() == [True, False]
    assert TextEncoder([], oov_buckets=9, ngram_sizes=[5])([], 1)["ids"].shape == (0, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ({"ngram_sizes": [0]}, r"ngram_sizes=\(0,\)"),
        ({"ngram_sizes": [3, 3]}, r"ngram_sizes=\(3, 3\)"),
        ({"ngram_sizes": [3], "tokenizer": "wordpiece", "words": ["[UNK]"]}, "tokenizer='wordpiece'"),
        ({"ngram_sizes": [3], "oov_buckets": 0}, "oov_buckets=0"),
    ],
)
def test_errors(arguments, received):
    with pytest.raises(ValueError, match=f"Received: .*{received}"):
        TextEncoder(**{"words": [], **arguments})
