"""Decomposable attention on Quora: do two questions ask the same? (Tomar et al. 2017, Tables 1 and 2, Figure 1).

Data: Wang et al.'s split, Kaggle's train.csv or the original TSV; `zoo/datasets/quora.py` says where they are.
Vectors: any GloVe file, for the rows `decatt_glove`, `siamese_cnn` and `siamese_lstm` alone (glove.840B.300d in the
paper); the other rows train theirs. `decatt_glove` takes them at length 1, as Parikh et al. do, and is `decatt_word`
without a file.

    python -m recipes.decatt_quora                                      a made-up sample
    python -m recipes.decatt_quora --data DIR                           DecAtt over character 5-grams
    python -m recipes.decatt_quora --data DIR --embeddings glove.6B.300d.txt --table
    python -m recipes.decatt_quora --data DIR --curve --seeds 3         Figure 1: each seed draws its training pairs
    python -m recipes.decatt_figures                                    draws Figure 1 and prints Table 1
    python -m recipes.decatt_quora --data DIR --model pt_decatt_char    pre-trained on noise made of the training pairs
    python -m recipes.decatt_quora --data DIR --model pt_decatt_char --from RUN    ... of `recipes.decatt_noisy`

The rows with `pt_` take all weights of a model that was trained on noisy pairs, `decatt_noisy_char` (the paper's
paralex-char) the table of n-grams alone. The paper's noise is Paralex, 36 million pairs. Without `--from` it is made
of the training pairs: questions that matches link are a cluster, see `zoo/noisy_pairs.py`.

Departures from the paper: kernels begin as Glorot's and biases at 0, where N(0, 0.01^2) barely begins to learn
within an epoch of a small training set; vectors begin as N(0, 0.05^2) and the kernels that attend at three times
Glorot's, for from small ones every word is aligned with all others alike, and 31,697 pairs are learnt by heart
before that changes (with `--ngram-combiner sum --vector-deviation 0.01 --attend-gain 1` .74 on dev, below the sums of
words); a sum of n-grams is divided by the square root of their number, for else long words have long vectors, to which
the alignment is drawn (`--ngram-combiner sum`: below `decatt_word`); the threshold is tuned on dev for each run, the
paper's is 0.3; n-grams are hashed to a fixed number of rows, and a word is cut at 30 characters; dropout stands between
the layers of a network, and no text begins with a NULL token; Paralex's pairs are linked to clusters, of which
positives are drawn. Sizes that the paper does not give are ours.
"""

import sys
from collections import Counter

import keras
import numpy as np

from recipes.knob_meanings import MEANINGS
from recipes.question_pairs import question_pairs
from zoo import noisy_pairs, samples
from zoo.command_line import main
from zoo.datasets import quora
from zoo.encoded import encode_split
from zoo.figures import heat_map

_TABLE = {  # Table 2: dev, test
    "siamese_cnn": (None, 0.7960),
    "siamese_lstm": (None, 0.8258),
    "ffnn_word": (0.8507, 0.8435),
    "ffnn_char": (0.8601, 0.8506),
    "decatt_word": (0.8604, 0.8527),
    "decatt_glove": (0.8742, 0.8652),
    "decatt_char": (0.8778, 0.8684),
    "decatt_noisy_char": (0.8780, 0.8777),
    "pt_decatt_word": (0.8844, 0.8754),
    "pt_decatt_char": (0.8889, 0.8840),
}
PUBLISHED = {
    "dev": {model: {"accuracy": _TABLE[model][0]} for model in _TABLE if _TABLE[model][0]},
    "test": {model: {"accuracy": _TABLE[model][1]} for model in _TABLE},
}

TABLE = [{"model": model} for model in _TABLE]
CURVE = [
    {"model": model, "train_pairs": count}
    for count in (100, 1_000, 10_000, 0)
    for model in ("decatt_char", "pt_decatt_char")
]
EXAMPLES = (  # Table 1, and what is right
    (
        "how shall i start my preparation for iit-jee in class 10?",
        "should i start preparing for the iit jee in class 10 only?",
        1,
    ),
    ("what is fama french three factor model?", "what is fama-french three factor model?", 1),
    ("how does paypal work in india?", "does paypal work in india? what features of paypal are available in india?", 0),
    (
        "what are the similarities between british english and american english?",
        "what are the similarities between american english and british english?",
        1,
    ),
    (
        "how is buying land on the moon a good investment? why do people buy land on the moon?",
        "at $20 an acre, isn't buying moon plots a solid investment?",
        1,
    ),
    ("what can wrestlers do to prevent cauliflower ears?", "why do wrestlers have deformed ears?", 1),
)


def recipe(hp):
    """The recipe under some hyperparameters."""
    train_pairs = hp.Int("train_pairs", 0, 1_000_000, default=0)  # Figure 1; 0 for all
    both_orders = hp.Boolean("both_orders", default=True)  # 4.1

    def augment(pairs, seed):
        drawn = quora.draw(pairs, train_pairs, seed)
        return quora.in_both_orders(drawn) if both_orders else drawn

    return question_pairs(
        hp,
        name="decatt_quora",
        load=quora.load,
        sample=samples.quora,
        published=PUBLISHED,
        train_pairs=train_pairs,
        augment=augment,
        pretrain=pretrain,
        figures=figures,
    )


def pretrain(model, encoded, fit, *, noise, build):
    """Gives the model the weights of one trained on noisy pairs, or those of its n-grams alone.

    With `--from` the model holds them already. Else the noise is made of the training pairs.
    """
    trained, told = model, None
    if not fit.options.start:
        corpus = noisy_pairs.Corpus(noisy_pairs.clusters_of_pairs(encoded.dataset.splits["train"]))
        pairs = list(noisy_pairs.groups(corpus, fit.seed, noise["pairs"] or None))
        kinds = Counter(pair.id.rpartition("-")[2] for pair in pairs)
        fit.options.say(
            f"noise: {len(corpus)} questions, {kinds['0']} matches; others that share no word {kinds['1']}, "
            f"one {kinds['2']}, all but one {kinds['3']}"
        )
        recipe = fit.recipe
        split = encode_split(
            pairs, encoded.encoder, encoded.dataset.fields, recipe.max_query_length, recipe.max_candidate_length
        )
        with fit.scope():
            trained = build(encoded, dropout=0.0)  # 4.1: dropout is for tuning
        told = fit(
            trained,
            fit.batches(split, batch_size=noise["batch_size"]),
            loss=recipe.loss,
            optimizer=recipe.optimizer,
            epochs=noise["epochs"],
            label="pre-training",
        )
    if "noisy" in fit.recipe.model:
        table = trained.get_layer("char_ngram_embedding").get_weights()
        with fit.scope():
            trained = build(encoded)
        trained.get_layer("char_ngram_embedding").set_weights(table)
        fit.options.say("of what was trained on noise the n-grams' vectors alone are kept")
    model.set_weights(trained.get_weights())
    return told


def figures(model, encoded, pretraining):
    """How the first example's questions are aligned, where the model aligns them; see `recipes.decatt_figures`."""
    if not any(layer.name == "decomposable_attention" for layer in model.layers):
        return {}
    query, candidate, _ = EXAMPLES[0]
    texts = [encoded.encoder([text], 50)["ids"].numpy() for text in (query, candidate)]
    align = keras.Model(model.inputs, model.get_layer("decomposable_attention").output[2])
    weights = np.array(align({"query": texts[0], "candidate": texts[1][:, None]}))[0, 0]
    words = [[word.decode() for word in encoded.encoder.tokenize([text]).to_list()[0]] for text in (query, candidate)]
    return {"What each token of the first question is aligned to in the second": heat_map(weights, *words)}


if __name__ == "__main__":
    sys.exit(main(recipe, __doc__, MEANINGS, tables={"table": TABLE, "curve": CURVE}))
