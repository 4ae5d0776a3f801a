"""The tests of bad files lean on `fault`: they must fail where a file is not refused, or not for its fault."""

import pytest

from tests.data_checks import fault
from zoo.data import DataError

FAULT = fault("a.tsv", 3, "two columns", "of text", received="x")


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("a.tsv:3: expected two columns of text. Received: 'x'"),
        DataError("a.tsv", 4, "two columns of text", "x"),
        DataError("a.tsv", None, "two columns of text", "x"),
        DataError("b.tsv", 3, "two columns of text", "x"),
        DataError("a.tsv", 3, "three columns of text", "x"),
        DataError("a.tsv", 3, "two columns", "x"),
        DataError("a.tsv", 3, "two columns of text, x", "y"),
        DataError("a.tsv", 3, "two columns\nof text", "x"),
    ],
)
def test_another_fault_or_none_is_not_taken_for_it(error):
    with (
        pytest.raises((AssertionError, pytest.fail.Exception, ValueError)) as caught,
        pytest.raises(DataError, match=FAULT),
    ):
        if error:
            raise error
    assert not isinstance(caught.value, DataError)


def test_the_fault_itself_is():
    with pytest.raises(DataError, match=FAULT):
        raise DataError("a.tsv", 3, "two columns of text", "x")
