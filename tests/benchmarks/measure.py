"""Side-by-side timing: every contestant in a process of its own, one call at a time in turn, disturbed calls repeated.

Two libraries in one process share its threads and memory, and a machine's speed drifts from minute to minute; so each
contestant is built in a fresh process, all of them wait, and each is asked for one sample after the other. A sample
counts only while other processes took less than 8 % of a core.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import multiprocessing
import platform
import signal
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np

OTHERS = 0.08  # of a core
SAMPLE = 0.3  # seconds at least, for the machine's own count of CPU time has steps of 0.01 s
WARM_UP = 3
_LIBRARIES = ("tensorflow", "keras", "torch", "onnxruntime", "numpy")


@dataclasses.dataclass(frozen=True)
class Contestant:
    """What is timed.

    Attributes:
        name: its row of the table.
        make: function of a module, which a fresh process calls: it gives a function without arguments, one step.
        arguments: of `make`, by name.
    """

    name: str
    make: Callable
    arguments: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds of one step, of the samples that count, and how they were come by.

    Attributes:
        name: of the contestant.
        median, minimum: milliseconds.
        samples, disturbed: how many were not disturbed, and how many were.
        wanted: how many undisturbed ones were asked for.
        peak: megabytes of memory that the steps added to what the process held before its first, at their highest.
    """

    name: str
    median: float
    minimum: float
    samples: int
    disturbed: int
    wanted: int
    peak: float

    @property
    def note(self) -> str:
        """Empty where as many samples counted as were asked for."""
        return "" if self.samples == self.wanted else f"({self.samples} of {self.wanted} undisturbed)"


def compare(contestants: Sequence[Contestant], rounds: int = 7, patience: int = 10) -> list[Timing]:
    """Times the contestants in turn until each has ``rounds`` samples that count.

    Args:
        contestants: what is timed.
        rounds: samples of each.
        patience: how many times as many are tried. Where fewer are undisturbed these count alone, or all
            where none is; tables say so.

    Raises:
        RuntimeError: if a contestant fails; what it raised was printed by its process, which says nothing where the
            system ended it for want of memory.
    """
    context = multiprocessing.get_context("spawn")
    runners = []
    try:
        for contestant in contestants:
            ours, theirs = context.Pipe()
            process = context.Process(target=_run, args=(theirs, contestant), daemon=True)
            process.start()
            theirs.close()
            runners.append((process, ours))
            _received(runners[-1], contestant)  # built and warm, before the next one takes the machine
        counted, disturbed = [[] for _ in runners], [[] for _ in runners]
        peaks = [0.0] * len(runners)
        for _ in range(rounds * patience):
            for number, (runner, contestant) in enumerate(zip(runners, contestants, strict=True)):
                if len(counted[number]) == rounds:
                    continue
                busy, start = _busy(), time.perf_counter()
                seconds, cpu, peaks[number] = _sample(runner, contestant)
                others = (_busy() - busy - cpu) / (time.perf_counter() - start)
                (counted if others < OTHERS else disturbed)[number].append(1000 * seconds)
    finally:
        for process, pipe in runners:
            pipe.close()
            process.join(10)
    timings = []
    for number, contestant in enumerate(contestants):
        taken = counted[number] or disturbed[number]
        timings.append(
            Timing(
                contestant.name,
                float(np.median(taken)),
                min(taken),
                len(counted[number]),
                len(disturbed[number]),
                rounds,
                peaks[number],
            )
        )
    return timings


def _sample(runner, contestant):
    with contextlib.suppress(OSError):  # of a process that has ended; the receiver says so
        runner[1].send(True)
    return _received(runner, contestant)


def _received(runner, contestant):
    process, pipe = runner
    try:
        return pipe.recv()
    except (EOFError, OSError):
        process.join()
        of_memory = ": killed, most likely because all contestants together need more memory than there is"
        raise RuntimeError(
            f"A contestant must run. Received: {contestant.name!r}, which ended with exit code {process.exitcode}"
            f"{of_memory if process.exitcode == -signal.SIGKILL else ''}"
        ) from None


def _run(pipe, contestant):
    step = contestant.make(**contestant.arguments)
    peak = memory_from_here()
    for _ in range(WARM_UP):
        step()
    start = time.perf_counter()
    step()
    number = math.ceil(SAMPLE / (time.perf_counter() - start))
    pipe.send(None)
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(number):
            step()
        seconds = time.perf_counter() - start
        pipe.send((seconds / number, time.process_time() - cpu, peak()))


def _busy():
    import psutil

    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0) - getattr(times, "guest", 0)


def memory_from_here() -> Callable[[], float]:
    """A function that tells how many megabytes the process has taken, at the most, since it was made."""
    before = _megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # the highest so far begins anew
    return lambda: _megabytes("VmHWM") - before


def _megabytes(name):
    """``VmRSS``, or its highest, ``VmHWM``."""
    line = next(line for line in Path("/proc/self/status").read_text("utf-8").splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def table(title: str, timings: Sequence[Timing], bases: Sequence[str]) -> str:
    """The timings as lines of text; each base has a column of how many times faster a row is than it."""
    known = {timing.name: timing for timing in timings}
    wide = max(len(timing.name) for timing in timings)
    lines = [title, f"{'':{wide}}  {'ms':>9} {'least':>9} {'MB':>7}" + "".join(f"  x {base}" for base in bases)]
    for timing in timings:
        ratios = "".join(
            f"  {f'{known[base].median / timing.median:.2f}':>{len(base) + 2}}" for base in bases if base in known
        )
        cells = f"{timing.name:{wide}}  {timing.median:9.2f} {timing.minimum:9.2f} {timing.peak:7.0f}{ratios}"
        lines.append(f"{cells}  {timing.note}".rstrip())
    return "\n".join(lines)


def machine() -> str:
    """The machine, its threads and the libraries, in one line."""
    import psutil

    found = [f"{name} {metadata.version(name)}" for name in _LIBRARIES if _is_installed(name)]
    return f"{platform.machine()}, {psutil.cpu_count()} threads, Python {platform.python_version()}, {', '.join(found)}"


def _is_installed(name):
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


def write_json(path: Path, tables: dict[str, Sequence[Timing]]) -> None:
    """All timings, and the machine, as JSON."""
    rows = {title: [dataclasses.asdict(timing) for timing in timings] for title, timings in tables.items()}
    path.write_text(json.dumps({"machine": machine(), "tables": rows}, indent=1) + "\n", "utf-8")
