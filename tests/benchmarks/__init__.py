"""Benchmarks: our layers and models beside their peers, and how their cost grows.

TensorFlow starts here, before the modules of a benchmark import it, in each process of a contestant too.
"""

from zoo import quiet_tensorflow  # noqa: F401
