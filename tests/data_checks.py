"""What the tests of reading data share: where the real data lies, counts, and the form of an error."""

import os
import re
from pathlib import Path

import pytest

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


def fault(path, line: int | None, *parts: str, received: str) -> str:
    """A pattern of the message of a DataError, for `pytest.raises`.

    It is one line that starts with the place, holds the parts, and has after "Received: " what was received.
    """
    place = f"{path}: " if line is None else f"{path}:{line}: "
    held = "".join(f"(?=.*{re.escape(part)})" for part in parts)
    return rf"\A(?=[^\n]*\Z){held}{re.escape(place)}.*?Received: .*{re.escape(received)}"
