"""Noisy pairs at scale: seconds and memory to read and index made-up questions, and pairs drawn a second.

    python -m tests.benchmarks.noisy_pairs 1000000

A cluster is five questions of five words of their own topic and three more each, by a Zipf law over 200,000 words.
Measured on one shared core, CPU seconds, the making of the questions included; memory beyond that of the libraries:

| questions | read and indexed | memory | pairs a second |
|---|---|---|---|
| 1,000,000 | 16 s | 0.66 GB | 153,000 |
| 10,000,000 | 173 s | 6.3 GB | 128,000 |

Reading, memory and the index grow with the number of questions: Paralex's 36 million pairs, were each question new,
would take some 10 minutes and 23 GB.
"""

import time

import numpy as np

from tests.benchmarks.measure import memory_from_here
from zoo.arguments import Parser, positive
from zoo.noisy_pairs import BLOCK, Corpus

WORDS, CLUSTER = 200_000, 5


def questions(count, seed=0):
    """Pairs of cluster and question."""
    random = np.random.default_rng(seed)
    words = np.array([f"w{number}" for number in range(WORDS)])
    made = 0
    while made < count:
        topics = np.minimum(random.zipf(1.3, (10_000, 5)), WORDS) - 1
        further = np.minimum(random.zipf(1.2, (10_000, CLUSTER, 3)), WORDS) - 1
        for number, topic in enumerate(topics):
            head = " ".join(words[topic])
            for tail in further[number]:
                yield made // CLUSTER, f"{head} {' '.join(words[tail])}"
                made += 1
                if made == count:
                    return


def main():
    """Prints two lines."""
    parser = Parser("python -m tests.benchmarks.noisy_pairs")
    parser.add_argument("count", type=positive, help="of questions")
    count = parser.parse_args().count
    start, peak = time.process_time(), memory_from_here()
    corpus = Corpus(questions(count))
    indexed = time.process_time()
    print(f"{len(corpus):,} questions read and indexed in {indexed - start:.0f} s", flush=True)
    kinds = np.zeros(4, "int64")
    for block in corpus.blocks(1, 10 * BLOCK):
        kinds += np.bincount(block.kind, minlength=4)
    seconds = time.process_time() - indexed
    print(f"{kinds.sum() / seconds:,.0f} pairs a second, positives and kinds {kinds.tolist()}; {peak() / 1000:.2f} GB")


if __name__ == "__main__":
    main()
