"""RCNN on QatarLiving: rank ten found questions by how similar they are to a new one (SemEval-2016 task 3, subtask B).

The system of Lei et al. 2016 on a task that it was not published on; its authors' own paper tells of AskUbuntu.
Beside it stand the search engine's order, which is the task's baseline, and the best submitted system.

Data: alt.qcri.org/semeval2016/task3. Vectors: any; several files are laid side by side.

    python -m recipes.rcnn_semeval                                    a made-up sample
    python -m recipes.rcnn_semeval --data DIR --embeddings glove.6B.100d.txt --pretrain --seeds 3
    python -m recipes.rcnn_semeval --data DIR --embeddings glove.6B.100d.txt --table --seeds 3
    python -m recipes.rcnn_semeval --data DIR --embeddings glove.6B.100d.txt --pretrain --search-rank

Departures from the AskUbuntu system: sizes are a third, for a fifteenth of its training pairs; a query's ten candidates
stand in one list, which holds all of its negatives at once; questions are cut to 60 tokens; words that the vector files
lack are random vectors and not left out, for with GloVe these are the forum's own; the epoch is chosen by MAP, the
task's own metric. Pre-training reads the forum's questions, but none of dev and test; its epochs are told by the titles
of dev alone. With `--search-rank` the figures have the search engine's order in them; the model is served without it.
For the others see `recipes.rcnn_askubuntu`.
"""

import sys

from recipes.question_retrieval import MEANINGS, knobs, question_retrieval
from zoo import lexical, samples
from zoo.command_line import main
from zoo.datasets import qatar_living_questions

PUBLISHED = {  # the task's own scorer
    "dev": {},
    "test": {"search": {"map": 0.7475}, "best submitted": {"map": 0.7670}},  # UH-PRHLT
}
SCORERS = {"search": lexical.SearchEngine, "bm25": lexical.BM25, "tfidf": lexical.TfIdf}
TABLES = {
    "table": [{"model": model, "pretrain": pretrain} for model in ("rcnn", "gru") for pretrain in (False, True)]
    + [{"model": model, "pretrain": False} for model in ("lstm", "cnn")],
}


def recipe(hp):
    """The recipe under some hyperparameters."""
    units = {"rcnn": 128, "cnn": 164, "lstm": 80, "gru": 96}  # about 74,000 weights each, at 150 dimensions
    chosen = knobs(
        hp,
        scorers=SCORERS,
        units=units,
        max_length=60,
        batch_size=16,
        epochs=12,
        patience=4,
        pretrain_epochs=12,
        pretrain_batch_size=64,
        only_with_vector=False,
    )
    return question_retrieval(
        name="rcnn_semeval",
        load=qatar_living_questions.load,
        sample=samples.qatar_living_questions,
        published=PUBLISHED,
        list_size=10,  # every query has as many candidates
        **chosen,
    )


if __name__ == "__main__":
    sys.exit(main(recipe, __doc__, MEANINGS, tables=TABLES))
