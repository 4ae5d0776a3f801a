import collections
import gzip
import io
import os
import pickle
import zipfile

import pytest

from tests.data_checks import fault
from zoo import files
from zoo.data import DataError


def test_find_prefers_the_earlier_name_and_knows_gz(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "b.txt").write_text("")
    (tmp_path / "data" / "a.txt.gz").write_bytes(b"")
    (tmp_path / "c.txt").mkdir()
    assert files.find(tmp_path, ["a.txt", "b.txt"], ["", "data"]) == tmp_path / "data" / "a.txt.gz"
    assert files.find(tmp_path, ["a.txt", "b.txt"]) == tmp_path / "b.txt"
    assert files.find(tmp_path, ["c.txt"]) is None


def test_missing_names_the_folder_and_what_lies_there(tmp_path):
    (tmp_path / "other.txt").write_text("")
    with pytest.raises(DataError, match=fault(tmp_path, None, "a.txt, b.txt", received="['other.txt']")):
        raise files.missing(tmp_path, ["a.txt", "b.txt"])
    absent = tmp_path / "absent"
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DataError, match=fault(file, None, "a.txt", received="'a file, no folder'")):
        raise files.missing(file, ["a.txt"])
    with pytest.raises(DataError, match=fault(absent, None, "a.txt", received="'no such folder'")):
        raise files.missing(absent, ["a.txt"])


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_lines_end_with_lf_or_crlf_alone(tmp_path, compress):
    path = tmp_path / "lines.txt"  # gzip is told by content: the name has no .gz
    path.write_bytes(compress("\ufeffa\x0cb\u2028c\x85\r\n\r\n\ufeffx\x00\rlast".encode()))
    assert list(files.read_lines(path)) == [(1, "a\x0cb\u2028c\x85"), (2, ""), (3, "\ufeffx\x00\rlast")]
    assert [line for _, line in files.read_lines(path, keep_ends=True)][1] == "\r\n"
    assert files.read_bytes(path).endswith(b"last")


def test_empty_file_has_no_lines(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert list(files.read_lines(tmp_path / "empty")) == []


def test_bad_utf8_names_line_and_byte(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"fine\nabc\xffdef\n")
    with pytest.raises(DataError, match=fault(path, 2, "expected UTF-8 text, but byte 4", received=r"b'\xff'")):
        list(files.read_lines(path))


def test_broken_gzip(tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(" ".join(map(str, range(50_000))).encode())[:1000])
    with pytest.raises(DataError, match=fault(path, 1, "expected a whole gzip stream", received="end-of-stream")):
        list(files.read_lines(path))
    with pytest.raises(DataError, match=fault(path, None, "expected a whole gzip stream", received="end-of-stream")):
        files.read_bytes(path)


def test_unreadable_file(tmp_path):
    with pytest.raises(
        DataError, match=fault(tmp_path / "none", None, "a readable file", received="'No such file or directory'")
    ):
        files.read_bytes(tmp_path / "none")
    with pytest.raises(DataError, match=fault(tmp_path, None, "a readable file", received="'Is a directory'")):
        files.read_bytes(tmp_path)


def test_json_lines(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": "\\ud83d\\ude00"}\n\n{"a": 1}')
    assert list(files.read_json_lines(path)) == [(1, {"a": "😀"}), (3, {"a": 1})]


@pytest.mark.parametrize(
    ("line", "expected", "received"),
    [
        ("{", "a JSON object (", "'{'"),
        ("[1]", "a JSON object.", "'[1]'"),
        ('{"a": "x\\ud83d"}', "whole characters", r"'\ud83d'"),
        ("[" * 100_000, "a JSON object (", "'[[["),
    ],
)
def test_bad_json_line(tmp_path, line, expected, received):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n' + line + "\n")
    with pytest.raises(DataError, match=fault(path, 2, "expected " + expected, received=received)):
        list(files.read_json_lines(path))


PLAIN = {"a": [1, 2.5, True, None, ("b", b"c")], "é": {}}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_of_plain_containers(tmp_path, protocol):
    path = tmp_path / "x.pkl"
    value = {"a": [1, 2.5, True, None, ("b",)], "é": {}}
    nested = collections.OrderedDict(first=value, second=collections.defaultdict(list, x=[1]))
    path.write_bytes(gzip.compress(pickle.dumps(nested, protocol)))
    assert files.read_pickle(path) == {"first": value, "second": {"x": [1]}}


def test_pickle_of_python_2_in_a_zip_archive(tmp_path):
    path = tmp_path / "x.pkl.zip"
    # What Python 2 writes for {'caf\xc3\xa9': [u'\xe9', 1]}, protocol 2: str as bytes, unicode as text.
    content = b"\x80\x02}q\x00U\x05caf\xc3\xa9q\x01]q\x02(X\x02\x00\x00\x00\xc3\xa9q\x03K\x01es."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/x.pkl", content)
    read = files.read_pickle(path)
    assert read == {"café".encode(): ["é", 1]}
    assert files.to_text(next(iter(read)), path) == "café"


class Hostile:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Hostile(os.system, "touch PATH"), "posix.system"),
        (Hostile(eval, "1"), "builtins.eval"),
        (Hostile(getattr, [], "append"), "builtins.getattr"),
        (io.BytesIO(), "_io.BytesIO"),
        (bytearray(3), "builtins.bytearray"),
        (collections.Counter("a"), "collections.Counter"),
        (collections.defaultdict(int), "builtins.int"),
    ],
)
def test_pickle_refuses_all_else_by_name(tmp_path, value, name):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(value))
    with pytest.raises(DataError, match=fault(path, None, "a pickle of plain containers", received=f"'{name}'")):
        files.read_pickle(path)


@pytest.mark.parametrize(
    ("content", "received"),
    [(b"", "EOFError"), (b"no pickle", "UnpicklingError"), (pickle.dumps(PLAIN)[:-9], "UnpicklingError")],
)
def test_broken_pickle(tmp_path, content, received):
    path = tmp_path / "x.pkl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=fault(path, None, "a pickle of plain containers", received=received)):
        files.read_pickle(path)


def test_zip_archive_with_two_files(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"")
        archive.writestr("b", b"")
    with pytest.raises(DataError, match=fault(path, None, "one file", received="['a', 'b']")):
        files.read_pickle(path)


def test_text_of_a_pickle():
    assert files.to_text("a", "f") == "a"
    with pytest.raises(DataError, match=fault("f", None, "expected a text", received="3")):
        files.to_text(3, "f")
    with pytest.raises(DataError, match=fault("f", None, "expected UTF-8 text", received=r"b'\xff'")):
        files.to_text(b"\xff", "f")


def test_one_line_and_write(tmp_path):
    assert files.one_line(("a\tb", "c\n #d "), "#") == "a b c d"
    files.write_lines(tmp_path / "new" / "f", ["é", ""])
    assert (tmp_path / "new" / "f").read_bytes() == "é\n\n".encode()
