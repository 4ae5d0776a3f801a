"""How cost grows: milliseconds and memory of a step against the sizes that a user chooses, fitted and drawn.

    python -m tests.benchmarks.growth --data DIR [--match TEXT] [--figure growth.svg] [--json growth.json]

One size is moved at a time; the others are 64 tokens a text, 32 pairs of one candidate, 240 units and a frozen table
of 20,000 words. Texts are insuranceQA's answers, laid end to end and cut, so that no position is padding. The exponent
e is that of the power law, ms = c size^e, nearest to the points in the least squares of their logarithms: 0 where the
size costs nothing, 1 where cost is proportional to it, 2 for its square.
"""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.benchmarks import measure
from tests.benchmarks.measure import Contestant
from tests.benchmarks.recurrent import step_of, table
from tests.benchmarks.texts import VOCABULARY, pairs
from zoo import optimizers
from zoo.datasets import insurance_qa
from zoo.models.ctrn import ctrn
from zoo.models.decatt import decatt
from zoo.models.ggsa import ggsa
from zoo.models.lstm import lstm
from zoo.models.qrnn import qrnn

MODELS = {
    "LSTM": lambda words, units, **more: lstm(words, filters=units, projection=0, **more),
    "QRNN": lambda words, units, **more: qrnn(words, filters=units, projection=0, **more),
    "CTRN": lambda words, units, **more: ctrn(words, filters=units, projection=0, **more),
    "GGSA": lambda words, units, **more: ggsa(words, projection=units, **more),
    "GGSA, attention of all to all": lambda words, units, **more: ggsa(
        words, projection=units, group_size=None, offsets=None, **more
    ),
    "DecAtt": lambda words, units, **more: decatt(words, units=(units, units // 2), **more),
}
SWEEPS = {  # what is moved, and to where
    "tokens": (32, 64, 128, 256),
    "pairs": (16, 32, 64, 128),
    "units": (60, 120, 240, 480),
    "candidates": (1, 4, 16, 64),
    "words": (20_000, 100_000, 500_000),
}
TITLES = {
    "tokens": "training step against tokens of a text",
    "pairs": "training step against pairs of a batch",
    "units": "training step against units",
    "candidates": "scores of one query's candidates, against their number",
    "words": "training step against words of a trained table, LazyAdam",
}
CORPUS = (1_000, 10_000, 100_000, 1_000_000)
SEARCH = "one question against the vectors of a corpus, 512 numbers each, the ten nearest"


def training(name, stream, tokens=64, pairs=32, units=240, words=None):
    """A training step; with ``words`` the table has so many rows and is trained."""
    query, candidate = _texts(stream, 2 * pairs, tokens).reshape(2, pairs, tokens)
    inputs = {"query": query, "candidate": candidate[:, None]}
    labels = (np.arange(pairs) % 2)[:, None].astype("float32")
    vectors = table() if words is None else np.tile(table(), (words // VOCABULARY, 1))
    model = MODELS[name](vectors, units, trainable_embeddings=words is not None)
    return step_of(model, inputs, labels, optimizer=None if words is None else optimizers.LazyAdam(1e-3))


def scoring(name, stream, candidates):
    """One query and its candidates, scored."""
    texts = _texts(stream, 1 + candidates, 64)
    model = MODELS[name](table(), 240, trainable_embeddings=False)
    return step_of(model, {"query": texts[:1], "candidate": texts[None, 1:]}, training=False)


def search(questions):
    """The ten nearest of so many vectors."""
    corpus = tf.random.stateless_normal((questions, 512), (0, 1))
    query = corpus[:1]

    @tf.function
    def nearest():
        return tf.math.top_k(tf.matmul(query, corpus, transpose_b=True), 10).indices

    return lambda: nearest().numpy()


def _texts(stream, number, tokens):
    needed = number * tokens
    return np.resize(stream, needed).reshape(number, tokens)


def exponent(sizes, costs):
    """e of ms = c size^e."""
    return np.polyfit(np.log(sizes), np.log(costs), 1)[0]


def sweep(what, name, stream, rounds):
    """The timings of one row, one for each size."""
    make = scoring if what == "candidates" else training
    contestants = [Contestant(f"{size:,}", make, {"name": name, "stream": stream, what: size}) for size in SWEEPS[what]]
    return measure.compare(contestants, rounds)


def lines(title, sizes, rows):
    """A table: a row's milliseconds and megabytes at each size, and their exponents."""
    wide = max(map(len, rows))
    yield f"\n{title}\n{'':{wide}}  " + "".join(f"{size:>17,}" for size in sizes) + "  exponent: ms"
    for name, timings in rows.items():
        cells = "".join(f"{timing.median:8.1f} ms{timing.peak:4.0f} MB" for timing in timings)
        yield f"{name:{wide}}  {cells}  {exponent(sizes, [timing.median for timing in timings]):12.2f}"


def drawn(tables):
    """One panel a table, both axes logarithmic."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter, NullFormatter

    figure = Figure(figsize=(5 * len(tables), 8), layout="constrained")
    panels = figure.subplots(2, len(tables), squeeze=False)
    for (title, (sizes, rows)), (above, below) in zip(tables.items(), panels.T, strict=True):
        for name, timings in rows.items():
            above.plot(sizes, [timing.median for timing in timings], marker="o", label=name)
            below.plot(sizes, [max(timing.peak, 0.1) for timing in timings], marker="o", label=name)
        above.set(title=title, ylabel="ms")
        below.set(ylabel="MB")
        for axes in (above, below):
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.xaxis.set_minor_formatter(NullFormatter())
            for formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
                formatter(LogFormatter(minor_thresholds=(2, 0.5)))
            axes.grid(alpha=0.3)
    panels[0, 0].legend()
    return figure


def main():
    """Prints a table for each size that is moved, as it is measured."""
    parser = argparse.ArgumentParser(
        "python -m tests.benchmarks.growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--match", default="", help="of the tables, those with this in their title")
    parser.add_argument("--rounds", type=int, default=5, help="samples of each point")
    parser.add_argument("--figure", type=Path, help="where the curves are drawn: .svg, .png or .pdf")
    parser.add_argument("--json", type=Path)
    flags = parser.parse_args()
    print(measure.machine(), flush=True)
    answers = pairs(insurance_qa.load, flags.data / "insuranceqa", 1_024, 100)["candidate"]
    stream = answers[answers > 0]
    tables = {}
    for what, title in TITLES.items():
        if flags.match in title:
            tables[title] = SWEEPS[what], {name: sweep(what, name, stream, flags.rounds) for name in MODELS}
            print("\n".join(lines(title, *tables[title])), flush=True)
    if flags.match in SEARCH:
        timings = measure.compare(
            [Contestant(f"{size:,}", search, {"questions": size}) for size in CORPUS], flags.rounds
        )
        tables[SEARCH] = CORPUS, {"matrix product": timings}
        print("\n".join(lines(SEARCH, *tables[SEARCH])))
        for size in (10**6, 10**8):
            seconds = timings[-1].median / 1000 * size / CORPUS[-1]
            print(
                f"{size:,} questions: {size * 512 * 4 / 1e9:,.0f} GB, {seconds:.2f} s a question, from the last point"
            )
    if flags.figure:
        drawn(tables).savefig(flags.figure)
    if flags.json:
        measure.write_json(
            flags.json, {f"{title}: {name}": row for title, (_, rows) in tables.items() for name, row in rows.items()}
        )


if __name__ == "__main__":
    main()
