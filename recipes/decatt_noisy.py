"""Decomposable attention trained on noisy pairs of a corpus of question clusters (Tomar et al. 2017, section 3.4).

Data: a folder with Paralex's word_alignments.txt, or clusters.txt with one cluster of questions a line;
`zoo/datasets/paralex.py` says where to get them. Negatives are drawn by `zoo/noisy_pairs.py`.

    python -m recipes.decatt_noisy                                      a made-up sample
    python -m recipes.decatt_noisy --data DIR --noisy-pairs 1000000
    python -m recipes.decatt_quora --data DIR --model pt_decatt_char --from runs/decatt_noisy/latest

The run is what the last line starts from: both must have the same sizes and the same network. Departures from the
paper: those of `recipes.decatt_quora`, and it trains on 36 million matches and 64 million other pairs; here as many are
drawn as `--noisy-pairs` says, and held in memory.
"""

import sys
from functools import partial

from recipes.knob_meanings import MEANINGS
from recipes.question_pairs import question_pairs
from zoo import samples
from zoo.command_line import main
from zoo.datasets import paralex

MODELS = ["decatt_char", "decatt_word", "ffnn_char", "ffnn_word"]


def recipe(hp):
    """The recipe under some hyperparameters."""
    # What is asked for first has the default that holds: these differ from those of the tuning on Quora.
    hp.Float("dropout", 0.0, 0.5, step=0.1, default=0.0)  # 4.1: 0.1 for tuning alone
    hp.Int("batch_size", 16, 1024, step=16, default=256)  # 4.1
    model = hp.Choice("model", MODELS, default="decatt_char")
    hp.Boolean("self_attention", default=model == "decatt_char")  # 4.2: it helps the pre-trained character model alone
    pairs = hp.Int("noisy_pairs", 0, 100_000_000, default=1_000_000)  # 4.1: 100 million; ours
    return question_pairs(
        hp,
        models=MODELS,
        name="decatt_noisy",
        load=partial(paralex.load, num_pairs=pairs),
        sample=samples.paralex,
    )


if __name__ == "__main__":
    sys.exit(main(recipe, __doc__, MEANINGS))
