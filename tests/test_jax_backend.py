"""The layers give the same numbers, gradients and files under JAX, in a process without TensorFlow."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from layers import masking
from layers.attention_pooling import AttentionPooling
from layers.attentive_pooling import AttentivePooling
from layers.char_ngram_embedding import CharNgramEmbedding
from layers.circular_correlation import CircularCorrelation
from layers.cross_temporal_cell import CrossTemporalCell
from layers.decomposable_attention import DecomposableAttention
from layers.distinct_tokens import DistinctTokens
from layers.feed_forward_residual import FeedForwardResidual
from layers.gated_conv import GatedConv
from layers.global_gate import GlobalGate
from layers.group_attention_residual import GroupAttentionResidual
from layers.group_self_attention import GroupSelfAttention
from layers.linear_recurrence import linear_recurrence
from layers.manhattan_distance import ManhattanDistance
from layers.masked_pooling import MaskedPooling
from layers.multihop_attention import MultihopAttention
from layers.overlap_features import OverlapFeatures
from layers.packed_lstm import PackedLSTM
from layers.quasi_recurrent import QuasiRecurrent
from layers.sequential_attention import SequentialAttention
from layers.sinusoidal_positions import SinusoidalPositions
from layers.tensor_interaction import TensorInteraction
from layers.vector_similarity import VectorSimilarity
from layers.word_embedding import WordEmbedding

# Keras imports TensorFlow where it finds it, whatever the backend; here it finds none.
WITHOUT_TENSORFLOW = """
import pathlib, sys
sys.modules["tensorflow"] = None
from tests.test_jax_backend import main
main(pathlib.Path(sys.argv[1]))
"""
FUNCTIONS = {
    "softmax": lambda x, mask: masking.masked_softmax(x, mask, axis=1),
    "mean": masking.masked_mean,
    "max": masking.masked_max,
    "last": masking.last_state,
    "recurrence": lambda x, mask: linear_recurrence(ops.sigmoid(x), x),
    "recurrence_sequential": lambda x, mask: linear_recurrence(ops.sigmoid(x), x, x[:, 0], "sequential"),
    "recurrence_scan": lambda x, mask: linear_recurrence(ops.sigmoid(x), x, x[:, 0], "scan"),
}
# Weights are set below, alike under both backends; JAX compiles for seconds to draw an initial one.
FIVE = {"units": 5, "kernel_initializer": "zeros"}
LAYERS = {
    "quasi_recurrent": (QuasiRecurrent, FIVE, "x"),
    "quasi_recurrent_same": (QuasiRecurrent, FIVE | {"kernel_size": 3, "padding": "same"}, "x"),
    "cross_temporal_cell": (CrossTemporalCell, FIVE | {"use_bias": True}, "pair"),
    "cross_temporal_cell_index": (CrossTemporalCell, FIVE | {"alignment": "index"}, "pair"),
    "cross_temporal_cell_half": (CrossTemporalCell, FIVE | {"dtype": "mixed_float16"}, "pair"),
    "manhattan_distance": (ManhattanDistance, {}, "encoded"),
    "manhattan_distance_euclidean": (ManhattanDistance, {"p": 2, "similarity": False}, "encoded"),
    "manhattan_distance_cosine": (ManhattanDistance, {"p": "cosine"}, "encoded"),
    "group_self_attention": (GroupSelfAttention, {"num_heads": 2, "group_size": 4, "offsets": (0, 1)}, "x"),
    "local_self_attention": (GroupSelfAttention, {"num_heads": 2, "group_size": 2, "window": True}, "x"),
    "group_attention_residual": (GroupAttentionResidual, {"num_heads": 2, "group_size": None}, "x"),
    "gated_conv": (GatedConv, FIVE | {"recurrent_initializer": "zeros", "return_state": True}, "x"),
    "gated_conv_last": (GatedConv, FIVE | {"recurrent_initializer": "zeros", "return_sequences": False}, "x"),
    "gated_conv_other": (
        GatedConv,
        FIVE
        | {"recurrent_initializer": "zeros", "order": 3, "gate": "scalar", "filter_mode": "multiplicative"}
        | {"output_gate": True, "dtype": "mixed_float16"},
        "x",
    ),
    "packed_lstm": (PackedLSTM, FIVE | {"recurrent_initializer": "zeros", "go_backwards": True}, "x"),
    "overlap_features": (OverlapFeatures, {"vocabulary_size": 20}, "ids"),
    "decomposable_attention": (DecomposableAttention, {"units": (5, 3), "self_attention": True}, "pair"),
    "attentive_pooling": (AttentivePooling, {}, "pair"),
    "char_ngram_embedding": (CharNgramEmbedding, {"num_ngrams": 20, "units": 5}, "ngrams"),
    "word_embedding": (WordEmbedding, {"num_words": 20, "units": 5}, "words"),
    "global_gate": (GlobalGate, {}, "x"),
    "sinusoidal_positions": (SinusoidalPositions, {}, "x"),
    "feed_forward_residual": (FeedForwardResidual, {"units": 6, "normalize": True}, "asked"),
    "attention_pooling": (AttentionPooling, {}, "asked"),
    "sequential_attention": (SequentialAttention, {}, "hops"),
    "multihop_attention": (MultihopAttention, {}, "states"),
    "masked_pooling": (MaskedPooling, {"mode": "max"}, "states"),
    "vector_similarity": (VectorSimilarity, {}, "two"),
    "vector_similarity_gesd": (VectorSimilarity, {"mode": "gesd"}, "two"),
    "tensor_interaction": (TensorInteraction, {"slices": 2}, "two"),
    "circular_correlation": (CircularCorrelation, {}, "two"),
}


def arrays():
    """Made alike in both processes: what each kind of layer is called with."""
    random = np.random.default_rng(0)

    def mask(time, lengths):
        return np.arange(time) < np.array(lengths)[..., None]

    def vectors(*shape):
        return random.normal(size=shape).astype("float32")

    query_mask, candidate_mask = mask(6, [6, 3, 4]), mask(9, [[9, 2], [0, 5], [7, 6]])
    return {
        "x": {"inputs": vectors(3, 6, 4), "mask": mask(6, [6, 3, 0])},
        "pair": {
            "query": vectors(3, 6, 4),
            "candidate": vectors(3, 2, 9, 4),
            "query_mask": query_mask,
            "candidate_mask": candidate_mask,
        },
        "encoded": {"query": vectors(3, 4), "candidate": vectors(3, 2, 4)},
        "states": {"states": vectors(3, 6, 4), "mask": mask(6, [6, 3, 0])},
        "asked": {"states": vectors(3, 6, 4), "vector": vectors(3, 4), "states_mask": mask(6, [6, 3, 0])},
        "hops": {"states": vectors(3, 6, 4), "vectors": vectors(3, 2, 4), "states_mask": mask(6, [6, 3, 0])},
        "two": {"first": vectors(3, 4), "second": vectors(3, 4)},
        "ngrams": {"ids": random.integers(0, 20, (3, 6, 2)).astype("int32")},
        "words": {"ids": np.arange(18, dtype="int32").reshape(3, 6)},
        "ids": {
            "query": (query_mask * random.integers(1, 20, query_mask.shape)).astype("int32"),
            "candidate": (candidate_mask * random.integers(1, 20, candidate_mask.shape)).astype("int32"),
        },
    }


def outputs_and_gradients(function, variables, inputs):
    """Outputs, and the gradients of a random projection of them by the variables and the float inputs."""
    random = np.random.default_rng(1)
    projections = {}

    def loss(values, floats):
        outputs = [ops.cast(output, "float32") for output in keras.tree.flatten(function(values, inputs | floats))]
        for i, output in enumerate(outputs):
            projections.setdefault(i, random.normal(size=output.shape).astype("float32"))
        return sum(ops.sum(output * projections[i]) for i, output in enumerate(outputs)), outputs

    floats = {name: ops.convert_to_tensor(a) for name, a in inputs.items() if a.dtype == "float32"}
    if keras.backend.backend() == "jax":
        import jax

        (_, outputs), gradients = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))(variables, floats)
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch([variables, floats])
            value, outputs = tf.function(loss)(variables, floats)
        gradients = tape.gradient(value, [variables, floats])
    return [ops.convert_to_numpy(result) for result in keras.tree.flatten([outputs, gradients])]


def numbers():
    """Name of each function and layer -> its outputs and gradients."""
    results, inputs = {}, arrays()
    for name, function in FUNCTIONS.items():
        x = inputs["x"]
        results[name] = outputs_and_gradients(lambda _, x, f=function: f(x["inputs"], x["mask"]), [], x)
    for name, (layer_class, arguments, kind) in LAYERS.items():
        layer = layer_class(**arguments)
        shapes = [array.shape for array in inputs[kind].values() if array.dtype != bool]
        # A layer without weights has Keras's `build`, which takes one shape.
        layer.build(*(shapes if "build" in vars(layer_class) else shapes[:1]))
        random = np.random.default_rng(2)
        for weight in layer.weights:
            weight.assign(random.uniform(0.1, 1, weight.shape) * (-1) ** np.arange(weight.shape[-1]))

        def call(values, inputs, layer=layer):
            other = [weight.value for weight in layer.non_trainable_variables]
            return layer.stateless_call(values, other, **inputs)[0]

        variables = [ops.convert_to_tensor(weight.value) for weight in layer.trainable_variables]
        results[name] = outputs_and_gradients(call, variables, inputs[kind])
    return results


def trained_model():
    """A small model of all the layers after three epochs, its losses, and its scores."""
    query = keras.Input((None,), dtype="int32", name="query")
    candidate = keras.Input((None, None), dtype="int32", name="candidate")
    words, places = DistinctTokens()([query, candidate])
    words = keras.layers.Embedding(20, 4, embeddings_initializer="zeros")(words)
    masks = masking.token_mask(query), masking.token_mask(candidate)
    h_q, h_a = CrossTemporalCell(**FIVE)(*places, query_mask=masks[0], candidate_mask=masks[1], words=words)
    features = [
        masking.masked_mean(h_q, ops.expand_dims(masks[0], 1), axis=2),
        masking.masked_mean(h_a, masks[1], axis=2),
        OverlapFeatures(20)(query, candidate),
    ]
    score = ops.squeeze(keras.layers.Dense(1, kernel_initializer="zeros")(ops.concatenate(features, axis=-1)), -1)
    model = keras.Model({"query": query, "candidate": candidate}, score)
    random = np.random.default_rng(3)  # the backends' own generators differ
    for weight in model.trainable_weights:
        weight.assign(random.normal(size=weight.shape))
    model.compile(keras.optimizers.SGD(0.1), keras.losses.BinaryCrossentropy(from_logits=True))
    inputs = arrays()["ids"]
    labels = np.array([[1, 0], [0, 1], [1, 0]], "float32")
    losses = model.fit(inputs, labels, epochs=3, batch_size=3, verbose=0).history["loss"]
    return model, [np.array(losses), model.predict(inputs, verbose=0)]


def main(folder):
    """The other process: writes every number, its trained model, and the scores of the one saved here."""
    assert keras.backend.backend() == "jax"
    loaded = keras.models.load_model(folder / "tensorflow.keras")
    results = numbers() | {"of_tensorflow": [loaded.predict(arrays()["ids"], verbose=0)]}
    model, results["training"] = trained_model()
    model.save(folder / "jax.keras")
    np.savez(folder / "jax.npz", **{f"{k}.{i}": a for k, values in results.items() for i, a in enumerate(values)})


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The folder, and name -> results, of TensorFlow and of JAX."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed; it is in the extra `test`")
    folder = tmp_path_factory.mktemp("backends")
    results = numbers()
    model, results["training"] = trained_model()
    results["of_tensorflow"] = results["training"][1:]
    model.save(folder / "tensorflow.keras")
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, folder],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    archive = np.load(folder / "jax.npz")
    jax = {name: [archive[f"{name}.{i}"] for i in range(len(values))] for name, values in results.items()}
    assert len(archive.files) == sum(map(len, results.values()))
    return folder, results, jax


@pytest.mark.parametrize("name", [*FUNCTIONS, *LAYERS, "training", "of_tensorflow"])
def test_same_numbers(both, name):
    _, tensorflow, jax = both
    # Decomposable attention multiplies the rounding of three layers.
    tolerance = 2e-2 if name.endswith("_half") else 1e-4 if name == "decomposable_attention" else 1e-5
    assert len(tensorflow[name]) > 0
    for ours, theirs in zip(tensorflow[name], jax[name], strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=tolerance, atol=tolerance)
        assert np.isfinite(ours).all()


def test_a_file_saved_under_jax_loads_under_tensorflow(both):
    folder, _, jax = both
    loaded = keras.models.load_model(folder / "jax.keras")
    np.testing.assert_allclose(loaded(arrays()["ids"]), jax["training"][1], atol=1e-5)
