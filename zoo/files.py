"""Reading data files: plain or gzipped, UTF-8 with line numbers, JSON lines, pickles that cannot run code.

Every fault in a file becomes a `DataError` that names the file, the line and what stands there.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from zoo.data import DataError

_BOM = b"\xef\xbb\xbf"


def find(folder: str | Path, names: Sequence[str], subfolders: Sequence[str] = ("",)) -> Path | None:
    """The first of ``names`` that is a file in ``folder`` or its ``subfolders``, plain or with ``.gz``.

    An earlier name in any subfolder wins over a later name.
    """
    for name in names:
        for subfolder in subfolders:
            for candidate in (name, name + ".gz"):
                path = Path(folder) / subfolder / candidate
                if path.is_file():
                    return path
    return None


def missing(folder: str | Path, names: Iterable[str], hint: str = "") -> DataError:
    """The error for a folder in which none of ``names`` was found; it says what does lie there, and the hint."""
    folder = Path(folder)
    expected = f"one of these files, plain or .gz: {', '.join(names)}{f' ({hint})' if hint else ''}"
    if not folder.is_dir():
        return DataError(folder, None, expected, "a file, no folder" if folder.is_file() else "no such folder")
    return DataError(folder, None, expected, sorted(path.name for path in folder.iterdir()))


def open_bytes(path: str | Path) -> IO[bytes]:
    """Open a file for reading bytes; gzip is told by its first two bytes, not by the name.

    Raises:
        DataError: the file is not there or may not be read.
    """
    try:
        with open(path, "rb") as file:
            magic = file.read(2)
        return gzip.open(path, "rb") if magic == b"\x1f\x8b" else open(path, "rb")
    except OSError as error:
        raise DataError(path, None, "a readable file", error.strerror) from error


def read_bytes(path: str | Path) -> bytes:
    """The whole content of a file, unzipped.

    Raises:
        DataError: the file cannot be read, or its gzip stream is broken.
    """
    with open_bytes(path) as file:
        try:
            return file.read()
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(path, None, "a whole gzip stream", str(error)) from error


def read_lines(path: str | Path, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
    """Pairs of 1-based line number and text of a UTF-8 file.

    Lines end with LF or CRLF and nothing else, so that a text may hold a form feed or U+2028. A byte-order
    mark is dropped, a last line need not end. ``keep_ends`` leaves the line end in the text.

    Raises:
        DataError: the file cannot be read, a gzip stream is broken, or a byte is not UTF-8; the error names
            the line and the byte.
    """
    number = 0
    with open_bytes(path) as file:
        try:
            for number, raw in enumerate(file, start=1):
                if number == 1:
                    raw = raw.removeprefix(_BOM)
                if not keep_ends:
                    raw = raw.removesuffix(b"\n").removesuffix(b"\r")
                yield number, _decode(raw, path, number)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(path, number + 1, "a whole gzip stream", str(error)) from error


def read_json_lines(path: str | Path) -> Iterator[tuple[int, dict]]:
    """Pairs of line number and object of a file with one JSON object a line; blank lines are skipped.

    Raises:
        DataError: as `read_lines`, and for a line that is not a JSON object or escapes half a character.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(path, number, f"a JSON object ({error})", line) from error
        if not isinstance(value, dict):
            raise DataError(path, number, "a JSON object", line)
        if "\\u" in line:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError as error:  # a lone surrogate; TensorFlow could not store the text
                raise DataError(path, number, "whole characters", error.object[error.start]) from error
        yield number, value


def read_pickle(path: str | Path) -> object:
    """The plain containers in a pickle, which may be gzipped or the only member of a zip archive.

    Admits dict, list, tuple, str, bytes, numbers, bool and None, and reads OrderedDict and defaultdict(list)
    as dict. Nothing else can be built, so that a hostile file cannot run code. Python 2's ``str`` comes back
    as bytes; `to_text` turns it into text.

    Raises:
        DataError: the file is no pickle, or wants a global that is not admitted; the error names it.
    """
    try:
        content = read_bytes(path)
        if content.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                members = [name for name in archive.namelist() if not name.endswith("/")]
                if len(members) != 1:
                    raise DataError(path, None, "a zip archive with one file", members)
                content = archive.read(members[0])
        return _PlainUnpickler(io.BytesIO(content), path).load()
    except DataError:
        raise
    except Exception as error:  # a broken pickle may raise anything
        raise DataError(path, None, "a pickle of plain containers", f"{type(error).__name__}: {error}") from error


def to_text(value: object, path: str | Path) -> str:
    """A string of a pickle as text; Python 2 wrote it as UTF-8 bytes.

    Raises:
        DataError: the value is not a string, or not UTF-8.
    """
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(path, None, "UTF-8 text", value) from error
    if not isinstance(value, str):
        raise DataError(path, None, "a text", value)
    return value


def one_line(text: Sequence[str] | str, *forbidden: str) -> str:
    """Fields joined; each run of white space and each of ``forbidden`` is one space. For line formats."""
    joined = text if isinstance(text, str) else " ".join(text)
    for mark in forbidden:
        joined = joined.replace(mark, " ")
    return " ".join(joined.split())


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8 with LF; the folder is made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def _decode(raw: bytes, path: str | Path, number: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        expected = f"UTF-8 text, but byte {error.start + 1} of the line is not"
        raise DataError(path, number, expected, raw[error.start : error.start + 1]) from error


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], path: str | Path):
        # Python 2's strings as bytes: decoding them is ours, with an error that names the file.
        super().__init__(file, encoding="bytes")
        self._path = path

    def find_class(self, module: str, name: str) -> object:
        # Functions instead of the classes, so that a pickle can reach no attribute of a class.
        admitted = {
            ("collections", "OrderedDict"): lambda items=(): dict(items),
            ("collections", "defaultdict"): lambda factory=None: {},
            ("builtins", "list"): list,
            ("__builtin__", "list"): list,
        }
        if (module, name) not in admitted:
            raise DataError(self._path, None, "a pickle of plain containers", f"{module}.{name}")
        return admitted[module, name]
