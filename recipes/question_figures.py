"""The pictures of Lei et al. 2016, of a run's own model: what the gate lets in, and what pre-training brings.

The report of a run of `recipes.rcnn_semeval` or `recipes.rcnn_askubuntu` has them, with the first questions of dev.
Figure 4 of questions of one's own:

    python -m recipes.question_figures RUN "how do i mount a windows partition" [QUESTION ...] [--out FOLDER]

Writes figure_4.svg. What stands behind a tab in a QUESTION is its body.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from zoo import runs
from zoo.arguments import Parser
from zoo.data import Group
from zoo.encoded import encode_split
from zoo.figures import literal
from zoo.models.rcnn import openness

NUM_QUESTIONS = 3
NUM_POSITIONS = 40  # of a body; few are longer


def main(arguments=None):
    """Draws Figure 4 of some questions; returns the exit code."""
    parser = Parser("python -m recipes.question_figures", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run whose model has gated convolutions")
    parser.add_argument("questions", nargs="+", metavar="QUESTION", help="a title; behind a tab, a body")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="where figure_4.svg goes")
    flags = parser.parse_args(arguments)
    if not (flags.run / "model.keras").is_file() or (run := runs.load(flags.run)).model.name != "rcnn":
        parser.error(f"RUN must hold a trained model with gated convolutions. Received: {flags.run}")
    parts = [question.split("\t", len(run.fields) - 1) for question in flags.questions]
    texts = list(dict.fromkeys(tuple(part + [""] * (len(run.fields) - len(part))) for part in parts))
    groups = [Group(str(number), text, (), ()) for number, text in enumerate(texts)]
    ids = encode_split(groups, run.text_encoder, run.fields, run.max_query_length, run.max_candidate_length).query_ids
    num_unread = run.text_encoder.oov_buckets
    for number, question in enumerate(texts):
        found = np.concatenate([field.texts[number] for field in ids.values()])
        if not (found > num_unread).any():
            parser.error(f"QUESTION must have a word that the model knows. Received: {question!r}")
        if (found <= num_unread).any():
            print(f"{(found <= num_unread).sum()} of {len(found)} words are unknown and not drawn: {question!r}")
    flags.out.mkdir(parents=True, exist_ok=True)
    _words(run.model, ids, run.text_encoder, num_unread, len(texts)).savefig(flags.out / "figure_4.svg")
    print(f"wrote {flags.out / 'figure_4.svg'}")
    return 0


def figures(model, encoded, pretraining, *, num_unread, fields=None):
    """Title to figure, for the report.

    Args:
        model: the finished model.
        encoded: its data set; the words are those of dev's first questions, the positions those of all scored ones.
        pretraining: rows of its epochs; empty where there was none.
        num_unread: ids up to this one are not read.
        fields: those that the model reads; all if None.
    """
    found = {}
    if model.name == "rcnn":
        scored = [
            {field: ids for field, ids in encoded.splits[name].query_ids.items() if field in (fields or (field,))}
            for name in encoded.dataset.scored_splits
        ]
        found["What the gate lets in: 1 - λ of each word, mean over units (Figure 4)"] = _words(
            model, scored[0], encoded.encoder, num_unread
        )
        found["1 - λ by position: the largest unit and the mean of the units, over all questions (Figure 5)"] = (
            _positions(model, scored, num_unread)
        )
    if pretraining and "dev_perplexity" in pretraining[0]:
        found["Pre-training: perplexity of held-out titles against dev MRR, by epoch (Figure 3)"] = _pretraining(
            pretraining
        )
    return found


def _words(model, ids, encoder, num_unread, most=NUM_QUESTIONS):
    """One row of bars per question, at most that many: its title and the beginning of its body."""
    from matplotlib.figure import Figure  # slow to import, and only needed here

    known = encoder.words
    rows = min(most, len(next(iter(ids.values())).offsets) - 1)
    figure = Figure(figsize=(9, 2.6 * max(1, rows)), layout="constrained")
    for number, axes in enumerate(np.atleast_1d(figure.subplots(max(1, rows), 1))[:rows]):
        words, heights = [], []
        for texts in ids.values():
            tokens = texts.padded(np.array([number]), min(15, texts.longest))
            opened = np.asarray(openness(model, tokens, num_unread))[0].mean(axis=-1)
            real = tokens[0] > num_unread
            words += [known[token - 1 - encoder.oov_buckets] for token in tokens[0][real]] + ["|"]
            heights += [*opened[real], 0.0]
        axes.bar(range(len(words)), heights)
        axes.set_xticks(range(len(words)), [literal(word) for word in words], rotation=60)
        axes.set(ylim=(0, 1), ylabel="1 - λ")
    return figure


def _positions(model, splits, num_unread):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, field in zip(np.atleast_1d(figure.subplots(1, len(splits[0]))), splits[0], strict=True):
        by_position = openness_by_position(model, [ids[field] for ids in splits], num_unread)
        for name, values in by_position.items():
            axes.plot(range(1, len(values) + 1), values, label=name)
        axes.set(title=field, xlabel="position", ylim=(0, 1))
        axes.legend()
        axes.grid(alpha=0.3)
    return figure


def openness_by_position(model, texts, num_unread):
    """The largest of the units' ``1 - l_t`` and their mean, each averaged over the questions that have a word there.

    Args:
        model: an ``rcnn``.
        texts: `zoo.encoded.TokenIds` of one field, of one or more splits.
        num_unread: as in the model.

    Returns:
        ``maximum`` and ``mean``, arrays ``[positions]``; NaN where no question has a word.
    """
    length = min(NUM_POSITIONS, max(ids.longest for ids in texts))
    tokens = np.concatenate([ids.padded(np.arange(len(ids.offsets) - 1), length) for ids in texts])
    opened = np.asarray(openness(model, tokens, num_unread))
    read = tokens > num_unread
    count = np.where(read.any(axis=0), read.sum(axis=0), np.nan)
    return {
        name: np.where(read, values, 0).sum(axis=0) / count
        for name, values in (("maximum", opened.max(axis=-1)), ("mean", opened.mean(axis=-1)))
    }


def _pretraining(history):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    told = [row["dev_perplexity"] for row in history]
    found = [row["dev_mrr"] for row in history]
    axes.plot(told, found, marker="o", markersize=4)
    for row, x, y in zip(history, told, found, strict=True):
        axes.annotate(row["epoch"], (x, y), textcoords="offset points", xytext=(4, 4), fontsize=8)
    axes.set(xlabel="perplexity", ylabel="dev MRR of titles alone", xscale="log")
    axes.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    sys.exit(main())
