"""Word-vector files: what is read, what is refused with its place, and what words without a vector get."""

import gzip
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from zoo.data import DataError
from zoo.embeddings import Coverage, embedding_matrix, read_words

DATA = Path(__file__).parents[2] / "shared" / "data"
GLOVE = "the 0.5 -1 2e-2\n, 1 2 3\ncat 4 5 6\n"


def write(folder, content, name="vectors.txt"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_rows_follow_the_vocabulary(tmp_path):
    path = write(tmp_path, GLOVE)
    matrix, coverage = embedding_matrix([path], ["cat", "dog", "the"], 2, seed=1)
    assert matrix.dtype == np.float32
    assert matrix.shape == (1 + 2 + 3, 3)
    np.testing.assert_array_equal(matrix[0], 0)
    np.testing.assert_array_equal(matrix[3], [4, 5, 6])
    np.testing.assert_allclose(matrix[5], [0.5, -1, 0.02])
    assert coverage == Coverage(2, (("vectors.txt", 2),), ("dog",))
    assert coverage.share == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "content",
    [
        GLOVE,
        "3 3\n" + GLOVE,  # word2vec
        GLOVE.replace("\n", " \r\n"),
        GLOVE.rstrip("\n"),
        GLOVE + "the 9 9 9\n",  # of a repeated word, the first counts
        gzip.compress(GLOVE.encode(), mtime=0),
    ],
)
def test_formats(tmp_path, content):
    matrix, _ = embedding_matrix([write(tmp_path, content)], ["the", "cat"], 0, seed=1)
    np.testing.assert_allclose(matrix, [[0, 0, 0], [0.5, -1, 0.02], [4, 5, 6]])
    assert read_words([write(tmp_path, content)]) == ["the", ",", "cat"]


BINARY = b"3 2\n" + b"\n".join(
    word + b" " + np.array(numbers, "<f4").tobytes()
    for word, numbers in ((b"the", [0.5, -1]), ("\u00e9".encode(), [2, 3]), (b"New_York", [4, 5]))
)


@pytest.mark.parametrize("content", [BINARY, BINARY.replace(b"\n\xc3", b"\xc3"), gzip.compress(BINARY, mtime=0)])
def test_binary_form_of_word2vec(tmp_path, content):
    path = write(tmp_path, content, "vectors.bin")
    matrix, coverage = embedding_matrix(path, ["New_York", "\u00e9", "cat"], 0, seed=1, random_range=0)
    np.testing.assert_array_equal(matrix, [[0, 0], [4, 5], [2, 3], [0, 0]])
    assert coverage.missing == ("cat",)
    assert read_words(path) == ["the", "\u00e9", "New_York"]


def test_headed_text_whose_words_hold_spaces_is_no_binary_file(tmp_path):
    path = write(tmp_path, "2 2\nnew york 0.1 0.2\ndog 0.3 0.4\n")
    matrix, coverage = embedding_matrix([path], ["new york", "dog"], 0, 1)
    np.testing.assert_allclose(matrix[1:], [[0.1, 0.2], [0.3, 0.4]])
    assert not coverage.missing


def test_faults_of_the_binary_form(tmp_path):
    path = write(tmp_path, BINARY[:-1], "vectors.bin")
    with pytest.raises(DataError, match=r"vectors.bin:3: expected 3 vectors, .* Received: '2 vectors'"):
        read_words(path)
    path = write(tmp_path, BINARY.replace(np.array([2, 3], "<f4").tobytes(), np.array([2, np.inf], "<f4").tobytes()))
    with pytest.raises(DataError, match=r"vectors.txt:2: expected a word and finite numbers. Received: '\u00e9 2 inf'"):
        embedding_matrix(path, ["\u00e9"], 0, seed=1)


def test_a_binary_file_holds_as_many_vectors_as_it_says(tmp_path):
    path = write(tmp_path, BINARY.replace(b"3 2", b"2 2", 1), "vectors.bin")
    with pytest.raises(DataError, match=r"vectors.bin:3: expected 2 vectors, as the first line says. Received: 'more"):
        embedding_matrix(path, ["the"], 0, seed=1)
    path = write(tmp_path, BINARY + b"\n", "vectors.bin")
    assert not embedding_matrix(path, ["the"], 0, seed=1)[1].missing


def test_words_may_hold_spaces_and_any_bytes(tmp_path):
    content = "a 1 2\n. . . 3 4\nnew york 5 6\n\u00a0 7 8\né\u2028 9 10\n".encode() + b"\xff 11 12\n12 13 14\n"
    path = write(tmp_path, content)
    words = ["a", ". . .", "new york", "\u00a0", "é\u2028", "12", "new"]
    matrix, coverage = embedding_matrix(path, words, 0, seed=1)
    np.testing.assert_array_equal(matrix[1:7], [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [13, 14]])
    assert coverage.missing == ("new",)
    assert read_words(path) == ["a", ". . .", "new york", "\u00a0", "é\u2028", "\ufffd", "12"]


def test_read_words_stops_at_the_limit_and_merges_files(tmp_path):
    first = write(tmp_path, GLOVE, "first.txt")
    second = write(tmp_path, "cat 1\ndog 2\n", "second.txt")
    assert read_words([first, second], limit=4) == ["the", ",", "cat", "dog"]
    assert read_words([first, second], limit=2) == ["the", ","]
    assert read_words([first, second], limit=0) == []
    assert read_words([]) == []


def test_several_files_are_joined_end_to_end(tmp_path):
    first = write(tmp_path, GLOVE, "first.txt")
    second = write(tmp_path, "cat 7\ndog 8\n", "second.txt")
    matrix, coverage = embedding_matrix([first, second], ["cat", "dog", "the", "emu"], 1, seed=1)
    np.testing.assert_allclose(matrix[2:5], [[4, 5, 6, 7], [0, 0, 0, 8], [0.5, -1, 0.02, 0]])
    assert np.all(matrix[5] != 0)
    assert str(coverage) == ("3 of 4 words have a vector (75.0%); 2 in first.txt, 2 in second.txt; without: emu")


def test_a_random_row_depends_on_its_word_and_the_seed_alone(tmp_path):
    path = write(tmp_path, "a " + " ".join(["1"] * 500))
    words = [f"unknown{i}" for i in range(20)]
    matrix, _ = embedding_matrix(path, words, 3, seed=1)
    again, _ = embedding_matrix(path, ["a", *reversed(words)], 2, seed=1)
    np.testing.assert_array_equal(again[4:], matrix[:3:-1])
    np.testing.assert_array_equal(again[1:3], matrix[1:3])
    other, _ = embedding_matrix(path, words, 3, seed=2)
    assert not np.any(np.all(other[1:] == matrix[1:], axis=1))
    drawn = matrix[1:]
    assert len(np.unique(drawn, axis=0)) == 23
    assert -0.25 <= drawn.min() < -0.249
    assert 0.249 < drawn.max() <= 0.25
    assert abs(drawn.mean()) < 0.005
    assert drawn.std() == pytest.approx(0.5 / 12**0.5, rel=0.02)
    # The same on every platform and with every numpy: 32 bits of a hash for each number.
    bits = hashlib.shake_128(b"1\n\nunknown0").digest(12)
    expected = [int.from_bytes(bits[i : i + 4], "little") / 2**32 * 0.5 - 0.25 for i in (0, 4, 8)]
    np.testing.assert_allclose(matrix[4, :3], expected, rtol=1e-5)


def test_coverage_in_words(tmp_path):
    path = write(tmp_path, GLOVE)
    words = ["the", "cat", *(f"w{i}" for i in range(10))]
    _, coverage = embedding_matrix([path], words, 1, 1)
    assert str(coverage) == "2 of 12 words have a vector (16.7%); without: w0 w1 w2 w3 w4 w5 w6 w7 ..."
    _, coverage = embedding_matrix([path], [], 1, 1)
    assert str(coverage) == "0 of 0 words have a vector (0.0%)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": expected at least one word and its numbers. Received: 'an empty file'"),
        ("2 3\n", ": expected at least one word and its numbers. Received: 'an empty file'"),
        ("a 1 2\n\nb 1 2\n", ":2: expected a word and 2 numbers. Received: ''"),
        ("\n", ":1: expected a word and some numbers. Received: ''"),
        ("word\n", ":1: expected a word and some numbers. Received: 'word'"),
        ("a 1 2\nb 1\n", ":2: expected a word and 2 numbers. Received: 'b 1'"),
        ("a 1 2\nb 1.0 2 3\n", ":2: expected a word and 2 numbers. Received: 'b 1.0 2 3'"),
        ("a 1 2\nb x 2\n", ":2: expected a word and 2 numbers. Received: 'b x 2'"),
        ("a 1 2\nb 1 x\n", ":2: expected a word and finite numbers. Received: 'b 1 x'"),
        ("a 1 2\nb nan 2\n", ":2: expected a word and finite numbers. Received: 'b nan 2'"),
        ("a 1 2\nb 1 1e39\n", ":2: expected a word and finite numbers. Received: 'b 1 1e39'"),
        ("a 1 2\n 1 2\n", ":2: expected a word and 2 numbers. Received: ' 1 2'"),
        ("a\t1\t2\n", ":1: expected a word and some numbers"),
        ("1 2\na 1.5 2 3\n", ":2: expected a word and 2 numbers. Received: 'a 1.5 2 3'"),
        ("3 2\na 1 2\nb 1 2\n", ":3: expected 3 vectors, as the first line says. Received: '2 vectors'"),
        (gzip.compress(GLOVE.encode() * 99, mtime=0)[:-9], "expected a whole gzip file"),
        (b"\x1f\x8bno gzip", ":1: expected a whole gzip file"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        embedding_matrix([path], ["b", "the"], 1, seed=1)
    assert str(caught.value).startswith(str(path))


def test_no_file_is_refused():
    with pytest.raises(ValueError, match=r"at least one vector file.*paths=\[\]"):
        embedding_matrix([], ["the"], 1, seed=1)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}")
def test_real_glove():
    path = DATA / "vectors" / "glove.6B.50d.txt.gz"
    assert read_words([path], limit=5) == ["the", ",", ".", "of", "to"]
    matrix, coverage = embedding_matrix([path], ["the", "n't", "zzzunknown"], 64, seed=1)
    assert matrix.shape == (68, 50)
    np.testing.assert_allclose(matrix[65, :3], [0.418, 0.24968, -0.41242], rtol=1e-6)
    assert coverage.missing == ("zzzunknown",)


def test_the_coverage_of_some_words_is_that_of_a_vocabulary_of_them(tmp_path):
    files = [write(tmp_path, GLOVE), write(tmp_path, "dog 1\nthe 2\n", "other.txt")]
    words, some = ["cat", "dog", "emu", "the", "yak"], ["the", "emu", "cat"]
    _, of_all = embedding_matrix(files, words, 1, seed=1)
    _, expected = embedding_matrix(files, some, 1, seed=1)
    assert of_all.of(some) == expected and str(of_all.of(some)) == str(expected)
