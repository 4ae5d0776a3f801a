"""Versions of a model loaded for answering, the newest taken up while the one before still answers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from export.graph_ops import audit, read_saved_model
from export.rest import RequestError, read_request, write_reply
from export.versions import list_versions


class Version:
    """One loaded version folder; safe to call from several threads.

    Args:
        folder: a version folder, named by its number, or one that is not published yet.
    """

    def __init__(self, folder: Path):
        self.number = int(folder.name) if folder.name.isdecimal() else None
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
        except tf.errors.OpError as error:
            status = 400 if isinstance(error, tf.errors.InvalidArgumentError) else 500
            raise RequestError(_reason(error), status) from None
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
        numbers = list_versions(self.folder)
        self._failed = {number: failure for number, failure in self._failed.items() if number in numbers}
        for number in reversed(numbers):
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


def _example(spec):
    shape = [1 if size is None else size for size in spec.shape]
    return np.full(shape, b"warm up" if spec.dtype == tf.string else 1)


def _reason(error):
    # The lines before it say where in the graph, the lines after it which node.
    return error.message.partition("\n\t [[")[0].rstrip().rpartition("\n")[2]


def _state(folder):
    """Changes when a file below the folder does, so that a folder still being copied is tried again."""
    return sorted((str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in folder.rglob("*") if f.is_file())


def _first_line(error):
    return str(error).partition("\n")[0][:300] or type(error).__name__
