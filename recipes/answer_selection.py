"""What the recipes of the CTRN paper share: its system, the baselines of its tables, its objective."""

from functools import partial

from zoo import lexical, losses, optimizers
from zoo.models.cnn import cnn
from zoo.models.ctrn import ctrn
from zoo.models.lstm import lstm
from zoo.models.qrnn import qrnn
from zoo.training import Recipe

_NEURAL = {"ctrn": ctrn, "qrnn": qrnn, "lstm": lstm, "cnn": cnn}
_LEXICAL = {"bm25": lexical.BM25, "tfidf": lexical.TfIdf, "random": lexical.Random}
MODELS = [*_NEURAL, *_LEXICAL]

# Small enough to learn the made-up sample within two minutes on two cores.
ON_SAMPLE = {"filters": 128, "dropout": 0.2, "learning_rate": 3e-3, "epochs": 8}


def answer_selection(*, model, network, learning_rate, alignment="ratio", on_built=None, **recipe):
    """A pointwise recipe of the CTRN paper.

    Args:
        model: a name out of `MODELS`.
        network: sizes that all networks take, see `zoo.models.parts.encoded_apart`, and ``filters``.
        learning_rate: of Adam (the paper's optimizer).
        alignment: of CTRN's crossed gates.
        on_built: function of (model, encoded data set) called on the built model, or None.
        recipe: the other attributes of the `Recipe`.
    """
    if model in _LEXICAL:
        return Recipe(model=model, scorer=_LEXICAL[model](), on_sample=ON_SAMPLE, **recipe)

    def build(encoded):
        extra = {"alignment": alignment} if model == "ctrn" else {}
        if encoded.trainable_embeddings:
            extra["projection"] = 0  # it is there to learn on top of fixed vectors
        built = _NEURAL[model](encoded.embeddings, trainable_embeddings=encoded.trainable_embeddings, **network | extra)
        if on_built:
            on_built(built, encoded)
        return built

    return Recipe(
        model=model,
        build=build,
        module=f"zoo.models.{model}",
        loss=lambda: losses.pointwise,  # Eq. 3
        optimizer=partial(optimizers.Adam, learning_rate),
        on_sample=ON_SAMPLE,
        **recipe,
    )
