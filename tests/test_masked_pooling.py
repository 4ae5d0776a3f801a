"""Pools are blind to padding."""

import numpy as np
import pytest

from layers.masked_pooling import MaskedPooling
from tests.checks import check_layer

STATES = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], bool)


@pytest.mark.parametrize("mode", ["max", "last"])
def test_promises(mode):
    check_layer(MaskedPooling, {"mode": mode}, {"states": STATES}, {"mask": MASK})


@pytest.mark.parametrize(
    "mode, pool",
    [
        ("mean", lambda x: x.mean(0)),
        ("sum", lambda x: x.sum(0)),
        ("max", lambda x: x.max(0)),
        ("last", lambda x: x[-1]),
    ],
)
@pytest.mark.parametrize("lists", [False, True])
def test_equals_the_loop(mode, pool, lists):
    expected = np.array(
        [pool(x[m].astype("float64")) if m.any() else np.zeros(5) for x, m in zip(STATES, MASK, strict=True)]
    )
    states, mask = (STATES[:, None], MASK[:, None]) if lists else (STATES, MASK)
    result = np.asarray(MaskedPooling(mode)(states, mask=mask))
    np.testing.assert_allclose(result[:, 0] if lists else result, expected, atol=1e-6)


def test_a_mask_of_the_query_serves_its_whole_list():
    states = np.stack([STATES, STATES[::-1]], axis=1)  # [B, L, T, d]
    result = np.asarray(MaskedPooling("mean")(states, mask=MASK[:, None]))
    for number in range(2):
        np.testing.assert_allclose(result[:, number], MaskedPooling("mean")(states[:, number], mask=MASK), atol=1e-6)


def test_unknown_mode():
    with pytest.raises(ValueError, match="Received: mode='product'"):
        MaskedPooling("product")
