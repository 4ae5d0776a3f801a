"""How cost grows: milliseconds and memory of a step against the sizes that a user chooses, fitted and drawn.

    python -m tests.benchmarks.growth --data DIR [--match TEXT] [--figure growth.svg] [--json growth.json]

One size is moved at a time; the others are 64 tokens a text, 32 pairs of one candidate, 240 units and a frozen table
of 20,000 words. Texts are insuranceQA's answers, laid end to end and cut, so that no position is padding. The exponent
e is that of the power law, ms = c size^e, nearest to the points in the least squares of their logarithms: 0 where the
size costs nothing, 1 where cost is proportional to it, 2 for its square. Beside it is that of memory: of what
a step takes beyond the model, and of a search with the corpus. A --match that is in no title lists all.

Needs psutil, of the extra ``bench``; a table takes 3 to 10 minutes on two cores.
"""

import functools
import sys

import numpy as np
import tensorflow as tf

from tests.benchmarks import command_line, measure
from tests.benchmarks.measure import Contestant
from tests.benchmarks.recurrent import step_of, table
from tests.benchmarks.texts import VOCABULARY, pairs
from zoo import optimizers
from zoo.data import DataError
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
SEEN = 0.1  # milliseconds, megabytes
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
    """The ten nearest of so many vectors, which are made at the first call, for their memory to count."""

    @functools.cache
    def corpus():
        return tf.tile(tf.random.stateless_normal((1_000, 512), (0, 1)), (questions // 1_000, 1))

    @tf.function
    def nearest(vectors):
        return tf.math.top_k(tf.matmul(vectors[:1], vectors, transpose_b=True), 10).indices

    return lambda: nearest(corpus()).numpy()


def _texts(stream, number, tokens):
    needed = number * tokens
    return np.resize(stream, needed).reshape(number, tokens)


def exponent(sizes, costs):
    """e of cost = c size^e, as text; none where a cost was too small to be seen."""
    return f"{np.polyfit(np.log(sizes), np.log(costs), 1)[0]:.2f}" if min(costs) > SEEN else "-"


def sweep(what, name, stream, rounds):
    """The timings of one row, one for each size."""
    make = scoring if what == "candidates" else training
    contestants = [Contestant(f"{size:,}", make, {"name": name, "stream": stream, what: size}) for size in SWEEPS[what]]
    return measure.compare(contestants, rounds)


def lines(title, sizes, rows):
    """A table: a row's milliseconds and megabytes at each size, and their exponents."""
    wide = max(map(len, rows))
    yield f"\n{title}\n{'':{wide}}  " + "".join(f"{size:>17,}" for size in sizes) + "  exponent: ms    MB"
    for name, timings in rows.items():
        cells = "".join(f"{timing.median:7.1f} ms{timing.peak:5.0f} MB" for timing in timings)
        fitted = [exponent(sizes, costs) for costs in _costs(timings)]
        notes = [f"{timing.name} {timing.note}" for timing in timings if timing.note]
        yield f"{name:{wide}}  {cells}  {fitted[0]:>12}{fitted[1]:>6}  {', '.join(notes)}".rstrip()


def _costs(timings):
    """Milliseconds and megabytes."""
    return [timing.median for timing in timings], [timing.peak for timing in timings]


def drawn(tables):
    """One panel a table, both axes logarithmic."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter, NullFormatter

    figure = Figure(figsize=(5 * len(tables), 8), layout="constrained")
    panels = figure.subplots(2, len(tables), squeeze=False)
    for (title, (sizes, rows)), (above, below) in zip(tables.items(), panels.T, strict=True):
        for name, timings in rows.items():
            for axes, costs in zip((above, below), _costs(timings), strict=True):
                # The axis is logarithmic: what is not seen is no zero.
                axes.plot(sizes, np.maximum(costs, SEEN), marker="o", label=name)
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
    parser = command_line.parser("tests.benchmarks.growth", __doc__, rounds=5)
    parser.add_argument(
        "--figure", type=command_line.figure, help="where the curves are drawn: .svg, .png or .pdf", metavar="FILE"
    )
    flags = parser.parse_args()
    command_line.require(parser, "psutil")
    command_line.require_match(parser, flags.match, [*TITLES.values(), SEARCH])
    try:
        answers = pairs(insurance_qa.load, flags.data / "insuranceqa", 1_024, 100)["candidate"]
    except (DataError, OSError) as error:
        parser.error(str(error))
    stream = answers[answers > 0]
    print(measure.machine(), flush=True)
    tables, rows = {}, {}

    def show(title, sizes, timings):
        tables[title] = sizes, timings
        rows.update({f"{title}: {name}": row for name, row in timings.items()})
        print("\n".join(lines(title, sizes, timings)), flush=True)
        if flags.figure:
            drawn(tables).savefig(flags.figure)
        if flags.json:
            measure.write_json(flags.json, rows)

    for what, title in TITLES.items():
        if flags.match in title:
            print(f"measuring: {title}", file=sys.stderr, flush=True)
            show(title, SWEEPS[what], {name: sweep(what, name, stream, flags.rounds) for name in MODELS})
    if flags.match in SEARCH:
        contestants = [Contestant(f"{size:,}", search, {"questions": size}) for size in CORPUS]
        timings = measure.compare(contestants, flags.rounds)
        show(SEARCH, CORPUS, {"matrix product": timings})
        for size in (10**6, 10**8):
            seconds = timings[-1].median / 1000 * size / CORPUS[-1]
            print(
                f"{size:,} questions: {size * 512 * 4 / 1e9:,.0f} GB, {seconds:.2f} s a question, from the last point"
            )


if __name__ == "__main__":
    main()
