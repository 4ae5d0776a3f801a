"""The local-linear regression against its definition and against deletion; the layer that serves its curve."""

import numpy as np
import pytest

from layers.calibration import Calibration
from tests.checks import check_layer
from zoo import calibration

RANDOM = np.random.default_rng(0)
SCORES = RANDOM.uniform(0, 1, 60)
LABELS = 1 + 4 * SCORES**2 + RANDOM.normal(size=60) * 0.1


def line_at(scores, labels, at, bandwidth):
    """The value at one score of the weighted least-squares line through the pairs."""
    weight = np.exp(-(((scores - at) / bandwidth) ** 2) / 2)
    design = np.stack([np.ones_like(scores), scores - at], axis=1)
    return np.linalg.solve(design.T @ (weight[:, None] * design), design.T @ (weight * labels))[0]


@pytest.mark.parametrize("bandwidth", [0.03, 0.1, 1.0])
def test_regression_is_the_weighted_line(bandwidth):
    at = np.linspace(0.05, 0.95, 9)
    values, _ = calibration.local_linear(SCORES, LABELS, at, bandwidth)
    np.testing.assert_allclose(values, [line_at(SCORES, LABELS, g, bandwidth) for g in at], rtol=1e-9)


@pytest.mark.parametrize("bandwidth", [0.05, 0.3])
def test_leaving_one_out_is_deletion(bandwidth):
    missed = calibration.leave_one_out(SCORES, LABELS, bandwidth)
    for i in range(len(SCORES)):
        others = np.arange(len(SCORES)) != i
        expected = LABELS[i] - line_at(SCORES[others], LABELS[others], SCORES[i], bandwidth)
        assert missed[i] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("bandwidth", [0.02, 0.2, 5.0])
def test_a_straight_line_is_found_with_any_bandwidth(bandwidth):
    low, high, curve = calibration.fit(SCORES, 2 + 3 * SCORES, bandwidths=np.array([bandwidth]))
    np.testing.assert_allclose(curve, 2 + 3 * np.linspace(low, high, calibration.POINTS), atol=1e-7)


def test_the_bandwidth_is_the_one_that_misses_least():
    low, high, curve = calibration.fit(SCORES, LABELS)
    grid = np.linspace(low, high, calibration.POINTS)
    candidates = np.geomspace(0.01, 1, 20) * (high - low)
    errors = [np.mean(calibration.leave_one_out(SCORES, LABELS, h) ** 2) for h in candidates]
    best = candidates[np.argmin(errors)]
    line = calibration.local_linear(SCORES, LABELS, grid, best)[0]
    np.testing.assert_allclose(curve, np.clip(line, LABELS.min(), LABELS.max()))
    assert np.abs(curve - 1 - 4 * grid**2).mean() < 0.1


@pytest.mark.filterwarnings("error")
def test_a_score_far_from_all_others_is_no_overflow():
    _, _, curve = calibration.fit([0, 0.001, 0.002, 0.003, 1], [1, 2, 3, 4, 5])
    assert np.isfinite(curve).all()


def test_equal_scores_and_gaps_are_finite():
    scores = np.array([0.1, 0.1, 0.1, 0.9, 0.9])
    _, _, curve = calibration.fit(scores, np.array([1.0, 2, 3, 4, 5]))
    assert np.isfinite(curve).all()
    np.testing.assert_allclose(curve[[0, -1]], [2, 4.5], atol=1e-6)


@pytest.mark.parametrize("scores, labels", [([0.5, 0.5], [1, 2]), ([0.1, 0.2], [1.0]), ([[0.1]], [[1.0]])])
def test_refuses_scores_without_a_range(scores, labels):
    with pytest.raises(ValueError, match="Received: scores.shape="):
        calibration.fit(np.array(scores), np.array(labels))


def test_promises():
    check_layer(Calibration, {"num_points": 7}, {"inputs": RANDOM.normal(size=(3, 5)).astype("float32")})


def test_layer_reads_off_the_curve():
    low, high, curve = calibration.fit(SCORES, LABELS)
    layer = Calibration(len(curve))
    layer.set_curve(low, high, curve)
    at = RANDOM.uniform(low, high, (4, 3)).astype("float32")
    np.testing.assert_allclose(layer(at), np.interp(at, np.linspace(low, high, len(curve)), curve), rtol=1e-5)
    np.testing.assert_allclose(layer(np.array([-9.0, 9.0])), curve[[0, -1]], rtol=1e-6)


@pytest.mark.parametrize("num_points", [1, 0, 2.0, None])
def test_layer_refuses_less_than_a_line(num_points):
    with pytest.raises(ValueError, match=f"Received: num_points={num_points}"):
        Calibration(num_points)


def test_layer_refuses_another_curve():
    layer = Calibration(3)
    with pytest.raises(ValueError, match=r"Received: curve.shape=\(2,\)"):
        layer.set_curve(0.0, 1.0, [1.0, 2.0])
    with pytest.raises(ValueError, match="Received: low=1.0, high=1.0"):
        layer.set_curve(1.0, 1.0, [1.0, 2.0, 3.0])


def test_curve_stays_within_the_labels():
    labels = np.clip(1 + 5 * SCORES, 1, 5)
    low, high, curve = calibration.fit(SCORES, labels, bandwidths=np.array([0.1]))
    line, _ = calibration.local_linear(SCORES, labels, np.linspace(low, high, calibration.POINTS), 0.1)
    assert line.max() > labels.max() and curve.max() == labels.max()
