"""The JSON of TensorFlow Serving's REST predict call, to arrays and back, with its rules and error texts.

A request is in rows, ``{"instances": [{"query": "...", "candidate": "..."}, ...]}``, or in columns,
``{"inputs": {"query": ["...", ...], "candidate": ["...", ...]}}``; both may name a ``signature_name``. The
reply holds ``predictions``, one object per row, or ``outputs``, one list per name.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

DEFAULT_SIGNATURE = "serving_default"


class RequestError(ValueError):
    """A request that cannot be answered.

    Attributes:
        status: the HTTP status code.
    """

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


def read_request(
    body: bytes, find_inputs: Callable[[str], Mapping[str, tf.TensorSpec]]
) -> tuple[str, bool, dict[str, np.ndarray]]:
    """Reads the body of a predict call.

    Args:
        body: JSON.
        find_inputs: gives the inputs of a signature, or raises `RequestError`.

    Returns:
        Name of the signature, whether the request is in rows, and one array per input.

    Raises:
        RequestError: with the words of TensorFlow Serving where it has some.
    """
    request = _parsed(body)
    signature = request.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(signature, str):
        raise RequestError(
            f"JSON Value: {_short(request)} not formatted correctly. 'signature_name' key must be a string value."
        )
    specs = find_inputs(signature or DEFAULT_SIGNATURE)
    if "instances" in request and "inputs" in request:
        raise RequestError(
            f"JSON Value: {_short(request)} Not formatted correctly expecting only "
            "one of 'inputs' or 'instances' keys to exist"
        )
    if "instances" in request:
        return signature or DEFAULT_SIGNATURE, True, _from_rows(request["instances"], specs)
    if "inputs" in request:
        return signature or DEFAULT_SIGNATURE, False, _from_columns(request["inputs"], specs)
    raise RequestError("Missing 'inputs' or 'instances' key")


def write_reply(outputs: Mapping[str, np.ndarray], in_rows: bool) -> dict[str, Any]:
    """Arrays by output name to the reply's JSON content.

    Raises:
        RequestError: with status 500 for a number that JSON cannot hold.
    """
    columns = {name: _to_json(name, np.asarray(value)) for name, value in sorted(outputs.items())}
    if not in_rows:
        return {"outputs": columns if len(columns) > 1 else next(iter(columns.values()))}
    rows = zip(*columns.values(), strict=True)
    if len(columns) == 1:
        return {"predictions": [value for (value,) in rows]}
    return {"predictions": [dict(zip(columns, values, strict=True)) for values in rows]}


def _parsed(body: bytes) -> dict:
    if not body:
        raise RequestError("JSON Parse error: The document is empty")
    try:
        request = json.loads(body)
    except RecursionError:
        raise RequestError("JSON Parse error: nested too deeply") from None
    except ValueError as error:
        raise RequestError(f"JSON Parse error: {error}") from None
    if not isinstance(request, dict):
        raise RequestError(f"JSON Value: {_short(request)} Is not object")
    return request


def _from_rows(instances, specs):
    if not isinstance(instances, list):
        raise RequestError(f"JSON Value: {_short(instances)} Excepting 'instances' to be an list/array")
    if not instances:
        raise RequestError(f"JSON Value: {_short(instances)} No values in 'instances' array")
    named = _is_row(instances[0])
    if not named and len(specs) > 1:
        raise RequestError(
            "instances is a plain list, but expecting list of objects as multiple input tensors required "
            "as per tensorinfo_map"
        )
    columns = {name: [] for name in specs}
    for number, instance in enumerate(instances):
        if _is_row(instance) != named:
            expected, got = ("object", "list") if named else ("value/list", "object")
            raise RequestError(f"Expecting {expected} but got {got} at item {number} of input list")
        row = instance if named else {next(iter(specs)): instance}
        if set(row) != set(specs):
            raise RequestError(
                f"Failed to process element: {number} of 'instances' list. JSON object: {_short(row)} "
                f"keys must be equal to: {','.join(sorted(specs))}"
            )
        for name, value in row.items():
            try:
                _check_level(value, _shape(value), 0)
                columns[name].append(value)
                if _shape(value) != _shape(columns[name][0]):
                    raise RequestError(
                        f"Expecting shape {_shape(columns[name][0])} but got: {_shape(value)}".replace(" ,", ",")
                    )
            except RequestError as error:
                raise RequestError(
                    f"Failed to process element: {number} key: {name} of 'instances' list. "
                    f"Error: INVALID_ARGUMENT: {error}"
                ) from None
    return {name: _array(name, values, specs[name]) for name, values in columns.items()}


def _from_columns(inputs, specs):
    if not isinstance(inputs, dict) or _is_base64(inputs):
        if len(specs) > 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required "
                "as per tensorinfo_map"
            )
        inputs = {next(iter(specs)): inputs}
    for name in specs:
        if name not in inputs:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
    return {name: _array(name, inputs[name], spec) for name, spec in specs.items()}


def _array(name, value, spec):
    shape = _shape(value)
    _check_level(value, shape, 0)
    leaves = [_leaf(leaf, spec.dtype) for leaf in _leaves(value)]
    # An empty row has no elements that could show how deep it goes.
    if 0 in shape and spec.shape.rank is not None:
        shape = (*shape, *[0] * (spec.shape.rank - len(shape)))
    if not spec.shape.is_compatible_with(shape):
        raise RequestError(f"Input {name} must have the shape {spec.shape}. Received: shape={shape}")
    return np.array(leaves, object if spec.dtype == tf.string else spec.dtype.as_numpy_dtype).reshape(shape)


def _shape(value) -> tuple[int, ...]:
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _check_level(value, shape, level):
    """Refuses a list whose elements are not all of one shape."""
    if not isinstance(value, list):
        if level != len(shape):
            raise RequestError(
                f"JSON Value: {_short(value)} found at incorrect level: {level + 1} in the JSON DOM. "
                f"Expected at level: {len(shape)}"
            )
        return
    if level >= len(shape):
        raise RequestError(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise RequestError(
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: {shape[level]}"
        )
    for element in value:
        _check_level(element, shape, level + 1)


def _leaves(value):
    if isinstance(value, list):
        for element in value:
            yield from _leaves(element)
    else:
        yield value


def _leaf(value, dtype: tf.DType):
    if dtype == tf.string:
        if _is_base64(value):
            try:
                return base64.b64decode(value["b64"], validate=True)
            except (binascii.Error, ValueError):
                raise RequestError("Unable to base64 decode") from None
        if isinstance(value, dict):
            raise RequestError(f"JSON Value: {_short(value)} not formatted correctly for base64 data")
        if isinstance(value, str):
            try:
                return value.encode()
            except UnicodeEncodeError:
                raise RequestError("JSON Parse error: The surrogate pair in string is invalid.") from None
    elif dtype.is_integer:
        if type(value) is int and dtype.min <= value <= dtype.max:
            return value
    elif dtype.is_floating and type(value) in (int, float):
        return value
    raise RequestError(f"JSON Value: {_short(value)} Type: {_TYPES[type(value)]} is not of expected type: {dtype.name}")


_TYPES = {dict: "Object", list: "Array", str: "String", int: "Number", float: "Number", type(None): "Null"}
_TYPES[bool] = "Bool"


def _to_json(name, value):
    if value.dtype == object:
        if name.endswith("_bytes"):
            return _mapped(value.tolist(), lambda text: {"b64": base64.b64encode(text).decode()})
        return _mapped(value.tolist(), lambda text: text.decode("utf-8", "replace"))
    if not np.issubdtype(value.dtype, np.floating):
        return value.tolist()
    if not np.isfinite(value).all():
        raise RequestError(f"Output {name} is not finite, which JSON cannot hold.", 500)
    # By way of the shortest digits that give the number back: 0.2 rather than 0.20000000298.
    return value.astype(str).astype("float64").tolist()


def _mapped(value, function):
    return [_mapped(element, function) for element in value] if isinstance(value, list) else function(value)


def _is_base64(value) -> bool:
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def _is_row(value) -> bool:
    return isinstance(value, dict) and not _is_base64(value)


def _short(value) -> str:
    shown = json.dumps(value, ensure_ascii=True)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."
