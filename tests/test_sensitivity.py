"""The report of a search draws one curve per knob that was searched and split that was scored."""

from types import SimpleNamespace

from zoo import sensitivity


def trial(dev, **knobs):
    settings = {"recipe": "r", "model": "m", "data": {"name": "<data>"}, "knobs": {"model": "m"} | knobs}
    metrics = {"dev": {"p@1": dev}, "test": {"p@1": dev / 2}}
    return SimpleNamespace(settings=settings, metrics=metrics, splits=("dev", "test"))


TRIALS = [
    trial(0.5, group_size=4, heads=2, scale="head", rate=1e-3, gate=True),
    trial(0.25, group_size=10, heads=2, scale="model", rate=2e-4, gate=False),
]


def test_only_knobs_that_differ_are_drawn():
    assert sensitivity.searched(TRIALS) == ["group_size", "scale", "rate", "gate"]
    assert sensitivity.searched(TRIALS[:1]) == []


def test_report(tmp_path):
    text = sensitivity.write(TRIALS, tmp_path, "p@1").read_text("utf-8")
    assert text.count("<svg") == 1 and "&lt;data&gt;" in text and "<data>" not in text
    rows = text[text.index("<table>") :]
    assert "<td>group_size</td>" in rows and "<td>0.5000</td><td>0.2500</td>" in rows and "<td>0.0002</td>" in rows
    assert "<svg" not in sensitivity.write(TRIALS[:1], tmp_path, "p@1").read_text("utf-8")
