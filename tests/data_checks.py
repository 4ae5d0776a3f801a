"""What the tests of reading data share: where the real data lies, counts, and the form of an error."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from zoo.data import DataError

FOLDER = Path(os.environ.get("PAIRZOO_DATA", Path(__file__).parents[2] / "shared" / "data"))


def real_data(name: str) -> Path:
    """The folder of a data set; skips the test where it is absent."""
    if not (FOLDER / name).is_dir():
        pytest.skip(f"the real data is not at {FOLDER / name} (set PAIRZOO_DATA)")
    return FOLDER / name


def counts(groups) -> tuple[int, int, int]:
    """Number of groups, pairs and positives."""
    labels = [label for group in groups for label in group.labels]
    return len(groups), len(labels), sum(label > 0 for label in labels)


@contextmanager
def refused(path, line: int | None, *parts: str, received: str):
    """The block raises a DataError that starts with the place, holds the parts and ends with what was received."""
    with pytest.raises(DataError) as caught:
        yield
    message = str(caught.value)
    assert message.startswith(f"{path}: " if line is None else f"{path}:{line}: "), message
    assert "\n" not in message
    for part in parts:
        assert part in message, message
    assert received in message.split("Received: ", 1)[1], message
