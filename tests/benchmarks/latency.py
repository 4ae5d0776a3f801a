"""Milliseconds of one request with one pair of strings, the exported model being called in this process.

    python -m tests.benchmarks.latency served/1

The pair is that of `sample_request.json` beside the version folder. Half of the calls are below the p50, 99 of 100
below the p99; seconds are of the clock, so that they hold for the machine as it was then.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

CALLS, WARM_UP = 2000, 200


def main():
    """Prints one line."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.latency")
    parser.add_argument("version", type=Path)
    version = parser.parse_args().version
    request = json.loads((version.parent / "sample_request.json").read_text("utf-8"))["instances"][0]
    score = tf.saved_model.load(str(version)).signatures["serving_default"]
    inputs = {name: tf.constant([text]) for name, text in request.items()}
    seconds = []
    for _ in range(WARM_UP + CALLS):
        before = time.perf_counter()
        score(**inputs)["score"].numpy()
        seconds.append(time.perf_counter() - before)
    p50, p99 = 1000 * np.percentile(seconds[WARM_UP:], [50, 99])
    print(f"{CALLS} requests of one pair: p50 {p50:.2f} ms, p99 {p99:.2f} ms")


if __name__ == "__main__":
    main()
