"""Features together: loops that combine at least three, whose rows were worked out by hand from the
language, run for real.

A file of `combinations/` has two documents: the loop, and by step and stage the rows of each time
that the stage ran. A probe's stages come after the step's own; step 0 is the reading before
anything is learned. A score is a column `s` of the dataset's row, so what a filter keeps is known
beforehand. `either` stands where the language leaves it open whether work on rows that nothing uses
is left out.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.validate import validate

FOLDER = Path(__file__).parent / "combinations"
LOOPS = sorted(FOLDER.glob("*.yaml"))
WITHOUT_ROWS = ("credit", "sync", "evaluate")
"""Verbs whose stages hand on no rows of their own."""

Stages = Mapping[str, Any]


def read(path: Path) -> tuple[str, dict[Any, Any]]:
    """The text of the loop, and what is expected of it."""
    loop, _, expected = path.read_text(encoding="utf-8").partition("\n---\n")
    return loop, YAML(typ="safe").load(expected)


def spec_of(text: str) -> LoopSpec:
    parsed = parse(text)
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    return parsed.spec


@pytest.mark.sample(6)
@pytest.mark.parametrize("path", LOOPS, ids=lambda path: path.stem)
def test_every_stage_has_the_rows_that_were_worked_out(
    path: Path, runner: Callable[[str], Any], finished: Callable[[Any], Any]
) -> None:
    text, expected = read(path)
    alerts = expected.pop("alerts", [])
    assert [one.describe() for one in validate(spec_of(text)).diagnostics if one.is_error] == []

    ended = finished(runner(text))

    found: dict[int, dict[str, list[int]]] = {}
    for event in ended.of("stage.finished"):
        if event["stage"].partition(".")[2] not in WITHOUT_ROWS:
            found.setdefault(event["step"], {}).setdefault(event["stage"], []).append(
                event["samples"]
            )
    assert differences(found, expected) == []
    assert set(alerts) <= set(ended.alerts())


def differences(found: Mapping[int, Stages], expected: Mapping[int, Stages]) -> list[str]:
    """By step and stage, what ran and what should have run."""
    said = []
    for step in sorted({*found, *expected}):
        ran, due = found.get(step, {}), expected.get(step, {})
        said += [
            f"step {step}, {stage}: {ran.get(stage)}, by hand {due.get(stage)}"
            for stage in dict.fromkeys([*due, *ran])
            if not is_as_expected(ran.get(stage), due.get(stage))
        ]
    return said


def is_as_expected(ran: list[int] | None, due: Any) -> bool:
    return ran in due["either"] if isinstance(due, Mapping) else ran == due


def test_there_are_thirty_loops() -> None:
    assert len(LOOPS) >= 30
