"""Strings to token ids, as one TensorFlow graph for training, evaluation and the exported model.

Every text is repaired, folded, split and looked up by the same traced function, so that a served model sees
the tokens that it was trained on. Ids: 0 is padding, ``1 .. oov_buckets`` are hashed unknown words, then come
the words of the vocabulary in order.

What happens to a text:

1. It is cut to `MAX_BYTES` bytes. Bytes that are no UTF-8 become a space.
2. Each character becomes what ``characters.tsv`` says: compatibility forms are unified and case is folded
   (NFKC), all kinds of white space and controls become a space, invisible characters vanish, typographic
   quotes become ASCII. A letter followed by a combining accent becomes the accented letter. Accents are kept.
3. It is split into words and signs; the rules are in `zoo.word_patterns`.

With sizes of character n-grams, a token is given by a row of the ids of its n-grams, see `zoo.char_ngrams`: the
vocabulary then holds n-grams, and words that training never saw share theirs with others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import tensorflow as tf

from zoo import text_batches
from zoo.char_ngrams import check_sizes, count_ngrams, ngrams
from zoo.characters import character_arrays
from zoo.vocabulary import UNKNOWN_PIECE, check_words, learn_pieces, read_vocabulary, write_vocabulary
from zoo.word_patterns import NEEDS_REWRITING, REWRITES, SIGN, TOKEN

__all__ = ["TextEncoder", "build_vocabulary", "read_vocabulary", "write_vocabulary"]

# 100,000 characters of any script; what lies beyond is not read, not counted, and reported as truncated.
MAX_BYTES = 1 << 19

TOKENIZERS = ("word", "wordpiece")

_PRINTABLE_ASCII = r"[\t\n\r -~]*"


class TextEncoder(tf.Module):
    """Turns texts into token ids, with core TensorFlow operations alone for the ``word`` tokenizer.

    Args:
        words: the vocabulary, most frequent first; see `build_vocabulary`.
        tokenizer: ``"word"``, or ``"wordpiece"``, which splits words into the pieces of the vocabulary with
            tensorflow-text and needs its operations where the graph is loaded. Its vocabulary holds
            ``[UNK]``.
        oov_buckets: number of ids that unknown words are hashed to. At least 1 for ``word``; a wordpiece
            vocabulary has its own unknown piece, so 0 is enough there, as it is beside a vocabulary of n-grams:
            an unknown one then has the id -1, and adds nothing to its token.
        ngram_sizes: if given, a token is a row of the ids of its character n-grams of these sizes, and ``words``
            are n-grams, of which there may be none; for ``word`` alone.

    Raises:
        ValueError: if the vocabulary holds a duplicate, an empty word or one with a line break, or if an
            argument is out of range.
    """

    def __init__(
        self,
        words: Sequence[str],
        tokenizer: str = "word",
        oov_buckets: int = 64,
        ngram_sizes: Sequence[int] = (),
    ):
        super().__init__(name="text_encoder")
        if tokenizer not in TOKENIZERS:
            raise ValueError(f"tokenizer must be one of {', '.join(TOKENIZERS)}. Received: tokenizer={tokenizer!r}")
        words = list(words)
        fewest = 1 if tokenizer == "word" and not (ngram_sizes and words) else 0
        if oov_buckets < fewest:
            raise ValueError(
                f"oov_buckets must be at least {fewest} for the {tokenizer} tokenizer. "
                f"Received: oov_buckets={oov_buckets}"
            )
        if ngram_sizes and tokenizer != "word":
            raise ValueError(
                f"Character n-grams are those of words. Received: ngram_sizes={tuple(ngram_sizes)}, "
                f"tokenizer={tokenizer!r}"
            )
        self.ngram_sizes = check_sizes(ngram_sizes)
        check_words(words)
        if tokenizer == "wordpiece" and UNKNOWN_PIECE not in words:
            raise ValueError(
                f"A wordpiece vocabulary must hold {UNKNOWN_PIECE}; add it as a line of its own. "
                f"Received: {len(words)} pieces without it"
            )
        self.tokenizer = tokenizer
        self.oov_buckets = oov_buckets
        # In one string: tf.Module walks through a list when it is saved, for ten seconds if it is long.
        self._joined_words = "\n".join(words)
        self._num_words = len(words)
        first = 1 + oov_buckets
        # A table cannot be empty; no token and no n-gram is a line break.
        self._ids = _table(
            tf.constant(words or ["\n"], tf.string), np.arange(first, first + max(1, len(words)), dtype=np.int64), 0
        )
        characters = character_arrays()
        # Rows 0 of start and length stand for a character that stays as it is.
        # Tensors, because arrays would be copied into every function that calls this encoder.
        self._rule = _table(characters["code"], np.arange(1, len(characters["code"]) + 1), 0)
        self._start = tf.constant(np.concatenate([[0], characters["start"]]))
        self._length = tf.constant(np.concatenate([[1], characters["length"]]))
        self._replacement = tf.constant(characters["replacement"])
        self._composed = _table(characters["pair"], characters["composed"], 0)
        self._pieces = _wordpiece(words) if tokenizer == "wordpiece" else None
        self._unknown_id = first + words.index(UNKNOWN_PIECE) if tokenizer == "wordpiece" else 0
        # In a plain function: a tf.function as an attribute would be written into every SavedModel.
        flat = tf.function(
            self._flat_ids, input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int64)]
        )
        self._run_flat = lambda texts, max_length: flat(texts, max_length)
        rows = tf.function(self._ngram_rows, input_signature=[tf.TensorSpec([None], tf.string)])
        self._run_rows = lambda tokens: rows(tokens)

    @property
    def words(self) -> list[str]:
        """The vocabulary, of n-grams where tokens are given by these; word i has the id ``1 + oov_buckets + i``."""
        return self._joined_words.split("\n") if self._num_words else []

    @property
    def vocabulary_size(self) -> int:
        """Number of ids: rows that an embedding needs."""
        return 1 + self.oov_buckets + self._num_words

    def get_config(self) -> dict:
        """What rebuilds this encoder besides its words: ``TextEncoder(words, **config)``."""
        return {"tokenizer": self.tokenizer, "oov_buckets": self.oov_buckets, "ngram_sizes": list(self.ngram_sizes)}

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Texts, string [n], to folded texts, string [n] (steps 1 and 2 of the module)."""
        texts = tf.convert_to_tensor(texts, tf.string)
        if texts.shape.rank != 1:
            raise ValueError(f"texts must be a vector of strings. Received: shape={texts.shape}")
        texts = tf.strings.substr(texts, 0, MAX_BYTES)
        is_ascii = tf.strings.regex_full_match(texts, _PRINTABLE_ASCII)
        return _replace_rows(tf.strings.lower(texts), ~is_ascii, lambda rows: self._fold(tf.gather(texts, rows)))

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Texts, string [n], to tokens, ragged string [n, (tokens)]."""
        words = self._split(self.normalize(texts))
        if self.tokenizer == "word":
            return words
        return words.with_flat_values(self._pieces.tokenize(words.flat_values)).merge_dims(1, 2)

    def __call__(self, texts: tf.Tensor, max_length: int | tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts to padded ids.

        Args:
            texts: string [n]; n may be 0.
            max_length: tokens that are kept of each text, the first ones; a number or an int32 scalar.

        Returns:
            ``ids`` int32 [n, t], t the longest kept text of the batch but at least 1, or [n, t, g], g the most
            n-grams of a token; ``num_tokens`` and ``num_unknown`` int32 [n], counted before the cut, a token being
            unknown if no n-gram of it is in a vocabulary of n-grams; ``truncated`` bool [n].
        """
        _check_length(max_length)
        texts = tf.convert_to_tensor(texts, tf.string)
        if self.ngram_sizes:
            tokens = self.tokenize(texts)
            distinct, places = tf.unique(tokens.flat_values)
            rows = self._ngram_rows(distinct)
            known = tf.reduce_any(rows > self.oov_buckets, axis=1) if self._num_words else tf.ones_like(distinct, bool)
            ids, is_unknown = tokens.with_flat_values(1 + places), tokens.with_flat_values(~tf.gather(known, places))
        else:
            ids, is_unknown = self._ragged_ids(texts)
        num_tokens = tf.cast(ids.row_lengths(), tf.int32)
        width = tf.maximum(1, tf.minimum(max_length, tf.reduce_max(num_tokens)))
        dense = tf.ensure_shape(ids.to_tensor(shape=tf.stack([-1, width])), [None, None])
        if self.ngram_sizes:
            dense = tf.gather(tf.pad(rows, [[1, 0], [0, 0]]), dense)
        return {
            "ids": dense,
            "num_tokens": num_tokens,
            "num_unknown": tf.reduce_sum(tf.cast(is_unknown, tf.int32), axis=1),
            "truncated": (num_tokens > max_length) | (tf.strings.length(texts) > MAX_BYTES),
        }

    def encode(self, texts: Sequence[str], max_length: int) -> tuple[np.ndarray, np.ndarray]:
        """Encodes a corpus without padding.

        Args:
            texts: n strings.
            max_length: tokens that are kept of each text.

        Returns:
            ``ids`` int32 [total] and ``offsets`` int64 [n + 1]: text i is ``ids[offsets[i]:offsets[i + 1]]``. With
            n-grams, ``ids`` says which of the third array's rows, int32 [1 + tokens, g], a token is.
        """
        _check_length(max_length)
        if self.ngram_sizes:
            return self._encode_ngrams(texts, max_length)
        ids = [np.zeros(0, np.int32)]
        lengths = [np.zeros(1, np.int64)]
        for values, row_lengths in self._flat_batches(texts, max_length):
            ids.append(values.numpy())
            lengths.append(row_lengths.numpy())
        return np.concatenate(ids), np.cumsum(np.concatenate(lengths))

    def _flat_batches(self, texts, max_length):
        """What `_flat_ids` gives of each batch, in their order."""
        return text_batches.in_threads(
            lambda batch: self._run_flat(batch, tf.constant(max_length, tf.int64)), text_batches.batches(texts)
        )

    def _encode_ngrams(self, texts: Sequence[str], max_length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        row_of: dict[bytes, int] = {}
        ids = [np.zeros(0, np.int32)]
        lengths = [np.zeros(1, np.int64)]
        for distinct, places, row_lengths in self._flat_batches(texts, max_length):
            rows = [row_of.setdefault(token, 1 + len(row_of)) for token in distinct.numpy()]
            ids.append(np.array(rows, np.int32)[places.numpy()])
            lengths.append(row_lengths.numpy())
        tokens = list(row_of)
        size = text_batches.SIZE
        parts = [self._run_rows(tf.constant(tokens[at : at + size])).numpy() for at in range(0, len(tokens), size)]
        table = np.zeros((1 + len(tokens), max([1, *(part.shape[1] for part in parts)])), np.int32)
        for number, part in enumerate(parts):
            table[1 + number * size :][: len(part), : part.shape[1]] = part
        return np.concatenate(ids), np.cumsum(np.concatenate(lengths)), table

    def _ngram_rows(self, tokens: tf.Tensor) -> tf.Tensor:
        """Tokens, string [n], to the ids of their n-grams, int32 [n, g], g at least 1; 0 is padding, never first."""
        parts = ngrams(tokens, self.ngram_sizes or (1,))
        ids = self._ids.lookup(parts.flat_values)
        if self.oov_buckets:
            hashed = 1 + tf.strings.to_hash_bucket_fast(parts.flat_values, self.oov_buckets)
        else:
            hashed = -tf.ones_like(ids)
        ids = parts.with_flat_values(tf.cast(tf.where(ids == 0, hashed, ids), tf.int32))
        width = tf.maximum(1, tf.reduce_max(tf.cast(ids.row_lengths(), tf.int32)))
        return tf.ensure_shape(ids.to_tensor(shape=tf.stack([-1, width])), [None, None])

    def _split(self, texts: tf.Tensor) -> tf.RaggedTensor:
        if self.tokenizer == "wordpiece":
            return tf.strings.split(tf.strings.regex_replace(texts, SIGN, r" \0 "))
        needs_rewriting = tf.strings.regex_full_match(texts, NEEDS_REWRITING)
        texts = _replace_rows(texts, needs_rewriting, lambda rows: _rewrite(tf.gather(texts, rows)))
        return tf.strings.split(tf.strings.regex_replace(texts, TOKEN, r" \0 "))

    def _ragged_ids(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        tokens = self.tokenize(texts)
        ids = self._ids.lookup(tokens.flat_values)
        if self.tokenizer == "word":
            is_unknown = ids == 0
            hashed = 1 + tf.strings.to_hash_bucket_fast(tokens.flat_values, self.oov_buckets)
            ids = tf.where(is_unknown, hashed, ids)
        else:
            is_unknown = ids == self._unknown_id
        return tokens.with_flat_values(tf.cast(ids, tf.int32)), tokens.with_flat_values(is_unknown)

    def _flat_ids(self, texts: tf.Tensor, max_length: tf.Tensor) -> tuple[tf.Tensor, ...]:
        if self.ngram_sizes:
            tokens = self.tokenize(texts)[:, :max_length]
            return *tf.unique(tokens.flat_values), tokens.row_lengths()
        ids = self._ragged_ids(texts)[0][:, :max_length]
        return ids.flat_values, ids.row_lengths()

    def _fold(self, texts: tf.Tensor) -> tf.Tensor:
        """Applies the character table: string [n] to string [n]."""
        codes = tf.strings.unicode_decode(texts, "UTF-8", errors="replace", replacement_char=0x20)
        rule = self._rule.lookup(tf.cast(codes.flat_values, tf.int64))
        length = tf.gather(self._length, rule)
        # Replacements are read from the codes themselves, followed by the table.
        source = tf.concat([codes.flat_values, self._replacement], axis=0)
        place = tf.range(tf.size(rule, tf.int64))
        start = tf.where(rule == 0, place, tf.size(rule, tf.int64) + tf.gather(self._start, rule))
        values = tf.gather(source, tf.ragged.range(start, start + length).flat_values)
        rows = tf.repeat(codes.value_rowids(), length)
        values, rows, _ = tf.while_loop(
            lambda values, rows, changed: changed,
            self._compose,
            [values, rows, tf.constant(True)],
            shape_invariants=[tf.TensorShape([None]), tf.TensorShape([None]), tf.TensorShape([])],
        )
        folded = tf.RaggedTensor.from_value_rowids(values, rows, nrows=codes.nrows(), validate=False)
        return tf.strings.unicode_encode(folded, "UTF-8")

    def _compose(self, values: tf.Tensor, rows: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Joins each letter with the combining mark after it in its row; repeated until nothing joins."""
        wide = tf.cast(values, tf.int64)
        pair = tf.bitwise.left_shift(wide[:-1], tf.constant(21, tf.int64)) + wide[1:]
        composed = tf.cast(self._composed.lookup(pair), values.dtype)
        joined = (composed > 0) & (rows[:-1] == rows[1:])
        never = tf.zeros_like(values[:1], tf.bool)
        values = tf.where(tf.concat([joined, never], 0), tf.concat([composed, values[:1]], 0), values)
        kept = ~tf.concat([never, joined], 0)
        return tf.boolean_mask(values, kept), tf.boolean_mask(rows, kept), tf.reduce_any(joined)


def build_vocabulary(
    texts: Iterable[str],
    tokenizer: str = "word",
    extra_words: Iterable[str] = (),
    max_words: int | None = None,
    min_count: int = 1,
    ngram_sizes: Sequence[int] = (),
) -> list[str]:
    """Words of the training texts by frequency, then alphabetically; the same list in every process.

    Args:
        texts: the training texts.
        tokenizer: as for `TextEncoder`.
        extra_words: further words, in this order, e.g. those of a vector file, which need no training text to
            be known. Those that the tokenizer never yields, and those already there, are left out.
        max_words: most words that are taken from the texts. For ``wordpiece``, the most pieces that are
            learnt from them, 8,000 if not given.
        min_count: occurrences that a word (or piece) of the texts needs.
        ngram_sizes: if given, the character n-grams of the words are taken instead of the words.

    Raises:
        ValueError: if ``extra_words`` are given for ``wordpiece``.
    """
    encoder = TextEncoder([UNKNOWN_PIECE], tokenizer)
    signature = [tf.TensorSpec([None], tf.string)]
    split = tf.function(lambda texts: encoder._split(encoder.normalize(texts)), input_signature=signature)
    counts: Counter[str] = Counter()
    for words, _, numbers in text_batches.in_threads(
        lambda batch: tf.unique_with_counts(split(batch).flat_values), text_batches.batches(texts)
    ):
        counts.update(dict(zip(_strings(words), numbers.numpy().tolist(), strict=True)))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if tokenizer == "wordpiece":
        if extra_words := list(extra_words):
            raise ValueError(
                "A wordpiece vocabulary takes no extra words; word vectors go with the word tokenizer. "
                f"Received: {len(extra_words)} extra words"
            )
        return learn_pieces(ranked, 8000 if max_words is None else max_words, min_count)
    if ngram_sizes:
        ranked = count_ngrams(ranked, check_sizes(ngram_sizes))
    chosen = dict.fromkeys([word for word, count in ranked if count >= min_count][:max_words])
    for batch in text_batches.batches(extra_words):
        tokens = split(batch)
        whole = tf.where(tokens.row_lengths() == 1)[:, 0]
        alone, first = (
            tf.gather(batch, whole),
            tf.gather(tokens.flat_values, tf.gather(tokens.row_splits, whole)),
        )
        chosen.update(dict.fromkeys(_strings(tf.boolean_mask(alone, alone == first))))
    return list(chosen)


def _check_length(max_length: int | tf.Tensor) -> None:
    if not tf.is_tensor(max_length) and max_length < 1:
        raise ValueError(f"max_length must be at least 1. Received: max_length={max_length}")


def _replace_rows(texts: tf.Tensor, mask: tf.Tensor, rewrite: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """Puts ``rewrite(rows)`` in place of the rows under the mask; runs nothing where there are none."""
    rows = tf.where(mask)[:, 0]
    return tf.cond(
        tf.size(rows) > 0,
        lambda: tf.tensor_scatter_nd_update(texts, rows[:, tf.newaxis], rewrite(rows)),
        lambda: texts,
    )


def _rewrite(texts: tf.Tensor) -> tf.Tensor:
    for pattern, replacement in REWRITES:
        texts = tf.strings.regex_replace(texts, pattern, replacement)
    return texts


def _table(keys, values, default: int) -> tf.lookup.StaticHashTable:
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


def _strings(values: tf.Tensor) -> list[str]:
    return [value.decode() for value in values.numpy()]


def _wordpiece(words: list[str]):
    import tensorflow_text  # only here: the word tokenizer must load where it is absent

    return tensorflow_text.FastWordpieceTokenizer(
        words, token_out_type=tf.string, unknown_token=UNKNOWN_PIECE, no_pretokenization=True
    )
