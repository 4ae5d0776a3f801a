"""The folder that a recipe leaves behind: written once, read by evaluation, export and reports.

``recipe.json`` (every knob, seed, versions, fingerprints of the data), ``vocabulary.txt``, ``model.keras``,
``history.csv`` (and ``pretraining.csv``), ``metrics.json``, ``predictions.tsv``, ``tensorboard/``, ``report.html``,
``README.md``.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import keras
import numpy as np

from zoo.batches import predict_split
from zoo.data import Dataset, Group, Text
from zoo.encoded import encode_split, input_name
from zoo.text import TextEncoder, read_vocabulary, write_vocabulary

_LIBRARIES = ("tensorflow", "keras", "keras-tuner", "numpy")


class Run:
    """A finished run, read from its folder; model and text encoder are loaded when first asked for.

    Attributes:
        folder: where it lies.
        settings: the content of ``recipe.json``.
        metrics: the content of ``metrics.json``: split to metric to value.

    Raises:
        ValueError: if the folder holds no run.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        file = self.folder / "recipe.json"
        if not file.is_file():
            raise ValueError(
                f"A run is a folder with a recipe.json, as `python -m recipes.NAME` writes it. "
                f"Received: folder={str(folder)!r}"
            )
        self.settings = json.loads(file.read_text("utf-8"))
        self.metrics = json.loads((self.folder / "metrics.json").read_text("utf-8"))

    @property
    def splits(self) -> tuple[str, ...]:
        """The scored splits, dev first."""
        return tuple(name for name in self.metrics if name not in ("convention", "training"))

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of a text's fields."""
        return tuple(self.settings["text"]["fields"])

    @property
    def max_query_length(self) -> int:
        """Tokens that are kept of a query's field."""
        return self.settings["text"]["max_query_length"]

    @property
    def max_candidate_length(self) -> int:
        """Tokens that are kept of a candidate's field."""
        return self.settings["text"]["max_candidate_length"]

    @property
    def threshold(self) -> float:
        """Score from which on a pair is labelled a match."""
        return self.settings["threshold"]

    @cached_property
    def text_encoder(self) -> TextEncoder:
        """Strings to ids, with the run's vocabulary."""
        text = self.settings["text"]
        words = read_vocabulary(self.folder / "vocabulary.txt")
        return TextEncoder(words, text["tokenizer"], text["oov_buckets"], text.get("ngram_sizes", ()))

    @cached_property
    def model(self) -> keras.Model:
        """The trained model.

        Raises:
            ValueError: for a run of a scorer that has none, as BM25.
        """
        if self.settings["module"] is None:
            raise ValueError(
                f"The run holds no trained model: {self.settings['model']} is a scorer without weights. "
                f"Received: folder={str(self.folder)!r}"
            )
        importlib.import_module(self.settings["module"])  # registers the layers
        return keras.saving.load_model(self.folder / "model.keras", compile=False)

    def score(self, queries: list[Text], candidates: list[Text]) -> np.ndarray:
        """Scores pairs of texts: ``[n]`` float32; each text is a tuple of its fields."""
        return self.outputs(queries, candidates)["score"]

    def outputs(self, queries: list[Text], candidates: list[Text]) -> dict[str, np.ndarray]:
        """All outputs of the model on pairs of texts, by name: ``[n, ...]`` float32, ``score`` among them."""
        groups = [
            Group(str(number), query, (candidate,), (0.0,))
            for number, (query, candidate) in enumerate(zip(queries, candidates, strict=True))
        ]
        split = encode_split(groups, self.text_encoder, self.fields, self.max_query_length, self.max_candidate_length)
        return predict_split(self.model, split)


def load(folder: str | Path) -> Run:
    """Reads a run; see `Run`."""
    return Run(folder)


def new_folder(root: Path, recipe: str, label: str) -> Path:
    """Makes an empty folder ``root/recipe/<date>-<time>-<label>`` that no other process has.

    What would have to be quoted in a shell becomes a dash, and "1,000" is 1000.
    """
    stem = time.strftime("%Y%m%d-%H%M%S-") + re.sub(r"[^\w.+-]+", "-", label.replace(",", "")).strip("-")
    for number in range(1000):
        folder = root / recipe / (f"{stem}-{number}" if number else stem)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"No free run folder. Received: root={str(root)!r}, label={label!r}")


def discard_empty(folder: Path) -> None:
    """Removes a folder that holds no file."""
    if folder.is_dir() and not any(path.is_file() for path in folder.rglob("*")):
        shutil.rmtree(folder)


def link_latest(run: Run, root: Path) -> bool:
    """Points ``root/latest`` to a run below ``root``, unless that would put less in the place of more.

    The made-up sample does not replace one's own data, nor a training that was interrupted or diverged one that was
    not. Returns whether ``latest`` points to the run.
    """
    latest = root / "latest"
    if (latest / "recipe.json").is_file() and _worth(run) < _worth(Run(latest)):
        return False
    new = root / f".latest-{uuid.uuid4().hex}"  # two commands may end at once
    new.symlink_to(run.folder.relative_to(root), target_is_directory=True)
    new.replace(latest)
    return True


def _worth(run):
    training = run.metrics["training"]
    return not run.settings["data"]["sample"], not (training["interrupted"] or training["diverged"])


def write(
    folder,
    *,
    recipe,
    dataset,
    options,
    seed,
    encoder,
    coverage,
    vector_files,
    model,
    metrics,
    scores,
    threshold,
    pretraining,
    history,
    record,
) -> Run:
    """Writes what a run is loaded from; ``recipe.json`` comes last, so that a folder with it can be loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.json").unlink(missing_ok=True)  # of a training that was interrupted and goes on
    if model is not None:
        write_vocabulary(folder / "vocabulary.txt", encoder.words)
        model.save(folder / "model.keras")
        _write_rows(folder / "history.csv", history, ",")
        if pretraining:
            _write_rows(folder / "pretraining.csv", pretraining, ",")
    _write_rows(folder / "predictions.tsv", _predictions(dataset, scores), "\t")
    convention = {name: getattr(dataset.convention, name) for name in ("ties", "without_positive", "cutoff")}
    _write_json(folder / "metrics.json", metrics | {"convention": convention, "training": record})
    settings = {
        "recipe": recipe.name,
        "model": recipe.model,
        "module": recipe.module,
        "seed": seed,
        "knobs": options.knobs,
        "task": recipe.task,
        "outputs": recipe.outputs,
        "threshold": threshold,
        "data": {
            "name": dataset.name,
            "sample": options.sample,
            "notes": dataset.notes,
            "in_paper": dataset.in_paper,
            "content": content_fingerprint(dataset),
            "files": fingerprints(dataset.files),
        },
        "embeddings": {
            "files": fingerprints(vector_files),
            "coverage": coverage,
        },
        "start": str(options.start.folder) if options.start else None,
        "text": {
            # An earlier run's encoder, where this one started from it, has its own.
            **(encoder.get_config() if encoder else {"tokenizer": recipe.tokenizer, "oov_buckets": recipe.oov_buckets}),
            "reads_unknown": recipe.reads_unknown,
            "fields": dataset.fields,
            "max_query_length": recipe.max_query_length,
            "max_candidate_length": recipe.max_candidate_length,
        },
        "versions": versions(),
        "commit": _commit(),
    }
    _write_json(folder / "recipe.json", settings)
    return Run(folder)


def content_fingerprint(dataset: Dataset) -> str:
    """Hash of all texts and labels of all splits: equal data, however it is named, stored and read."""
    digest = hashlib.sha256()
    for name, groups in sorted(dataset.splits.items()):
        digest.update(name.encode())
        for group in groups:
            digest.update(repr((group.query, group.candidates, group.labels)).encode())
    return digest.hexdigest()


def read_predictions(folder: Path) -> Iterator[dict[str, str]]:
    """The rows of a run's ``predictions.tsv``; texts may be of any length.

    Where a text has several fields, the file has a column for each, named as the model's inputs.
    """
    with (folder / "predictions.tsv").open(encoding="utf-8", newline="\n") as file:
        header = next(file, "").rstrip("\n").split("\t")
        for line in file:
            yield dict(zip(header, line.rstrip("\n").split("\t"), strict=True))


# Of a list of more than _LONG candidates the texts of the best are written; all of pools of 500 would be gigabytes.
_LONG, _SHOWN = 100, 10


def _predictions(dataset, scores):
    """One row per scored pair, texts on one line each; of a long list only the relevant and the best have them."""
    for name, per_group in scores.items():
        for group, values in zip(dataset.splits[name], per_group, strict=True):
            pairs = zip(group.candidates, group.labels, values, strict=True)
            worst_shown = np.sort(values)[-_SHOWN] if len(values) > _LONG else -np.inf
            for candidate, label, score in pairs:
                shown = label > 0 or score >= worst_shown
                yield {
                    "split": name,
                    "group": " ".join(group.id.split()),
                    "label": f"{label:g}",
                    "score": f"{float(score):.6g}",
                } | {
                    input_name(side, field, dataset.fields): " ".join(part.split()) if shown else ""
                    for side, text in (("query", group.query), ("candidate", candidate))
                    for field, part in zip(dataset.fields, text, strict=True)
                }


def _write_rows(path, rows, delimiter):
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        path.write_text("", "utf-8")
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if delimiter == "\t":  # texts hold no tab and no line end: nothing to quote
            writer = csv.DictWriter(
                file, list(first), delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None, lineterminator="\n"
            )
        else:
            writer = csv.DictWriter(file, list(first), lineterminator="\n")
        writer.writeheader()
        writer.writerow(first)
        writer.writerows(rows)


def _write_json(path, content):
    # Renamed into place: a reader, or a kill, never meets half a file.
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    unfinished.replace(path)


def fingerprints(paths: Iterable[Path]) -> dict[str, str]:
    """Path to the hash of the file's content, in the order given."""

    def fingerprint(path):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return {str(path): fingerprint(path) for path in paths}


def versions() -> dict[str, str]:
    """Versions of Python and the libraries that run."""
    return {"python": sys.version.split()[0]} | {name: importlib.metadata.version(name) for name in _LIBRARIES}


def _commit() -> str | None:
    """The commit of the code that ran, where it runs from its own checkout."""
    home = Path(__file__).resolve().parents[1]
    try:
        result = subprocess.run(
            ["git", "-C", str(home), "rev-parse", "--show-toplevel", "HEAD"], capture_output=True, text=True
        )
    except OSError:  # no git on this machine
        return None
    lines = result.stdout.split("\n")
    return lines[1] if result.returncode == 0 and Path(lines[0]) == home else None
