"""The pictures of the MaLSTM paper, of a trained model: its examples, single units, themes, nearest sentences.

They are in the report of each run of `recipes.malstm_sick`. For sentences of one's own,

    python -m recipes.malstm_figures RUN "a woman is slicing potatoes" ...

prints those of the run's test pairs that are nearest to each, and the score of each with it.
"""

import argparse
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from zoo import runs
from zoo.arguments import Parser
from zoo.figures import literal
from zoo.models.malstm import distances

MAX_TOKENS = 64  # of a sentence, here and in the recipe; the longest of SICK has 36
TABLE_1 = (  # two sentences, the people's judgement, the paper's
    ("A little girl is looking at a woman in costume.", "A young girl is looking at a woman in costume.", 4.7, 4.8),
    ("A person is performing tricks on a motorcycle.", "The performer is tricking a person on a motorcycle.", 2.6, 2.9),
    ("Someone is pouring ingredients into a pot.", "A man is removing vegetables from a pot.", 2.4, 2.5),
    ("Nobody is pouring ingredients into a pot.", "Someone is pouring ingredients into a pot.", 3.5, 3.7),
)
TABLE_3 = {  # sentence to those that a Tree-LSTM finds nearest, with its score and that of MaLSTM
    "a woman is slicing potatoes": (
        ("a woman is cutting potatoes", 4.82, 4.87),
        ("potatoes are being sliced by a woman", 4.70, 4.38),
        ("tofu is being sliced by a woman", 4.39, 3.51),
    ),
    "a boy is waving at some young runners from the ocean": (
        ("a group of men is playing with a ball on the beach", 3.79, 3.13),
        ("a young boy wearing a red swimsuit is jumping out of a blue kiddies pool", 3.37, 3.48),
        ("the man is tossing a kid into the swimming pool that is near the ocean", 3.19, 2.26),
    ),
    "two men are playing guitar": (
        ("the man is singing and playing the guitar", 4.08, 3.53),
        ("the man is opening the guitar for donations and plays with the case", 4.01, 2.30),
        ("two men are dancing and singing in front of a crowd", 4.00, 2.33),
    ),
}
THEMES = {  # Figure 3; the words are ours
    "animals": "dog dogs cat cats kitten monkey panda lemur animal puppy horse elephant lion tiger squirrel hamster",
    "cooking": "slicing cutting cooking frying potato potatoes onion tomato vegetables pan pot butter egg eggs recipe",
    "music": "guitar piano flute drums singing violin keyboard music trumpet",
    "water": "water ocean pool swimming beach sea lake river surfing wave boat",
    "violence": "gun shooting knife fighting pistol sword silencer weapon rifle",
    "sport": "soccer football basketball tennis baseball bike bicycle skateboard race ball",
}
_NEGATIONS = {"no", "not", "nobody", "nothing"}
_QUERIES = ("a woman is slicing potatoes", "two men are playing guitar", "the dog is running through the water")


def figures(model, encoded, pretraining):
    """Title to figure."""
    split = encoded.dataset.scored_splits[-1]
    groups = encoded.dataset.splits[split]
    texts = list(dict.fromkeys(text for group in groups for (text,) in (group.query, *group.candidates)))[:10_000]
    here = "here" if encoded.dataset.in_paper else "here, {:g} to {:g}".format(*encoded.dataset.scale)
    vectors = _encode(model, encoded, texts)
    return {
        "Sentence pairs of the paper's Table 1": _table_1(model, encoded, here),
        "Sentence pairs of the paper's Table 3": _table_3(model, encoded, here),
        "Single units over sentences (Figure 2)": _units(texts, vectors),
        "Sentences on two principal components (Figure 3)": _themes(texts, vectors),
        "Nearest sentences": _nearest(model, encoded, texts, vectors),
    }


def _encode(model, encoded, texts):
    ids = encoded.encoder(texts, MAX_TOKENS)["ids"]
    return np.concatenate([np.asarray(model.get_layer("encoder")(part)) for part in np.split(ids, _cuts(len(texts)))])


def _cuts(size, block=1024):
    return range(block, size, block)


def score(model, encoded, pairs):
    """The model's score of pairs of sentences."""
    query = np.asarray(encoded.encoder([first for first, *_ in pairs], MAX_TOKENS)["ids"])
    candidate = np.asarray(encoded.encoder([second for _, second, *_ in pairs], MAX_TOKENS)["ids"])
    outputs = model({"query": query, "candidate": candidate[:, None]})
    return np.asarray(outputs["score"] if isinstance(outputs, dict) else outputs)[:, 0]


def _words(text):
    return set(re.findall(r"[a-z]+", text.lower()))


def _shortened(text, length):
    return text if len(text) <= length else text[: length - 1] + "…"


def _figure(width, height):
    from matplotlib.figure import Figure  # slow to import, and only needed here

    return Figure(figsize=(width, height), layout="constrained")


def _as_table(header, rows, widths):
    figure = _figure(11, 0.5 + 0.3 * len(rows))
    axes = figure.subplots()
    axes.axis("off")
    rows = [[literal(_shortened(cell, 68)) for cell in row] for row in rows]
    table = axes.table(rows, colLabels=header, colWidths=widths, cellLoc="left", loc="center")
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    return figure


def _table_1(model, encoded, here):
    scores = score(model, encoded, TABLE_1)
    rows = [
        [first, second, f"{gold:.1f}", f"{paper:.1f}", f"{ours:.1f}"]
        for (first, second, gold, paper), ours in zip(TABLE_1, scores, strict=True)
    ]
    return _as_table(["sentence", "another", "people", "the paper", here], rows, [0.38, 0.38, 0.08, 0.08, 0.08])


def _table_3(model, encoded, here):
    pairs = [(query, *other) for query, others in TABLE_3.items() for other in others]
    rows = [
        [query, other, f"{tree:.2f}", f"{paper:.2f}", f"{ours:.2f}"]
        for (query, other, tree, paper), ours in zip(pairs, score(model, encoded, pairs), strict=True)
    ]
    return _as_table(["sentence", "another", "Tree-LSTM", "the paper", here], rows, [0.35, 0.41, 0.08, 0.08, 0.08])


def _units(texts, vectors, count=3, shown=12):
    """The unit that tells negation best, and the two of widest spread among the others."""
    negated = np.array([bool(_NEGATIONS & _words(text)) or "n't" in text.lower() for text in texts])
    spread = vectors.std(axis=0)
    is_told = negated.any() and not negated.all()
    if is_told:
        gap = np.abs(vectors[negated].mean(axis=0) - vectors[~negated].mean(axis=0)) / np.maximum(spread, 1e-6)
        first = int(np.argmax(gap))
    else:
        first = int(np.argmax(spread))
    chosen_units = [first, *(unit for unit in np.argsort(-spread) if unit != first)][:count]
    figure = _figure(11, 3.2 * len(chosen_units))
    for axes, unit in zip(figure.subplots(len(chosen_units), 1, squeeze=False)[:, 0], chosen_units, strict=True):
        values = vectors[:, unit]
        axes.hist([values[~negated], values[negated]], bins=60, stacked=True, label=["other", "with a negation"])
        # The sentences nearest to values at equal distances, from the lowest to the highest.
        for place, value in enumerate(np.linspace(values.min(), values.max(), shown)):
            index = np.argmin(np.abs(values - value))
            told = f"{values[index]:5.2f}  {_shortened(texts[index], 70)}"
            axes.text(1.01, 1 - (place + 0.5) / shown, literal(told), transform=axes.transAxes, fontsize=7, va="center")
        why = "tells negation best" if unit == first and is_told else "of the widest spread"
        axes.set(title=f"unit {unit}, {why}", ylabel="sentences")
        axes.legend(fontsize=7)
    return figure


def _themes(texts, vectors):
    from sklearn.decomposition import PCA

    # Two components need two texts and two units.
    flat = PCA(2).fit_transform(vectors) if min(vectors.shape) > 1 else np.zeros((len(texts), 2))
    figure = _figure(9, 6)
    axes = figure.subplots()
    words = [_words(text) for text in texts]
    found = np.zeros(len(texts), bool)
    members = {}
    for theme, keys in THEMES.items():
        members[theme] = np.array([bool(set(keys.split()) & own) for own in words]) & ~found
        found |= members[theme]
    axes.scatter(*flat[~found].T, s=3, color="lightgrey", label="other")
    for theme, inside in members.items():
        axes.scatter(*flat[inside].T, s=6, label=theme)
    axes.legend(markerscale=3)
    axes.set(xlabel="first component", ylabel="second component")
    return figure


def nearest(model, encoded, queries, texts, vectors, count=5):
    """Query, sentence and score of those sentences that are nearest to each query, by the model's own distance."""
    found = []
    for query, vector in zip(queries, _encode(model, encoded, list(queries)), strict=True):
        distance = distances(model, vector, vectors)
        own = query.lower().rstrip(" .")
        near = [index for index in np.argsort(distance) if texts[index].lower().rstrip(" .") != own][:count]
        scores = score(model, encoded, [(query, texts[index]) for index in near])
        found += [(query, texts[index], value) for index, value in zip(near, scores, strict=True)]
    return found


def _nearest(model, encoded, texts, vectors):
    rows = [[*row, f"{value:.2f}"] for *row, value in nearest(model, encoded, _QUERIES, texts, vectors)]
    return _as_table(["sentence", "nearest", "score"], rows, [0.4, 0.5, 0.1])


def main(arguments=None):
    """Prints; returns the exit code."""
    parser = Parser("python -m recipes.malstm_figures", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", type=Path, metavar="RUN", help="a run of recipes.malstm_sick")
    parser.add_argument("sentences", nargs="+", metavar="SENTENCE")
    parser.add_argument("--count", type=int, default=5, help="how many are shown of each (default: 5)")
    flags = parser.parse_args(arguments)
    try:
        run = runs.load(flags.run)
    except (FileNotFoundError, ValueError) as error:
        parser.error(str(error))
    if run.settings["recipe"] != "malstm_sick":
        parser.error(f"the run must be one of malstm_sick. Received: {flags.run}, of {run.settings['recipe']}")
    encoded = SimpleNamespace(encoder=run.text_encoder)
    pairs = (row for row in runs.read_predictions(run.folder) if row["split"] == run.splits[-1])
    texts = list(dict.fromkeys(text for row in pairs for text in (row["query"], row["candidate"])))
    vectors = _encode(run.model, encoded, texts)
    last = None
    for query, text, value in nearest(run.model, encoded, flags.sentences, texts, vectors, flags.count):
        if query != last:
            print(query)
        print(f"  {value:.2f}  {text}")
        last = query
    return 0


if __name__ == "__main__":
    sys.exit(main())
