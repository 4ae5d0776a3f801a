"""What is a word: the patterns (RE2) by which the text graph splits a folded text.

A word is a run of letters, marks and digits, with hyphens, apostrophes and ``&`` inside, numbers with their
separators (``1,200``, ``10:30``, ``1/2``) and acronyms with their dots (``u.s.``). Every other sign is a
token, and so is every Chinese or Japanese character. Thai, Lao, Khmer and Burmese are written without spaces
and stay unsplit.

Word-vector files and some data sets are in the form of the Penn Treebank, users' texts are not, and both must
become the same tokens. So ``don't`` is ``do n't``, ``bank's`` is ``bank 's``, ``--`` and ``...`` are one
token; the treebank's ``-lrb-`` is a bracket and its paired quotes are ``"``. A sign that is repeated counts
once. A full stop is a token even behind an abbreviation, since only a list could tell ``etc.`` from the end
of a sentence.
"""

_LETTERS = r"[\p{L}\p{M}\p{N}]+"
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
_ACRONYM = r"\p{L}(?:\.\p{L})+\b\.?"
_INSIDE = rf"(?:[-'&](?:{_ACRONYM}|{_LETTERS}))"
_CLITIC = r"n't|'(?:s|m|d|ll|re|ve)"

SIGN = rf"{_UNSPACED}|[^\s\p{{L}}\p{{M}}\p{{N}}]"
"""All that the wordpiece tokenizer sets apart, as the makers of such vocabularies do."""

NEEDS_REWRITING = rf"(?s).*(?:{_UNSPACED}|['`]|-[lr][rcs]b-|\.\.\.\.|---|!!|\?\?|__|==|\*\*|~~).*"
"""Matches the few texts that `REWRITES` would change, so that the others are spared these passes."""

REWRITES = (
    (_UNSPACED, r" \0 "),
    ("-lrb-", "("),
    ("-rrb-", ")"),
    ("-lsb-", "["),
    ("-rsb-", "]"),
    ("-lcb-", "{"),
    ("-rcb-", "}"),
    ("``|''", '"'),
    ("`", "'"),
    (r"(--)-+|(\.\.\.)\.+|(!)!+|(\?)\?+|(_)_+|(=)=+|(\*)\*+|(~)~+", r"\1\2\3\4\5\6\7\8"),
    (rf"(?:{_CLITIC})\b", r" \0"),
)
"""Pattern and replacement, in this order."""

TOKEN = "|".join(
    [
        rf"\b{_ACRONYM}{_INSIDE}*",
        r"\bc\+\+|\b[cf]#",
        rf"(?:{_CLITIC}|'\d\ds?)\b",
        rf"{_LETTERS}(?:(?:[.,:/]\p{{N}}+)+{_INSIDE}*|{_INSIDE}+)",
        r"--|\.\.\.",
        r"[^\s\p{L}\p{M}\p{N}]",
    ]
)
r"""What is set apart by spaces, after `REWRITES`. Plain words match nothing here, which makes it fast.

The leftmost match counts, and of those that begin together the first in the list. RE2 has no look-ahead;
``\b`` is a boundary of ASCII words.
"""
