"""Every command of the README runs, in its order, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PORT = 18_531


def commands():
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


def test_readme_commands_run(tmp_path):
    lines = commands()
    assert len(lines) >= 9
    assert any("export.server" in line for line in lines) and any("curl" in line for line in lines)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    server = None
    try:
        for line in lines:
            # Training is cut short and the port is moved out of the way; all else is as the README has it.
            line = line.replace("8501", str(PORT))
            if "recipes." in line:
                line += " --epochs 1"
            if "export.server" in line:
                server = subprocess.Popen(
                    shlex.split(line), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
                )
                assert re.search(r"served.*18531|18531.*served", ready := server.stdout.readline()), ready
                continue
            if "export.client" in line:
                line = line.replace("--name served", f"--url http://127.0.0.1:{PORT} --name served")
            started = time.monotonic()
            done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            assert "error" not in done.stdout, f"{line}\n{done.stdout}"
            print(f"{time.monotonic() - started:.0f} s  {line}")
    finally:
        if server is not None:
            server.terminate()
            server.wait(30)
    assert (tmp_path / "served" / "1" / "saved_model.pb").is_file()


@pytest.mark.parametrize("target", ["venv", "demo", "test"])
def test_make_targets_that_the_readme_names_exist(target):
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
