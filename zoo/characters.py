"""The character table behind the text graph: what one character becomes, and which two become one.

``characters.tsv`` holds two kinds of rows, code points in hexadecimal:

* ``0041<TAB>0061``: a character and what it becomes. This is Unicode's NFKC_Casefold of the single character,
  with white space and controls turned into a space, invisible format characters removed, and typographic
  quotes and hyphens turned into their ASCII forms, because that is what word-vector files hold.
* ``0065 0301<TAB>00E9``: a letter and a combining mark that have a composed form (NFC).

The table is a file and not computed, so that the Unicode version of the Python or of the server at hand
cannot change a token. It is written by ``python -m zoo.characters``; the header says from which Unicode
version.
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import numpy as np

TABLE = Path(__file__).with_name("characters.tsv")

# Not in NFKC_Casefold. U+FFFD marks a byte that somebody upstream could not decode: it separates words, as it
# does where this graph itself meets such a byte.
SUBSTITUTES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2212", "-"),
    "\u2044": "/",
    "\ufffd": " ",
}


def normalize_character(character: str) -> str:
    """Returns what a single character becomes: zero, one or more characters."""
    if character in SUBSTITUTES:
        return SUBSTITUTES[character]
    category = unicodedata.category(character)
    if category in ("Cc", "Zs", "Zl", "Zp"):
        return " "
    if _is_invisible(character):
        return ""
    folded = unicodedata.normalize("NFKC", character)
    if unicodedata.decomposition(character).startswith("<fraction>"):
        folded = " " + folded  # 2½ is no 21/2
    for _ in range(2):  # folding can undo the normal form, and the reverse: twice is a fixed point
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", folded).casefold())
    if folded == character:
        return character
    # A ligature or a circled sign can fold to characters that have a rule of their own.
    return "".join(normalize_character(part) for part in folded)


def read_table(path: Path = TABLE) -> tuple[dict[int, tuple[int, ...]], dict[tuple[int, int], int]]:
    """Reads the baked table.

    Returns:
        What each character becomes (characters that stay are left out), and what each pair of characters
        becomes. Korean syllables are composed by rule (The Unicode Standard, section 3.12) and are added to
        the pairs here.
    """
    characters: dict[int, tuple[int, ...]] = {}
    pairs: dict[tuple[int, int], int] = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith("#"):
                continue
            source, target = (tuple(int(code, 16) for code in side.split()) for side in line.rstrip("\n").split("\t"))
            if len(source) == 1:
                characters[source[0]] = target
            else:
                pairs[source[0], source[1]] = target[0]
    for lead in range(19):
        for vowel in range(21):
            syllable = 0xAC00 + (lead * 21 + vowel) * 28
            pairs[0x1100 + lead, 0x1161 + vowel] = syllable
            pairs.update({(syllable, 0x11A7 + tail): syllable + tail for tail in range(1, 28)})
    return characters, pairs


def character_arrays() -> dict[str, np.ndarray]:
    """The table as arrays for a graph.

    Returns:
        ``code`` [n] and, for each, ``start`` and ``length`` of its replacement in ``replacement``; ``pair``
        [m], the first code point times 2^21 plus the second, and ``composed`` [m]. All int64 but
        ``replacement``, int32.
    """
    characters, pairs = read_table()
    lengths = np.array([len(target) for target in characters.values()], np.int64)
    return {
        "code": np.array(list(characters), np.int64),
        "start": np.cumsum(lengths) - lengths,
        "length": lengths,
        "replacement": np.array([code for target in characters.values() for code in target], np.int32),
        "pair": np.array([(first << 21) + second for first, second in pairs], np.int64),
        "composed": np.array(list(pairs.values()), np.int64),
    }


def write_table(path: Path = TABLE) -> None:
    """Writes the table from the Unicode data of the running Python."""
    known = [chr(code) for code in range(sys.maxunicode + 1)]
    known = [character for character in known if unicodedata.category(character) not in ("Cn", "Cs", "Co")]
    rows = {}
    composed = []
    for character in known:
        target = normalize_character(character)
        if target != character:
            rows[character] = target
        parts = unicodedata.normalize("NFD", character)
        is_syllable = 0xAC00 <= ord(character) <= 0xD7A3
        if len(parts) > 1 and not is_syllable and unicodedata.normalize("NFC", character) == character:
            composed.append((character, parts))
    for character, parts in composed:
        target = normalize_character(character)
        if len(target) != 1:
            continue
        # Every order in which marks may be typed, so that the pass over pairs needs no sorting by class.
        for position in range(1, len(parts)):
            rest = unicodedata.normalize("NFC", parts[:position] + parts[position + 1 :])
            if len(rest) == 1 and unicodedata.normalize("NFC", rest + parts[position]) == character:
                rows[rest + parts[position]] = target
    with open(path, "w", encoding="ascii") as file:
        file.write(f"# Unicode {unicodedata.unidata_version}; see zoo/characters.py\n")
        for source, target in sorted(rows.items(), key=lambda row: (len(row[0]), row[0])):
            file.write(f"{_hexadecimal(source)}\t{_hexadecimal(target)}\n")


def _is_invisible(character: str) -> bool:
    """Default ignorable: format characters, variation selectors, fillers."""
    code = ord(character)
    return (
        unicodedata.category(character) == "Cf"
        or code in (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)
        or 0x180B <= code <= 0x180F
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0100 <= code <= 0xE01EF
    )


def _hexadecimal(text: str) -> str:
    return " ".join(f"{ord(character):04X}" for character in text)


if __name__ == "__main__":
    write_table()
