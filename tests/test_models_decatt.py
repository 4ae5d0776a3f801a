"""The models of the DecAtt paper keep the promises of `check_model`, over words and over character n-grams."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from recipes import decatt_quora
from tests.checks import check_model
from zoo import tuning
from zoo.models.cnn import cnn
from zoo.models.decatt import decatt
from zoo.models.ffnn import ffnn

RANDOM = np.random.default_rng(0)
TABLE = RANDOM.normal(size=(40, 7)).astype("float32")
TABLE[0] = 0
MODELS = {"decatt": decatt, "ffnn": ffnn}


def ids(char_ngrams):
    """Tokens, or rows of one to four n-grams; some texts are shorter."""
    token = (4,) if char_ngrams else ()
    query = RANDOM.integers(1, 40, (3, 5, *token)).astype("int32")
    candidate = RANDOM.integers(1, 40, (3, 4, 6, *token)).astype("int32")
    query[1, 3:] = 0
    candidate[0, 1, 2:] = 0
    if char_ngrams:
        for texts in (query, candidate):
            numbers = RANDOM.integers(1, 4, (*texts.shape[:-1], 1))
            texts[np.arange(4) >= np.broadcast_to(numbers, texts.shape)] = 0
    return {"query": query, "candidate": candidate}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("char_ngrams", [False, True])
def test_promises(name, char_ngrams):
    extra = {"self_attention": True, "combiner": "sqrtn"} if name == "decatt" and char_ngrams else {}
    check_model(MODELS[name](TABLE, char_ngrams=char_ngrams, units=(8, 6), **extra), ids(char_ngrams))


@pytest.mark.parametrize("model", ["decatt_char", "ffnn_char"])
@pytest.mark.parametrize("combiner", ["sum", "sqrtn"])
def test_the_combiner_of_the_recipe_reaches_the_layer(model, combiner):
    encoded = SimpleNamespace(encoder=SimpleNamespace(vocabulary_size=40))
    hp = tuning.hyperparameters(model=model, ngram_combiner=combiner, units=50, embedding_size=50)
    built = decatt_quora.recipe(hp).build(encoded)
    assert built.get_layer("char_ngram_embedding").combiner == combiner


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_padding_appended_to_texts_of_ngrams_change_nothing(name):
    model, batch = MODELS[name](TABLE, char_ngrams=True, units=(8, 6)), ids(True)
    longer = {
        "query": np.pad(batch["query"], [(0, 0), (0, 2), (0, 3)]),
        "candidate": np.pad(batch["candidate"], [(0, 0), (0, 1), (0, 2), (0, 1)]),
    }
    scores = np.array(model(longer))
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[:, :4], model(batch), atol=1e-5)


def test_only_the_chosen_rows_of_given_vectors_are_trained():
    learns = np.arange(40) > 20
    model = decatt(TABLE, trainable_embeddings=learns, units=(8, 6))
    fixed, gate, learnt = (model.get_layer(name).weights[0] for name in ("embedding", "learns", "learnt"))
    assert not fixed.trainable and not gate.trainable and learnt.trainable
    np.testing.assert_array_equal(fixed, TABLE)
    np.testing.assert_array_equal(np.array(gate)[:, 0] > 0, learns)
    other = decatt(TABLE, units=(8, 6))
    by_path = {weight.path: weight for weight in model.weights}
    for weight in other.weights:
        weight.assign(by_path[weight.path])
    learnt.assign(np.where(learns[:, None], 0, 9.0).repeat(7, axis=1))  # of the other rows it is never used
    batch = ids(False)
    np.testing.assert_allclose(model(batch), other(batch), atol=1e-6)


def test_sums_know_no_order_but_trigrams_do():
    batch = ids(False)
    turned = batch | {"query": batch["query"][:, ::-1].copy()}
    model = ffnn(TABLE, units=(8,))
    assert not np.allclose(model(batch), model(turned), atol=1e-5)
    assert ffnn(TABLE, units=(8,), trigram_units=3).get_layer("dense_1").kernel.shape[0] == 2 * (7 + 3)


@pytest.mark.parametrize("trigram_units", [0, 3])
def test_ffnn_is_the_loop_of_the_paper(trigram_units):
    """Section 4.2: the sums of the tokens and of their trigrams, of both questions, under one network."""
    model, batch = ffnn(TABLE, units=(8, 6), trigram_units=trigram_units, dropout=0.0), ids(False)
    weights = {weight.path: np.array(weight, "float64") for weight in model.weights}

    def dense(name, x):
        return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    def sums(text):
        words = [TABLE[token].astype("float64") for token in text if token]
        zero = np.zeros(7)
        around = [zero, *words, zero]
        trigrams = [np.concatenate(around[place : place + 3]) for place in range(len(words))]
        if trigram_units:
            trigrams = [np.maximum(dense("trigrams", trigram), 0) for trigram in trigrams]
        return np.concatenate([np.sum(words, axis=0), np.sum(trigrams, axis=0)])

    expected = np.zeros((3, 4))
    for row, column in np.ndindex(3, 4):
        x = np.concatenate([sums(batch["query"][row]), sums(batch["candidate"][row, column])])
        for name in ("dense_1", "dense_2"):
            x = np.maximum(dense(name, x), 0)
        last = [path for path in weights if path.endswith("kernel") and not path.startswith(("dense", "trigrams"))]
        (last,) = {path.rsplit("/", 1)[0] for path in last}
        log_odds = dense(last, x)
        expected[row, column] = log_odds[1] - log_odds[0] if len(log_odds) == 2 else log_odds[0]
    np.testing.assert_allclose(model(batch), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "setting",
    [
        {"context": 0},
        {"self_attention": True},
        {"self_attention": True, "values": "window"},
        {"self_attention": True, "max_distance": 3},
        {"dropout": 0.4},
        {"units": (9, 6)},
    ],
)
def test_each_argument_of_decatt_reaches_its_layer(setting):
    config = decatt(TABLE, **({"units": (8, 6)} | setting)).get_layer("decomposable_attention").get_config()
    assert {name: config[name] for name in setting} == setting


@pytest.mark.parametrize("char_ngrams", [False, True])
def test_under_the_recipes_knobs_like_words_are_aligned_from_the_start(char_ngrams):
    """As the paper begins all words are aligned alike, and few pairs are learnt by heart before that changes."""
    random = np.random.default_rng(0)
    model = decatt_quora.recipe(tuning.hyperparameters(model=f"decatt_{'char' if char_ngrams else 'word'}"))
    encoded = SimpleNamespace(encoder=SimpleNamespace(vocabulary_size=1000), trainable_embeddings=True)
    words = random.integers(1, 1000, (12, 5) if char_ngrams else (12,)).astype("int32")
    order = random.permutation(12)
    batch = {"query": words[None], "candidate": words[order][None, None]}

    def alignment(model):
        layer = model.get_layer("decomposable_attention")
        return np.array(keras.Model(model.inputs, layer.output[2])(batch))[0, 0]

    def of_same_word(model):
        return alignment(model)[np.arange(12), np.argsort(order)].mean()

    keras.utils.set_random_seed(0)
    assert of_same_word(model.build(encoded)) > 2 / 12
    assert of_same_word(decatt((1000, 300), char_ngrams=char_ngrams)) < 1.1 / 12


def test_a_head_that_compares_reads_difference_and_product():
    settings = {"filters": 5, "projection": 0, "dense_units": 3}
    assert cnn(TABLE, **settings).get_layer("dense_1").kernel.shape[0] == 2 * 5
    assert cnn(TABLE, **settings, compare=True).get_layer("dense_1").kernel.shape[0] == 4 * 5
