"""What libraries write to file descriptor 2 is held back, unless something fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from zoo.quiet_tensorflow import held_stderr

ROOT = Path(__file__).parents[1]


def test_what_is_written_is_held_back(capfd):
    with held_stderr():
        os.write(2, b"of no use\n")
    os.write(2, b"of use\n")
    assert capfd.readouterr().err == "of use\n"


def test_it_is_shown_if_what_runs_fails(capfd):
    with pytest.raises(ImportError, match="no such library"), held_stderr():
        os.write(2, b"the reason\n")
        raise ImportError("no such library")
    assert capfd.readouterr().err == "the reason\n"


def test_a_process_without_stderr_starts():
    code = "import os, sys; sys.stderr = None; os.close(2); import zoo.quiet_tensorflow"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("level, shown", [(None, False), ("0", True)])
def test_commands_start_without_the_lines_of_tensorflow(level, shown):
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    environment |= {} if level is None else {"TF_CPP_MIN_LOG_LEVEL": level}
    done = subprocess.run(
        [sys.executable, "-c", "import recipes, tensorflow as tf; tf.constant(1) + 1"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and bool(done.stderr) is shown, done.stderr
