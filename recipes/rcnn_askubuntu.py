"""RCNN on AskUbuntu: rank the questions of a forum by how similar they are to a new one (Lei et al. 2016, Table 2).

Data: github.com/taolei87/askubuntu (text_tokenized.txt.gz, train_random.txt, dev.txt, test.txt, heldout.txt).
Vectors: vectors_pruned.200.txt.gz, from the same place.

    python -m recipes.rcnn_askubuntu                                  a made-up sample
    python -m recipes.rcnn_askubuntu --data DIR --embeddings vectors_pruned.200.txt.gz --pretrain --seeds 5
    python -m recipes.rcnn_askubuntu --data DIR --embeddings vectors_pruned.200.txt.gz --table (or --table4, --table5)
    python -m recipes.rcnn_askubuntu --data DIR --embeddings vectors_pruned.200.txt.gz --pretrain --epochs 0
    python -m recipes.rcnn_askubuntu --data DIR --embeddings vectors_pruned.200.txt.gz --pretrain --pretrain-epochs 0 \\
        --from RUN                                                    the run of the line before
    python -m recipes.rcnn_askubuntu --data DIR --model bm25          dev.txt and test.txt suffice

Departures from the paper: dropout takes the same numbers of a word wherever it stands in a batch; idf is counted on
the training texts, each distinct one once; dev and test questions are left out of the corpus to pre-train on; a text
is cut before its unknown words are passed over, not after; the penalty has the norms of the kernels, those of one
input side by side, and none of biases; the released tokens are split once more, at signs inside them; in pre-training
titles end after 30 tokens, questions that were marked in both directions stand twice, and the softmax has no penalty;
`--negatives corpus` draws from the candidates of train.
"""

import sys
from functools import partial

from recipes.question_retrieval import MEANINGS, knobs, question_retrieval
from zoo import lexical, samples
from zoo.command_line import main
from zoo.datasets import ask_ubuntu

PUBLISHED = {  # Table 2, then what Tables 4 and 5 have beyond it
    "dev": {
        "bm25": {"mrr": 0.660, "map": 0.520, "p@1": 0.519, "p@5": 0.421},
        "tfidf": {"mrr": 0.682, "map": 0.541, "p@1": 0.556, "p@5": 0.451},
        "cnn": {"mrr": 0.711, "map": 0.585, "p@1": 0.584, "p@5": 0.464},
        "lstm": {"mrr": 0.723, "map": 0.584, "p@1": 0.600, "p@5": 0.464},
        "gru": {"mrr": 0.740, "map": 0.591, "p@1": 0.626, "p@5": 0.473},
        "rcnn": {"mrr": 0.742, "map": 0.599, "p@1": 0.632, "p@5": 0.480},
        "lstm_pretrained": {"mrr": 0.715, "map": 0.583, "p@1": 0.593, "p@5": 0.474},
        "gru_pretrained": {"mrr": 0.722, "map": 0.593, "p@1": 0.598, "p@5": 0.483},
        "rcnn_pretrained": {"mrr": 0.752, "map": 0.613, "p@1": 0.642, "p@5": 0.503},
        "cnn_max": {"mrr": 0.699, "map": 0.578, "p@1": 0.566, "p@5": 0.477},
        "lstm_pretrained_last": {"mrr": 0.710, "map": 0.576, "p@1": 0.581, "p@5": 0.473},
        "gru_pretrained_mean": {"mrr": 0.699, "map": 0.575, "p@1": 0.571, "p@5": 0.462},
        "rcnn_pretrained_mean": {"mrr": 0.736, "map": 0.593, "p@1": 0.617, "p@5": 0.486},
    },
    "test": {
        "bm25": {"mrr": 0.680, "map": 0.560, "p@1": 0.538, "p@5": 0.425},
        "tfidf": {"mrr": 0.671, "map": 0.532, "p@1": 0.538, "p@5": 0.397},
        "cnn": {"mrr": 0.714, "map": 0.576, "p@1": 0.576, "p@5": 0.432},
        "lstm": {"mrr": 0.701, "map": 0.568, "p@1": 0.558, "p@5": 0.432},
        "gru": {"mrr": 0.714, "map": 0.571, "p@1": 0.573, "p@5": 0.436},
        "rcnn": {"mrr": 0.729, "map": 0.607, "p@1": 0.591, "p@5": 0.450},
        "lstm_pretrained": {"mrr": 0.670, "map": 0.555, "p@1": 0.511, "p@5": 0.434},
        "gru_pretrained": {"mrr": 0.713, "map": 0.593, "p@1": 0.572, "p@5": 0.443},
        "rcnn_pretrained": {"mrr": 0.756, "map": 0.623, "p@1": 0.620, "p@5": 0.471},
        "cnn_max": {"mrr": 0.731, "map": 0.596, "p@1": 0.596, "p@5": 0.454},
        "lstm_pretrained_last": {"mrr": 0.698, "map": 0.576, "p@1": 0.552, "p@5": 0.437},
        "gru_pretrained_mean": {"mrr": 0.673, "map": 0.555, "p@1": 0.524, "p@5": 0.428},
        "rcnn_pretrained_mean": {"mrr": 0.723, "map": 0.589, "p@1": 0.573, "p@5": 0.453},
        "rcnn_mean": {"mrr": 0.717, "map": 0.585, "p@1": 0.567},
        "rcnn_mean_title": {"mrr": 0.689, "map": 0.560, "p@1": 0.557},
        "tfidf_title": {"mrr": 0.668, "map": 0.543, "p@1": 0.527},
        "rcnn_title": {"mrr": 0.707, "map": 0.582, "p@1": 0.566},
    },
}
TABLES = {
    "table": [{"model": model, "pretrain": False} for model in ("cnn", "lstm", "gru", "rcnn")]
    + [{"model": model, "pretrain": True} for model in ("lstm", "gru", "rcnn")],
    "table4": [
        {"model": "cnn", "pretrain": False, "pooling": "max"},
        {"model": "lstm", "pretrain": True, "pooling": "last"},
        {"model": "gru", "pretrain": True, "pooling": "mean"},
        {"model": "rcnn", "pretrain": True, "pooling": "mean"},
    ],
    "table5": [{"model": "tfidf", "title_only": title_only} for title_only in (True, False)]
    + [
        {"model": "rcnn", "pretrain": False, "pooling": pooling, "title_only": title_only}
        for pooling in ("mean", "last")
        for title_only in (True, False)
    ],
}
SCORERS = {"bm25": lexical.SearchEngine, "tfidf": lexical.TfIdf}


def recipe(hp):
    """The recipe under some hyperparameters."""
    chosen = knobs(hp, scorers=SCORERS)
    return question_retrieval(
        name="rcnn_askubuntu",
        load=partial(ask_ubuntu.load, needs_text=chosen["model"] != "bm25"),
        sample=samples.ask_ubuntu,
        published=PUBLISHED,
        **chosen,
    )


if __name__ == "__main__":
    sys.exit(main(recipe, __doc__, MEANINGS, tables=TABLES))
