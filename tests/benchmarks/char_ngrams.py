"""Seconds of a training step of DecAtt over character n-grams, by the number of rows of the table.

    python -m tests.benchmarks.char_ngrams --data DIR 100000 1000000

On Quora's pairs, 64 a batch, 400 and 200 units, 300 numbers a row, Adagrad; CPU time, which other processes on the
machine do not add to but do slow down. Measured on one shared core: 0.32 s with 100,000 rows and 0.25 s with 1,000,000,
so that the difference is the noise of the machine, and the table's size has no part in a step.
"""

import argparse
import time
from pathlib import Path

import keras

from zoo import losses, optimizers
from zoo.batches import Batches
from zoo.datasets import quora
from zoo.encoded import encode_split
from zoo.models.decatt import decatt
from zoo.text import TextEncoder

STEPS, WARM_UP = 10, 2


def main():
    """Prints one line per size."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.char_ngrams")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("rows", type=int, nargs="+")
    flags = parser.parse_args()
    pairs = quora.in_both_orders(quora.draw(quora.load(flags.data).splits["train"], 3000))
    for rows in flags.rows:
        encoder = TextEncoder([], oov_buckets=rows, ngram_sizes=(5,))
        batches = Batches(encode_split(pairs, encoder, ("text",), 50, 50), 64, shuffle_seed=1)
        keras.utils.set_random_seed(1)
        model = decatt((encoder.vocabulary_size, 300), char_ngrams=True)
        model.compile(optimizer=optimizers.Adagrad(0.1), loss=losses.pointwise, jit_compile=False)
        for number in range(1, 1 + WARM_UP + STEPS):
            if number == 1 + WARM_UP:
                start = time.process_time()
            model.train_on_batch(*batches[number])
        print(f"{rows:,} rows: {(time.process_time() - start) / STEPS:.2f} s a step", flush=True)


if __name__ == "__main__":
    main()
