"""Export a run: ``python -m export RUN DEST [--name NAME] [--fold]``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import zoo.quiet_tensorflow  # noqa: F401
from export import folding
from export.graph_ops import read_signatures
from export.parity import ParityError
from export.saved_model import ExportError, export
from zoo import runs
from zoo.arguments import Parser, positive

_ENDED = {"interrupted": "was interrupted", "diverged": "diverged"}


def main(arguments: list[str] | None = None) -> int:
    """Exports one run and says what came of it; returns the exit code."""
    parser = Parser(
        "python -m export",
        description="Turn a run into a SavedModel that takes strings, with what serves it.",
    )
    parser.add_argument("run", type=Path, help="folder of a run, as a recipe prints it")
    parser.add_argument("destination", type=Path, help="folder of the model; each export adds the next number")
    parser.add_argument("--name", help="the model's name on a server; the destination's name if not given")
    parser.add_argument(
        "--fold",
        nargs="?",
        const="float32",
        choices=folding.DTYPES,
        help="after RUN DEST; keep each word's products in tables (of float32): faster, for their room",
    )
    parser.add_argument(
        "--fold-limit",
        type=positive,
        metavar="MB",
        help=f"how large the tables may be ({folding.MEGABYTES})",
    )
    options = parser.parse_args(arguments)
    if options.fold_limit and not options.fold:
        parser.error(f"--fold-limit needs --fold. Received: --fold-limit {options.fold_limit}")
    fold_in = None
    if options.fold:
        fold_in = {"dtype": options.fold, "megabytes": options.fold_limit or folding.MEGABYTES}
    try:
        run = runs.load(options.run.resolve())  # `latest` may soon be another
        run.model, run.text_encoder  # noqa: B018 read now, so that a broken run is told from a failing export
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    try:
        version = export(run, options.destination, options.name, fold_in)
    except KeyboardInterrupt:
        print("interrupted: nothing was exported", file=sys.stderr)
        return 130
    except (ParityError, ExportError) as error:
        print(error, file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Exported {run.folder} to {version}")
    if run.settings["data"]["sample"]:
        print("note: it was trained on the built-in, made-up sample: fit for trying things out, not for use")
    for ended in ("interrupted", "diverged"):
        if run.metrics["training"][ended]:
            print(f"note: the training of this run {_ENDED[ended]}; this is its best epoch until then")
    for name, (inputs, outputs) in read_signatures(version).items():
        print(f"  {name}: {', '.join(inputs)} -> {', '.join(outputs)}")
    parity = json.loads((version / "assets.extra" / "parity.json").read_text("utf-8"))
    print(f"Parity: {parity['num_pairs']} hard texts, largest difference {parity['largest_difference']:.1e}")
    if tables := parity["tables"]:
        print(
            f"Folded: what it computes of single words stands in tables of {tables['dtype']}, {tables['megabytes']} MB"
        )
    name = f" --name {options.name}" if options.name else ""
    print(f"to try it: python -m export.server {shlex.quote(str(options.destination))}{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
