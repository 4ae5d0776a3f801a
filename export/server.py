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

import asyncio
import contextlib
import json
import re
import socket
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import zoo.quiet_tensorflow  # noqa: F401
from export.rest import RequestError
from export.served_model import ServedModel
from export.versions import list_versions
from zoo.arguments import Parser, port_number

_PREDICT = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?:predict", re.IGNORECASE)
_STATUS = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?(/metadata)?", re.IGNORECASE)


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
                body = await _body(request, max_body_bytes)
                return _json(await run_in_threadpool(model.version(*match.groups()).predict, body))
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

    async def poll():
        while True:
            await asyncio.sleep(poll_seconds)
            # A folder that changes while it is read is looked at again next time.
            with contextlib.suppress(OSError):
                if await run_in_threadpool(model.refresh):
                    print(f"Serving version {model.current.number} of {model.name}", flush=True)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        polling = asyncio.create_task(poll())
        yield
        polling.cancel()

    async def failed(request: Request, error: Exception) -> Response:
        return _json({"error": f"Internal: {type(error).__name__}: {error}"}, 500)

    return Starlette(
        routes=[Route("/{path:path}", answer, methods=["GET", "POST"])],
        exception_handlers={500: failed},
        lifespan=lifespan,
    )


async def _body(request, limit) -> bytes:
    chunks, size = [], 0
    # A body that is too long is read to its end all the same, or the client would miss the reply.
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
    if size > limit:
        raise RequestError(f"The request has {size:,} bytes; at most {limit:,} are read. Send fewer rows.", 413)
    return b"".join(chunks)


def _json(content, status=200) -> Response:
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def _metadata(name, version):
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version.number)},
        "metadata": {"signature_def": {"signature_def": version.metadata}},
    }


def main(arguments: list[str] | None = None) -> int:
    """Serves a folder until Ctrl-C; returns the exit code."""
    parser = Parser("python -m export.server", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder that holds one folder per version")
    parser.add_argument("--name", help="model name; the folder's name if not given")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=port_number, default=8501, help="0 for any free port")
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
    try:
        listener = socket.create_server((options.host, options.port), backlog=128)
    except OSError as error:
        print(
            f"Cannot listen (--port 0 takes a free one). Received: host={options.host}, port={options.port}: {error}",
            file=sys.stderr,
        )
        return 1
    # Inherited by each connection: a reply in two writes would otherwise wait 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not model.refresh():
        listener.close()
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
