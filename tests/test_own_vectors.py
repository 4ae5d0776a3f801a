"""Word vectors of the data set's own text: words of one context are near each other."""

import sys

import numpy as np
import pytest

from zoo import own_vectors
from zoo.data import Group
from zoo.encoded import encode_split
from zoo.text import TextEncoder

TOPICS = [[f"{topic}{number}" for number in range(20)] for topic in ("animal", "engine")]
WORDS = [*TOPICS[0], *TOPICS[1]]


def split():
    pytest.importorskip("gensim")
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(TOPICS[n % 2], 8)) for n in range(800)]
    groups = [Group(str(n), (text,), (("",),), (1.0,)) for n, text in enumerate(texts)]
    return encode_split(groups, TextEncoder(WORDS, "word", oov_buckets=2), ("text",), 8, 8)


def trained(seed=1):
    matrix = np.zeros((43, 8), "float32")
    line = own_vectors.train([split()], matrix, 3, WORDS, seed)
    return matrix, line


def test_words_of_one_context_are_near():
    matrix, line = trained()
    assert not matrix[:3].any() and matrix[3:].any(axis=1).all()  # padding and unknown words are left alone
    assert line.startswith("vectors of 40 of 40 words")
    unit = matrix[3:] / np.linalg.norm(matrix[3:], axis=1, keepdims=True)
    near = unit @ unit.T
    assert min(near[:20, :20].mean(), near[20:, 20:].mean()) > near[:20, 20:].mean() + 0.3


def test_a_seed_gives_the_same_vectors():
    np.testing.assert_array_equal(trained()[0], trained()[0])
    assert (trained()[0] != trained(seed=2)[0]).any()


def test_without_words_and_without_gensim(monkeypatch):
    pytest.importorskip("gensim")
    empty = encode_split([], TextEncoder(WORDS, "word", oov_buckets=2), ("text",), 5, 5)
    assert own_vectors.train([empty], np.zeros((9, 8), "float32"), 3, WORDS, 1).startswith("no word vectors")
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(ImportError, match=r"pairzoo\[vectors\]"):
        own_vectors.train([empty], np.zeros((9, 8), "float32"), 3, WORDS, 1)
