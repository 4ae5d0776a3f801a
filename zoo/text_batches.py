"""A corpus in batches of strings, and a function of each batch on all cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

SIZE = 4096
MOST_THREADS = 8


def batches(texts: Iterable[str]) -> Iterable:
    """TensorFlow strings ``[n]``, n at most ``SIZE``."""
    import tensorflow as tf

    # A lone surrogate, as JSON may hold, becomes bytes that the graph repairs.
    rows = (text.encode("utf-8", "surrogatepass") for text in texts)
    while batch := list(islice(rows, SIZE)):
        yield tf.constant(batch, tf.string)


def in_threads(function: Callable, batches: Iterable) -> Iterable:
    """The function of each batch, in their order. Regular expressions run on one core, so cores take a batch each."""
    workers = min(len(os.sched_getaffinity(0)), MOST_THREADS)
    waiting = iter(batches)
    with ThreadPoolExecutor(workers) as pool:
        # No more than one batch waits, so that a corpus need not fit twice.
        running = deque(pool.submit(function, batch) for batch in islice(waiting, workers + 1))
        while running:
            yield running.popleft().result()
            running.extend(pool.submit(function, batch) for batch in islice(waiting, 1))
