"""What the recipes of the CTRN paper share: its system, the baselines of its tables, its objective."""

from functools import partial

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from zoo import lexical, losses, optimizers
from zoo.batches import Batches
from zoo.encoded import distinct_texts, document_frequency
from zoo.models.cnn import cnn
from zoo.models.ctrn import ctrn
from zoo.models.lstm import lstm
from zoo.models.qrnn import qrnn
from zoo.recipe import Recipe

_NEURAL = {"ctrn": ctrn, "qrnn": qrnn, "lstm": lstm, "cnn": cnn}
_LEXICAL = {"bm25": lexical.BM25, "tfidf": lexical.TfIdf, "random": lexical.Random}
MODELS = [*_NEURAL, *_LEXICAL]

# Small enough to learn the made-up sample within two minutes on two cores.
ON_SAMPLE = {"filters": 128, "dropout": 0.2, "learning_rate": 3e-3, "epochs": 8}


def answer_selection(*, model, network, learning_rate, alignment="ratio", **recipe):
    """A pointwise recipe of the CTRN paper.

    Args:
        model: a name out of `MODELS`.
        network: what all networks take, see `zoo.models.parts.encoded_apart`, and ``filters``.
        learning_rate: of Adam (the paper's optimizer).
        alignment: of CTRN's crossed gates; no other model has it.
        recipe: the other attributes of the `Recipe`.
    """
    if model in _LEXICAL:
        return Recipe(model=model, scorer=_LEXICAL[model](), on_sample=ON_SAMPLE, **recipe)

    def build(encoded):
        extra = {"alignment": alignment} if model == "ctrn" else {}
        if encoded.trainable_embeddings:
            extra["projection"] = 0  # it is there to learn on top of fixed vectors; the knob has no effect then
        built = _NEURAL[model](encoded.embeddings, trainable_embeddings=encoded.trainable_embeddings, **network | extra)
        if network["overlap"] != "none":
            _set_overlap_statistics(built.get_layer("overlap"), encoded)
        return built

    return Recipe(
        model=model,
        build=build,
        module=f"zoo.models.{model}",
        loss=lambda: losses.pointwise,  # Eq. 3
        optimizer=partial(optimizers.Adam, learning_rate),
        without_effect=() if model == "ctrn" else ("alignment",),
        on_sample=ON_SAMPLE,
        **recipe,
    )


def _set_overlap_statistics(layer, encoded):
    """Gives the overlap features idf and stop words, and scales them to the training pairs."""
    train = encoded.splits["train"]
    sentences = distinct_texts([train])
    frequency = document_frequency(sentences, encoded.encoder.vocabulary_size)
    # idf = ln(N / df); a word that training never saw is as rare as one that it saw once.
    idf = np.log(len(sentences) / np.maximum(frequency, 1))
    is_stop = np.zeros(len(idf))
    is_stop[-len(encoded.encoder.words) :] = [word in ENGLISH_STOP_WORDS for word in encoded.encoder.words]
    layer.set_statistics(idf, is_stop)
    batches = Batches(train, 1024, 1)
    features = np.concatenate(
        [
            np.asarray(layer(inputs["query"], inputs["candidate"]))[labels >= 0]
            for inputs, labels in map(batches.__getitem__, range(len(batches)))
        ]
    )
    layer.set_statistics(idf, is_stop, features.mean(axis=0), features.std(axis=0))
