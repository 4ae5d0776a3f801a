"""Texts that an exported model is tried on: the run's own, and those that break text code."""

from __future__ import annotations

from itertools import islice

from zoo.data import Text
from zoo.encoded import input_name
from zoo.runs import read_predictions

# Each is a query beside a candidate. Bytes that are no UTF-8 are given as bytes.
HOSTILE: tuple[tuple[str | bytes, str | bytes], ...] = (
    ("", ""),
    ("what is this ?", ""),
    ("", "this is an answer ."),
    ("   \t\r\n ", "\u00a0\u3000\u2003"),
    ("a\0b", "\0"),
    ("what\x01is\x7fthis", "tab\tand\nline"),
    ("\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467", "flags \U0001f1e9\U0001f1ea and \u2764\ufe0f"),
    (b"caf\xe9 au lait", b"\xff\xfe\x80 \xe2\x82"),
    (b"\xf0\x9f\x98", b"ok \xc3\x28 ok"),
    ("\u0130stanbul STRASSE \u00df \ufb01sh", "Ｆｕｌｌ width \u2460 \u00bd"),
    ("cafe\u0301", "caf\u00e9"),
    (
        "\u05e9\u05dc\u05d5\u05dd \u202e \u0645\u0631\u062d\u0628\u0627",
        "\u4f60\u597d\u4e16\u754c \u3053\u3093 \ud55c\uad6d",
    ),
    ("\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22", "\ufeffbyte order mark\u200b"),
    ("qqqzzx wwvvkj xxqyzz", "zzxqj kkvwq"),
    ("w" * 5_000, "x" * 70_000),
    ("why ? " * 400, "word " * 20_000),
    ('$5.00 (a/b) e.g. don\'t -- "quoted"', "<b>bold</b> &amp; {'json': [1, 2]} \\n %s"),
    ("1234567890", "3.14159 1,000,000 10:30"),
    ("n't 's ...", "'' `` -lrb- [UNK] <unk> [PAD]"),
)


def own_pairs(run, count: int = 8) -> list[tuple[Text, Text]]:
    """The first pairs with a text in the run's ``predictions.tsv``, none if there is no such file or it lacks a field.

    Of long lists most rows have their texts left out, see `zoo.runs`.
    """
    if not (run.folder / "predictions.tsv").is_file():
        return []
    names = [[input_name(side, field, run.fields) for field in run.fields] for side in ("query", "candidate")]
    wanted = names[0] + names[1]
    written = (row for row in read_predictions(run.folder) if any(row.get(name) for name in wanted))
    rows = list(islice(written, count))
    if rows and not set(wanted) <= rows[0].keys():  # a run of before fields had columns of their own
        return []
    return [tuple(tuple(row[name] for name in names[side]) for side in (0, 1)) for row in rows]


def in_fields(pairs, run) -> list[tuple[tuple, tuple]]:
    """Pairs of plain texts as those of a run, each of whose fields is the whole text."""
    return [tuple((text,) * len(run.fields) for text in pair) for pair in pairs]


def as_text(value: str | bytes) -> str:
    """What a text encoder makes of bytes: those that are no UTF-8 become spaces."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace").replace("\ufffd", " ")
