"""The models of the GGSA paper and its baselines keep the promises, and score lists as they score pairs."""

import numpy as np
import pytest

from tests.checks import check_model
from tests.toy_models import embeddings, ids
from zoo.models.attentive_pooling import attentive_pooling
from zoo.models.ggsa import ggsa
from zoo.models.qa_cnn import qa_cnn
from zoo.models.qa_lstm import qa_lstm

GGSA = {"num_heads": 2, "group_size": 3, "offsets": (0, 2), "inner_units": 6, "dense_units": 5, "word_dropout": 0.1}
GLOBAL = {"group_size": None, "offsets": None, "gate": False, "normalize": True}
MODELS = {
    "ggsa": (ggsa, GGSA),
    "ggsa_attention": (ggsa, GGSA | {"composition": "attention"}),
    "ggsa_mlp": (ggsa, GGSA | {"similarity": "mlp", "projection": 6}),
    "global": (ggsa, GGSA | GLOBAL),
    "local": (ggsa, GGSA | {"window": True, "offsets": None}),
    "two_blocks_apart": (ggsa, GGSA | {"num_blocks": 2, "shared": False, "interaction": True}),
    "iggsa": (ggsa, GGSA | {"interaction": True}),
    "iggsa_attention_mlp": (ggsa, GGSA | {"interaction": True, "composition": "attention", "similarity": "mlp"}),
    "iggsa_multihop": (ggsa, GGSA | {"interaction": True, "composition": "multihop"}),
    "qa_lstm": (qa_lstm, {"units": 4}),
    "qa_lstm_attention": (qa_lstm, {"units": 4, "composition": "attention"}),
    "qa_lstm_multihop": (qa_lstm, {"units": 4, "composition": "multihop"}),
    "qa_lstm_multihop_mlp": (qa_lstm, {"units": 4, "composition": "multihop_mlp", "similarity": "mlp"}),
    "ntn_lstm": (qa_lstm, {"units": 4, "composition": "mean", "similarity": "tensor"}),
    "hd_lstm": (qa_lstm, {"units": 4, "composition": "mean", "similarity": "holographic"}),
    "ap_lstm": (attentive_pooling, {"units": 4}),
    "ap_cnn_mlp": (attentive_pooling, {"units": 4, "encoder": "cnn", "similarity": "mlp"}),
    "qa_cnn": (qa_cnn, {"filters": 6}),
    "qa_cnn_gesd": (qa_cnn, {"filters": 6, "similarity": "gesd"}),
}


def build(name):
    function, arguments = MODELS[name]
    return function(embeddings(size=8), **arguments)


@pytest.mark.parametrize("name", MODELS)
def test_promises(name):
    make = (lambda: build(name)) if name in ("ggsa", "iggsa_multihop", "qa_cnn_gesd") else None
    check_model(build(name), ids(), make)


def test_question_and_answer_share_their_weights_unless_told():
    shared, apart = (ggsa(embeddings(size=8), **GGSA, shared=shared) for shared in (True, False))
    assert len(apart.trainable_weights) - 1 == 2 * (len(shared.trainable_weights) - 1)  # the embedding stays one


def test_the_encoder_of_ggsa_gives_one_vector():
    model = build("ggsa")
    vectors = np.array(model.get_layer("encoder")(ids()["query"]))
    assert vectors.shape == (3, 8)


@pytest.mark.parametrize("argument", [{"composition": "sum"}, {"similarity": "dot"}])
def test_refuses(argument):
    with pytest.raises(ValueError, match="Received: composition=.*(sum|dot)"):
        ggsa(embeddings(size=8), **GGSA | argument)


def test_attentive_pooling_refuses():
    with pytest.raises(ValueError, match="Received: encoder='gru'"):
        attentive_pooling(embeddings(size=8), encoder="gru")
