"""RadialBasis against its equation and scikit-learn, and the promises of every layer."""

import numpy as np
import pytest

from layers.radial_basis import RadialBasis
from tests.checks import check_layer
from zoo import entailment

RANDOM = np.random.default_rng(0)


def test_promises():
    check_layer(
        RadialBasis, {"num_vectors": 4, "num_classes": 2}, {"inputs": RANDOM.normal(size=(3, 5)).astype("float32")}
    )


def test_equals_the_equation():
    vectors, weights, intercepts = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(4, 2)), RANDOM.normal(size=2)
    layer = RadialBasis(4, 2)
    layer.set_vectors(vectors, weights, intercepts, gamma=0.3)
    x = RANDOM.normal(size=(6, 5, 3)).astype("float32")

    def decide(row):
        total = intercepts.copy()
        for vector, weight in zip(vectors, weights, strict=True):
            total += weight * np.exp(-0.3 * np.sum((row - vector) ** 2))
        return total

    expected = [[decide(row.astype("float64")) for row in rows] for rows in x]
    np.testing.assert_allclose(layer(x), expected, rtol=1e-4, atol=1e-5)


def rings(count):
    """Three classes by the distance from the middle, which no plane tells apart."""
    x = RANDOM.normal(size=(count, 2))
    return x, np.digitize(np.linalg.norm(x, axis=1), [0.8, 1.5])


def test_machine_is_the_best_in_five_folds_and_the_layer_answers_as_scikit_learn():
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    x, classes = rings(300)
    names = ["inner", "middle", "outer"]
    vectors, weights, intercepts, gamma = entailment.fit(x, [names[c] for c in classes], names)
    layer = RadialBasis(*weights.shape)
    layer.set_vectors(vectors, weights, intercepts, gamma)
    new, expected = rings(200)
    answers = np.argmax(layer(new.astype("float32")), axis=-1)
    assert np.mean(answers == expected) > 0.9
    scale = 1 / (2 * x.var())
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    machines = [
        OneVsRestClassifier(SVC(C=penalty, gamma=width * scale))
        for penalty in entailment.PENALTIES
        for width in entailment.WIDTHS
    ]
    accuracies = [cross_val_score(machine, x, classes, cv=folds).mean() for machine in machines]
    best = machines[int(np.argmax(accuracies))].fit(x, classes).decision_function(new)
    np.testing.assert_allclose(layer(new.astype("float32")), best, atol=1e-3)


def test_machine_refuses_a_class_that_is_hardly_there():
    with pytest.raises(ValueError, match=r"Received: \{'a': 37, 'b': 3, 'c': 10\}"):
        entailment.fit(RANDOM.normal(size=(50, 2)), ["a"] * 37 + ["b"] * 3 + ["c"] * 10, ["a", "b", "c"])
    with pytest.raises(ValueError, match="At least 3 classes"):
        entailment.fit(RANDOM.normal(size=(40, 2)), ["a", "b"] * 20, ["a", "b"])


@pytest.mark.parametrize("sizes, message", [((0, 2), "num_vectors=0"), ((2, 0), "num_classes=0"), ((2.0, 1), "2.0")])
def test_refuses_sizes(sizes, message):
    with pytest.raises(ValueError, match=f"Received: .*{message}"):
        RadialBasis(*sizes)


def test_refuses_arrays_of_another_shape_and_keeps_the_old():
    layer = RadialBasis(2, 1)
    layer.set_vectors(np.ones((2, 3)), np.ones((2, 1)), np.ones(1), 1.0)
    with pytest.raises(ValueError, match=r"Received: weights.shape=\(2, 2\)"):
        layer.set_vectors(np.zeros((2, 3)), np.zeros((2, 2)), np.zeros(1), 1.0)
    with pytest.raises(ValueError, match="Received: gamma=0"):
        layer.set_vectors(np.zeros((2, 3)), np.zeros((2, 1)), np.zeros(1), 0.0)
    np.testing.assert_array_equal(layer.vectors, np.ones((2, 3)))


@pytest.mark.parametrize("count", [60, 61, 62, 63, 64])
def test_the_search_is_on_some_of_many_rows(count, monkeypatch):
    # One or two rows left over could not be of three classes.
    monkeypatch.setattr(entailment, "_SEARCHED", 60)
    x = np.arange(count)[:, None] + np.zeros((1, 2))
    names = ["a", "b", "c"]
    vectors, weights, *_ = entailment.fit(x, [names[i % 3] for i in range(count)], names)
    assert vectors.shape[1] == 2 and weights.shape == (len(vectors), 3)
