"""The tests of bad files lean on `refused`: it must fail where a file is not refused, or not for its fault."""

import pytest

from tests.data_checks import refused
from zoo.data import DataError


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("a.tsv:3: expected two columns. Received: 'x'"),
        DataError("a.tsv", 4, "two columns", "x"),
        DataError("a.tsv", None, "two columns", "x"),
        DataError("b.tsv", 3, "two columns", "x"),
        DataError("a.tsv", 3, "three columns", "x"),
        DataError("a.tsv", 3, "two columns", "y"),
    ],
)
def test_refused_fails_without_the_fault_that_it_names(error):
    fails = pytest.raises((AssertionError, pytest.fail.Exception, ValueError))
    with fails, refused("a.tsv", 3, "two columns", received="x"):
        if error:
            raise error


def test_refused_takes_the_fault_that_it_names():
    with refused("a.tsv", 3, "two columns", received="x"):
        raise DataError("a.tsv", 3, "two columns", "x")
