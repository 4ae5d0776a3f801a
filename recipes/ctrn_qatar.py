"""CTRN on QatarLiving: rank the ten comments below a forum question (Tay, Tuan and Hui 2018, Table 5).

Data: SemEval-2016 task 3, subtask A (alt.qcri.org/semeval2016/task3), and the parts of 2015 that it repeats.
Vectors: the paper trains 200 dimensions on the task's unannotated text; GloVe serves.

    python -m recipes.ctrn_qatar                                      a made-up sample
    python -m recipes.ctrn_qatar --data DIR --embeddings glove.6B.100d.txt --seeds 3
    python -m recipes.ctrn_qatar --data DIR --embeddings glove.6B.100d.txt --table

Departures from the paper: the vocabulary holds the training words and those of the vector file; ties are broken
against the system; long questions and comments are cut, the paper does not say where; of the 2015 files, the
threads that come back as test questions of 2016 are left out of training.
"""

import sys

from recipes.answer_selection import MODELS, answer_selection
from recipes.knob_meanings import MEANINGS
from zoo import samples
from zoo.command_line import main
from zoo.datasets import qatar_living

PUBLISHED = {  # Table 5
    "qrnn": {"p@1": 0.758, "map": 0.783},
    "ctrn": {"p@1": 0.788, "map": 0.794},
}


def recipe(hp):
    """The recipe under some hyperparameters."""
    return answer_selection(
        name="ctrn_qatar",
        load=qatar_living.load,
        sample=samples.qatar_living,
        published=PUBLISHED,
        model=hp.Choice("model", MODELS, default="ctrn"),
        network={
            "filters": hp.Int("filters", 128, 1024, step=128, default=256),  # tuned; value not given; ours
            "projection": hp.Int("projection", 100, 500, step=100, default=100),  # m; Table 2 counts with 300; ours
            "dense_layers": hp.Int("dense_layers", 1, 3, default=1),  # tuned in 1..3; value not given; ours
            "dense_units": hp.Int("dense_units", 64, 256, step=64, default=128),  # Table 2: h
            "dropout": hp.Float("dropout", 0.0, 0.6, step=0.1, default=0.5),  # Implementation details
            "word_dropout": hp.Float("word_dropout", 0.0, 0.5, step=0.1, default=0.0),  # not in the paper
            "l2": hp.Float("l2", 1e-7, 1e-3, sampling="log", default=4e-6),  # Implementation details
            "overlap": hp.Choice("overlap", ["none", "share", "coverage"], default="none"),  # TrecQA only
        },
        alignment=hp.Choice("alignment", ["ratio", "index"], default="ratio"),  # t*, CTRN cell
        learning_rate=hp.Float("learning_rate", 1e-5, 1e-2, sampling="log", default=1e-3),  # tuned in 1e-3..1e-5
        batch_size=hp.Int("batch_size", 16, 512, step=16, default=128),  # tuned in 64..512; value not given; ours
        epochs=hp.Int("epochs", 1, 50, default=25),  # "until no gain"; ours
        patience=hp.Int("patience", 1, 10, default=5),  # Implementation details
        max_query_length=60,  # not given; ours
        max_candidate_length=80,  # not given; ours
        embedding_size=hp.Int("embedding_size", 50, 300, step=50, default=100),  # only without a vector file
        fixed=("model", "epochs", "patience", "embedding_size"),
    )


if __name__ == "__main__":
    sys.exit(main(recipe, __doc__, MEANINGS))
