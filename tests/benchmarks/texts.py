"""Batches of token ids as the recipes make them: how often words recur decides what is gained by it."""

from pathlib import Path

import numpy as np

from zoo.encoded import encode_split
from zoo.text import TextEncoder, build_vocabulary

VOCABULARY = 20_000


def pairs(load, folder: Path, batch: int, length: int, seed: int = 1, ngram_rows: int = 0) -> dict[str, np.ndarray]:
    """Random pairs of a data set's training questions: queries ``[B, T]``, candidates ``[B, 1, T]``, labels ``[B, 1]``.

    With ``ngram_rows`` a token is a row of the ids of its character 5-grams, one axis more.

    Args:
        load: a data set's ``load``.
        folder: where it lies.
        batch: B.
        length: to which texts are cut; T of a side is that of its longest text then, as in a batch of training.
        seed: of the draw.
        ngram_rows: of the table that n-grams are hashed to; 0 for words.
    """
    random = np.random.default_rng(seed)
    groups = load(folder).splits["train"]
    drawn = [groups[place] for place in random.permutation(len(groups))[: 4 * batch]]
    texts = [text for group in drawn for fields in (group.query, *group.candidates) for text in fields]
    if ngram_rows:
        encoder = TextEncoder([], oov_buckets=ngram_rows, ngram_sizes=(5,))
    else:
        encoder = TextEncoder(build_vocabulary(texts, max_words=VOCABULARY - 2), oov_buckets=1)
    split = encode_split(drawn, encoder, ("text",), length, length)
    chosen = random.permutation(len(split.labels))[:batch]
    query = split.query_of_group[split.group_of_pair[chosen]]
    return {
        "query": _padded(split.query_ids["text"], query, length),
        "candidate": _padded(split.candidate_ids["text"], split.candidate_of_pair[chosen][:, None], length),
        "labels": split.labels[chosen][:, None].astype("float32"),
    }


def _padded(ids, texts, length):
    return ids.padded(texts, min(ids.longest_of(texts), length))
