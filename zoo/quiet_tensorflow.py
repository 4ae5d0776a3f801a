"""Importing this starts TensorFlow without the lines that it writes of its build and of devices that are not there.

No setting silences them all (2.21), and a command's refusal should be one line. Commands import it before anything that
imports TensorFlow. ``TF_CPP_MIN_LOG_LEVEL=0`` or ``1`` lets the lines through.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def held_stderr() -> Iterator[None]:
    """Holds back what is written to file descriptor 2, by whatever library; shows it if an exception is raised."""
    if sys.stderr is None:  # closed by what started the process
        yield
        return
    sys.stderr.flush()
    shown = os.dup(2)
    with open(os.memfd_create("stderr"), "w+b") as held:
        os.dup2(held.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            sys.stderr.flush()
            os.dup2(shown, 2)
            os.close(shown)
            if failed:
                held.seek(0)
                with open(2, "wb", closefd=False) as stderr:
                    shutil.copyfileobj(held, stderr)


def _start() -> None:
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") in ("0", "1"):
        return
    with held_stderr():
        import tensorflow as tf

        # Scoring traces a step for few shapes, then for any; it warns of the few.
        tf.get_logger().addFilter(lambda record: "triggered tf.function retracing" not in record.getMessage())
        gpus = tf.config.list_physical_devices("GPU")  # tells if there is none
    if not gpus and glob.glob("/dev/nvidia[0-9]*"):
        print("note: TensorFlow does not use this machine's GPU; TF_CPP_MIN_LOG_LEVEL=0 shows why", file=sys.stderr)


_start()
