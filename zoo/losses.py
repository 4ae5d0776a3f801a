"""Losses over lists: one query, its candidates, and padding that counts for nothing.

Every loss takes labels ``[B, L]`` (greater than 0 is relevant, 0 is not, -1 is padding) and scores ``[B, L]``
and gives one number per row, ``[B]``, whose mean is the loss. Scores are log-odds: ``sigmoid(score)`` is the
probability of being relevant. Half precision is raised to float32 first. What there is to average over is
counted over the batch (of one replica): a batch with nothing to count gives 0, and neither the order of rows nor more
padding changes the loss.
"""

from __future__ import annotations

import keras
from keras import ops

_register = keras.saving.register_keras_serializable(package="pairzoo")


@_register
def pointwise(y_true, y_pred):
    """Cross-entropy of each pair by itself: the two-class softmax, given the difference of its logits.

    ``log(1 + exp(-s))`` for a relevant candidate, ``log(1 + exp(s))`` for another; mean over real pairs.

    Raises:
        ValueError: when labels and scores are not both ``[B, L]``.
    """
    relevant, other, scores = _parts(y_true, y_pred)
    real = ops.logical_or(relevant, other)
    return _mean(ops.softplus(ops.where(relevant, -scores, scores)), real)


@_register
def listwise(y_true, y_pred):
    """Softmax cross-entropy over the list: the relevant candidates share the target in equal parts.

    Mean over lists that have a relevant candidate; the others contribute nothing.

    Raises:
        ValueError: when labels and scores are not both ``[B, L]``.

    Reference: Cao et al. 2007 (ListNet), Eq. 4 with top-one probabilities.
    """
    relevant, other, scores = _parts(y_true, y_pred)
    real = ops.logical_or(relevant, other)
    log_shares = ops.log_softmax(ops.where(real, scores, _lowest(scores)), axis=-1)
    targets = ops.cast(relevant, scores.dtype)
    num_relevant = ops.sum(targets, axis=-1)
    per_list = -ops.sum(targets * log_shares, axis=-1) / ops.maximum(num_relevant, 1)
    return _mean(per_list, num_relevant > 0)


@_register
class ListwiseOfCosines(keras.losses.Loss):
    """`listwise` of scores between -1 and 1: a softmax over them needs them spread first.

    With the positives of a batch's other queries as negatives this is the loss of most bi-encoders, under names such
    as in-batch softmax, InfoNCE and multiple negatives ranking.

    Args:
        scale: what scores are multiplied with, the inverse of a temperature; greater than 0.

    Raises:
        ValueError: for another scale, or when labels and scores are not both ``[B, L]``.

    Reference: van den Oord et al. 2018, Eq. 4; Henderson et al. 2017, section 4.4; scales of 20 are usual.
    """

    def __init__(self, scale=20.0, name="listwise_of_cosines", reduction="sum_over_batch_size", dtype=None):
        if not scale > 0:
            raise ValueError(f"scale must be greater than 0. Received: scale={scale!r}")
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.scale = scale

    def call(self, y_true, y_pred):
        _, _, scores = _parts(y_true, y_pred)
        return listwise(y_true, self.scale * scores)

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}


@_register
def total(y_true, y_pred):
    """The sum of each row of a model's outputs, which are losses themselves; the labels are not looked at."""
    return ops.sum(y_pred, axis=-1)


def pairwise_hinge(margin: float) -> PairwiseHinge:
    """The max-margin loss with this margin, to be handed to ``compile``."""
    return PairwiseHinge(margin)


@_register
class PairwiseHinge(keras.losses.Loss):
    """Max-margin loss of each relevant candidate against the hardest other one of its list.

    ``max(0, margin + max_j s(q, n_j) - s(q, p))``, mean over the relevant candidates of lists that have
    another. With one negative in the list, which is how GGSA draws it, that is the plain pairwise loss.

    Args:
        margin: by how much a relevant candidate must win; RCNN 1.0, GGSA 0.1. At least 0.

    Raises:
        ValueError: for a negative margin, or when labels and scores are not both ``[B, L]``.

    Reference: Lei et al. 2016, section 3 (their max includes the positive itself at no margin, which is the
    same expression).
    """

    def __init__(self, margin=1.0, name="pairwise_hinge", reduction="sum_over_batch_size", dtype=None):
        if not margin >= 0:
            raise ValueError(f"margin must be at least 0. Received: margin={margin!r}")
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.margin = margin

    def call(self, y_true, y_pred):
        relevant, other, scores = _parts(y_true, y_pred)
        # Keras refuses the maximum of an empty batch unless it is told where to begin.
        others = ops.where(other, scores, _lowest(scores))
        hardest = ops.max(others, axis=-1, keepdims=True, initial=-1e30)
        counted = ops.logical_and(relevant, ops.any(other, axis=-1, keepdims=True))
        # Where there is no other one, hardest is no score; the gap is set to 0 before it can overflow.
        return _mean(ops.relu(self.margin + ops.where(counted, hardest - scores, 0.0)), counted)

    def get_config(self):
        return {**super().get_config(), "margin": self.margin}


@_register
class SquaredError(keras.losses.Loss):
    """Squared error of values on a scale: ``((label - score) / span)^2``, mean over real pairs.

    Args:
        span: length of the labels' scale, greater than 0; the errors are then those on a scale from 0 to 1.

    Raises:
        ValueError: for another span, or when labels and scores are not both ``[B, L]``.
    """

    def __init__(self, span=1.0, name="squared_error", reduction="sum_over_batch_size", dtype=None):
        if not span > 0:
            raise ValueError(f"span must be greater than 0. Received: span={span!r}")
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.span = span

    def call(self, y_true, y_pred):
        relevant, other, scores = _parts(y_true, y_pred)
        real = ops.logical_or(relevant, other)
        labels = ops.where(real, ops.cast(y_true, scores.dtype), 0.0)
        return _mean(((labels - scores) / self.span) ** 2, real)

    def get_config(self):
        return {**super().get_config(), "span": self.span}


@_register
class NeighbourDivergence(keras.losses.Loss):
    """Divergence of a distribution over the whole numbers of a scale from the two neighbours of the label.

    A label y puts ``ceil(y) - y`` on ``floor(y)`` and the rest on the number above; the loss is the
    Kullback-Leibler divergence of the prediction from it, mean over real pairs. It takes the logarithms of the
    probabilities, ``[B, L, C]``, the last one for ``high``.

    Args:
        high: the scale's highest number.

    Raises:
        ValueError: when labels are not ``[B, L]`` or predictions not ``[B, L, C]``.

    Reference: Tai et al. 2015, section 4.2 (Eq. 15).
    """

    def __init__(self, high=5.0, name="neighbour_divergence", reduction="sum_over_batch_size", dtype=None):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.high = high

    def call(self, y_true, y_pred):
        if len(y_pred.shape) != 3:
            raise ValueError(f"Predictions must have shape [batch, list, classes]. Received: shape={y_pred.shape}")
        relevant, other, _ = _parts(y_true, y_pred[..., 0])
        real = ops.logical_or(relevant, other)
        numbers = self.high - ops.arange(y_pred.shape[-1] - 1, -1, -1, dtype=y_pred.dtype)
        distance = ops.abs(ops.cast(y_true, y_pred.dtype)[..., None] - numbers)
        target = ops.relu(1 - distance)
        entropy = ops.sum(target * ops.log(ops.maximum(target, 1e-30)), axis=-1)
        divergence = entropy - ops.sum(target * y_pred, axis=-1)
        return _mean(ops.where(real, divergence, 0.0), real)

    def get_config(self):
        return {**super().get_config(), "high": self.high}


def _parts(y_true, y_pred):
    """Which are relevant, which are real but not relevant, and scores of at least float32, 0 at padding."""
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    shapes = tuple(y_true.shape), tuple(y_pred.shape)
    fits = len(shapes[0]) == len(shapes[1]) == 2 and all(
        a is None or b is None or a == b for a, b in zip(*shapes, strict=True)
    )
    if not fits:
        raise ValueError(
            "Labels and scores must both have shape [batch, list]. "
            f"Received: y_true.shape={shapes[0]}, y_pred.shape={shapes[1]}"
        )
    if keras.backend.standardize_dtype(y_pred.dtype) != "float64":
        y_pred = ops.cast(y_pred, "float32")
    relevant = y_true > 0
    other = ops.logical_and(y_true <= 0, y_true >= 0)
    real = ops.logical_or(relevant, other)
    return relevant, other, ops.where(real, y_pred, 0.0)


def _lowest(scores):
    # Far below any score, and still finite when a score is subtracted from it.
    return ops.cast(-1e30, scores.dtype)


def _mean(values, counted):
    """``[B]`` numbers whose mean is the mean of the counted values, ``[B]`` or ``[B, L]``.

    Not that mean itself: Keras divides a loss by the number of replicas when it reduces it and leaves a
    scalar as it is, so that a mirrored training would take steps that are as many times too long.
    """
    weights = ops.cast(counted, values.dtype)
    total = values * weights
    if len(total.shape) == 2:
        total = ops.sum(total, axis=-1)
    num_rows = ops.cast(ops.shape(total)[0], total.dtype)
    return total * num_rows / ops.maximum(ops.sum(weights), 1)
