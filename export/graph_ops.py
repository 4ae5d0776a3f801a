"""What a SavedModel holds: its signatures, and whether a stock server has its operations and may run them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

# A pure function of its inputs is safe to serve. Others are needed for weights, tables and control flow.
_STATEFUL = frozenset(
    {
        "Assert",
        "AssignVariableOp",
        "DisableCopyOnRead",
        "HashTableV2",
        "If",
        "LookupTableFindV2",
        "LookupTableImportV2",
        "LookupTableSizeV2",
        "MergeV2Checkpoints",
        "NoOp",
        "Placeholder",
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "RestoreV2",
        "SaveV2",
        "StatefulPartitionedCall",
        "VarHandleOp",
        "VarIsInitializedOp",
        "While",
    }
)
_FORBIDDEN = (
    "Xla",
    "PyFunc",
    "EagerPyFunc",
    "StatelessRandom",
    "StatelessTruncated",
    "StatelessParameterized",
)


class GraphOps(NamedTuple):
    """The operations of a SavedModel's signatures and of all functions that they call.

    Attributes:
        core: those of TensorFlow itself, sorted.
        other: those of further libraries, as tensorflow-text, sorted.
        faults: one sentence per operation or function that a server must not be given.
        tensorflow_version: what wrote the graph.
    """

    core: tuple[str, ...]
    other: tuple[str, ...]
    faults: tuple[str, ...]
    tensorflow_version: str


def read_saved_model(folder: str | Path) -> saved_model_pb2.SavedModel:
    """The parsed ``saved_model.pb`` of a version folder."""
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((Path(folder) / "saved_model.pb").read_bytes())
    return saved_model


def read_signatures(
    folder: str | Path,
) -> dict[str, tuple[dict[str, tf.TensorSpec], dict[str, tf.TensorSpec]]]:
    """Name of each signature to its inputs and its outputs, each a name to a spec, query before candidate."""
    found = read_saved_model(folder).meta_graphs[0].signature_def
    return {
        name: (_specs(signature.inputs), _specs(signature.outputs))
        for name, signature in sorted(found.items())
        if not name.startswith("__")
    }


def audit(folder: str | Path, allow_other: bool = False) -> GraphOps:
    """Lists the operations of the SavedModel in ``folder``.

    Args:
        folder: a version folder.
        allow_other: whether operations outside TensorFlow itself are no fault (the wordpiece tokenizer's).
    """
    meta = read_saved_model(folder).meta_graphs[0]
    functions = meta.graph_def.library.function
    nodes = [*meta.graph_def.node, *(node for function in functions for node in function.node_def)]
    names = sorted({node.op for node in nodes} - {function.signature.name for function in functions})
    stateful = {op.name for op in meta.meta_info_def.stripped_op_list.op if op.is_stateful}
    core = tuple(name for name in names if hasattr(tf.raw_ops, name))
    other = tuple(name for name in names if name not in core)
    faults = []
    for name in names:
        if name.startswith(_FORBIDDEN):
            faults.append(f"{name} must not be in a served graph")
        elif name in stateful and name not in _STATEFUL and name in core:
            faults.append(f"{name} has effects or is random; training behaviour may be left on")
        elif name in other and not allow_other:
            faults.append(f"{name} is not an operation of TensorFlow itself")
    for owner in (*functions, *nodes):
        # TensorFlow Serving switches XLA off, and such a function then fails at its first request.
        if owner.attr["_XlaMustCompile"].b if "_XlaMustCompile" in owner.attr else False:
            name = owner.signature.name if hasattr(owner, "signature") else owner.name
            faults.append(f"function {name} is compiled for XLA alone")
    return GraphOps(core, other, tuple(faults), meta.meta_info_def.tensorflow_version)


def _specs(tensors):
    return {
        name: tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype), name)
        for name, info in sorted(tensors.items(), reverse=True)
    }
