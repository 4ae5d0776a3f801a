"""Texts to ids: hostile strings, one graph for training and export, vocabularies that are the same everywhere."""

import gzip
import json
import os
import random
import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from zoo import characters, text_batches
from zoo.data import DataError
from zoo.text import (
    MAX_BYTES,
    TextEncoder,
    build_vocabulary,
    read_vocabulary,
    write_vocabulary,
)

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
WORDS = ["the", "cat", "a", "b", "c", "do", "n't", "é", "中", "😀", ".", "?"]

# Text, and the tokens it must become.
HOSTILE = {
    "": [],
    "   \t\r\n ": [],
    "a\u00a0b\u3000c\u2003d\u2028e\u202ff": ["a", "b", "c", "d", "e", "f"],
    b"caf\xe9 na\xefve \xff\xfe \xe4\xb8": ["caf", "na", "ve"],
    b"\xed\xa0\x80a\xc0\xafb\xf4\x90\x80\x80c": ["a", "b", "c"],
    "re\ufffdpaired": ["re", "paired"],
    "a\x00b\x00": ["a", "b"],
    "a\x01b\x7fc\u0085d\x0be": ["a", "b", "c", "d", "e"],
    "\ufeffthe cat": ["the", "cat"],
    "in\u200bvi\u200dsi\u00adble\u2060": ["invisible"],
    "😀👩\u200d👩\u200d👧❤\ufe0f": ["😀", "👩", "👩", "👧", "❤"],
    "🇩🇪✌🏽": ["🇩", "🇪", "✌", "🏽"],
    "İSTANBUL ıI": ["i\u0307stanbul", "ıi"],
    "Straße STRASSE ẞ": ["strasse", "strasse", "ss"],
    "ΣΊΣΥΦΟΣ ς": ["σίσυφοσ", "σ"],
    "É É e\u0301 ế e\u0302\u0301 ệ e\u0302\u0323": ["é", "é", "é", "ế", "ế", "ệ", "ệ"],
    "x\u0301y": ["x\u0301y"],
    "ﬁne ＡＢＣ１２ ① ℃ Å": ["fine", "abc12", "1", "°", "c", "å"],
    "2½ ¼ x²": ["2", "1/2", "1/4", "x2"],
    "שָׁלוֹם, עולם!": ["שָׁלוֹם", ",", "עולם", "!"],
    "\u202bمَرْحَبًا\u202c؟": ["مَرْحَبًا", "؟"],
    "ภาษาไทย ง่าย": ["ภาษาไทย", "ง่าย"],
    "中文字ab한국어すし": ["中", "文", "字", "ab한국어", "す", "し"],
    unicodedata.normalize("NFD", "한국어 がぎ"): ["한국어", "が", "ぎ"],
    "?!.,;:(]}": ["?", "!", ".", ",", ";", ":", "(", "]", "}"],
    "!!!! ???? ........ ------ ____": ["!", "?", "...", "--", "_"],
    "a" * 100_000: ["a" * 100_000],
    "the cat " * 12_500: ["the", "cat"] * 12_500,
}

# Default_Ignorable_Code_Point, besides the category Cf.
IGNORABLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")

# Raw text, the same as a treebank writes it, and the tokens of both.
WORD_RULES = [
    ("Don't!", "Do n't !", ["do", "n't", "!"]),
    ("the cat’s", "the cat 's", ["the", "cat", "'s"]),
    ("I'm, we're I've he'll she'd", "I 'm , we 're I 've he 'll she 'd",
     ["i", "'m", ",", "we", "'re", "i", "'ve", "he", "'ll", "she", "'d"]),
    ('"Yes" (no) [so] {it}', "`` Yes '' -LRB- no -RRB- -LSB- so -RSB- -LCB- it -RCB-",
     ['"', "yes", '"', "(", "no", ")", "[", "so", "]", "{", "it", "}"]),
    ("U.S. e.g. u.n.-backed", "U.S. e.g. u.n.-backed", ["u.s.", "e.g.", "u.n.-backed"]),
    ("1,200.50 at 10:30, 24/7.", "1,200.50 at 10:30 , 24/7 .",
     ["1,200.50", "at", "10:30", ",", "24/7", "."]),
    ("$5 50% #1 a@b.co", "$ 5 50 % # 1 a @ b.co", ["$", "5", "50", "%", "#", "1", "a", "@", "b", ".", "co"]),
    ("O'Brien AT&T mother-in-law", "O'Brien AT&T mother-in-law", ["o'brien", "at&t", "mother-in-law"]),
    ("end.Then go", "end . Then go", ["end", ".", "then", "go"]),
    ("and/or", "and / or", ["and", "/", "or"]),
    ("wait... what -- no", "wait ... what -- no", ["wait", "...", "what", "--", "no"]),
    ("C++ and C#", "C++ and C#", ["c++", "and", "c#"]),
    ("the '90s", "the '90s", ["the", "'90s"]),
    ("<br/>x_y", "< br / > x _ y", ["<", "br", "/", ">", "x", "_", "y"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def encoder():
    return TextEncoder(WORDS, oov_buckets=8)


def decoded(tokens):
    return [[token.decode() for token in row] for row in tokens.to_list()]


def test_hostile_texts(encoder):
    tokens = decoded(encoder.tokenize(tf.constant(list(HOSTILE))))
    assert dict(zip(HOSTILE, tokens, strict=True)) == HOSTILE


def test_a_row_does_not_depend_on_its_batch(encoder):
    texts = list(HOSTILE)
    together = encoder(tf.constant(texts), 20)
    assert together["ids"].shape == (len(texts), 20)
    for row, text in enumerate(texts):
        alone = encoder(tf.constant([text]), 20)
        width = alone["ids"].shape[1]
        assert width == max(1, min(20, int(alone["num_tokens"][0])))
        np.testing.assert_array_equal(alone["ids"][0], together["ids"][row, :width])
        np.testing.assert_array_equal(together["ids"][row, width:], 0)
        for name in ("num_tokens", "num_unknown", "truncated"):
            assert alone[name][0] == together[name][row], (name, text[:40])


def test_raw_and_treebank_text_become_the_same_tokens(encoder):
    raw, treebank, expected = (list(column) for column in zip(*WORD_RULES, strict=True))
    assert decoded(encoder.tokenize(tf.constant(raw))) == expected
    assert decoded(encoder.tokenize(tf.constant(treebank))) == expected


def test_tokens_split_no_further(encoder):
    tokens = [token for row in HOSTILE.values() for token in row if len(token) < 1000]
    tokens += [token for _, _, row in WORD_RULES for token in row if token not in ("b", "co")]
    assert decoded(encoder.tokenize(tf.constant(tokens))) == [[token] for token in tokens]


def test_ids_are_padding_then_buckets_then_words(encoder):
    assert encoder.vocabulary_size == 1 + 8 + len(WORDS)
    assert encoder.words == WORDS
    output = encoder(tf.constant(["The cat?", "zebra the zebra quagga", ""]), 3)
    ids = output["ids"].numpy()
    np.testing.assert_array_equal(ids[0], [9, 10, 9 + WORDS.index("?")])
    assert ids[1, 0] == ids[1, 2]
    assert 1 <= ids[1, 0] <= 8
    np.testing.assert_array_equal(ids[2], 0)
    np.testing.assert_array_equal(output["num_tokens"], [3, 4, 0])
    np.testing.assert_array_equal(output["num_unknown"], [0, 3, 0])
    np.testing.assert_array_equal(output["truncated"], [False, True, False])
    assert {name: value.dtype.name for name, value in output.items()} == {
        "ids": "int32",
        "num_tokens": "int32",
        "num_unknown": "int32",
        "truncated": "bool",
    }


def test_every_bucket_is_used(encoder):
    ids = encoder(tf.constant([" ".join(f"unknown{i}" for i in range(200))]), 200)["ids"]
    assert set(ids.numpy()[0]) == set(range(1, 9))


def test_traced_for_any_number_of_rows(encoder):
    traced = tf.function(
        lambda texts: encoder(texts, 5), input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    empty = traced(tf.constant([], tf.string))
    assert empty["ids"].shape == (0, 1)
    assert [empty[name].shape for name in ("num_tokens", "num_unknown", "truncated")] == [(0,)] * 3
    assert traced(tf.constant(["", " "]))["ids"].numpy().tolist() == [[0], [0]]
    texts = tf.constant(list(HOSTILE))
    np.testing.assert_array_equal(traced(texts)["ids"], encoder(texts, tf.constant(5))["ids"])
    assert traced.get_concrete_function().structured_outputs["ids"].shape.rank == 2


def test_a_text_beyond_the_limit_is_cut_and_says_so(encoder):
    whole, longer = "é " * (MAX_BYTES // 3), "é " * (MAX_BYTES // 3) + "the cat"
    output = encoder(tf.constant([whole, longer]), MAX_BYTES)
    assert output["num_tokens"].numpy().tolist() == [MAX_BYTES // 3, MAX_BYTES // 3 + 1]
    assert output["truncated"].numpy().tolist() == [False, True]


def test_encode_gives_the_ids_of_the_graph_without_padding(encoder):
    texts = [text for text in HOSTILE if isinstance(text, str)] * 50
    ids, offsets = encoder.encode(texts, 7)
    assert (ids.dtype, offsets.dtype, len(offsets)) == (np.int32, np.int64, len(texts) + 1)
    padded = encoder(tf.constant(texts), 7)["ids"].numpy()
    for row in range(len(texts)):
        np.testing.assert_array_equal(ids[offsets[row] : offsets[row + 1]], padded[row][padded[row] != 0])
    ids, offsets = encoder.encode([], 7)
    assert (ids.tolist(), offsets.tolist()) == ([], [0])
    ids, _ = encoder.encode(["the\ud83dcat"], 7)  # a lone surrogate
    assert ids.tolist() == [9, 10]


def test_a_corpus_of_many_batches_keeps_its_order(encoder, monkeypatch):
    texts = [text for text in HOSTILE if isinstance(text, str)]
    whole, words = encoder.encode(texts, 7), build_vocabulary(texts)
    monkeypatch.setattr("zoo.text_batches.SIZE", 1)
    for part, same in zip(encoder.encode(texts, 7), whole, strict=True):
        np.testing.assert_array_equal(part, same)
    assert build_vocabulary(texts) == words


def test_threads_keep_order_and_raise_where_they_fail():
    pulled = []

    def batches():
        for number in range(100):
            pulled.append(number)
            yield number

    def run(number):
        time.sleep(0.01 * (number < 3))  # the first ones end last
        if number == 50:
            raise ValueError("fifty")
        return number

    found = []
    with pytest.raises(ValueError, match="fifty"):
        for value in text_batches.in_threads(run, batches()):
            found.append(value)
            assert len(pulled) - len(found) <= text_batches.MOST_THREADS + 1  # the others are not read yet
    assert found == list(range(50))


def test_normalisation_is_that_of_unicode(encoder):
    """Against NFKC and case folding of whole strings."""
    known, _ = characters.read_table()
    letters = [chr(code) for code in [*known, *range(0x10000)]]
    # Left out, because the graph does not sort marks as Unicode does: marks after each other that do not compose,
    # and marks after a character that becomes several.
    letters = [
        letter
        for letter in letters
        if unicodedata.combining(unicodedata.normalize("NFKD", letter)[0]) == 0
        and unicodedata.category(letter) not in ("Cn", "Cs", "Co")
    ]
    marks = ["", "", "\u0301", "\u0308\u0301"]
    draw = random.Random(1)
    texts = []
    for _ in range(2000):
        parts = draw.choices(letters, k=10)
        is_single = [len(known.get(ord(part), "1")) == 1 for part in parts]
        texts.append(
            "".join(
                part + (draw.choice(marks) if single else "") for part, single in zip(parts, is_single, strict=True)
            )
        )

    def substitute(text):
        return "".join(characters.SUBSTITUTES.get(letter, letter) for letter in text)

    def reference(text):
        text = "".join(
            " " if unicodedata.category(letter) in ("Cc", "Zs", "Zl", "Zp") else letter
            for letter in text
            if unicodedata.category(letter) != "Cf" and not IGNORABLE.match(letter)
        )
        text = substitute(text)
        for _ in range(3):
            text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())
        return substitute(text)

    normalized = [text.decode() for text in encoder.normalize(tf.constant(texts)).numpy()]
    # The space before a fraction is ours.
    differing = [
        (text, left, right)
        for text, left, right in zip(texts, normalized, map(reference, texts), strict=True)
        if left.replace(" ", "") != right.replace(" ", "")
    ]
    assert not differing[:3]


def test_the_character_table_is_reproducible(tmp_path):
    version = characters.TABLE.read_text(encoding="ascii").split(";")[0].removeprefix("# Unicode ")
    if version != unicodedata.unidata_version:
        pytest.skip(f"the table is of Unicode {version}, this Python has {unicodedata.unidata_version}")
    characters.write_table(tmp_path / "table.tsv")
    assert (tmp_path / "table.tsv").read_bytes() == characters.TABLE.read_bytes()


def test_folding_twice_changes_nothing(encoder):
    known, pairs = characters.read_table()
    results = {"".join(map(chr, target)) for target in known.values()} | set(map(chr, pairs.values()))
    texts = sorted(results)
    assert len(texts) > 5000
    again = [text.decode() for text in encoder.normalize(tf.constant(texts)).numpy()]
    assert [(a, b) for a, b in zip(texts, again, strict=True) if a.strip() != b.strip()] == []


def test_a_saved_model_needs_tensorflow_alone(encoder, tmp_path):
    module = tf.Module()
    module.encoder = encoder

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def encode(text):
        return encoder(text, 16)

    tf.saved_model.save(module, str(tmp_path / "saved"), signatures={"serving_default": encode})
    texts = [text.encode() if isinstance(text, str) else text for text in HOSTILE]
    (tmp_path / "texts.json").write_text(json.dumps([text.hex() for text in texts]))
    code = (
        "import json, sys\nimport tensorflow as tf\n"
        "texts = [bytes.fromhex(text) for text in json.load(open('texts.json'))]\n"
        "signature = tf.saved_model.load('saved').signatures['serving_default']\n"
        "print(json.dumps({k: v.numpy().tolist() for k, v in signature(text=tf.constant(texts)).items()}))\n"
        "assert not {'zoo', 'tensorflow_text'} & set(sys.modules)\n"
    )
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    expected = {name: value.numpy().tolist() for name, value in encode(tf.constant(texts)).items()}
    assert json.loads(output) == expected


TRAINING_TEXTS = ["The cat sat.", "the cat SAT on the mat", "a mat, a cat", "cats don't sit", "中文 é"]


def test_vocabulary_is_by_frequency_then_alphabet():
    words = build_vocabulary(TRAINING_TEXTS)
    assert words[:5] == ["cat", "the", "a", "mat", "sat"]
    assert words[5:] == sorted(words[5:])
    assert build_vocabulary(reversed(TRAINING_TEXTS)) == words
    assert build_vocabulary(TRAINING_TEXTS, max_words=2) == ["cat", "the"]
    assert build_vocabulary(TRAINING_TEXTS, min_count=3) == ["cat", "the"]
    assert build_vocabulary([]) == []


def test_extra_words_follow_in_their_order_if_they_can_occur():
    extra = ["zoo", "The", "cat", "new york", "ape", "``", "zoo", "", "u.s.", "½"]
    words = build_vocabulary(iter(["the cat"]), extra_words=iter(extra), max_words=1)
    assert words == ["cat", "zoo", "ape", "u.s."]


def test_vocabularies_are_the_same_in_another_process():
    pieces = build_vocabulary(TRAINING_TEXTS, "wordpiece", max_words=60)
    code = (
        "import json, sys\nfrom zoo.text import TextEncoder, build_vocabulary\n"
        f"texts = {TRAINING_TEXTS!r}\n"
        "words = build_vocabulary(texts)\n"
        "ids = TextEncoder(words).encode(texts, 9)[0].tolist()\n"
        "assert 'tensorflow_text' not in sys.modules\n"
        "print(json.dumps([words, ids, build_vocabulary(texts, 'wordpiece', max_words=60)]))\n"
    )
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONHASHSEED": "7"}
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    words = build_vocabulary(TRAINING_TEXTS)
    assert json.loads(output) == [words, TextEncoder(words).encode(TRAINING_TEXTS, 9)[0].tolist(), pieces]


def test_wordpiece_splits_words_into_pieces():
    words = ["[UNK]", "the", "cat", "##s", "sit", "##ting", "'", "t", "don", "é"]
    encoder = TextEncoder(words, "wordpiece", oov_buckets=0)
    assert decoded(encoder.tokenize(tf.constant(["The CATS, sitting\x00", "Don't e\u0301", ""]))) == [
        ["the", "cat", "##s", "[UNK]", "sit", "##ting"],
        ["don", "'", "t", "é"],
        [],
    ]
    output = encoder(tf.constant(["the cats, sitting", ""]), 5)
    assert output["ids"].numpy().tolist() == [[2, 3, 4, 1, 5], [0] * 5]
    assert output["num_tokens"].numpy().tolist() == [6, 0]
    assert output["num_unknown"].numpy().tolist() == [1, 0]
    assert encoder(tf.constant([], tf.string), 5)["ids"].shape == (0, 1)
    assert TextEncoder(words, "wordpiece", oov_buckets=3).encode(["the"], 5)[0].tolist() == [1 + 3 + 1]


def test_wordpieces_are_learnt():
    texts = ["walking talking walked talked walks talks"] * 20
    pieces = build_vocabulary(texts, "wordpiece", max_words=40)
    assert pieces[0] == "[UNK]"
    assert len(pieces) <= 40
    output = TextEncoder(pieces, "wordpiece", oov_buckets=0)(tf.constant(texts[:1]), 50)
    assert int(output["num_unknown"][0]) == 0
    assert int(output["num_tokens"][0]) < sum(map(len, texts[0].split()))
    assert build_vocabulary([], "wordpiece") == ["[UNK]"]


def test_an_encoder_is_rebuilt_from_its_configuration_and_file(tmp_path):
    words = build_vocabulary(TRAINING_TEXTS)
    encoder = TextEncoder(words, oov_buckets=5)
    write_vocabulary(tmp_path / "vocabulary.txt", encoder.words)
    again = TextEncoder(read_vocabulary(tmp_path / "vocabulary.txt"), **json.loads(json.dumps(encoder.get_config())))
    assert again.get_config() == {"tokenizer": "word", "oov_buckets": 5, "ngram_sizes": []}
    texts = [*TRAINING_TEXTS, "unknown words"]
    np.testing.assert_array_equal(again.encode(texts, 9)[0], encoder.encode(texts, 9)[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\n\nb\n", r"v\.txt:2: expected a word\. Received: ''"),
        (b"a\nb\na\n", r"v\.txt:3: expected a word other than that of line 1\. Received: 'a'"),
        (b"a\r\nb\r\n", r"v\.txt:1: expected lines that end in LF alone.*Received: 'a\\r'"),
        (b"a\nb\xff\n", r"v\.txt:2: expected UTF-8\. Received: b'b\\xff\\n'"),
    ],
)
def test_a_changed_vocabulary_file_is_refused(tmp_path, content, message):
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vocabulary(tmp_path / "v.txt")


def test_a_missing_last_newline_is_no_fault(tmp_path):
    (tmp_path / "v.txt").write_bytes("a\n\u0085\né".encode())
    assert read_vocabulary(tmp_path / "v.txt") == ["a", "\u0085", "é"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", ""], r"must not be empty.*words\[1\]=''"),
        (["a\nb"], r"line break.*words\[0\]='a\\nb'"),
        (["a\rb"], r"line break.*words\[0\]='a\\rb'"),
        (["a", "b", "a"], r"differ.*words\[2\]='a'"),
    ],
)
def test_words_that_no_file_could_hold_are_refused(tmp_path, words, message):
    with pytest.raises(ValueError, match=message):
        TextEncoder(words)
    with pytest.raises(ValueError, match=message):
        write_vocabulary(tmp_path / "v.txt", words)
    assert not (tmp_path / "v.txt").exists()


def test_wrong_arguments_are_refused(encoder):
    with pytest.raises(ValueError, match=r"one of word, wordpiece.*tokenizer='bpe'"):
        TextEncoder(["a"], "bpe")
    with pytest.raises(ValueError, match=r"at least 1 for the word tokenizer.*oov_buckets=0"):
        TextEncoder(["a"], oov_buckets=0)
    with pytest.raises(ValueError, match=r"at least 0 for the wordpiece tokenizer.*oov_buckets=-1"):
        TextEncoder(["[UNK]"], "wordpiece", oov_buckets=-1)
    with pytest.raises(ValueError, match=r"must hold \[UNK\].*Received: 1 pieces"):
        TextEncoder(["a"], "wordpiece")
    with pytest.raises(ValueError, match=r"vector of strings.*shape=\(\)"):
        encoder(tf.constant("a"), 5)
    with pytest.raises(ValueError, match=r"max_length must be at least 1.*max_length=0"):
        encoder(tf.constant(["a"]), 0)
    with pytest.raises(ValueError, match=r"max_length must be at least 1.*max_length=-3"):
        encoder.encode(["a"], -3)
    with pytest.raises(ValueError, match=r"no extra words.*Received: 2 extra words"):
        build_vocabulary(["a"], "wordpiece", extra_words=["b", "c"])


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}")
def test_word_vectors_know_the_words_of_trecqa(encoder):
    with gzip.open(DATA / "vectors" / "glove.6B.50d.txt.gz", "rt", encoding="utf-8") as file:
        known = {line.split(" ", 1)[0] for line in file}
    counts = Counter()
    for name in ("a", "b"):
        with gzip.open(DATA / "trecqa/castorini/raw-test" / f"{name}.toks.gz", "rt", encoding="utf-8") as file:
            tokens = encoder.tokenize(tf.constant(file.read().splitlines())).flat_values.numpy()
        counts.update(token.decode() for token in tokens)
    share = sum(count for word, count in counts.items() if word in known) / counts.total()
    assert share > 0.997  # 0.993 if split at spaces alone
