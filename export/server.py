"""A local server that speaks TensorFlow Serving's REST interface, for trying a model without a container.

::

    python -m export.server FOLDER [--name NAME] [--port 8501]

``FOLDER`` holds one folder per version. The newest one is served; a new one is taken up within seconds, and
the old one answers until it is loaded, and further on if it does not load.

========  ==============================================================  =========================
method    path                                                            answer
========  ==============================================================  =========================
POST      /v1/models/NAME:predict, /v1/models/NAME/versions/N:predict     predictions, or outputs
GET       /v1/models/NAME, /v1/models/NAME/versions/N                     state of the versions
GET       /v1/models/NAME/metadata                                        the signatures
========  ==============================================================  =========================

An error is ``{"error": "..."}`` with 400 for a request that cannot be understood, 404 for an unknown model or
version and 413 for a body that is too long. Unlike TensorFlow Serving it has no gRPC, no batching, no labels.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import socket
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
import uvicorn
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from export.graph_ops import audit, read_saved_model
from export.rest import RequestError, read_request, write_reply
from export.versions import list_versions

_PREDICT = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?:predict", re.IGNORECASE)
_STATUS = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?(/metadata)?", re.IGNORECASE)


class Version:
    """One loaded version folder; safe to call from several threads.

    Args:
        folder: a version folder, named by its number.
    """

    def __init__(self, folder: Path):
        self.number = int(folder.name)
        if audit(folder).other:
            import tensorflow_text  # noqa: F401 its operations are in the graph
        self._loaded = tf.saved_model.load(str(folder))  # kept: a signature alone does not keep its weights
        self._signatures = dict(self._loaded.signatures)
        self.metadata = {
            name: json_format.MessageToDict(
                signature, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            for name, signature in read_saved_model(folder).meta_graphs[0].signature_def.items()
        }
        # The first call of a function is slow, so it is not left to a user.
        for name, function in self._signatures.items():
            self._call(name, {key: _example(spec) for key, spec in self._inputs(name).items()}, function)

    def predict(self, body: bytes) -> dict:
        """Answers the body of a predict call; raises `RequestError`."""
        name, in_rows, inputs = read_request(body, self._inputs)
        return write_reply(self._call(name, inputs, self._signatures[name]), in_rows)

    def _inputs(self, name):
        if name not in self._signatures:
            raise RequestError(f'Serving signature name: "{name}" not found in signature def')
        return self._signatures[name].structured_input_signature[1]

    def _call(self, name, inputs, function):
        specs = self._inputs(name)
        try:
            outputs = function(**{key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()})
        except tf.errors.InvalidArgumentError as error:
            raise RequestError(_reason(error)) from None
        return {key: value.numpy() for key, value in outputs.items()}


class ServedModel:
    """The versions below a folder, of which the newest that loads is served.

    Args:
        folder: the folder that holds one folder per version.
        name: the model's name in the paths of requests.
    """

    def __init__(self, folder: str | Path, name: str):
        self.folder, self.name = Path(folder), name
        self.current: Version | None = None
        self._failed: dict[int, tuple[object, str]] = {}

    def refresh(self) -> bool:
        """Takes up the newest version that loads; true if another one is served than before."""
        for number in reversed(list_versions(self.folder)):
            if self.current is not None and number == self.current.number:
                break
            folder = self.folder / str(number)
            state = _state(folder)
            if self._failed.get(number, (None,))[0] == state:
                continue
            try:
                self.current = Version(folder)
            except Exception as error:  # whatever is wrong with a folder must not stop the one that is served
                self._failed[number] = (state, str(error))
                print(f"Version {number} of {self.name} does not load: {_first_line(error)}", file=sys.stderr)
                continue
            self._failed.pop(number, None)
            return True
        return False

    def version(self, name: str, number: str | None) -> Version:
        """The version that a request names, by default the served one; raises `RequestError` with 404."""
        current = self.current
        if name != self.name or current is None or (number is not None and int(number) != current.number):
            wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
            raise RequestError(f"Servable not found for request: {wanted}", 404)
        return current

    def status(self, name: str, number: str | None) -> dict:
        """States of the versions; raises `RequestError` with 404."""
        states = {version: ("END", "UNKNOWN", message) for version, (_, message) in self._failed.items()}
        if self.current is not None:
            states[self.current.number] = ("AVAILABLE", "OK", "")
        if name != self.name:
            raise RequestError(f"Could not find any versions of model {name}", 404)
        if number is not None and int(number) not in states:
            raise RequestError(f"Could not find version {number} of model {name}", 404)
        return {
            "model_version_status": [
                {
                    "version": str(version),
                    "state": state,
                    "status": {"error_code": code, "error_message": message},
                }
                for version, (state, code, message) in sorted(states.items(), reverse=True)
                if number is None or int(number) == version
            ]
        }


def application(model: ServedModel, poll_seconds: float = 2.0, max_body_bytes: int = 1 << 25) -> Starlette:
    """The web application around a model.

    Args:
        model: what to serve; `ServedModel.refresh` has been called.
        poll_seconds: how often to look for a new version.
        max_body_bytes: a longer request is refused with 413.
    """

    async def answer(request: Request) -> Response:
        path = request.url.path
        try:
            if request.method == "POST" and (match := _PREDICT.fullmatch(path)):
                version = model.version(*match.groups())
                body = await _body(request, max_body_bytes)
                return _json(await run_in_threadpool(version.predict, body))
            if request.method == "GET" and (match := _STATUS.fullmatch(path)):
                name, number, metadata = match.groups()
                if metadata is None:
                    return _json(model.status(name, number))
                return _json(_metadata(name, model.version(name, number)))
            if not path.startswith("/v1/"):
                raise RequestError(f"Not found: {path}", 404)
            raise RequestError(f"Malformed request: {request.method} {path}")
        except RequestError as error:
            return _json({"error": str(error)}, error.status)
        except tf.errors.OpError as error:
            return _json({"error": _reason(error)}, 500)

    async def poll():
        while True:
            await asyncio.sleep(poll_seconds)
            if await run_in_threadpool(model.refresh):
                print(f"Serving version {model.current.number} of {model.name}", flush=True)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        polling = asyncio.create_task(poll())
        yield
        polling.cancel()

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])], lifespan=lifespan)


async def _body(request, limit) -> bytes:
    chunks, size = [], 0
    # A body that is too long is read to its end all the same, or the client would miss the reply.
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
    if size > limit:
        raise RequestError(
            f"The request has {size:,} bytes; at most {limit:,} are read. Send fewer rows.", 413
        )
    return b"".join(chunks)


def _json(content, status=200) -> Response:
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def _metadata(name, version):
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version.number)},
        "metadata": {"signature_def": {"signature_def": version.metadata}},
    }


def _example(spec):
    shape = [1 if size is None else size for size in spec.shape]
    return np.full(shape, b"warm up" if spec.dtype == tf.string else 1)


def _reason(error):
    # The lines before it say where in the graph, the lines after it which node.
    return error.message.partition("\n\t [[")[0].splitlines()[-1]


def _state(folder):
    """Changes when a file below the folder does, so that a folder still being copied is tried again."""
    return sorted((str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in folder.rglob("*") if f.is_file())


def _first_line(error):
    return str(error).partition("\n")[0][:300] or type(error).__name__


def main(arguments: list[str] | None = None) -> int:
    """Serves a folder until Ctrl-C; returns the exit code."""
    parser = argparse.ArgumentParser(
        "python -m export.server", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="folder that holds one folder per version")
    parser.add_argument("--name", help="model name; the folder's name if not given")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8501, help="0 for any free port")
    parser.add_argument("--poll-seconds", type=float, default=2.0, help="how often to look for a new version")
    parser.add_argument("--max-body-mb", type=float, default=32.0, help="longest request that is read")
    options = parser.parse_args(arguments)
    model = ServedModel(options.folder, options.name or options.folder.resolve().name)
    if not list_versions(options.folder):
        print(
            f"The folder must hold a version folder, as `python -m export RUN {options.folder}` writes it. "
            f"Received: folder={str(options.folder)!r}",
            file=sys.stderr,
        )
        return 2
    if not model.refresh():
        return 1
    try:
        listener = socket.create_server((options.host, options.port), backlog=128)
    except OSError as error:
        print(f"Cannot listen. Received: host={options.host}, port={options.port}: {error}", file=sys.stderr)
        return 1
    host, port = listener.getsockname()[:2]
    print(
        f"Serving version {model.current.number} at http://{host}:{port}/v1/models/{model.name}:predict "
        "(Ctrl-C stops it)",
        flush=True,
    )
    config = uvicorn.Config(
        application(model, options.poll_seconds, int(options.max_body_mb * (1 << 20))),
        log_level="warning",
        timeout_graceful_shutdown=5,
    )
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
