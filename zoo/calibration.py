"""Local-linear regression of a label on a score, and a bandwidth chosen by leaving one out.

At a score g the label is the value of a straight line, fitted to all pairs with weights that fall with their
distance from g (Fan and Gijbels 1992, Eq. 2.4), here those of a Gaussian of standard deviation h:

    k_i = exp(-((g_i - g) / h)^2 / 2),  d_i = g_i - g,  S_r = sum_i k_i d_i^r,  T_r = sum_i k_i d_i^r y_i
    y(g) = (S_2 T_0 - S_1 T_1) / (S_0 S_2 - S_1^2)

Without pair i the regression misses its label by (y_i - y(g_i)) / (1 - s_ii), s_ii = S_2 / (S_0 S_2 - S_1^2) at g_i:
an exact shortcut, by which the bandwidth with the least squared error is found without fitting n times.
"""

from __future__ import annotations

import numpy as np

POINTS = 512
_BLOCK = 1024  # rows of the [points, pairs] weights that are in memory at once


def fit(
    scores: np.ndarray, labels: np.ndarray, bandwidths: np.ndarray | None = None
) -> tuple[float, float, np.ndarray]:
    """The regression as a curve over the range of the scores.

    Args:
        scores, labels: ``[n]``.
        bandwidths: those to choose from; by default 20 from a hundredth of the range up to the range.

    Returns:
        Lowest score, highest score, and the labels at `POINTS` equally spaced scores between them. A line that goes
        beyond the lowest or the highest label at an end is cut there.

    Raises:
        ValueError: if the scores are all the same, or not as many as the labels.
    """
    scores, labels = np.asarray(scores, "float64"), np.asarray(labels, "float64")
    if scores.shape != labels.shape or scores.ndim != 1 or not np.ptp(scores) > 0:
        raise ValueError(
            "A calibration needs as many scores as labels, and two scores that differ. "
            f"Received: scores.shape={scores.shape}, labels.shape={labels.shape}, range={np.ptp(scores):g}"
        )
    low, high = float(scores.min()), float(scores.max())
    if bandwidths is None:
        bandwidths = np.geomspace(0.01, 1.0, 20) * (high - low)
    errors = [np.mean(leave_one_out(scores, labels, bandwidth) ** 2) for bandwidth in bandwidths]
    bandwidth = bandwidths[int(np.argmin(errors))]
    grid = np.linspace(low, high, POINTS)
    return low, high, np.clip(local_linear(scores, labels, grid, bandwidth)[0], labels.min(), labels.max())


def local_linear(scores: np.ndarray, labels: np.ndarray, at: np.ndarray, bandwidth: float):
    """The regression at some scores, ``[m]``, and the share that a pair at that very score has in it, ``[m]``.

    Where so few pairs are near that the line is not determined, it is the weighted mean, and where none is, the
    label of the nearest.
    """
    values, shares = [], []
    for block in np.split(at, range(_BLOCK, len(at), _BLOCK)):
        offset = scores - block[:, None]
        exponent = -((offset / bandwidth) ** 2) / 2
        weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))  # of no effect on the ratio
        # The weight of a pair at the score itself, on that footing; far from all pairs it is past all numbers.
        own = np.exp(np.minimum(-exponent.max(axis=1), 500))
        moment = weight * offset
        s0, s1, s2 = weight.sum(axis=1), moment.sum(axis=1), (moment * offset).sum(axis=1)
        t0, t1 = weight @ labels, moment @ labels
        determinant = s0 * s2 - s1**2
        is_line = determinant > 1e-10 * s0**2 * bandwidth**2
        safe = np.where(is_line, determinant, 1.0)
        values.append(np.where(is_line, (s2 * t0 - s1 * t1) / safe, t0 / s0))
        shares.append(own * np.where(is_line, s2 / safe, 1 / s0))
    return np.concatenate(values), np.concatenate(shares)


def leave_one_out(scores: np.ndarray, labels: np.ndarray, bandwidth: float) -> np.ndarray:
    """By how much the regression on all other pairs misses each label, ``[n]``."""
    values, shares = local_linear(scores, labels, scores, bandwidth)
    # A pair that alone determines its value would be missed by anything.
    return np.where(shares < 1 - 1e-9, (labels - values) / np.maximum(1 - shares, 1e-9), np.ptp(labels))
