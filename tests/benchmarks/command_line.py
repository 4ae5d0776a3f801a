"""What both commands of benchmarks ask for, and refuse before anything is measured."""

import argparse
import importlib.util
from pathlib import Path


def parser(module, description, rounds):
    """The flags ``--data``, ``--match``, ``--rounds`` and ``--json``."""
    made = argparse.ArgumentParser(
        f"python -m {module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--data", type=Path, required=True, help="folder of the data sets' folders")
    made.add_argument("--match", default="", metavar="TEXT", help="of the tables, those with this in their title")
    made.add_argument("--rounds", type=_positive, default=rounds, help="samples of each row (default: %(default)s)")
    made.add_argument("--json", type=writable, metavar="FILE", help="where all timings are written, table by table")
    return made


def writable(name):
    """A path for a file, which can be written: a measurement may take an hour, and is not to be lost at its end."""
    path = Path(name)
    try:
        path.touch()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"must be a file that can be written. Received: {error}") from None
    return path


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1. Received: {text}")
    return number


def require(parser, *modules):
    """Ends the command where modules of the extra ``bench`` are not installed."""
    missing = [module for module in modules if not importlib.util.find_spec(module)]
    if missing:
        parser.error(f"needs {', '.join(missing)}: python -m pip install --editable '.[bench]'")


def require_match(parser, text, titles):
    """Ends the command where no title holds the ``text`` of ``--match``."""
    if not any(text in title for title in titles):
        parser.error("--match must be in a title. Titles:\n  " + "\n  ".join(titles) + f"\nReceived: {text!r}")
