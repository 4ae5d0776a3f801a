"""The pictures of the RCNN paper, of a run's own model: what the gate lets in, and what pre-training brings."""

import numpy as np

from zoo.figures import literal
from zoo.models.rcnn import openness

NUM_QUESTIONS = 3
NUM_POSITIONS = 40  # of a body; few are longer


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


def _words(model, ids, encoder, num_unread):
    """One row of bars per question: its title and the beginning of its body."""
    from matplotlib.figure import Figure  # slow to import, and only needed here

    figure = Figure(figsize=(9, 2.6 * NUM_QUESTIONS), layout="constrained")
    known = encoder.words
    rows = min(NUM_QUESTIONS, len(next(iter(ids.values())).offsets) - 1)
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
        axes.set_ylim(0, 1)
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
