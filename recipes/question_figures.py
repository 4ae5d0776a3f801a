"""The pictures of the RCNN paper, of a run's own model: what the gate lets in, and what pre-training brings."""

import numpy as np

from zoo.figures import literal
from zoo.models.rcnn import openness

NUM_QUESTIONS = 3
NUM_POSITIONS = 40  # of a body; few are longer


def figures(model, encoded, *, history, num_unread):
    """Title to figure, for the report.

    Args:
        model: the finished model.
        encoded: its data set; the questions are those of dev.
        history: rows of the pre-training's epochs; empty where there was none.
        num_unread: ids up to this one are not read.
    """
    found = {}
    if model.name == "rcnn":
        dev = encoded.splits["dev"].query_ids
        found["What the gate lets in: 1 - λ of each word, mean over units (Figure 4)"] = _words(
            model, dev, encoded.encoder, num_unread
        )
        found["1 - λ by position, over dev's questions: mean and maximum (Figure 5)"] = _positions(
            model, dev, num_unread
        )
    if history and "dev_perplexity" in history[0]:
        found["Pre-training: perplexity of held-out titles against dev MRR, by epoch (Figure 3)"] = _pretraining(
            history
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
            opened = np.asarray(openness(model, tokens, num_unread))[0]
            real = tokens[0] > num_unread
            words += [known[token - 1 - encoder.oov_buckets] for token in tokens[0][real]] + ["|"]
            heights += [*opened[real], 0.0]
        axes.bar(range(len(words)), heights)
        axes.set_xticks(range(len(words)), [literal(word) for word in words], rotation=60)
        axes.set_ylim(0, 1)
    return figure


def _positions(model, ids, num_unread):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (field, texts) in zip(np.atleast_1d(figure.subplots(1, len(ids))), ids.items(), strict=True):
        tokens = texts.padded(np.arange(len(texts.offsets) - 1), min(NUM_POSITIONS, texts.longest))
        opened = np.asarray(openness(model, tokens, num_unread))
        at = [opened[tokens[:, place] > num_unread, place] for place in range(tokens.shape[1])]
        places = [place for place, values in enumerate(at) if len(values)]
        axes.plot([place + 1 for place in places], [at[place].mean() for place in places], label="mean")
        axes.plot([place + 1 for place in places], [at[place].max() for place in places], label="maximum")
        axes.set(title=field, xlabel="position", ylim=(0, 1))
        axes.legend()
        axes.grid(alpha=0.3)
    return figure


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
