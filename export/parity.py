"""The gate of an export: a fresh process without this project's code must score as the run does."""

from __future__ import annotations

import base64
import inspect
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from export.texts import HOSTILE, as_text, in_fields, own_pairs
from zoo.encoded import input_name

TOLERANCE = 1e-5


class ParityError(RuntimeError):
    """The exported model and the run disagree on a pair of texts."""


class Parity(NamedTuple):
    """What was compared.

    Attributes:
        num_pairs: pairs of texts.
        largest_difference: of two values of one output for one pair, alone, in a batch or in a list.
        tolerance: what was allowed, relative for values beyond 1.
    """

    num_pairs: int
    largest_difference: float
    tolerance: float


def check(version_folder: str | Path, run, tolerance: float = TOLERANCE) -> Parity:
    """Scores hard texts through the SavedModel in a fresh process and compares with the run.

    All outputs of the run's model are compared, the score and what a dictionary has beside it. Every pair is scored
    alone, in one batch with all others, and its candidate in one list below the first query; a request of no row
    must give an empty reply.

    Args:
        version_folder: the folder with ``saved_model.pb``.
        run: what `zoo.runs.load` gives.

    Raises:
        ParityError: at the first value that differs or is not finite, with the pair and both values; for an
            output that is not there; and if the fresh process fails, with the end of what it printed.
    """
    pairs = [*own_pairs(run), *in_fields(HOSTILE, run)]
    ranked = [(pairs[0][0], candidate) for _, candidate in pairs]
    requests = [[], pairs, ranked, *([pair] for pair in pairs)]
    flat = [tuple(tuple(map(as_text, text)) for text in pair) for request in requests for pair in request]
    with_tensorflow_text = run.text_encoder.tokenizer == "wordpiece"
    # On the CPU like the fresh process: an accelerator may round products to fewer digits.
    with ThreadPoolExecutor(1) as pool, tf.device("CPU:0"):
        replies = pool.submit(
            _in_fresh_process, Path(version_folder).resolve(), requests, run.fields, with_tensorflow_text
        )
        expected = run.outputs([query for query, _ in flat], [candidate for _, candidate in flat])
        received = replies.result()
    ends = np.cumsum([len(request) for request in requests])[:-1]
    largest = 0.0
    for name, values in expected.items():
        for request, ours, reply in zip(requests, np.split(values, ends), received, strict=True):
            if name not in reply:
                raise ParityError(f"The SavedModel must give {name!r}. Received: {sorted(reply)}")
            theirs = np.asarray(reply[name], "float32").reshape(ours.shape)
            largest = max(largest, _largest_difference(name, request, ours, theirs, tolerance))
    return Parity(len(pairs), largest, tolerance)


def _largest_difference(name, request, ours, theirs, tolerance):
    largest = 0.0
    for pair, own, other in zip(request, ours, theirs, strict=True):
        difference = np.abs(own - other)
        if not (difference <= tolerance * np.maximum(1.0, np.abs(own))).all():
            raise ParityError(
                "The SavedModel must score as the run does, with finite numbers. "
                f"Received: query={_short(pair[0])}, candidate={_short(pair[1])}, run={own.tolist()!r}, "
                f"saved_model={other.tolist()!r} of {name!r}, in a request of {len(request)}"
            )
        largest = max(largest, float(difference.max()))
    return largest


def _in_fresh_process(folder, requests, fields, with_tensorflow_text):
    names = [[input_name(side, field, fields) for field in fields] for side in ("query", "candidate")]
    columns = [
        {
            name: [_encoded(pair[side][place]) for pair in request]
            for side in (0, 1)
            for place, name in enumerate(names[side])
        }
        for request in requests
    ]
    with tempfile.TemporaryDirectory() as scratch:
        asked, answered = Path(scratch, "requests.json"), Path(scratch, "replies.json")
        asked.write_text(json.dumps(columns), "ascii")
        program = f"{inspect.getsource(_answer)}\n_answer({str(folder)!r}, {str(asked)!r}, {str(answered)!r}, "
        program += f"{with_tensorflow_text!r})"
        # -I: neither the working folder nor PYTHONPATH can lend it a module.
        process = subprocess.run(
            [sys.executable, "-I", "-c", program],
            cwd=scratch,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if process.returncode:
            raise ParityError(
                "A fresh process must load the SavedModel and score texts. "
                f"Received: exit code {process.returncode}, {process.stderr.strip()[-2000:]}"
            )
        return json.loads(answered.read_text("ascii"))


def _answer(folder, asked, answered, with_tensorflow_text):
    """Runs in the fresh process, from its source alone: it must not use a name of this module."""
    import base64
    import json
    import os
    import sys

    class Refuse:
        """An import hook: the project's own code must not be what makes the SavedModel work."""

        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {"zoo", "layers", "recipes", "export"}:
                raise ImportError(f"{name} is code of the project; an exported model must not need it")

    sys.meta_path.insert(0, Refuse())
    os.environ |= {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    import tensorflow as tf

    if with_tensorflow_text:
        import tensorflow_text  # noqa: F401
    score = tf.saved_model.load(folder).signatures["serving_default"]
    replies = []
    with open(asked) as file:
        for columns in json.load(file):
            inputs = {name: [base64.b64decode(text) for text in texts] for name, texts in columns.items()}
            outputs = score(**{name: tf.constant(texts, tf.string) for name, texts in inputs.items()})
            replies.append({name: output.numpy().tolist() for name, output in outputs.items()})
    with open(answered, "w") as file:
        json.dump(replies, file)


def _encoded(text: str | bytes) -> str:
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def _short(text: tuple) -> str:
    shown = " | ".join(map(repr, text))
    return shown if len(shown) <= 80 else f"{shown[:70]}... ({len(shown)} long)"
