"""Turn a run into a SavedModel that takes strings and writes scores, ready for TensorFlow Serving.

Signatures, with named inputs and outputs; every output has one row per row of the request, in its order:

``serving_default``
    query, candidate: string [n] to score float32 [n] and, where the run's task is ``binary`` and the score so
    the log-odds of a match, probability float32 [n] (its sigmoid) and label int32 [n] (1 from the run's
    threshold on). A model that gives a dictionary has its other outputs beside the score, each [n, ...]. A
    request whose queries are all equal encodes the query once.
``score_ids``
    query, candidate: int32 [n, tokens], 0 is padding, to the model's outputs: the numeric twin, for other runtimes.
    A model of character n-grams takes [n, tokens, n-grams].
``diagnose``
    text: string [n], read as a candidate, to num_tokens int32 [n], oov_rate float32 [n], truncated bool [n].
``encode``
    text: string [n], read as a candidate, to vector float32 [n, d]; for models with a layer ``encoder``.

Where texts have several fields, query and candidate become ``query_<field>`` and ``candidate_<field>``, and
``encode`` takes the fields by their names.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

import tensorflow as tf

from export import folding, parity, serving_kit
from export.graph_ops import audit
from export.versions import holds_other, publish, working_folder
from zoo.encoded import input_name

_HALF = ("mixed_float16", "mixed_bfloat16", "float16", "bfloat16")


class ExportError(RuntimeError):
    """An export that must not be served; nothing of it is left at the destination."""


def export(run, destination: str | Path, name: str | None = None, fold_in: dict | None = None) -> Path:
    """Writes the next version of a model below ``destination`` and, beside it, what serves it.

    The version appears whole or not at all: it is written under another name, checked in a fresh process
    against the run, and renamed.

    Args:
        run: a `zoo.runs.Run`.
        destination: the model's folder, holding one folder per version; made if it is not there.
        name: the model's name on a server; the name of ``destination`` if not given.
        fold_in: arguments of `export.folding.fold`, if the words' products shall be tables.

    Returns:
        The new version folder, ``destination/<n>``, n being the next free number.

    Raises:
        ValueError: if ``name`` holds more than letters, digits, dots, hyphens and underscores, or ``destination``
            is a folder with other content; if the model cannot be folded, see `export.folding.fold`.
        ExportError: if the graph holds an operation that a server must not be given.
        export.parity.ParityError: if the SavedModel does not score as the run does.
    """
    destination = Path(destination).resolve()
    if holds_other(destination):
        raise ValueError(
            f"The destination must be a new folder, or one that was exported to. Received: {str(destination)!r}"
        )
    name = serving_kit.check_name(name or serving_kit.name_of_folder(destination))
    run = in_float32(run)
    served, tables, tolerance = run, None, parity.TOLERANCE
    if fold_in is not None:
        served, tables = folding.fold(run, **fold_in)
        tolerance = folding.TOLERANCES[fold_in.get("dtype", "float32")]
    with working_folder(destination) as folder:
        save(served, folder)
        ops = audit(folder, allow_other=run.text_encoder.tokenizer == "wordpiece")
        if ops.faults:
            raise ExportError(f"A served graph must hold known operations alone. Received: {'; '.join(ops.faults)}")
        result = parity.check(folder, run, tolerance)
        serving_kit.write_warmup(folder / "assets.extra" / "tf_serving_warmup_requests", name, run)
        checked = result._asdict() | {"tables": tables}
        (folder / "assets.extra" / "parity.json").write_text(json.dumps(checked) + "\n", "utf-8")
        kit = serving_kit.files(folder, name, run, ops)
        version = publish(folder, destination)
    # Written last, and of no weight for a server: what could fail has been made before the version appeared.
    for file, content in kit.items():
        (destination / file).write_text(content, "utf-8")
    return version


def in_float32(run):
    """The run itself, or a copy of it whose model computes in float32.

    Under half precision a score depends on the padding beside it, and a server batches as it likes.
    """
    config = run.model.get_config()
    in_float32 = _as_float32(config)
    if in_float32 == config:
        return run
    model = type(run.model).from_config(in_float32)
    model.set_weights(run.model.get_weights())
    run = copy.copy(run)
    run.model = model
    return run


def save(run, folder: str | Path) -> None:
    """Writes the SavedModel of a run into ``folder``."""
    functions = _Graph(run).signatures()
    root = tf.Module()
    # Variables and tables alone: tracking the Keras model too would write each weight a second time.
    variables = {id(variable): variable for function in functions.values() for variable in function.variables}
    root.weights = list(variables.values())
    root.text_encoder = run.text_encoder
    tf.saved_model.save(root, str(folder), signatures=functions)


class _Graph:
    """Builds the functions behind the signatures from a run's text encoder and model."""

    def __init__(self, run):
        self.run = run
        # Read here, outside of any trace: tables made inside one would be out of reach outside.
        self.model, text_encoder = run.model, run.text_encoder
        # One function for all signatures, so that the character tables are written once.
        self.read = tf.function(
            lambda texts, max_length: text_encoder(texts, max_length),
            input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int32)],
            autograph=False,
        )
        self.query = [input_name("query", field, run.fields) for field in run.fields]
        self.candidate = [input_name("candidate", field, run.fields) for field in run.fields]

    def signatures(self):
        inputs = [*self.query, *self.candidate]
        functions = {
            "serving_default": _concrete(self.score_texts, inputs, [None], tf.string),
            "score_ids": _concrete(self.score_ids, inputs, [None] * self._axes_of_ids(), tf.int32),
            "diagnose": _concrete(self.diagnose, ["text"], [None], tf.string),
        }
        if any(layer.name == "encoder" for layer in self.model.layers):
            fields = ["text"] if len(self.run.fields) == 1 else self.run.fields
            functions["encode"] = _concrete(self.encode, fields, [None], tf.string)
        return functions

    def score_texts(self, texts):
        size = self._number_of_rows(texts)
        texts = {name: _at_least_one_row(text, "") for name, text in texts.items()}
        lists = self._number_of_lists(texts)
        ids = {name: self.read(texts[name][:lists], self.run.max_query_length)["ids"] for name in self.query}
        ids |= {name: self.read(texts[name], self.run.max_candidate_length)["ids"] for name in self.candidate}
        outputs = {name: output[:size] for name, output in self._match(ids, lists).items()}
        if self.run.settings.get("task") == "binary":
            outputs["probability"] = tf.sigmoid(outputs["score"])
            outputs["label"] = tf.cast(outputs["score"] >= self.run.threshold, tf.int32)
        return outputs

    def score_ids(self, ids):
        size = self._number_of_rows(ids)
        ids = {name: _at_least_one_column(_at_least_one_row(tokens, 0)) for name, tokens in ids.items()}
        lists = self._number_of_lists(ids)
        outputs = self._match(ids | {name: ids[name][:lists] for name in self.query}, lists)
        return {name: output[:size] for name, output in outputs.items()}

    def diagnose(self, texts):
        text = self.read(texts["text"], self.run.max_candidate_length)
        unknown, total = tf.cast(text["num_unknown"], tf.float32), tf.cast(text["num_tokens"], tf.float32)
        return {
            "num_tokens": text["num_tokens"],
            "oov_rate": unknown / tf.maximum(total, 1.0),
            "truncated": text["truncated"],
        }

    def encode(self, texts):
        size = self._number_of_rows(texts)
        ids = {
            name: self.read(_at_least_one_row(text, ""), self.run.max_candidate_length)["ids"]
            for name, text in texts.items()
        }
        vector = self.model.get_layer("encoder")(ids if len(ids) > 1 else ids.popitem()[1], training=False)
        return {"vector": tf.cast(vector, tf.float32)[:size]}

    def _match(self, ids, lists):
        """Queries ``[lists, T]`` and candidates ``[n, T]`` to the model's outputs by name, each ``[n, ...]``."""
        for name in self.candidate:
            ids[name] = tf.reshape(ids[name], tf.concat([[lists, -1], tf.shape(ids[name])[1:]], 0))
        outputs = self.model(ids, training=False)
        outputs = outputs if isinstance(outputs, dict) else {"score": outputs}
        return {
            name: tf.reshape(tf.cast(output, tf.float32), [-1, *output.shape[2:]]) for name, output in outputs.items()
        }

    def _axes_of_ids(self):
        return 3 if self.run.text_encoder.ngram_sizes else 2

    def _number_of_lists(self, inputs):
        """1 if all rows ask the same query, so that one list holds all candidates; else one list per row."""
        first = inputs[self.query[0]]
        same = [tf.reduce_all(inputs[name] == inputs[name][:1]) for name in self.query]
        return tf.where(tf.reduce_all(same), 1, tf.shape(first)[0])

    def _number_of_rows(self, inputs):
        rows = {name: tf.shape(value)[0] for name, value in inputs.items()}
        first = next(name for name in (*self.query, *rows) if name in rows)
        size = rows[first]
        for name, other in rows.items():
            message = f"{first} and {name} must have as many rows as each other. Received rows:"
            tf.debugging.Assert(tf.equal(size, other), [message, size, other])
        return size


def _concrete(function, names, shape, dtype):
    def named(**inputs):
        return function(inputs)

    specs = {name: tf.TensorSpec(shape, dtype, name=name) for name in names}
    return tf.function(named, autograph=False).get_concrete_function(**specs)


def _at_least_one_row(value, filler):
    # Recurrent layers cannot run on no row at all.
    missing = tf.maximum(0, 1 - tf.shape(value)[0])
    return tf.concat([value, tf.fill(tf.concat([[missing], tf.shape(value)[1:]], 0), filler)], axis=0)


def _at_least_one_column(ids):
    return tf.pad(ids, [[0, 0], *([0, tf.maximum(0, 1 - tf.shape(ids)[axis])] for axis in range(1, len(ids.shape)))])


def _as_float32(config):
    """A model's configuration with every half-precision policy replaced."""
    if isinstance(config, list | tuple):
        return type(config)(_as_float32(value) for value in config)
    if not isinstance(config, dict):
        return config
    if config.get("class_name") == "DTypePolicy" and config["config"]["name"] in _HALF:
        return config | {"config": {"name": "float32"}}
    return {
        key: "float32" if key == "dtype" and isinstance(value, str) and value in _HALF else _as_float32(value)
        for key, value in config.items()
    }
