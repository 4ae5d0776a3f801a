"""Our layers and models beside their peers, in one run.

    python -m tests.benchmarks --data DIR [--only recurrent ...] [--match TEXT] [--json FILE]

Needs the extra ``bench``. Data: the folders ``yahooqa``, ``insuranceqa`` and ``quora`` that the recipes read. "x NAME"
is the time of NAME divided by that of the row, so larger is faster; MB is the memory that the steps took beyond what
the process held before its first.
"""

import argparse
import importlib
from pathlib import Path

from tests.benchmarks import measure

FAMILIES = ("recurrent", "self_attention", "decomposable_attention", "epochs", "serving")


def main():
    """Prints a table per title as it is measured."""
    parser = argparse.ArgumentParser(
        "python -m tests.benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--match", default="", help="of the tables, those with this in their title")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each row")
    parser.add_argument("--json", type=Path)
    flags = parser.parse_args()
    print(measure.machine(), flush=True)
    tables = {}
    for family in flags.only:
        module = importlib.import_module(f"tests.benchmarks.{family}")
        for title, (contestants, bases) in module.families(flags.data).items():
            if flags.match in title:
                tables[title] = measure.compare(contestants, flags.rounds)
                print("\n" + measure.table(title, tables[title], bases), flush=True)
                if flags.json:
                    measure.write_json(flags.json, tables)


if __name__ == "__main__":
    main()
