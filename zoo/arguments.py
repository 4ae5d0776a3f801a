"""What the project's command lines share: refusals of one line, and numbers that hold what they must."""

from __future__ import annotations

import argparse


class Parser(argparse.ArgumentParser):
    """Refuses in one line: all of a command's flags before it would hide what was wrong."""

    def __init__(self, *arguments, **settings):
        # No abbreviations: a new flag must not change an old command.
        super().__init__(*arguments, allow_abbrev=False, **settings)

    def error(self, message: str):
        self.exit(2, f"error: {message} (--help explains the flags)\n")


def positive(text: str) -> int:
    """An argparse type: 1, 2, 3 and so on."""
    return _number(text, int, "a whole number of at least 1", lambda value: value >= 1)


def count(text: str) -> int:
    """An argparse type: 0, 1, 2 and so on."""
    return _number(text, int, "a whole number of at least 0", lambda value: value >= 0)


def port_number(text: str) -> int:
    """An argparse type: a TCP port, 0 for any free one."""
    return _number(text, int, "a port between 0 and 65535", lambda value: 0 <= value <= 65535)


def rate(text: str) -> float:
    """An argparse type: a number of at least 0."""
    return _number(text, float, "a number of at least 0", lambda value: 0 <= value < float("inf"))


def above_zero(text: str) -> float:
    """An argparse type: a number above 0."""
    return _number(text, float, "a number above 0", lambda value: 0 < value < float("inf"))


def share(text: str) -> float:
    """An argparse type: a part of a whole, but not all of it."""
    return _number(text, float, "a share: at least 0 and below 1", lambda value: 0 <= value < 1)


def _number(text, kind, expected, holds):
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not holds(value):
        raise argparse.ArgumentTypeError(f"expected {expected}. Received: {text!r}")
    return value
