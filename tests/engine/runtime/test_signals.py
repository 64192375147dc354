"""Each alert about learning stands in the README of the runtime, beside what it looks at.

`--update-golden` writes the table of the README anew.
"""

from pathlib import Path

import pytest

from coloop.runtime.health.symptoms import SYMPTOMS, Symptom
from coloop.spec.metrics import METRICS, PROBE_METRICS, Metric

README = Path(__file__).resolve().parents[3] / "engine" / "coloop" / "runtime" / "README.md"
BEGIN, END = "<!-- signals -->\n", "\n<!-- end of signals -->"
HEAD = "| alert | metric | expected | readings |"


def looked_at(symptom: Symptom) -> tuple[str, Metric]:
    """The metric of an alert, as the catalog has it."""
    name = symptom.about or symptom.metric
    return name, METRICS.get(name) or PROBE_METRICS[name]


def written() -> str:
    """As the README has it."""
    lines = [HEAD, "|---|---|---|---|"]
    for symptom in SYMPTOMS:
        name, metric = looked_at(symptom)
        level = "red" if symptom.level == "error" else "yellow"
        cells = (f"`{symptom.code}` ({level})", f"`{name}`", metric.expect, f"{symptom.patience}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda one: one.code)
def test_what_an_alert_looks_at_is_in_the_catalog(symptom: Symptom) -> None:
    _, metric = looked_at(symptom)

    assert metric.expect
    assert symptom.hint
    assert symptom.patience >= 3


def test_the_readme_shows_the_alerts(update_golden: bool) -> None:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    shown, _, after = rest.partition(END)
    if update_golden:
        README.write_text(before + BEGIN + written() + END + after, encoding="utf-8")
        return

    assert shown == written(), "write it anew with --update-golden"
