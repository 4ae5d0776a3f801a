"""What both commands of benchmarks ask for, and refuse before anything is measured."""

import argparse
import importlib.util
from pathlib import Path

from zoo.arguments import Parser, positive


def parser(module, description, rounds):
    """The flags ``--data``, ``--match``, ``--rounds`` and ``--json``."""
    made = Parser(f"python -m {module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, required=True, help="folder of the data sets' folders")
    made.add_argument("--match", default="", metavar="TEXT", help="of the tables, those with this in their title")
    made.add_argument("--rounds", type=positive, default=rounds, help="samples of each row (default: %(default)s)")
    made.add_argument("--json", type=writable, metavar="FILE", help="where all timings are written, table by table")
    return made


def writable(name):
    """A path for a file, which can be written: a measurement may take an hour, and is not to be lost at its end."""
    path = Path(name)
    try:
        path.open("a").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"must be a file that can be written. Received: {error}") from None
    return path


def figure(name):
    """A path for a drawing, of a kind that can be drawn."""
    kinds = (".svg", ".png", ".pdf")
    if Path(name).suffix not in kinds:
        raise argparse.ArgumentTypeError(f"must end with {', '.join(kinds)}. Received: {name!r}")
    return writable(name)


def require(parser, *modules):
    """Ends the command where modules of the extra ``bench`` are not installed."""
    missing = [module for module in modules if not importlib.util.find_spec(module)]
    if missing:
        parser.error(f"needs {', '.join(missing)}: python -m pip install --editable '.[bench]'")


def require_match(parser, text, titles):
    """Ends the command where no title holds the ``text`` of ``--match``."""
    if not any(text in title for title in titles):
        parser.error("--match must be in a title. Titles:\n  " + "\n  ".join(titles) + f"\nReceived: {text!r}")
