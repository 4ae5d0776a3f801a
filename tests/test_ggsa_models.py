"""The models of the GGSA paper and its baselines keep the promises, and score lists as they score pairs."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from recipes import ggsa_insurance, ggsa_yahoo, self_attention
from tests.checks import check_model
from tests.toy_models import embeddings, ids
from zoo import command_line, tuning
from zoo.models.attentive_pooling import attentive_pooling
from zoo.models.ggsa import ggsa
from zoo.models.qa_cnn import qa_cnn
from zoo.models.qa_lstm import qa_lstm
from zoo.recipe import Options

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


def test_heads_of_the_lstm_baselines_are_one_layer_each():
    for name in ("hd_lstm", "ntn_lstm"):
        model = build(name)
        head = {layer.name: layer for layer in model.layers}
        if name == "ntn_lstm":
            assert not any(layer.startswith("dense") for layer in head)  # a linear layer on the slices
            assert head["logits"].kernel.shape == (5, 2)
        else:
            d = head["bilinear"].kernel.shape[0]
            assert head["dense_1"].kernel.shape == (d + 1, 256) and "dense_2" not in head


def test_rows_under_the_other_loss_have_a_name_and_a_head_of_their_own():
    def row(module, **knobs):
        return module.recipe(tuning.hyperparameters(**knobs))

    assert row(ggsa_yahoo, model="ggsa").model == "ggsa" and row(ggsa_yahoo, model="ggsa").task == "binary"
    pairwise = row(ggsa_yahoo, model="iggsa_attention", loss="pairwise")
    assert (pairwise.model, pairwise.task) == ("iggsa_attention_pairwise", "ranking")
    assert pairwise.published[pairwise.model] == {"p@1": 0.7845, "mrr": 0.8507}
    # Attentive pooling is compared by its cosine, CTRN by its head, whatever the loss of the others.
    assert (row(ggsa_yahoo, model="ap_lstm").model, row(ggsa_yahoo, model="ap_lstm").task) == ("ap_lstm", "ranking")
    assert row(ggsa_yahoo, model="ap_lstm", loss="pairwise").model == "ap_lstm"
    assert row(ggsa_insurance, model="ap_lstm").model == "ap_lstm"
    for model in ("ap_lstm", "ggsa"):  # the paper's own loss stands beside its figures as well
        pairwise = row(ggsa_insurance, model=model, loss="pairwise")
        assert pairwise.model == f"{model}_pairwise"
        assert pairwise.published["test1"][pairwise.model] == ggsa_insurance.PUBLISHED["test1"][model]
    for model in ("ctrn", "ntn_lstm", "hd_lstm"):
        pointwise = row(ggsa_yahoo, model=model, loss="pairwise")
        assert (pointwise.model, pointwise.task) == (model, "binary")
    gesd = row(ggsa_insurance, model="cnn_gesd", loss="pointwise")
    encoded = SimpleNamespace(embeddings=embeddings(size=8), trainable_embeddings=True)
    assert gesd.model == "cnn_gesd_pointwise" and gesd.build(encoded).layers[-1].name != "similarity"
    margin = {
        model: row(ggsa_insurance, model=model, loss="pairwise").loss().margin for model in ("ggsa", "multihop_lstm")
    }
    assert margin == {"ggsa": 0.1, "multihop_lstm": 0.2}


def test_rows_of_the_ablation_differ_as_in_the_papers_tables():
    def row(name):
        _, differences = self_attention._NEURAL[name]
        settings = self_attention._attention({"heads": 6, "group_size": 10}, differences)
        names = ("group_size", "offsets", "gate", "window", "normalize", "interaction", "composition")
        return {name: settings[name] for name in names if settings.get(name)}

    offset = {"group_size": 10, "offsets": (0, 0, 0, 5, 5, 5)}
    assert {name: row(name) for name in self_attention.ABLATION} == {
        "global": {"normalize": True},  # one group of all words, without a gate
        "group": {"group_size": 10},
        "group_offset": offset,
        "ggsa": offset,  # with the gate, as by default
        "iggsa": offset | {"interaction": True},
        "local": {"group_size": 10, "window": True},
        "local_gate": {"group_size": 10, "window": True},
    }
    gates = {name: self_attention._NEURAL[name][1].get("gate", True) for name in self_attention.ABLATION}
    assert {name for name, gate in gates.items() if gate} == {"ggsa", "iggsa", "local_gate"}
    assert row("iggsa_attention") == row("iggsa") | {"composition": "attention"}
    assert row("iggsa_multihop") == row("iggsa") | {"composition": "multihop"}


def without_effect(module, **knobs):
    return set(module.recipe(tuning.hyperparameters(**knobs)).without_effect)


def test_knobs_that_a_row_has_not():
    ntn, hd = (without_effect(ggsa_yahoo, model=f"{name}_lstm") for name in ("ntn", "hd"))
    assert {"heads", "group_size", "filters", "margin", "negatives", "word_dropout", "dense_units"} <= ntn
    assert not {"lstm_units", "learning_rate"} & ntn
    assert ntn - hd == {"dense_units", "dropout"}
    pairwise = without_effect(ggsa_yahoo, model="ggsa", loss="pairwise")
    assert {"lstm_units", "filters", "dense_units"} <= pairwise and not {"heads", "margin", "negatives"} & pairwise
    assert "group_size" in without_effect(ggsa_insurance, model="global")
    assert {"margin", "negatives"} <= without_effect(ggsa_insurance, loss="listwise", negatives_from="batch")
    assert "loss" in without_effect(ggsa_yahoo, model="ap_lstm") & without_effect(
        ggsa_yahoo, model="ctrn", loss="pairwise"
    )


@pytest.mark.parametrize("module", [ggsa_insurance, ggsa_yahoo])
def test_knobs_that_say_how_large_a_part_is_have_an_effect_or_are_said_to_have_none(module):
    encoded = SimpleNamespace(embeddings=embeddings(size=12), trainable_embeddings=True)
    sizes = {"lstm_units": 60, "filters": 320, "dense_units": 96, "dense_layers": 3, "inner_units": 120}

    def shapes(**knobs):
        model = module.recipe(tuning.hyperparameters(**knobs)).build(encoded)
        return sorted(tuple(weight.shape) for weight in model.weights)

    for name in module.PUBLISHED.get("test1", module.PUBLISHED):
        if name == "random" or name.endswith("_pairwise"):
            continue
        for knob, value in sizes.items():
            same = shapes(model=name) == shapes(model=name, **{knob: value})
            assert same == (knob in without_effect(module, model=name)), (name, knob)


@pytest.mark.parametrize("tuner", ["grid", "bayesian"])
@pytest.mark.parametrize("model, loss", [("ggsa", "pairwise"), ("iggsa", "pointwise"), ("ggsa", "listwise")])
def test_figure_8_is_searched(model, loss, tuner, tmp_path, monkeypatch):
    """Every group size once, whatever else the row has or has not."""
    tried = []

    def train(recipe, folder, dataset, options, seed):
        tried.append(options.knobs["group_size"])
        return SimpleNamespace(metrics={"training": {"interrupted": False}, "dev": {"p@1": 0.5}}, folder=folder)

    monkeypatch.setattr(tuning, "train", train)
    values = {"model": model, "loss": loss, "heads": 6}
    options = Options(say=lambda line: None)
    dataset = SimpleNamespace(metrics=("p@1",))
    tuning.tune(ggsa_insurance.recipe, dataset, tmp_path, options, values=values, trials=9, tuner=tuner)
    assert len(tried) == 9 and (tuner == "bayesian" or sorted(tried) == list(range(4, 21, 2)))


def test_a_knob_that_the_row_has_not_is_refused(capsys):
    for knob, flags in (("--heads 4", ["--model=cnn"]), ("--group-size 6", ["--ablation", "--model=cnn"])):
        with pytest.raises(SystemExit) as stopped:
            command = [*flags, *knob.split()]
            tables = {"ablation": [{"model": "global"}, {"model": "cnn"}]}
            command_line.main(ggsa_insurance.recipe, "", tables=tables, command=command)
        assert stopped.value.code == 2 and f"Received: {knob}" in capsys.readouterr().err


def test_heads_must_divide_the_words():
    encoded = SimpleNamespace(embeddings=embeddings(size=8), trainable_embeddings=True)
    with pytest.raises(ValueError, match="8 numbers of a word. Received: heads=6"):
        ggsa_insurance.recipe(tuning.hyperparameters()).build(encoded)


def test_iggsa_begins_as_the_ggsa_whose_weights_it_takes():
    keras.utils.set_random_seed(0)  # how far it begins from GGSA is a matter of what is drawn
    trained, fresh = (build(name) for name in ("ggsa", "iggsa"))
    there = {weight.path: weight for weight in trained.weights}
    new = [weight for weight in fresh.weights if weight.path not in there]
    assert new and all(weight.path.startswith("question_aware_residual/") for weight in new)
    for weight in fresh.weights:
        if weight.path in there:
            weight.assign(there[weight.path])
    np.testing.assert_allclose(fresh(ids()), trained(ids()), atol=1e-3)


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
