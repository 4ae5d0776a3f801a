"""A small run on disk, for the tests of what is exported and served."""

import json
from pathlib import Path

import keras
import numpy as np

from zoo import runs
from zoo.encoded import input_name
from zoo.models.lstm import lstm
from zoo.text import write_vocabulary

SENTENCES = "what is this ? how do i reset my password open the settings . answer word why"
WORDS = SENTENCES.split()
PAIRS = [
    ("how do i reset my password ?", "open the settings ."),
    ("how do i reset my password ?", "this is the answer"),
    ("what is this ?", "a word"),
]
OOV_BUCKETS = 8


def lstm_model():
    """A model with an encoder, its weights drawn from a fixed seed."""
    embeddings = np.random.default_rng(0).normal(size=(1 + OOV_BUCKETS + len(WORDS), 6)).astype("float32")
    embeddings[0] = 0
    keras.utils.set_random_seed(1)
    return lstm(embeddings, filters=5, projection=4, dense_units=3)


def write_run(folder: Path, model=None, words=WORDS, **settings) -> runs.Run:
    """Writes the files of a run that the export reads; without a model, those of a lexical baseline."""
    folder.mkdir(parents=True)
    write_vocabulary(folder / "vocabulary.txt", words)
    if model is not None:
        model.save(folder / "model.keras")
    (folder / "README.md").write_text("# The card of the run\n", "utf-8")
    (folder / "metrics.json").write_text('{"training": {"interrupted": false, "diverged": false}}', "utf-8")
    text = {
        "tokenizer": "word",
        "oov_buckets": OOV_BUCKETS,
        "fields": ["text"],
        "max_query_length": 6,
        "max_candidate_length": 9,
    }
    text |= settings.pop("text", {})
    fields = tuple(text["fields"])
    header = [input_name(side, field, fields) for side in ("query", "candidate") for field in fields]
    # The first field of a text has it, the others its first words.
    rows = [[part for side in pair for part in (side, *[side[:9]] * (len(fields) - 1))] for pair in PAIRS]
    (folder / "predictions.tsv").write_text("".join("\t".join(row) + "\n" for row in [header, *rows]), "utf-8")
    content = {
        "model": "bm25" if model is None else model.name,
        "module": None if model is None else f"zoo.models.{model.name}",
        "task": "ranking",
        "threshold": 0.0,
        "data": {"sample": False},
        "text": text,
    }
    (folder / "recipe.json").write_text(json.dumps(content | settings), "utf-8")
    return runs.load(folder)
