"""The local server speaks TensorFlow Serving's REST, and the client understands it."""

import base64
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
import requests
import tensorflow as tf
import uvicorn

from export import client as client_module
from export import saved_model, served_model, server
from export.client import Answer, Client, ServingError
from export.rest import RequestError, read_request, write_reply
from export.served_model import ServedModel
from tests.exported import PAIRS, lstm_model, write_run

QUERY, CANDIDATES = PAIRS[0][0], [candidate for _, candidate in PAIRS]
LIMIT = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model's folder with version 3, and the run it comes from."""
    base = tmp_path_factory.mktemp("served")
    run = write_run(base / "run", lstm_model(), task="binary")
    saved_model.save(run, base / "matcher" / "3")
    return SimpleNamespace(path=base / "matcher", run=run)


@pytest.fixture(scope="module")
def served(folder):
    """The URL of a server in a thread, and its model."""
    model = ServedModel(folder.path, "matcher")
    assert model.refresh()
    listener = socket.create_server(("127.0.0.1", 0))
    app = server.application(model, poll_seconds=0.05, max_body_bytes=LIMIT)
    web = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]})
    thread.start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{listener.getsockname()[1]}", model=model, run=folder.run)
    web.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


def post(served, content, path="/v1/models/matcher:predict"):
    body = content if isinstance(content, bytes) else json.dumps(content)
    return requests.post(served.url + path, data=body, timeout=20)


def expected_scores(served, pairs):
    return served.run.score([(query,) for query, _ in pairs], [(candidate,) for _, candidate in pairs])


def rows(pairs):
    return [{"query": query, "candidate": candidate} for query, candidate in pairs]


def test_rows_and_columns_give_the_runs_scores(served):
    by_row = post(served, {"instances": rows(PAIRS)}).json()
    queries, candidates = map(list, zip(*PAIRS, strict=True))
    by_column = post(served, {"inputs": {"query": queries, "candidate": candidates}}).json()
    assert list(by_row) == ["predictions"] and list(by_column) == ["outputs"]
    assert sorted(by_row["predictions"][0]) == ["label", "probability", "score"]
    scores = [row["score"] for row in by_row["predictions"]]
    assert scores == by_column["outputs"]["score"]
    np.testing.assert_allclose(scores, expected_scores(served, PAIRS), atol=1e-6)


def test_signature_with_one_output_is_answered_without_its_name(served):
    content = {"signature_name": "score_ids", "inputs": {"query": [[9, 10]], "candidate": [[9, 0]]}}
    outputs = post(served, content).json()["outputs"]
    assert len(outputs) == 1 and isinstance(outputs[0], float)
    content = {"signature_name": "score_ids", "instances": [{"query": [9, 10], "candidate": [9, 0]}]}
    assert post(served, content).json() == {"predictions": outputs}


def test_signature_with_one_input_takes_plain_values(served):
    rows_ = post(served, {"signature_name": "diagnose", "instances": ["what is", {"b64": "/w=="}]}).json()
    assert rows_["predictions"] == [
        {"num_tokens": 2, "oov_rate": 0.0, "truncated": False},
        {"num_tokens": 0, "oov_rate": 0.0, "truncated": False},
    ]
    columns = post(served, {"signature_name": "diagnose", "inputs": ["what is"]}).json()
    assert columns["outputs"] == {"num_tokens": [2], "oov_rate": [0.0], "truncated": [False]}
    vectors = post(served, {"signature_name": "encode", "inputs": {"text": ["what", ""]}}).json()["outputs"]
    assert np.shape(vectors) == (2, 5)


def test_base64_strings_are_the_same_strings(served):
    encoded = {"b64": base64.b64encode(QUERY.encode()).decode()}
    plain = post(served, {"instances": rows(PAIRS[:1])}).json()
    assert post(served, {"instances": [{"query": encoded, "candidate": PAIRS[0][1]}]}).json() == plain


def test_hostile_texts_are_answered_with_valid_json(served):
    texts = ["", " ", "\0", "\U0001f600", "\u00a0", "x" * 100_000, "zzqx", "\ud83d\ude00\u202e"[2:]]
    reply = post(served, {"instances": [{"query": "why ?", "candidate": text} for text in texts]})
    assert reply.status_code == 200

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    scores = [row["score"] for row in json.loads(reply.text, parse_constant=refuse)["predictions"]]
    assert len(scores) == len(texts) and np.isfinite(scores).all()


def test_zero_rows_are_legal_in_columns(served):
    reply = post(served, {"inputs": {"query": [], "candidate": []}})
    assert reply.json() == {"outputs": {"label": [], "probability": [], "score": []}}
    reply = post(served, {"signature_name": "score_ids", "inputs": {"query": [], "candidate": []}})
    assert reply.json() == {"outputs": []}


PAIR = {"query": "a", "candidate": "b"}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "JSON Parse error: The document is empty"),
        (b"{", "JSON Parse error: "),
        (b"\xff\xfe", "JSON Parse error: "),
        (b"[" * 100_000, "JSON Parse error: nested too deeply"),
        ([], "JSON Value: [] Is not object"),
        ({}, "Missing 'inputs' or 'instances' key"),
        ({"signature_name": 3, "inputs": {}}, "'signature_name' key must be a string value"),
        (
            {"signature_name": "nope", "inputs": {}},
            'Serving signature name: "nope" not found in signature def',
        ),
        ({"inputs": {}, "instances": []}, "only one of 'inputs' or 'instances' keys"),
        ({"instances": {}}, "Excepting 'instances' to be an list/array"),
        ({"instances": []}, "No values in 'instances' array"),
        ({"instances": ["a"]}, "instances is a plain list, but expecting list of objects"),
        ({"instances": [PAIR, "a"]}, "Expecting object but got list at item 1 of input list"),
        (
            {"signature_name": "diagnose", "instances": ["a", {"text": "b"}]},
            "Expecting value/list but got object at item 1",
        ),
        (
            {"instances": [{"query": "a"}]},
            'element: 0 of \'instances\' list. JSON object: {"query": "a"} keys must be equal to: candidate,query',
        ),
        ({"instances": [PAIR | {"title": "c"}]}, "keys must be equal to: candidate,query"),
        ({"instances": [PAIR, PAIR | {"query": ["a"]}]}, "Expecting shape () but got: (1,)"),
        (
            {"instances": [PAIR | {"query": ["a"]}]},
            "Input query must have the shape (None,). Received: shape=(1, 1)",
        ),
        ({"inputs": ["a"]}, "inputs is a plain value/list, but expecting an object"),
        ({"inputs": {"query": ["a"]}}, "Missing named input: candidate in 'inputs' object."),
        (
            {"inputs": {"query": "a", "candidate": "b"}},
            "must have the shape (None,). Received: shape=()",
        ),
        (
            {"inputs": {"query": ["a", ["b"]], "candidate": ["c", "d"]}},
            "Encountered list at unexpected level: 1",
        ),
        (
            {"inputs": {"query": [["a"], "b"], "candidate": ["c"]}},
            'JSON Value: "b" found at incorrect level: 2',
        ),
        ({"inputs": {"query": [["a"], ["b", "c"]], "candidate": ["c"]}}, "unexpected size: 2 at level: 1"),
        (
            {"inputs": {"query": [3], "candidate": ["c"]}},
            "JSON Value: 3 Type: Number is not of expected type: string",
        ),
        (
            {"instances": [PAIR | {"query": None}]},
            "JSON Value: null Type: Null is not of expected type: string",
        ),
        ({"inputs": {"query": [{"b64": "%"}], "candidate": ["c"]}}, "Unable to base64 decode"),
        ({"inputs": {"query": [{"b65": ""}], "candidate": ["c"]}}, "not formatted correctly for base64 data"),
        (
            b'{"inputs": {"query": ["\\ud800"], "candidate": ["c"]}}',
            "The surrogate pair in string is invalid",
        ),
        (
            {"inputs": {"query": ["a"], "candidate": ["b", "c"]}},
            "query and candidate must have as many rows as each other. Received rows:] [1] [2]",
        ),
        (
            {"signature_name": "score_ids", "inputs": {"query": [[1.5]], "candidate": [[1]]}},
            "JSON Value: 1.5 Type: Number is not of expected type: int32",
        ),
        (
            {"signature_name": "score_ids", "inputs": {"query": [[True]], "candidate": [[1]]}},
            "JSON Value: true Type: Bool is not of expected type: int32",
        ),
        (
            {"signature_name": "score_ids", "inputs": {"query": [[1 << 31]], "candidate": [[1]]}},
            "JSON Value: 2147483648",
        ),
        (
            {"signature_name": "score_ids", "inputs": {"query": [[999]], "candidate": [[1]]}},
            "= 999 is not in [0,",
        ),
    ],
)
def test_bad_requests_are_refused_in_tensorflow_servings_words(served, content, error):
    reply = post(served, content)
    assert reply.status_code == 400
    assert list(reply.json()) == ["error"] and error in reply.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("POST", "/v1/models/other:predict", 404, "Servable not found for request: Latest(other)"),
        (
            "POST",
            "/v1/models/matcher/versions/4:predict",
            404,
            "Servable not found for request: Specific(matcher, 4)",
        ),
        ("POST", "/v1/models/matcher:classify", 400, "Malformed request: POST /v1/models/matcher:classify"),
        ("GET", "/v1/models/other", 404, "Could not find any versions of model other"),
        ("GET", "/v1/models/matcher/versions/4", 404, "Could not find version 4 of model matcher"),
        ("GET", "/v1/models/other/metadata", 404, "Servable not found for request: Latest(other)"),
        ("GET", "/v1/models/matcher:predict", 400, "Malformed request: GET /v1/models/matcher:predict"),
        ("GET", "/", 404, "Not found: /"),
    ],
)
def test_unknown_models_versions_and_paths(served, method, path, status, error):
    reply = requests.request(method, served.url + path, json={"instances": [PAIR]} if method == "POST" else None)
    assert (reply.status_code, reply.json()) == (status, {"error": error})


def test_status_and_metadata(served):
    version = {"version": "3", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    for path in ("", "/versions/3"):
        reply = requests.get(f"{served.url}/v1/models/matcher{path}", timeout=20).json()
        assert reply == {"model_version_status": [version]}
    reply = requests.get(f"{served.url}/v1/models/matcher/metadata", timeout=20).json()
    assert reply["model_spec"] == {"name": "matcher", "signature_name": "", "version": "3"}
    signatures = reply["metadata"]["signature_def"]["signature_def"]
    query = signatures["serving_default"]["inputs"]["query"]
    assert query["dtype"] == "DT_STRING"
    assert query["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert signatures["serving_default"]["method_name"] == "tensorflow/serving/predict"


def test_named_version_is_served(served):
    path = "/v1/models/matcher/versions/3:predict"
    assert post(served, {"instances": [PAIR]}, path).json() == post(served, {"instances": [PAIR]}).json()


def test_long_body_is_refused_and_the_server_goes_on(served):
    reply = post(served, {"instances": [PAIR | {"query": "x" * LIMIT}]})
    assert reply.status_code == 413 and f"at most {LIMIT:,} are read" in reply.json()["error"]
    assert post(served, {"instances": [PAIR]}).ok


def test_fault_of_the_server_is_json_too(served, monkeypatch):
    monkeypatch.setattr(served.model.current, "predict", lambda body: 1 / 0)
    reply = post(served, {"instances": [PAIR]})
    assert reply.status_code == 500 and reply.json() == {"error": "Internal: ZeroDivisionError: division by zero"}


def test_many_callers_get_their_own_rows(served):
    pairs = [(f"what is {'word ' * (n % 5)}", CANDIDATES[n % 3]) for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda pair: post(served, {"instances": rows([pair])}).json(), pairs))
    scores = [reply["predictions"][0]["score"] for reply in replies]
    np.testing.assert_allclose(scores, expected_scores(served, pairs), atol=1e-6)


def test_numbers_that_json_lacks_are_an_error():
    with pytest.raises(RequestError, match="Output score is not finite") as caught:
        write_reply({"score": np.array([1.0, np.nan], "float32")}, True)
    assert caught.value.status == 500


def test_replies_keep_few_digits_and_encode_bytes():
    outputs = {
        "score": np.array([0.2], "float32"),
        "token": np.array([["é".encode()]], object),
        "raw_bytes": np.array([b"\xff"], object),
    }
    reply = {"raw_bytes": {"b64": "/w=="}, "score": 0.2, "token": ["é"]}
    assert write_reply(outputs, True) == {"predictions": [reply]}


def test_floats_are_read():
    spec = {"x": tf.TensorSpec([None], tf.float32)}
    _, in_rows, inputs = read_request(b'{"instances": [1, 2.5]}', lambda name: spec)
    assert in_rows and inputs["x"].tolist() == [1.0, 2.5] and inputs["x"].dtype == np.float32


# Versions


def test_new_versions_are_taken_up_and_broken_ones_are_not(tmp_path, monkeypatch, capsys):
    def load(folder):
        if (folder / "saved_model.pb").read_text() != "whole":
            raise ValueError("half a file\nand more")
        return SimpleNamespace(number=int(folder.name))

    def write(number, content="whole"):
        (tmp_path / number).mkdir(exist_ok=True)
        (tmp_path / number / "saved_model.pb").write_text(content)

    monkeypatch.setattr(served_model, "Version", load)
    write("1")
    write("2", "hal")
    model = ServedModel(tmp_path, "matcher")
    assert model.refresh() and model.current.number == 1
    assert capsys.readouterr().err == "Version 2 of matcher does not load: half a file\n"
    assert not model.refresh() and capsys.readouterr().err == ""  # not tried again
    states = model.status("matcher", None)["model_version_status"]
    assert [(state["version"], state["state"]) for state in states] == [("2", "END"), ("1", "AVAILABLE")]

    write("2")  # the copy is finished
    assert model.refresh() and model.current.number == 2
    assert len(model.status("matcher", None)["model_version_status"]) == 1
    (tmp_path / "2").rename(tmp_path / "withdrawn-2")
    assert model.refresh() and model.current.number == 1
    (tmp_path / "1").rename(tmp_path / "withdrawn-1")
    assert not model.refresh() and model.current.number == 1


def test_server_says_where_it_listens_takes_up_versions_and_stops(folder, tmp_path, capsys):
    base = tmp_path / "matcher"
    shutil.copytree(folder.path / "3", base / "1")
    command = [sys.executable, "-m", "export.server", str(base), "--port", "0", "--poll-seconds", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            ready = process.stdout.readline()
            assert ready.startswith("Serving version 1 at http://127.0.0.1:")
            url = ready.split()[4]
            arguments = ["--url", url, "--query", QUERY, "--candidate", *CANDIDATES, "--candidate", ""]
            assert client_module.main(arguments) == 0
            lines = capsys.readouterr().out.splitlines()
            assert len(lines) == 4 and lines[0].startswith("  1. probability 0.")
            shutil.copytree(folder.path / "3", base / "unfinished")
            (base / "unfinished").rename(base / "2")
            assert process.stdout.readline() == "Serving version 2 of matcher\n"
            assert Client(url).status() == {2: "AVAILABLE"}
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_server_refuses_folders_and_ports_in_one_line(folder, tmp_path, capsys):
    assert server.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith(f"Received: folder={str(tmp_path)!r}\n")
    (tmp_path / "1").mkdir()
    assert server.main([str(tmp_path), "--port", "0"]) == 1
    assert capsys.readouterr().err.startswith(f"Version 1 of {tmp_path.name} does not load: ")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert server.main([str(folder.path), "--port", str(port)]) == 1
    assert f"Received: host=127.0.0.1, port={port}" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        server.main([str(folder.path), "--port", "99999"])
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "error: argument --port: expected a port between 0 and 65535. Received: '99999' (--help explains the flags)\n"
    )


# Client


def test_client_scores_in_order_and_ranks_best_first(served):
    client = Client(served.url, "matcher")
    scores = client.score(QUERY, CANDIDATES)
    np.testing.assert_allclose(scores, expected_scores(served, [(QUERY, c) for c in CANDIDATES]), atol=1e-6)
    ranked = client.rank(QUERY, [*CANDIDATES, CANDIDATES[0]])
    assert all(isinstance(answer, Answer) for answer in ranked)
    best_first = sorted([*scores, scores[0]], reverse=True)
    np.testing.assert_allclose([answer.score for answer in ranked], best_first, atol=1e-6)
    assert ranked[0].probability == pytest.approx(1 / (1 + np.exp(-ranked[0].score)), abs=1e-6)
    assert client.score(QUERY, []) == [] and client.rank(QUERY, []) == []
    assert client.status() == {3: "AVAILABLE"}


def test_client_reads_the_model_from_the_url_and_calls_any_signature(served):
    client = Client(f"{served.url}/v1/models/matcher:predict", version=3)
    outputs = client.predict({"text": ["what is"]}, "diagnose")
    assert outputs == {"num_tokens": [2], "oov_rate": [0.0], "truncated": [False]}
    assert np.shape(client.predict({"text": ["what is"]}, "encode")[""]) == (1, 5)


def test_client_sends_fields_as_inputs_of_their_own(monkeypatch):
    sent = {}

    def predict(self, inputs, signature="serving_default"):
        sent.update(inputs)
        return {"score": [1.0, 2.0], "probability": [0.7, 0.9]}

    monkeypatch.setattr(Client, "predict", predict)
    texts = [{"title": "a", "body": "b"}, {"title": "c", "body": "d"}]
    ranked = Client(name="matcher").rank(texts[0], texts)
    assert [answer.candidate for answer in ranked] == texts[::-1]
    assert sent == {
        "query_title": ["a", "a"],
        "query_body": ["b", "b"],
        "candidate_title": ["a", "c"],
        "candidate_body": ["b", "d"],
    }


@pytest.mark.parametrize("candidates", [[{"title": "a"}, "b"], [{"title": "a"}, {"body": "b"}], ["a", {"title": "b"}]])
def test_client_refuses_texts_of_unlike_fields(candidates):
    with pytest.raises(ValueError, match="Received: candidate="):
        Client(name="m").rank({"title": "a"}, candidates)


def test_client_command_parts_fields_at_tabs(monkeypatch, capsys):
    sent = {}

    def predict(self, inputs, signature="serving_default"):
        sent.update(inputs)
        return {"score": [1.0, 2.0]}

    monkeypatch.setattr(Client, "predict", predict)
    flags = ["--name", "m", "--fields", "title", "body", "--query", "a\tb\tc", "--candidate", "d\te", "f"]
    assert client_module.main(flags) == 0
    assert sent == {
        "query_title": ["a", "a"],
        "query_body": ["b\tc", "b\tc"],
        "candidate_title": ["d", "f"],
        "candidate_body": ["e", ""],
    }
    assert [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()] == ["f | ", "d | e"]


def test_client_says_what_is_wrong(served, capsys):
    with pytest.raises(ValueError, match="Received: url='http://127.0.0.1:1'"):
        Client("http://127.0.0.1:1")
    with pytest.raises(ServingError, match="No server answers; .*Received: url='http://127.0.0.1:1/v1/models/m'"):
        Client("http://127.0.0.1:1", "m").status()
    with pytest.raises(ServingError, match="must be that of a server. Received: url='nowhere/v1/models/m'"):
        Client("nowhere", "m").status()
    with pytest.raises(ServingError, match="refused with 404: .*is the model called 'm' there.*Received: url="):
        Client(served.url, "m").score("a", ["b"])
    with pytest.raises(ServingError, match="refused with 400: Missing named input"):
        Client(served.url, "matcher").score({"title": "a"}, [{"title": "b"}])
    arguments = ["--url", "http://127.0.0.1:1", "--query", "a", "--candidate", "b"]
    assert client_module.main(arguments) == 2
    assert client_module.main([*arguments, "--name", "m"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "must be named" in lines[0] and "No server answers" in lines[1]


def test_client_gives_up_after_its_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", "m", timeout=0.1)
        with pytest.raises(ServingError, match="No reply within 0.1 s. Received: url="):
            client.status()


def test_client_survives_what_is_no_json():
    class Web(BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802 the library's name
            self.send_response(502)
            self.end_headers()
            self.wfile.write(b"<html>Bad gateway</html>")

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Web) as web:
        thread = threading.Thread(target=web.handle_request)
        thread.start()
        with pytest.raises(ServingError, match="refused with 502: <html>Bad gateway"):
            Client(f"http://127.0.0.1:{web.server_port}", "m").status()
        thread.join()
