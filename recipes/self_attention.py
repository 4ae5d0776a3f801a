"""What the recipes of the GGSA paper share: its systems, their ablations, the baselines of its tables."""

from functools import partial

from zoo import lexical, losses, optimizers
from zoo.models.attentive_pooling import attentive_pooling
from zoo.models.ctrn import ctrn
from zoo.models.ggsa import ggsa
from zoo.models.qa_cnn import qa_cnn
from zoo.models.qa_lstm import qa_lstm
from zoo.recipe import Recipe

# A row of the tables: the function that builds it, and what sets it apart.
_PLAIN = {"gate": False, "offset": False}
_MULTIHOP = {"composition": "multihop"}
_NEURAL = {
    "ggsa": (ggsa, {}),
    "ggsa_attention": (ggsa, {"composition": "attention"}),
    "iggsa": (ggsa, {"interaction": True}),
    "iggsa_attention": (ggsa, {"interaction": True, "composition": "attention"}),
    "iggsa_multihop": (ggsa, {"interaction": True} | _MULTIHOP),
    "global": (ggsa, _PLAIN | {"group_size": None, "normalize": True}),
    "global_attention": (ggsa, _PLAIN | {"group_size": None, "normalize": True, "composition": "attention"}),
    "group": (ggsa, _PLAIN),
    "group_offset": (ggsa, {"gate": False}),
    "local": (ggsa, _PLAIN | {"window": True}),
    "local_gate": (ggsa, {"offset": False, "window": True}),
    "qa_lstm": (qa_lstm, {}),
    "qa_lstm_attention": (qa_lstm, {"composition": "attention"}),
    "multihop_mlp_lstm": (qa_lstm, {"composition": "multihop_mlp"}),
    "multihop_lstm": (qa_lstm, _MULTIHOP),
    "multihop_lstm_dropout": (qa_lstm, _MULTIHOP | {"word_dropout": 0.3}),
    "cnn": (qa_cnn, {}),
    "cnn_gesd": (qa_cnn, {"similarity": "gesd"}),
    "ap_lstm": (attentive_pooling, {}),
    "ap_cnn": (attentive_pooling, {"encoder": "cnn"}),
    "ntn_lstm": (qa_lstm, {"composition": "mean", "similarity": "tensor"}),
    "hd_lstm": (qa_lstm, {"composition": "mean", "similarity": "holographic"}),
    "ctrn": (ctrn, {}),
}
LEXICAL = {"bm25": lexical.BM25, "random": lexical.Random}
# Section 3.3, and a softmax over the list.
_LOSSES = {
    "pairwise": lambda margin: partial(losses.pairwise_hinge, margin),
    "pointwise": lambda margin: lambda: losses.pointwise,
    "listwise": lambda margin: losses.ListwiseOfCosines,
}
LOSSES = [*_LOSSES]
ABLATION = ["global", "group", "group_offset", "ggsa", "iggsa", "local", "local_gate"]  # Tables 3 and 4


def attention_knobs(hp, inner_units=1200):
    """The knobs of GGSA's attention; sections are the paper's. Its inner units are "as in [26]", 4 D."""
    return {
        "heads": hp.Choice("heads", [1, 2, 3, 4, 6, 10, 12], default=6),  # 4.2
        "group_size": hp.Int("group_size", 4, 20, step=2, default=10),  # 4.2; range of 4.3.5
        "inner_units": hp.Int("inner_units", 60, 1200, step=60, default=inner_units),
        "num_blocks": hp.Int("num_blocks", 1, 4, default=1),  # the figure draws one
        "scale": hp.Choice("scale", ["head", "model"], default="head"),  # 2.1 prints sqrt(D), for one head
        "positions": hp.Choice("positions", ["paired", "literal"], default="paired"),  # 2.2 prints literal
        "shared": hp.Boolean("shared", default=True),  # "two encoders"; ours
    }


def self_attention(
    *,
    model,
    attention,
    encoder,
    head,
    word_dropout,
    projection,
    train_embeddings,
    loss,
    margin,
    negatives,
    learning_rate,
    usual_loss,
    **recipe,
):
    """A recipe of the GGSA paper.

    Args:
        model: a name of a row, or of `LEXICAL`.
        attention: of GGSA and its ablations: ``heads``, ``group_size`` and other arguments of `zoo.models.ggsa`.
        encoder: sizes of the other encoders, ``lstm_units`` and ``filters``.
        head: the dense head of the pointwise loss: ``dense_layers``, ``dense_units``, ``dropout``.
        word_dropout: of GGSA and its ablations.
        projection: D, on vectors that a file gives and that are not trained.
        train_embeddings: whether word vectors that a file gives are trained; others always are.
        loss: ``"pairwise"`` or ``"listwise"``, on cosines, or ``"pointwise"``, on a dense head; CTRN, NTN-LSTM and
            HD-LSTM take none but the last, attentive pooling none but the first two.
        margin: of the pairwise loss.
        negatives: `zoo.negatives.Negatives` of a right answer; if these are of the list itself, the pointwise loss
            takes the lists as they are.
        learning_rate: of RMSprop.
        usual_loss: that of the tables; a row under the other one is named after it.
        recipe: the other attributes of the `Recipe`.
    """
    if model in LEXICAL:
        return Recipe(model=model, scorer=LEXICAL[model](), **recipe)
    function, differences = _NEURAL[model]
    asked = loss
    if function is ctrn or differences.get("similarity") in ("tensor", "holographic"):
        loss = usual_loss = "pointwise"  # of their dense heads
    if function is attentive_pooling and loss == "pointwise":
        loss = "pairwise"  # of their cosine
    if function is attentive_pooling and usual_loss == "pointwise" and loss == "pairwise":
        usual_loss = loss
    similarity = differences.get("similarity", "cosine")
    if loss == "pointwise" and similarity in ("cosine", "gesd"):  # between -1 and 1, so no log-odds
        similarity = "mlp"

    def build(encoded):
        trainable = train_embeddings or encoded.trainable_embeddings
        settings = {"trainable_embeddings": trainable, "projection": 0 if trainable else projection} | head
        if function is ctrn:
            return ctrn(encoded.embeddings, filters=encoder["filters"], **settings)
        if function is ggsa:
            _check_heads(attention["heads"], settings["projection"] or encoded.embeddings.shape[1])
            settings |= _attention(attention, differences) | {"word_dropout": word_dropout}
        else:
            size = encoder["filters" if "cnn" in model else "lstm_units"]
            settings |= {"filters" if function is qa_cnn else "units": size} | differences
        return function(encoded.embeddings, **settings | {"similarity": similarity})

    return Recipe(
        model=model + ("" if loss == usual_loss else f"_{loss}"),
        build=build,
        module=f"zoo.models.{function.__name__}",
        loss=_LOSSES[loss](margin),
        optimizer=partial(optimizers.RMSprop, learning_rate, rho=0.9, momentum=0.9),  # 4.2; the two 0.9 are ours
        negatives=negatives if loss != "pointwise" or negatives.source != "list" else None,
        task="binary" if loss == "pointwise" else "ranking",
        without_effect=_without_effect(function, model, differences, similarity, loss, negatives)
        + (("loss",) if loss != asked else ()),
        **recipe,
    )


def _without_effect(function, model, differences, similarity, loss, negatives):
    """The knobs that a row does not have."""
    dead = set()
    if function is not ctrn and similarity != "mlp":
        dead |= {"dense_layers"} if similarity == "holographic" else {"dense_layers", "dense_units", "dropout"}
    if loss != "pairwise":
        dead |= {"margin"}
    if negatives.source == "batch" or (negatives.source == "list" and loss == "pointwise"):
        dead |= {"negatives"}
    if function is not ggsa:
        dead |= {"heads", "group_size", "inner_units", "num_blocks", "scale", "positions", "shared", "word_dropout"}
    elif differences.get("group_size", 0) is None:
        dead |= {"group_size"}
    if function is ggsa or function is ctrn or "cnn" in model:
        dead |= {"lstm_units"}
    if not (function is ctrn or "cnn" in model):
        dead |= {"filters"}
    return tuple(sorted(dead))


def _check_heads(heads, size):
    if size % heads:
        raise ValueError(f"Heads must divide the {size} numbers of a word. Received: heads={heads}")


def _attention(attention, differences):
    """The arguments of `ggsa`; half of the heads are set off by half a group."""
    heads, size = attention["heads"], attention["group_size"]
    settings = {name: value for name, value in attention.items() if name != "heads"} | {"num_heads": heads}
    settings["offsets"] = (0,) * (heads - heads // 2) + (size // 2,) * (heads // 2)
    settings |= differences
    if not settings.pop("offset", True):
        settings["offsets"] = None
    return settings
