"""Numbered version folders, as TensorFlow Serving reads them: ``BASE/1``, ``BASE/2``, and so on."""

import os
import shutil
import uuid
from contextlib import contextmanager
from pathlib import Path

_UNFINISHED = "unfinished-"


def list_versions(base: str | Path) -> list[int]:
    """Numbers of the version folders below ``base``, ascending; every other name is ignored."""
    base = Path(base)
    if not base.is_dir():
        return []
    names = (entry.name for entry in base.iterdir() if entry.is_dir())
    return sorted({int(name) for name in names if name.isascii() and name.isdigit() and name[0] != "0"})


def holds_other(base: Path) -> bool:
    """Whether ``base`` is a folder with content that no export left there."""
    if not base.is_dir() or list_versions(base):
        return False
    return any(not entry.name.startswith(_UNFINISHED) for entry in base.iterdir())


@contextmanager
def working_folder(base: str | Path):
    """An empty folder below ``base`` whose name a server ignores; what is left of it is removed at the end.

    It lies in ``base`` and nowhere else, because only inside one file system is a rename all or nothing.
    """
    base = Path(base)
    is_new = not base.exists()
    folder = base / f"{_UNFINISHED}{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise OSError(f"The destination must be a folder that can be written. Received: {error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if is_new and not any(base.iterdir()):
            base.rmdir()


def publish(folder: Path, base: str | Path) -> Path:
    """Renames a finished folder to the next free number below ``base``.

    A number that another export takes in the meantime is left alone and the one after it is tried.
    """
    number = 1 + max(list_versions(base), default=0)
    while True:
        version = Path(base) / str(number)
        # A rename would replace an empty folder without a word, and fails on one with content.
        if not version.exists():
            try:
                os.rename(folder, version)
            except OSError:
                if not version.exists():
                    raise
            else:
                return version
        number += 1
