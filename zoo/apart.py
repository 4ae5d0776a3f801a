"""Scoring long lists with a model that encodes both sides apart: each distinct text is encoded once.

Such a model marks where its texts are encoded: the layers ``query_encoding_1``, ``query_encoding_2``, ... give
arrays ``[B, ...]`` of the query, ``candidate_encoding_1``, ... arrays ``[B, L, ...]`` of the candidates: vectors, or
states of words ``[..., T, D]`` beside their mask ``[..., T]``. The score needs nothing else. Pools of 500 that share
their answers cost one encoding per answer in place of one per pair, and, where the rest is cheap, little more.

Memory holds the encodings of all queries, and of a few candidates at a time: these are taken by length, and all
pairs of a candidate are scored while its encoding is at hand. It is copied to each of its pairs: on CPUs TensorFlow
2.21 corrupts memory in the product of ``[n, 1, a, b]`` and ``[1, 1, b, c]``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

# Numbers of one batch of pairs, in the encodings of their candidates.
_BUDGET = 2**22


class Parts(NamedTuple):
    """A model cut in three.

    Attributes:
        query: ids ``[B, T]`` to the list of the query's encodings.
        candidate: ids ``[B, L, T]`` to the list of the candidates' encodings.
        match: both lists to what the model gives.
    """

    query: keras.Model
    candidate: keras.Model
    match: keras.Model


@lru_cache(maxsize=1)  # the functions behind the parts are traced once, and serve every epoch
def parts(model: keras.Model) -> Parts | None:
    """The parts of a model that marks its encodings; None for any other."""
    if not isinstance(model, keras.Model):
        return None
    query, candidate = (_encodings(model, side) for side in ("query", "candidate"))
    if not query or not candidate:
        return None
    cut = Parts(
        keras.Model(model.input["query"], query),
        keras.Model(model.input["candidate"], candidate),
        keras.Model(query + candidate, model.output),
    )
    for part in cut:
        part.jit_compile = False  # XLA would compile anew for each length
    return cut


def within_batch(model: keras.Model) -> keras.Model:
    """A view of a model that scores each query of a batch with the first candidate of every other: ``[B, B]``.

    Each text is encoded once. Vectors cost little more; states that are read under the query, by attention,
    several hops, attentive pooling or iGGSA, are read ``B`` times.

    Raises:
        ValueError: if the model does not encode query and candidate apart.
    """
    cut = parts(model)
    if cut is None:
        raise ValueError(
            "Negatives of the batch need a model that encodes query and candidate apart. "
            f"Received: model={model.name!r}"
        )
    query, candidate = (keras.tree.flatten(part(part.input)) for part in (cut.query, cut.candidate))
    others = [ops.swapaxes(x[:, :1], 0, 1) for x in candidate]  # [1, B, ...], under each query
    return keras.Model(model.input, cut.match([*query, *others]))


def score(model: Parts, split, batch_size: int) -> np.ndarray:
    """Scores every pair of a split: ``[pairs]`` float32, in the order of the file.

    Args:
        model: what `parts` gives.
        split: a `zoo.encoded.EncodedSplit` of texts with one field.
        batch_size: texts that are encoded at once.
    """
    (query_ids,), (candidate_ids,) = split.query_ids.values(), split.candidate_ids.values()
    query = _encoded_queries(model.query, query_ids, batch_size)
    # A pair that stands twice is scored once.
    num_candidates = split.num_candidates
    keys = split.query_of_group[split.group_of_pair] * num_candidates + split.candidate_of_pair
    keys, pair_of = np.unique(keys, return_inverse=True)
    query_of, candidate_of = np.divmod(keys, num_candidates)
    by_length = _by_length(candidate_ids)
    rank = np.empty(num_candidates, "int64")
    rank[by_length] = np.arange(num_candidates)
    order = np.argsort(rank[candidate_of], kind="stable")
    bounds = np.searchsorted(rank[candidate_of][order], np.arange(0, num_candidates + batch_size, batch_size))
    scores = np.zeros(len(keys), "float32")
    for start, first, last in zip(range(0, num_candidates, batch_size), bounds, bounds[1:], strict=False):
        texts = by_length[start : start + batch_size]
        encodings = [x[: len(texts), 0] for x in _encode(model.candidate, candidate_ids, texts[:, None])]
        rows = max(1, _BUDGET // max(1, max(x[0].size for x in encodings)))
        for pairs in np.split(order[first:last], range(rows, last - first, rows)):
            places = rank[candidate_of[pairs]] - start
            inputs = [x[query_of[pairs]] for x in query] + [x[places][:, None] for x in encodings]
            outputs = model.match.predict_on_batch(inputs)
            outputs = outputs["score"] if isinstance(outputs, dict) else outputs
            scores[pairs] = np.asarray(outputs)[: len(pairs), 0]
    return scores[pair_of]


def _encodings(model, side):
    layers = [layer for layer in model.layers if layer.name.startswith(f"{side}_encoding_")]
    return [layer.output for layer in sorted(layers, key=lambda layer: layer.name)]


def _by_length(ids):
    return np.argsort(np.diff(ids.offsets), kind="stable")


def _encoded_queries(encoder, ids, batch_size):
    order = _by_length(ids)
    batches = np.split(order, range(batch_size, len(order), batch_size))
    encoded = [[x[: len(texts)] for x in _encode(encoder, ids, texts)] for texts in batches]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return [np.concatenate(_alike(parts))[place] for parts in zip(*encoded, strict=True)]


def _alike(parts):
    """Arrays ``[n, ...]`` padded behind, by zeros and False, to one shape but for ``n``: time differs."""
    shape = np.max([x.shape[1:] for x in parts], axis=0)
    return [
        np.pad(x, [(0, 0), *((0, most - size) for most, size in zip(shape, x.shape[1:], strict=True))]) for x in parts
    ]


def _encode(encoder, ids, texts):
    outputs = encoder.predict_on_batch(ids.padded(texts, ids.longest_of(texts)))
    return [np.asarray(x) for x in keras.tree.flatten(outputs)]
