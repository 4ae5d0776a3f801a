"""What small models are made of and called with."""

import numpy as np


def embeddings(vocabulary=40, size=7):
    """Word vectors ``[vocabulary, size]``, row 0 zero."""
    matrix = np.random.default_rng(0).normal(size=(vocabulary, size)).astype("float32")
    matrix[0] = 0
    return matrix


def ids(batch=3, candidates=4, query_time=5, candidate_time=6):
    """Ids of queries and lists of candidates, some of them padded."""
    random = np.random.default_rng(1)
    query = random.integers(1, 40, (batch, query_time)).astype("int32")
    candidate = random.integers(1, 40, (batch, candidates, candidate_time)).astype("int32")
    query[1, 3:] = 0
    candidate[0, 1, 2:] = 0
    return {"query": query, "candidate": candidate}
