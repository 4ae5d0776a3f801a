"""Ask a served model: TensorFlow Serving, or the local server of this package.

    python -m export.client --url http://127.0.0.1:8501/v1/models/NAME --query "..." --candidate "..." "..."

Where texts have several fields, as the title and body of a question, name them in their order by --fields title body;
a tab parts them in a text.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import requests

from zoo.arguments import Parser

DEFAULT_URL = "http://127.0.0.1:8501"
Text = str | Mapping[str, str]


class ServingError(RuntimeError):
    """No server, an unknown model, or a request that the server refuses."""


class Answer(NamedTuple):
    """One candidate of a ranking.

    Attributes:
        candidate: as it was given.
        score: greater is better; the log-odds of a match where there is a probability.
        probability: of a match, None where the model's task has none.
    """

    candidate: Text
    score: float
    probability: float | None


class Client:
    """Scores and ranks candidates for a query over REST.

    Args:
        url: where the server listens, ``http://host:port``, or with the model, ``http://host:port/v1/models/NAME``.
        name: the model's name; needed if ``url`` does not hold it.
        version: a version number; the server's choice, its newest, if not given.
        timeout: seconds to wait for a connection and for a reply.

    A text is a string, or a mapping of field to string where the model's texts have several fields.

    Raises:
        ValueError: if no model is named.
        ServingError: from every method, if the server cannot be reached or refuses.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        name: str | None = None,
        *,
        version: int | None = None,
        timeout: float = 10.0,
    ):
        base, _, rest = url.removesuffix(":predict").partition("/v1/models/")
        in_url, _, number = rest.partition("/versions/")
        name, version = name or in_url, version or (int(number) if number.isdecimal() else None)
        if not name:
            raise ValueError(
                "A model must be named, by name=... or in the URL, http://host:port/v1/models/NAME. "
                f"Received: url={url!r}"
            )
        self.name, self.timeout = name, timeout
        self._server = base.rstrip("/")
        self._model = f"{self._server}/v1/models/{quote(name, safe='')}"
        self._path = self._model if version is None else f"{self._model}/versions/{version}"
        self._session = requests.Session()
        # A proxy of the environment cannot reach a server of this machine.
        self._session.trust_env = urlsplit(base).hostname not in ("localhost", "127.0.0.1", "::1")

    def score(self, query: Text, candidates: Sequence[Text]) -> list[float]:
        """How well each candidate matches the query, in the order of the candidates."""
        return [answer.score for answer in self._ask(query, candidates)]

    def rank(self, query: Text, candidates: Sequence[Text]) -> list[Answer]:
        """The candidates, best first; equal scores stay in the order given."""
        return sorted(self._ask(query, candidates), key=lambda answer: -answer.score)

    def predict(self, inputs: Mapping[str, list], signature: str = "serving_default") -> dict[str, list]:
        """Calls any signature with columns of inputs and returns its columns of outputs."""
        url = f"{self._path}:predict"
        reply = self._call("POST", url, {"signature_name": signature, "inputs": inputs})
        if "outputs" not in reply:
            raise ServingError(f"The server must answer with outputs. Received: url={url!r}, reply={reply!r:.200}")
        outputs = reply["outputs"]
        # A signature with one output is answered without its name.
        return outputs if isinstance(outputs, dict) else {"": outputs}

    def status(self) -> dict[int, str]:
        """State of each version that the server knows, ``"AVAILABLE"`` where it answers."""
        reply = self._call("GET", self._path)
        return {int(entry["version"]): entry["state"] for entry in reply["model_version_status"]}

    def _ask(self, query, candidates):
        candidates = list(candidates)
        if not candidates:
            return []
        inputs = _columns("query", [query] * len(candidates)) | _columns("candidate", candidates)
        outputs = self.predict(inputs)
        scores = outputs["score"] if "score" in outputs else outputs[""]  # the only output comes without its name
        return list(map(Answer, candidates, scores, outputs.get("probability", [None] * len(scores))))

    def _call(self, method, url, content: Any = None):
        try:
            reply = self._session.request(method, url, json=content, timeout=self.timeout)
        except requests.Timeout:
            raise ServingError(f"No reply within {self.timeout:g} s. Received: url={url!r}") from None
        except requests.ConnectionError as error:
            raise ServingError(
                f"No server answers; start one with `python -m export.server FOLDER`. Received: url={url!r} ({error})"
            ) from None
        except requests.RequestException as error:
            raise ServingError(f"The address must be that of a server. Received: url={url!r} ({error})") from None
        try:
            parsed = reply.json()
        except requests.JSONDecodeError:
            parsed = {"error": reply.text[:200]}
        if not reply.ok:
            hint = f"; is the model called {self.name!r} there?" if reply.status_code == 404 else ""
            message = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
            raise ServingError(f"The server refused with {reply.status_code}: {message}{hint} Received: url={url!r}")
        return parsed


def _columns(side, texts):
    if all(isinstance(text, str) for text in texts):
        return {side: texts}
    if not all(isinstance(text, Mapping) and text.keys() == texts[0].keys() for text in texts):
        raise ValueError(f"The texts of a request must have the same fields. Received: {side}={texts!r}")
    return {f"{side}_{field}": [text[field] for text in texts] for field in texts[0]}


def _in_fields(text: str, fields: Sequence[str] | None) -> Text:
    """A text of the command line; fields that it lacks are empty."""
    if not fields:
        return text
    parts = text.split("\t", len(fields) - 1)
    return dict(zip(fields, parts + [""] * (len(fields) - len(parts)), strict=True))


def main(arguments: list[str] | None = None) -> int:
    """Asks one question and prints the candidates ranked; returns the exit code."""
    parser = Parser("python -m export.client", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--url", default=DEFAULT_URL, help="http://host:port or http://host:port/v1/models/NAME")
    parser.add_argument("--name", help="the model's name, if the URL does not hold it")
    parser.add_argument("--query", required=True)
    parser.add_argument("--candidate", required=True, action="extend", nargs="+", help="may be given several times")
    parser.add_argument("--fields", nargs="+", metavar="FIELD", help="names of a text's fields, a tab between them")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds")
    options = parser.parse_args(arguments)
    try:
        client = Client(options.url, options.name, timeout=options.timeout)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        query, *candidates = (_in_fields(text, options.fields) for text in (options.query, *options.candidate))
        answers = client.rank(query, candidates)
    except ServingError as error:
        print(error, file=sys.stderr)
        return 1
    for place, answer in enumerate(answers, start=1):
        probability = "" if answer.probability is None else f"probability {answer.probability:.3f}  "
        shown = answer.candidate if isinstance(answer.candidate, str) else " | ".join(answer.candidate.values())
        print(f"{place:3}. {probability}score {answer.score:+.3f}  {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
