"""What serves an exported model: warm-up requests inside the version, configuration and papers beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
from tensorflow_serving.config import model_server_config_pb2

from export.graph_ops import GraphOps, read_signatures
from export.served_model import Version
from export.texts import in_fields, own_pairs
from zoo.encoded import input_name

IMAGE = "tensorflow/serving:2.20.0"

# Rows of several callers may be put into one batch: every output is row-wise. The sizes suit a few CPU cores.
_BATCHING = """max_batch_size { value: 128 }
batch_timeout_micros { value: 1000 }
max_enqueued_batches { value: 100 }
num_batch_threads { value: 4 }
"""

_DOCKERFILE = """# docker build -t {name} . && docker run -p 8501:8501 -p 8500:8500 {name}
FROM {image}
ENV MODEL_NAME={name}
COPY . /models/{name}
CMD ["--model_config_file=/models/{name}/models.config"]
"""

_MADE_UP = (
    ("how do i reset my password ?", "open the settings and choose a new password ."),
    ("how do i reset my password ?", "the library opens at nine ."),
)


def name_of_folder(folder: Path) -> str:
    """A model name made from a folder's name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name).strip("-.") or "model"


def check_name(name: str) -> str:
    """The name itself; ValueError if it could not stand in a URL and a file of a server."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise ValueError(
            f"A model's name must consist of letters, digits, dots, hyphens and underscores. Received: name={name!r}"
        )
    return name


def write_warmup(path: Path, name: str, run) -> None:
    """Writes one request per signature of the SavedModel above ``path``, which a server replays as it loads.

    TensorFlow Serving does not take up a version whose warm-up fails, so the file is also a gate there.
    Source: TensorFlow Serving, "SavedModel Warmup": TFRecord of PredictionLog in ``assets.extra``.
    """
    path.parent.mkdir(exist_ok=True)
    sample = _sample(run)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, (inputs, _) in read_signatures(path.parent.parent).items():
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = signature
            for key, spec in inputs.items():
                # A text without a side, as `encode` has, is the query's.
                texts = sample.get(key) or sample.get(f"query_{key}") or next(iter(sample.values()))
                value = texts if spec.dtype == tf.string else np.ones((2, 3), "int32")
                request.inputs[key].CopyFrom(tf.make_tensor_proto(value, spec.dtype))
            log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
            writer.write(log.SerializeToString())


def files(version: Path, name: str, run, ops: GraphOps) -> dict[str, str]:
    """Name to content of the files that stand beside a version folder.

    Args:
        version: the version folder, loadable.
        name: the model's name on a server.
        run: the run that was exported.
        ops: the operations of its graph.
    """
    config = model_server_config_pb2.ModelServerConfig()
    config.model_config_list.config.add(name=name, base_path=f"/models/{name}", model_platform="tensorflow")
    columns = _sample(run)
    request = {"instances": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]}
    reply = Version(version).predict(json.dumps(request).encode())
    return {
        "models.config": text_format.MessageToString(config),
        "batching_parameters.txt": _BATCHING,
        "Dockerfile": _DOCKERFILE.format(name=name, image=IMAGE),
        "sample_request.json": _json(request),
        "sample_reply.json": _json(reply),
        "ops.txt": _operations(ops),
        "README.md": _readme(version, name, run, ops),
    }


def _sample(run) -> dict[str, list[str]]:
    """A query of the run's own with its first candidates, or made-up texts: a column for each input."""
    pairs = own_pairs(run, 50) or in_fields(_MADE_UP, run)
    pairs = [pair for pair in pairs if pair[0] == pairs[0][0]][:4]
    return {
        input_name(name, field, run.fields): [pair[side][place] for pair in pairs]
        for side, name in enumerate(("query", "candidate"))
        for place, field in enumerate(run.fields)
    }


def _json(content) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _operations(ops: GraphOps) -> str:
    lines = [
        f"Written by TensorFlow {ops.tensorflow_version}.",
        f"{len(ops.core)} operations of TensorFlow itself, {len(ops.other)} of tensorflow-text"
        + (" (TensorFlow Serving has both)." if ops.other else "."),
        "No Python function, no function for XLA alone, no random operation.",
        "",
        *ops.core,
        *(f"{name} (tensorflow-text)" for name in ops.other),
    ]
    return "\n".join(lines) + "\n"


_MEANING = {
    "binary": "`score` is the model's log-odds that a candidate matches the query: any real number, and a larger one\n"
    "is a better match. `probability` is its sigmoid, between 0 and 1.\n"
    "`label` is 1 from a score of {threshold:g} on.",
    "ranking": "`score` orders the candidates of a query: a larger one is a better match. It has no scale of its own.",
    "regression": "`score` is the similarity of the two texts, on the scale of the labels of the training data.",
}


def _readme(version, name, run, ops) -> str:
    card = run.folder / "README.md"
    about = card.read_text("utf-8") if card.is_file() else f"# {name}\n"
    signatures = read_signatures(version)
    rows = [
        f"| `{signature}` | {_columns(inputs)} | {_columns(outputs)} |"
        for signature, (inputs, outputs) in signatures.items()
    ]
    parity = json.loads((version / "assets.extra" / "parity.json").read_text("utf-8"))
    tables = parity["tables"]
    folded = (
        tables
        and f"\nWhat it computes of single words stands in tables of {tables['dtype']}, {tables['megabytes']} MB."
    )
    served = {name for _, outputs in signatures.values() for name in outputs}
    meaning = "\n".join(
        [
            _MEANING[run.settings["task"]].format(threshold=run.threshold),
            *(f"`{output}`: {what}." for output, what in run.settings.get("outputs", {}).items() if output in served),
        ]
    )
    of_text = "[n, tokens, n-grams], the n-grams of each token" if run.text_encoder.ngram_sizes else "[n, tokens]"
    needs = "TensorFlow and tensorflow-text" if ops.other else "TensorFlow"
    return f"""{about.rstrip()}

# Serving {name}

{meaning}
Every output has one row per row of the request, in its order. A query is cut to {run.max_query_length} tokens
and a candidate to {run.max_candidate_length}. Empty texts and unknown words are legal.

| signature | inputs | outputs |
|---|---|---|
{chr(10).join(rows)}

`score_ids` takes ids, {of_text}, 0 being padding. `diagnose` and `encode` read a text as a candidate.

The newest version was written by TensorFlow {ops.tensorflow_version} from `{run.folder}`. In a fresh
process it scored {parity["num_pairs"]} hard pairs of texts as the run does (largest difference
{parity["largest_difference"]:.1e}). It needs {needs}; all operations are in `ops.txt`.{folded or ""}

With TensorFlow Serving, in this folder (REST on 8501, gRPC on 8500; the image was not tried at export):

    docker build -t {name} . && docker run -p 8501:8501 -p 8500:8500 {name}

Under many callers at once it can put their rows into one batch; callers of `score_ids` must then send rows of
equal width:

    docker run -p 8501:8501 {name} --model_config_file=/models/{name}/models.config --enable_batching \\
        --batching_parameters_file=/models/{name}/batching_parameters.txt

With the local server, which speaks the same REST:

    python -m export.server . --name {name}

To ask (the reply is `sample_reply.json`):

    curl http://127.0.0.1:8501/v1/models/{name}:predict -d @sample_request.json

    python -m export.client --url http://127.0.0.1:8501/v1/models/{name} \\
        {_client_flags(run.fields)}

A further `python -m export` into this folder adds the next number, which a running server takes up by itself.
To go back, remove or rename the newest number.
"""


def _client_flags(fields) -> str:
    if len(fields) == 1:
        return '--query "..." --candidate "..." "..."'
    text = f"$'{chr(92)}t'".join('"..."' for _ in fields)  # a tab between them
    return f"--fields {' '.join(fields)} --query {text} --candidate {text} {text}"


def _columns(specs) -> str:
    axes = ("n", "tokens", "n-grams")
    return ", ".join(
        f"{key}: {spec.dtype.name} "
        f"[{', '.join(str(size or axis) for size, axis in zip(spec.shape, axes, strict=False))}]"
        for key, spec in specs.items()
    )
