"""The exported SavedModel: names, parity with its run, its operations, its folders, and what lies beside it."""

import contextlib
import io
import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import prediction_log_pb2
from tensorflow_serving.config import model_server_config_pb2

from export import parity, saved_model, serving_kit, versions
from export.__main__ import main
from export.graph_ops import audit, read_signatures
from export.parity import ParityError
from export.saved_model import ExportError
from export.served_model import Version
from export.texts import HOSTILE, as_text, in_fields, own_pairs
from tests.exported import OOV_BUCKETS, PAIRS, WORDS, lstm_model, write_run
from zoo.models.rcnn import rcnn
from zoo.text import TextEncoder

QUERIES, CANDIDATES = ([text[side] for text in PAIRS] for side in (0, 1))


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """One run through the command line: its folder, the version folder and what was printed."""
    base = tmp_path_factory.mktemp("exported")
    run = write_run(base / "run", lstm_model(), task="binary", threshold=0.2)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([str(base / "run"), str(base / "my model")]) == 0
    version = base / "my model" / "1"
    return SimpleNamespace(
        run=run,
        version=version,
        printed=printed.getvalue(),
        signatures=tf.saved_model.load(str(version)).signatures,
    )


def call(signature, **inputs):
    return {name: value.numpy() for name, value in signature(**inputs).items()}


def strings(values):
    return tf.constant(values, tf.string, shape=[len(values)])


def test_signatures_have_their_documented_names_types_and_shapes(exported):
    def described(specs):
        return {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in specs.items()}

    found = {
        name: (described(function.structured_input_signature[1]), described(function.structured_outputs))
        for name, function in exported.signatures.items()
    }
    texts = {"query": ("string", [None]), "candidate": ("string", [None])}
    ids = {"query": ("int32", [None, None]), "candidate": ("int32", [None, None])}
    assert found == {
        "serving_default": (
            texts,
            {
                "score": ("float32", [None]),
                "probability": ("float32", [None]),
                "label": ("int32", [None]),
            },
        ),
        "score_ids": (ids, {"score": ("float32", [None])}),
        "diagnose": (
            {"text": ("string", [None])},
            {
                "num_tokens": ("int32", [None]),
                "oov_rate": ("float32", [None]),
                "truncated": ("bool", [None]),
            },
        ),
        "encode": ({"text": ("string", [None])}, {"vector": ("float32", [None, 5])}),
    }


def test_command_prints_version_signatures_and_parity(exported):
    lines = exported.printed.splitlines()
    assert lines[0] == f"Exported {exported.run.folder} to {exported.version}"
    assert "  serving_default: query, candidate -> score, probability, label" in lines
    assert lines[-2].startswith(f"Parity: {len(PAIRS) + len(HOSTILE)} hard texts, largest difference ")
    assert shlex.split(lines[-1])[-4:] == ["python", "-m", "export.server", str(exported.version.parent)]
    assert sorted(entry.name for entry in exported.version.parent.iterdir()) == sorted(
        ["1", "Dockerfile", "README.md", "batching_parameters.txt", "models.config", "ops.txt"]
        + ["sample_reply.json", "sample_request.json"]
    )


def test_scores_probabilities_and_labels_are_those_of_the_run(exported):
    outputs = call(exported.signatures["serving_default"], query=strings(QUERIES), candidate=strings(CANDIDATES))
    expected = exported.run.score([(text,) for text in QUERIES], [(text,) for text in CANDIDATES])
    np.testing.assert_allclose(outputs["score"], expected, atol=1e-6)
    np.testing.assert_allclose(outputs["probability"], 1 / (1 + np.exp(-expected)), atol=1e-6)
    np.testing.assert_array_equal(outputs["label"], outputs["score"] >= 0.2)


def test_a_row_does_not_depend_on_its_batch(exported):
    score = exported.signatures["serving_default"]
    pairs = [(as_text(query), as_text(candidate)) for query, candidate in HOSTILE]
    queries, candidates = zip(*pairs, strict=True)
    together = call(score, query=strings(queries), candidate=strings(candidates))["score"]
    assert np.isfinite(together).all()
    for number, (query, candidate) in enumerate(pairs):
        alone = call(score, query=strings([query]), candidate=strings([candidate]))["score"]
        np.testing.assert_allclose(alone, together[number : number + 1], atol=1e-6)


def test_equal_queries_score_as_unequal_ones_do(exported):
    score = exported.signatures["serving_default"]
    one_query = call(score, query=strings(QUERIES[:2]), candidate=strings(CANDIDATES[:2]))["score"]
    mixed = call(score, query=strings(QUERIES), candidate=strings(CANDIDATES))["score"]
    np.testing.assert_allclose(one_query, mixed[:2], atol=1e-6)


def test_no_rows_give_empty_replies(exported):
    for name, function in exported.signatures.items():
        specs = function.structured_input_signature[1]
        empty = {key: tf.zeros([0] * spec.shape.rank, spec.dtype) for key, spec in specs.items()}
        for key, value in call(function, **empty).items():
            assert value.shape[0] == 0, (name, key)


def test_unequal_numbers_of_rows_are_an_error_not_a_broadcast(exported):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"as many rows.* Received rows:\] \[1\] \[2\]"):
        exported.signatures["serving_default"](query=strings(["a"]), candidate=strings(["b", "c"]))


def test_score_ids_is_the_numeric_twin(exported):
    encoder = exported.run.text_encoder
    ids = {"query": encoder(QUERIES, 6)["ids"], "candidate": encoder(CANDIDATES, 9)["ids"]}
    expected = exported.run.score([(text,) for text in QUERIES], [(text,) for text in CANDIDATES])
    np.testing.assert_allclose(call(exported.signatures["score_ids"], **ids)["score"], expected, atol=1e-6)
    no_tokens = call(
        exported.signatures["score_ids"],
        query=tf.zeros([2, 0], tf.int32),
        candidate=tf.zeros([2, 3], tf.int32),
    )
    assert np.isfinite(no_tokens["score"]).all()


def test_diagnose_counts_tokens_unknown_words_and_cuts(exported):
    texts = strings(["what is zzz", "", "word " * 10])
    outputs = call(exported.signatures["diagnose"], text=texts)
    assert outputs["num_tokens"].tolist() == [3, 0, 10]
    np.testing.assert_allclose(outputs["oov_rate"], [1 / 3, 0, 0], atol=1e-6)
    assert outputs["truncated"].tolist() == [False, False, True]


def test_encode_gives_the_encoders_vectors(exported):
    vectors = call(exported.signatures["encode"], text=strings(CANDIDATES))["vector"]
    ids = exported.run.text_encoder(CANDIDATES, 9)["ids"]
    expected = exported.run.model.get_layer("encoder")(ids, training=False).numpy()
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_each_weight_is_written_once(exported):
    weights = sum(variable.numpy().nbytes for variable in exported.run.model.weights)
    variables = tf.train.list_variables(str(exported.version / "variables" / "variables"))
    shapes = [shape for name, shape in variables if name.startswith("weights/")]
    assert len(shapes) == len(exported.run.model.weights)
    assert 4 * sum(int(np.prod(shape)) for shape in shapes) == weights
    # The small model's weights hardly fill a file, so the fixed part of the format is allowed for.
    size = (exported.version / "variables" / "variables.data-00000-of-00001").stat().st_size
    assert size < 1.1 * weights + 2048


def test_graph_holds_core_operations_alone(exported):
    ops = audit(exported.version)
    assert ops.other == () and ops.faults == ()
    assert len(ops.core) > 20 and "StaticRegexReplace" in ops.core
    listed = (exported.version.parent / "ops.txt").read_text().splitlines()
    assert set(ops.core) <= set(listed)


def forbidden(kind):
    def python(x):
        return tf.numpy_function(lambda value: value, [x], tf.float32)

    functions = {
        "python": python,
        "xla": tf.function(lambda x: x + 1, jit_compile=True),
        "random": lambda x: x + tf.random.uniform([1]),
        "stateless random": lambda x: x + tf.random.stateless_uniform([1], [1, 2]),
    }
    return functions[kind]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("python", "PyFunc must not be in a served graph"),
        ("xla", "is compiled for XLA alone"),
        ("random", "RandomUniform has effects or is random"),
        ("stateless random", "StatelessRandomGetKeyCounter must not be in a served graph"),
    ],
)
def test_audit_finds_what_a_server_must_not_run(tmp_path, kind, fault):
    function = tf.function(forbidden(kind), input_signature=[tf.TensorSpec([None], tf.float32)])
    root = tf.Module()
    tf.saved_model.save(root, str(tmp_path), signatures={"serving_default": function})
    assert any(fault in found for found in audit(tmp_path).faults)


def test_forbidden_operation_stops_the_export(tmp_path, monkeypatch):
    run = SimpleNamespace(model=lstm_model(), text_encoder=SimpleNamespace(tokenizer="word"))

    def save(run, folder):
        function = tf.function(forbidden("python"), input_signature=[tf.TensorSpec([None], tf.float32)])
        tf.saved_model.save(tf.Module(), str(folder), signatures=function)

    monkeypatch.setattr(saved_model, "save", save)
    with pytest.raises(ExportError, match="Received: .*PyFunc must not be in a served graph"):
        saved_model.export(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_moved_folder_gives_the_sample_reply_to_the_sample_request(exported, tmp_path):
    base = exported.version.parent
    request = (base / "sample_request.json").read_bytes()
    rows = json.loads(request)["instances"]
    assert [(row["query"], row["candidate"]) for row in rows] == PAIRS[:2]
    shutil.copytree(exported.version, tmp_path / "elsewhere" / "7")
    reply = Version(tmp_path / "elsewhere" / "7").predict(request)
    assert reply == json.loads((base / "sample_reply.json").read_text())


# Folders


def test_versions_are_whole_positive_numbers(tmp_path):
    for name in ("1", "12", "007", "0", "-3", "1.5", "x", "²", "unfinished-4"):
        (tmp_path / name).mkdir()
    (tmp_path / "99").write_text("a file")
    assert versions.list_versions(tmp_path) == [1, 12]
    assert versions.list_versions(tmp_path / "none") == []


def test_publish_takes_the_next_free_number_and_never_overwrites(tmp_path, monkeypatch):
    for name in ("1", "4"):
        (tmp_path / name).mkdir()
    (tmp_path / "4" / "other").write_text("another export's")
    (tmp_path / "5").write_text("a file in the way")
    monkeypatch.setattr(versions, "list_versions", lambda base: [1, 3])  # 4 came after the listing
    with versions.working_folder(tmp_path) as folder:
        (folder / "content").write_text("ours")
        published = versions.publish(folder, tmp_path)
    assert published == tmp_path / "6" and (published / "content").read_text() == "ours"
    assert (tmp_path / "4" / "other").read_text() == "another export's"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["1", "4", "5", "6"]


def test_publish_tries_on_when_a_number_is_taken_at_the_last_moment(tmp_path, monkeypatch):
    rename = os.rename

    def racing(source, target):
        if target.name == "1":
            target.mkdir()
            (target / "other").write_text("first")
        rename(source, target)

    monkeypatch.setattr(versions.os, "rename", racing)
    with versions.working_folder(tmp_path) as folder:
        assert versions.publish(folder, tmp_path) == tmp_path / "2"


def test_publish_does_not_hide_other_failures(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        versions.publish(tmp_path / "missing", tmp_path)


def test_working_folder_leaves_nothing_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt), versions.working_folder(tmp_path / "new") as folder:
        (folder / "half").write_text("written")
        assert not folder.name[0].isdigit()
        raise KeyboardInterrupt
    assert not (tmp_path / "new").exists()


# Parity


def copy_of(exported):
    """In place of a second export that would take seconds."""
    return lambda run, folder: shutil.copytree(exported.version, folder, dirs_exist_ok=True)


@pytest.mark.parametrize("shift", [1e-4, np.nan])
def test_differing_score_fails_and_leaves_nothing(exported, tmp_path, monkeypatch, shift):
    def wrong(folder, requests, fields, with_tensorflow_text):
        run_scores = [exported.run.score([(as_text(q),)], [(as_text(c),)])[0] for q, c in PAIRS]
        scores = iter([*run_scores[:2], run_scores[2] + shift])
        return [{"score": [float(next(scores, 0.0)) for _ in request]} for request in requests]

    monkeypatch.setattr(parity, "_in_fresh_process", wrong)
    monkeypatch.setattr(saved_model, "save", copy_of(exported))
    destination = tmp_path / "out"
    with pytest.raises(ParityError, match="Received: query='what is this .*, candidate='a word', run=") as caught:
        saved_model.export(exported.run, destination)
    assert "saved_model=" in str(caught.value) and not destination.exists()


def test_differing_further_output_fails(monkeypatch, tmp_path):
    expected = {"score": np.zeros(50, "float32"), "weights": np.ones((50, 2), "float32")}

    def outputs(queries, candidates):
        return {name: np.resize(values, (len(queries), *values.shape[1:])) for name, values in expected.items()}

    def replies(folder, requests, fields, with_tensorflow_text):
        return [{"score": [0.0] * len(request)} | further(len(request)) for request in requests]

    run = stand_in(None, outputs=outputs, folder=tmp_path)
    monkeypatch.setattr(parity, "_in_fresh_process", replies)
    further = lambda size: {"weights": [[1.0, 1.0]] * size, "probability": [0.5] * size}  # noqa: E731
    assert parity.check("", run).largest_difference == 0
    further = lambda size: {"weights": [[1.0, 1.1]] * size}  # noqa: E731
    with pytest.raises(ParityError, match=r"run=\[1.0, 1.0\], saved_model=\[1.0, 1.1.*\] of 'weights'"):
        parity.check("", run)
    further = lambda size: {}  # noqa: E731
    with pytest.raises(ParityError, match=r"must give 'weights'. Received: \['score'\]"):
        parity.check("", run)


def test_failing_fresh_process_is_reported(exported, monkeypatch, tmp_path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho op is missing >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(ParityError, match="Received: exit code 3, op is missing"):
        parity.check(exported.version, exported.run)


def test_fresh_process_cannot_import_the_project(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    loaded = {}

    def load(folder):
        with pytest.raises(ImportError, match="zoo.nothing is code of the project"):
            __import__("zoo.nothing")
        loaded[folder] = True
        return SimpleNamespace(signatures={"serving_default": None})

    monkeypatch.setattr(tf.saved_model, "load", load)
    (tmp_path / "asked").write_text("[]")
    parity._answer("folder", str(tmp_path / "asked"), str(tmp_path / "answered"), False)
    assert loaded and json.loads((tmp_path / "answered").read_text()) == []


def test_own_pairs_are_the_first_predictions(exported, tmp_path):
    pairs = in_fields(PAIRS, exported.run)
    assert own_pairs(exported.run) == pairs
    assert own_pairs(exported.run, 1) == pairs[:1]
    assert own_pairs(SimpleNamespace(folder=tmp_path)) == []


def test_own_pairs_of_a_long_list_are_those_whose_texts_are_written(tmp_path):
    lines = ["split\tgroup\tlabel\tscore\tquery\tcandidate", *["dev\t1\t0\t0.1\t\t"] * 400]
    lines += ["dev\t1\t1\t0.2\twhat is\tthat", "dev\t1\t0\t0.1\t\t", "dev\t2\t0\t0.1\twho\t"]
    (tmp_path / "predictions.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    run = SimpleNamespace(folder=tmp_path, fields=("text",))
    assert own_pairs(run) == [(("what is",), ("that",)), (("who",), ("",))]


# Other runs


def test_without_a_binary_task_there_is_no_label_and_without_an_encoder_no_encode(tmp_path):
    query = keras.Input((None,), dtype="int32", name="query")
    candidate = keras.Input((None, None), dtype="int32", name="candidate")
    count = keras.ops.sum(keras.ops.cast(candidate > 0, "float32"), axis=-1)
    score = count - keras.ops.sum(keras.ops.cast(query > 0, "float32"), axis=-1)[:, None]
    model = keras.Model({"query": query, "candidate": candidate}, score)
    saved_model.save(stand_in(model), tmp_path)
    signatures = tf.saved_model.load(str(tmp_path)).signatures
    assert sorted(signatures) == ["diagnose", "score_ids", "serving_default"]
    outputs = call(signatures["serving_default"], query=strings(["what is"]), candidate=strings(["a b c"]))
    assert sorted(outputs) == ["score"] and outputs["score"].tolist() == [1.0]


def stand_in(model, fields=("text",), words=WORDS, tokenizer="word", **attributes):
    return SimpleNamespace(
        **attributes,
        model=model,
        text_encoder=TextEncoder(words, oov_buckets=OOV_BUCKETS, tokenizer=tokenizer),
        fields=fields,
        max_query_length=6,
        max_candidate_length=9,
        threshold=0.0,
        settings={"task": "ranking"},
    )


def test_fields_become_inputs_of_their_own(tmp_path):
    names = ("query_title", "query_body", "candidate_title", "candidate_body")
    inputs = {
        name: keras.Input((None,) if name.startswith("query") else (None, None), dtype="int32", name=name)
        for name in names
    }
    lengths = {name: keras.ops.sum(keras.ops.cast(value > 0, "float32"), axis=-1) for name, value in inputs.items()}
    score = (
        lengths["candidate_title"]
        + 10 * lengths["candidate_body"]
        + 100 * lengths["query_title"][:, None]
        + 1000 * lengths["query_body"][:, None]
    )
    saved_model.save(stand_in(keras.Model(inputs, score), fields=("title", "body")), tmp_path)
    signature = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    texts = dict(zip(names, (["a b c d"], ["a b c"], ["a b"], ["a"]), strict=True))
    assert call(signature, **{name: strings(text) for name, text in texts.items()})["score"] == [3412.0]


def test_half_precision_is_exported_in_float32(tmp_path):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = lstm_model()
    finally:
        keras.config.set_dtype_policy(before)
    run = stand_in(model)
    full = saved_model.in_float32(run)
    assert {layer.compute_dtype for layer in full.model.layers if layer.weights} == {"float32"}
    assert run.model is model and model.get_layer("encoder").layer.get_layer("lstm").compute_dtype == "bfloat16"
    for mine, other in zip(full.model.weights, model.weights, strict=True):
        np.testing.assert_array_equal(mine.numpy(), other.numpy())
    plain = stand_in(lstm_model())
    assert saved_model.in_float32(plain) is plain
    saved_model.save(full, tmp_path)
    score = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    alone = call(score, query=strings(QUERIES[2:]), candidate=strings(CANDIDATES[2:]))["score"]
    padded = call(score, query=strings(QUERIES), candidate=strings(CANDIDATES))["score"]
    np.testing.assert_allclose(alone, padded[2:], atol=1e-6)


def test_wordpiece_operations_are_allowed_where_the_tokenizer_is_wordpiece(tmp_path):
    words = ["[UNK]", *WORDS, "pass", "##word"][: len(WORDS)]  # as many ids as the model has
    run = stand_in(lstm_model(), words=words, tokenizer="wordpiece")
    folder = tmp_path / "1"
    saved_model.save(run, folder)
    ops = audit(folder, allow_other=True)
    assert ops.other == ("FastWordpieceTokenizeWithOffsets",) and ops.faults == ()
    assert any("is not an operation of TensorFlow itself" in fault for fault in audit(folder).faults)
    reply = Version(folder).predict(b'{"instances": [{"query": "what is", "candidate": ""}]}')
    assert np.isfinite(reply["predictions"][0])


# The kit beside it


def test_warm_up_requests_fit_the_signatures(exported):
    path = exported.version / "assets.extra" / "tf_serving_warmup_requests"
    replayed = set()
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        assert request.model_spec.name == "my-model"
        inputs = {name: tf.constant(tf.make_ndarray(value)) for name, value in request.inputs.items()}
        call(exported.signatures[request.model_spec.signature_name], **inputs)
        replayed.add(request.model_spec.signature_name)
    assert replayed == set(exported.signatures)


def test_configuration_names_the_model_and_its_folder(exported):
    base = exported.version.parent
    config = text_format.Parse((base / "models.config").read_text(), model_server_config_pb2.ModelServerConfig())
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == (
        "my-model",
        "/models/my-model",
        "tensorflow",
    )
    dockerfile = (base / "Dockerfile").read_text()
    assert "FROM tensorflow/serving:2." in dockerfile and "COPY . /models/my-model" in dockerfile
    # The server's parser wants every number of this file in a wrapper.
    for line in (base / "batching_parameters.txt").read_text().splitlines():
        name, rest = line.split(" ", 1)
        assert name in {
            "max_batch_size",
            "batch_timeout_micros",
            "max_enqueued_batches",
            "num_batch_threads",
        }
        assert rest.startswith("{ value: ") and rest.endswith(" }") and int(rest[9:-2]) > 0


def test_readme_keeps_the_card_and_says_what_a_score_is(exported):
    text = (exported.version.parent / "README.md").read_text()
    assert "unfinished" not in text
    assert text.startswith("# The card of the run")
    assert "log-odds" in text and "`label` is 1 from a score of 0.2 on" in text
    assert "| `encode` | text: string [n] | vector: float32 [n, 5] |" in text
    assert "query: int32 [n, tokens]" in text


def test_names_that_no_url_could_hold_are_refused(exported, tmp_path, capsys):
    with pytest.raises(ValueError, match="Received: name='a/b'"):
        serving_kit.check_name("a/b")
    assert main([str(exported.run.folder), str(tmp_path / "out"), "--name", "a b"]) == 2
    assert "Received: name='a b'" in capsys.readouterr().err
    assert serving_kit.name_of_folder(tmp_path / "ü my-model.2") == "my-model.2"
    assert not (tmp_path / "out").exists()


def test_wrong_runs_end_with_code_two_and_one_line(tmp_path, capsys):
    assert main([str(tmp_path / "none"), str(tmp_path / "out")]) == 2
    write_run(tmp_path / "bm25")
    assert main([str(tmp_path / "bm25"), str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "recipe.json" in lines[0] and f"folder={str(tmp_path / 'none')!r}" in lines[0]
    assert "no trained model" in lines[1] and f"folder={str(tmp_path / 'bm25')!r}" in lines[1]


def test_failing_gate_ends_with_code_one(exported, tmp_path, monkeypatch, capsys):
    def check(folder, run, tolerance):
        raise ParityError("the gate is shut")

    monkeypatch.setattr(parity, "check", check)
    monkeypatch.setattr(saved_model, "save", copy_of(exported))
    assert main([str(exported.run.folder), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == "the gate is shut\n"
    assert not (tmp_path / "out").exists()


def test_signatures_are_read_without_loading(exported):
    read = read_signatures(exported.version)
    assert sorted(read) == sorted(exported.signatures)
    assert list(read["serving_default"][0]) == ["query", "candidate"]


def test_questions_of_several_fields_are_encoded_and_scored(tmp_path):
    """Inputs are named by side and field; `encode` takes the fields, and a score is the product of two vectors."""
    embeddings = np.random.default_rng(0).normal(size=(1 + OOV_BUCKETS + len(WORDS), 6)).astype("float32")
    embeddings[0] = 0
    keras.utils.set_random_seed(1)
    model = rcnn(embeddings, units=5, initial_range=1.0)
    run = write_run(tmp_path / "run", model, text={"fields": ["title", "body"], "max_query_length": 9})
    version = saved_model.export(run, tmp_path / "served")
    signatures = tf.saved_model.load(str(version)).signatures
    titles, bodies = QUERIES, CANDIDATES
    encoded = call(signatures["encode"], title=strings(titles), body=strings(bodies))["vector"]
    assert encoded.shape == (len(titles), 5)
    np.testing.assert_allclose(np.linalg.norm(encoded, axis=1), 1, atol=1e-6)
    one = {name: strings([value[0]] * len(titles)) for name, value in (("title", titles), ("body", bodies))}
    scores = call(
        signatures["serving_default"],
        **{f"query_{name}": value for name, value in one.items()},
        candidate_title=strings(titles),
        candidate_body=strings(bodies),
    )
    assert list(scores) == ["score"]
    np.testing.assert_allclose(scores["score"], encoded @ call(signatures["encode"], **one)["vector"][0], atol=1e-6)
    nothing = call(signatures["encode"], title=strings([]), body=strings([]))["vector"]
    assert nothing.shape == (0, 5)
    request = json.loads((version.parent / "sample_request.json").read_text("utf-8"))["instances"][0]
    assert request == {
        "query_title": QUERIES[0],
        "query_body": QUERIES[0][:9],
        "candidate_title": CANDIDATES[0],
        "candidate_body": CANDIDATES[0][:9],
    }
    assert '--fields title body --query "..."$\'\\t\'"..."' in (version.parent / "README.md").read_text("utf-8")
    with pytest.raises(tf.errors.InvalidArgumentError, match="body and title must have as many rows"):
        signatures["encode"](title=strings(titles), body=strings(bodies[:1]))


def test_an_interrupted_export_leaves_nothing(exported, tmp_path, capsys, monkeypatch):
    def interrupted(folder, run, tolerance):
        raise KeyboardInterrupt

    monkeypatch.setattr("export.parity.check", interrupted)
    assert main([str(exported.run.folder), str(tmp_path / "out")]) == 130
    assert "interrupted: nothing was exported" in capsys.readouterr().err
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


@pytest.mark.parametrize("ended, told", [("interrupted", "was interrupted"), ("diverged", "diverged")])
def test_a_training_without_an_end_is_told_where_its_run_is_exported(
    ended, told, exported, tmp_path, capsys, monkeypatch
):
    run = Path(shutil.copytree(exported.run.folder, tmp_path / "run"))
    training = {"interrupted": False, "diverged": False} | {ended: True}
    (run / "metrics.json").write_text(json.dumps({"training": training}), "utf-8")
    monkeypatch.setattr("export.__main__.export", lambda *_: exported.version)
    assert main([str(run), str(tmp_path / "out")]) == 0
    assert f"note: the training of this run {told}; this is its best epoch until then\n" in capsys.readouterr().out
    assert "note:" not in exported.printed


def test_a_folder_with_other_content_is_no_destination(exported, tmp_path, capsys):
    (tmp_path / "README.md").write_text("mine")
    assert main([str(exported.run.folder), str(tmp_path)]) == 2
    assert "a new folder, or one that was exported to. Received: " in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["README.md"]


def test_a_destination_that_cannot_be_written_is_named(exported, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main([str(exported.run.folder), str(tmp_path / "file" / "served")]) == 2
    assert "The destination must be a folder that can be written. Received: " in capsys.readouterr().err
