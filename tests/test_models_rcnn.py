"""The question encoders keep the promises of `check_model`, and compute what the RCNN paper says."""

import numpy as np
import pytest

from tests.checks import check_model
from tests.toy_models import embeddings
from zoo.models.rcnn import READERS, openness, rcnn

UNREAD = 3


def ids():
    random = np.random.default_rng(1)
    shapes = {"query_title": (3, 5), "query_body": (3, 8), "candidate_title": (3, 4, 6), "candidate_body": (3, 4, 7)}
    arrays = {name: random.integers(1, 40, shape).astype("int32") for name, shape in shapes.items()}
    arrays["query_title"][1, 3:] = 0
    arrays["query_body"][2, 2:] = 0
    arrays["candidate_title"][0, 1, 2:] = 0
    arrays["candidate_body"][0, 2, 4:] = 0
    return arrays


def make(reader, **settings):
    return rcnn(embeddings(), reader=reader, **{"units": 8, "initial_range": 0.5, "num_unread": UNREAD} | settings)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_promises(reader, pooling):
    model = make(reader, pooling=pooling, trainable_embeddings=True)
    check_model(model, ids(), make=lambda: make(reader, pooling=pooling, trainable_embeddings=True))


@pytest.mark.parametrize("reader", ["rcnn", "lstm", "gru"])
@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_score_is_the_cosine_of_the_mean_of_the_fields(pooling, reader):
    idf = np.linspace(0.5, 2, 40)
    model, batch = make(reader, pooling=pooling, idf=idf, dropout=0.3), ids()
    trained = model.get_layer("encoder").layer.get_layer("reader")
    layer = type(trained).from_config(trained.get_config() | {"return_sequences": True})
    vectors = embeddings() * idf[:, None]
    layer.build((None, None, vectors.shape[-1]))
    layer.set_weights(trained.get_weights())

    def encode(*fields):
        parts = []
        for field in fields:
            field = field[field > UNREAD]
            states = np.asarray(layer(vectors[field][None].astype("float32"))[0][0], "float64")
            states /= np.linalg.norm(states, axis=-1, keepdims=True)
            parts.append(states[-1] if pooling == "last" else states.mean(axis=0))
        mean = sum(parts) / 2
        return mean / np.linalg.norm(mean)

    scores = model(batch)
    for b in range(3):
        query = encode(batch["query_title"][b], batch["query_body"][b])
        for i in range(4):
            candidate = encode(batch["candidate_title"][b, i], batch["candidate_body"][b, i])
            np.testing.assert_allclose(scores[b, i], query @ candidate, atol=1e-6)


def test_cosine_of_a_question_with_itself_is_one_and_of_an_empty_one_zero():
    model, batch = make("rcnn"), ids()
    same = {f"candidate_{field}": batch[f"query_{field}"][:, None] for field in ("title", "body")}
    np.testing.assert_allclose(model(batch | same), np.ones((3, 1)), atol=1e-6)
    unread = {name: np.minimum(array, UNREAD) for name, array in same.items()}
    assert not np.asarray(model(batch | unread)).any()


@pytest.mark.parametrize(
    "reader, units, order, count", [("rcnn", 400, 2, 400_800), ("cnn", 667, 3, 400_867), ("lstm", 240, 2, 423_360)]
)
def test_encoder_is_counted_once_and_embeddings_are_fixed(reader, units, order, count):
    model = rcnn(embeddings(50, 200), reader=reader, units=units, order=order)
    assert sum(np.prod(weight.shape) for weight in model.trainable_weights) == count


def test_penalty_is_the_norm_of_each_kernel():
    model = make("rcnn", penalty=0.5)
    kernels = [w for w in model.trainable_weights if w.path.endswith("kernel")]
    assert len(kernels) == 2
    expected = 0.5 * sum(np.linalg.norm(kernel) for kernel in kernels)
    np.testing.assert_allclose(float(sum(model.losses)), expected, rtol=1e-5)


def test_openness_is_one_minus_the_gate():
    model = make("rcnn", units=4)
    layer = model.get_layer("encoder").layer.get_layer("reader")
    kernel, recurrent, bias, _ = (np.array(w) for w in layer.weights)
    # Without states, the gate of a word is that of the word alone.
    layer.recurrent_kernel.assign(np.zeros_like(recurrent))
    ids = np.array([[5, 1, 6, 0]])
    expected = 1 - (1 / (1 + np.exp(-embeddings()[ids[0]] @ kernel[:, :4] - bias))).mean(axis=-1)
    opened = np.asarray(openness(model, ids, UNREAD))[0].mean(axis=-1)
    np.testing.assert_allclose(opened, np.where(ids[0] > UNREAD, expected, 1), atol=1e-6)


def test_one_field_and_titles_alone():
    batch = ids()
    titles = {side: batch[f"{side}_title"] for side in ("query", "candidate")}
    one_field, title_only = make("rcnn", fields=("title",)), make("rcnn", read_fields=("title",))
    title_only.set_weights(one_field.get_weights())
    check_model(one_field, titles)
    np.testing.assert_allclose(title_only(batch), one_field(titles), atol=1e-6)


def test_unknown_reader():
    with pytest.raises(ValueError, match="Received: reader='bert'"):
        make("bert")
