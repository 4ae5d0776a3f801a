"""Telling classes of pairs apart by a support-vector machine on features of theirs.

One machine with the RBF kernel for each class against all others; C and gamma, which they share, are those of the
best accuracy in a five-fold cross-validation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PENALTIES = (1.0, 10.0, 100.0, 1000.0)
# As multiples of 1 / (number of features times their variance), scikit-learn's "scale".
WIDTHS = (0.3, 1.0, 3.0)
_FOLDS = 5
_SEARCHED = 2000  # pairs that the search is made on; all are taken for the final machine


def check(judgements: Sequence[str], classes: Sequence[str]) -> None:
    """Raises ValueError where there are fewer than three classes, or one has too few rows to be in every fold."""
    counts = {name: list(judgements).count(name) for name in classes}
    if len(counts) < 3 or min(counts.values()) < 2 * _FOLDS:
        raise ValueError(f"At least 3 classes must have {2 * _FOLDS} rows each. Received: {counts}")


def fit(features: np.ndarray, judgements: Sequence[str], classes: Sequence[str], seed: int = 0):
    """Fits the machines.

    Args:
        features: ``[n, d]``.
        judgements: the class of each row.
        classes: all classes, in the order of the columns of the weights.
        seed: of the folds, and of the rows that the search is made on.

    Returns:
        Support vectors ``[S, d]``, weights ``[S, C]``, intercepts ``[C]`` and gamma, of
        ``sum_s weight_sc exp(-gamma |x - v_s|^2) + intercept_c``.

    Raises:
        ValueError: as `check`.
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    features = np.asarray(features, "float64")
    targets = np.array([classes.index(name) for name in judgements])
    check(judgements, classes)
    rows = np.arange(len(features))
    if len(rows) >= _SEARCHED + len(classes):  # the rest must have one of each class
        rows, _ = train_test_split(rows, train_size=_SEARCHED, stratify=targets, random_state=seed)
    scale = 1 / (features.shape[1] * max(features.var(), 1e-12))
    search = GridSearchCV(
        OneVsRestClassifier(SVC(kernel="rbf")),
        {"estimator__C": PENALTIES, "estimator__gamma": [width * scale for width in WIDTHS]},
        cv=StratifiedKFold(_FOLDS, shuffle=True, random_state=seed),
        refit=False,
    ).fit(features[rows], targets[rows])
    chosen = {name.removeprefix("estimator__"): value for name, value in search.best_params_.items()}
    machines = OneVsRestClassifier(SVC(kernel="rbf", **chosen)).fit(features, targets).estimators_
    support = np.unique(np.concatenate([machine.support_ for machine in machines]))
    weights = np.zeros((len(support), len(classes)))
    for column, machine in enumerate(machines):
        weights[np.searchsorted(support, machine.support_), column] = machine.dual_coef_[0]
    intercepts = np.array([machine.intercept_[0] for machine in machines])
    return features[support], weights, intercepts, chosen["gamma"]
