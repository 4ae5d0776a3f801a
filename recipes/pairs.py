"""A matcher from your own file of pairs: rank candidates for a query, with CTRN or a baseline.

The file has one pair a line: a query, a candidate, and the label 1 (matches) or 0. Tab-separated (.tsv), comma-
separated (.csv) or JSON lines (.jsonl), plain or gzipped; pairs with the same query form its list.

    python -m recipes.pairs --train pairs.tsv
    python -m recipes.pairs --train pairs.csv --query question --candidate answer --label good \\
        --test more.csv --embeddings glove.6B.100d.txt
    python -m recipes.pairs                             a made-up sample

A query needs right and wrong candidates to learn from; where your file has only right ones, `--negatives 4` draws
wrong ones from the other queries. Without --dev and --test, whole queries are held out of --train for them.
"""

import sys
from pathlib import Path

from recipes.answer_selection import MODELS, answer_selection
from recipes.knob_meanings import MEANINGS
from zoo import samples
from zoo.arguments import positive
from zoo.command_line import main
from zoo.data import DataError
from zoo.datasets import pairs

COLUMNS = ("query", "candidate", "label")


def recipe(hp):
    """The recipe under some hyperparameters; sizes are ours, for small files on a laptop."""
    return answer_selection(
        name="pairs",
        load=lambda folder: pairs.load(folder / "pairs.tsv"),
        sample=samples.pairs,
        model=hp.Choice("model", MODELS, default="ctrn"),
        network={
            "filters": hp.Int("filters", 64, 512, step=64, default=128),
            "projection": hp.Int("projection", 100, 300, step=100, default=100),
            "dense_layers": hp.Int("dense_layers", 1, 3, default=1),
            "dense_units": hp.Int("dense_units", 64, 256, step=64, default=128),
            "dropout": hp.Float("dropout", 0.0, 0.6, step=0.1, default=0.3),
            "word_dropout": hp.Float("word_dropout", 0.0, 0.5, step=0.1, default=0.0),
            "l2": hp.Float("l2", 1e-7, 1e-3, sampling="log", default=4e-6),
            "overlap": hp.Choice("overlap", ["none", "share", "coverage"], default="coverage"),
        },
        alignment=hp.Choice("alignment", ["ratio", "index"], default="ratio"),
        learning_rate=hp.Float("learning_rate", 1e-5, 1e-2, sampling="log", default=1e-3),
        batch_size=hp.Int("batch_size", 16, 512, step=16, default=64),
        epochs=hp.Int("epochs", 1, 100, default=25),
        patience=hp.Int("patience", 1, 20, default=5),
        max_query_length=hp.Int("max_query_length", 16, 256, step=16, default=64),
        max_candidate_length=hp.Int("max_candidate_length", 16, 512, step=16, default=128),
        embedding_size=hp.Int("embedding_size", 50, 300, step=50, default=100),
        fixed=("model", "epochs", "patience", "max_query_length", "max_candidate_length", "embedding_size"),
    )


def add_data_flags(parser):
    """Flags that name the files and their columns."""
    parser.add_argument("--train", type=Path, metavar="FILE", help="pairs to train on; without it, a made-up sample")
    parser.add_argument("--dev", type=Path, metavar="FILE", help="pairs that choose the epoch (a tenth of the queries)")
    parser.add_argument("--test", type=Path, metavar="FILE", help="pairs that are only scored (a tenth of the queries)")
    for column in COLUMNS:
        help_ = f"its name in every file, or its number ({column})"
        parser.add_argument(f"--{column}", metavar="COLUMN", help=help_)
    parser.add_argument("--group", metavar="COLUMN", help="column that tells lists apart (the query itself)")
    parser.add_argument(
        "--negatives",
        type=positive,
        metavar="N",
        help="draw N wrong candidates, from other queries, for each query that has none",
    )


def load(flags, _):
    """The data set that the flags name, or None.

    Raises:
        DataError: for flags about files without pairs to train on, and for what `zoo.datasets.pairs.load` refuses.
    """
    if flags.train is None:
        for name in ("dev", "test", *COLUMNS, "group", "negatives"):
            if getattr(flags, name) is not None:
                raise DataError(f"--{name} {getattr(flags, name)}", None, "--train FILE beside it", "no --train")
        return None
    return pairs.load(
        flags.train,
        flags.dev,
        flags.test,
        **{column: getattr(flags, column) or column for column in COLUMNS},
        group=flags.group,
        negatives=flags.negatives or 0,
    )


if __name__ == "__main__":
    sys.exit(main(recipe, __doc__, MEANINGS, add_data_flags=add_data_flags, load=load))
