"""Static shapes under each other."""

import doctest

import pytest

from layers import shapes
from layers.shapes import broadcast_axes


def test_example():
    assert doctest.testmod(shapes).failed == 0


@pytest.mark.parametrize(
    "first, second, shape",
    [
        ((None, 1), (1, 4), (None, 4)),
        ((None, 3), (3, None), (3, 3)),
        ((None, None), (None, 1), (None, None)),
        ((), (), ()),
    ],
)
def test_axes_of_size_one_are_repeated(first, second, shape):
    assert broadcast_axes(first, second) == broadcast_axes(second, first) == shape


def test_other_sizes_must_agree():
    with pytest.raises(ValueError, match=r"Received: shapes \(3, 2\) and \(3, 5\)"):
        broadcast_axes((3, 2), (3, 5))
