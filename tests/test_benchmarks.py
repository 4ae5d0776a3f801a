"""What the benchmarks say of how they measured, and what they refuse before they do."""

import argparse
import time

import numpy as np
import pytest

from tests.benchmarks import command_line, growth, measure
from tests.benchmarks.measure import Contestant, Timing


def waiting(seconds):
    held = {"before": np.ones(25_000_000)}  # 200 MB

    def step():
        held["step"] = np.ones(5_000_000)  # 40 MB
        time.sleep(seconds)

    return step


def failing():
    raise OSError("not built")


def test_contestants_are_timed_side_by_side():
    fast, slow = measure.compare(
        [Contestant("fast", waiting, {"seconds": 0.1}), Contestant("slow", waiting, {"seconds": 0.2})],
        rounds=1,
        patience=1,
    )
    assert fast.name == "fast" and 100 <= fast.median < slow.median
    assert fast.samples + fast.disturbed == 1
    assert 40 <= fast.peak < 150


def test_a_contestant_that_fails_is_named():
    with pytest.raises(RuntimeError, match="'broken', which ended with exit code 1"):
        measure.compare([Contestant("broken", failing)], rounds=1)


def test_tables_say_how_few_samples_were_undisturbed():
    timings = [Timing("ours", 2.0, 1.5, 5, 1, 5, 10.0), Timing("peer", 8.0, 7.0, 2, 48, 5, 20.0)]
    _, header, ours, peer = measure.table("title", timings, ["peer"]).splitlines()
    assert header.split()[-2:] == ["x", "peer"]
    assert ours.split() == ["ours", "2.00", "1.50", "10", "4.00"]
    assert peer.endswith("1.00  (2 of 5 undisturbed)")
    *_, row = growth.lines("title", (1, 4), {"search": timings})
    assert row.endswith("1.00  0.50  peer (2 of 5 undisturbed)")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--rounds", "0"], "expected a whole number of at least 1. Received: '0'"),
        (["--json", "/proc/no/such"], "must be a file that can be written. Received: "),
        (["--json", "."], "must be a file that can be written. Received: "),
        ([], "--data"),
    ],
)
def test_wrong_flags_are_refused(capsys, flags, said):
    with pytest.raises(SystemExit):
        command_line.parser("tests.benchmarks", "", rounds=5).parse_args([*(["--data", "."] if flags else []), *flags])
    assert said in capsys.readouterr().err


def test_a_figure_is_of_a_kind_that_can_be_drawn(tmp_path):
    with pytest.raises(argparse.ArgumentTypeError, match="must end with .svg, .png, .pdf. Received: '.*curves.txt'"):
        command_line.figure(str(tmp_path / "curves.txt"))
    assert command_line.figure(str(tmp_path / "curves.svg")).exists() and len(list(tmp_path.iterdir())) == 1


def test_what_is_too_small_to_be_seen_has_no_exponent():
    assert growth.exponent((1, 10, 100), (2, 20, 200)) == "1.00"
    assert growth.exponent((1, 10, 100), (0, 20, 200)) == "-"


def test_what_is_not_there_is_named(capsys):
    parser = command_line.parser("tests.benchmarks", "", rounds=5)
    command_line.require(parser, "numpy")
    with pytest.raises(SystemExit):
        command_line.require(parser, "numpy", "no_such_peer")
    assert "needs no_such_peer: python -m pip install" in capsys.readouterr().err
    command_line.require_match(parser, "ab", ["abc"])
    with pytest.raises(SystemExit):
        command_line.require_match(parser, "abd", ["abc", "bcd"])
    assert "abc\n  bcd\nReceived: 'abd'" in capsys.readouterr().err
