"""Word vectors trained on a data set's own text, where the paper does so and no file is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from zoo.encoded import EncodedSplit

_EPOCHS = 10


def train(splits: Iterable[EncodedSplit], matrix: np.ndarray, first_word: int, words: Sequence[str], seed: int) -> str:
    """Fills in the rows of words by skip-gram with negative sampling over the splits' distinct texts.

    What stands in the row of a word that the texts lack stays. One thread, so that equal seeds give equal vectors.

    Args:
        splits: the training splits as ids.
        matrix: ``[V, E]``, changed in place.
        first_word: row of the first word.
        words: the words of the rows from there on.
        seed: of the vectors.

    Returns:
        One line that says what was done.

    Raises:
        ImportError: if gensim is not there.

    Reference: Mikolov et al. 2013, window 5, 5 negatives, 10 epochs (the papers give none of these).
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise ImportError(
            "Training word vectors needs gensim: pip install 'pairzoo[vectors]', or give --embeddings FILE"
        ) from None

    sentences = [
        [str(word) for word in tokens if word >= first_word]
        for split in splits
        for side in (split.query_ids, split.candidate_ids)
        for ids in side.values()
        for tokens in ids.texts
    ]
    if not any(sentences):
        return "no word vectors: the training texts hold no word"
    found = Word2Vec(
        sentences,
        vector_size=matrix.shape[1],
        sg=1,
        window=5,
        negative=5,
        min_count=1,
        epochs=_EPOCHS,
        workers=1,
        seed=seed,
    ).wv
    rows = np.array([int(row) for row in found.index_to_key])
    matrix[rows] = found.vectors
    return f"vectors of {len(rows)} of {len(words)} words were trained on {len(sentences)} texts of the data set"
