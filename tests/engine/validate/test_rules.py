"""For each rule of the language a loop that breaks it, and gets exactly its finding."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from coloop.explain.codes import LOOPS
from coloop.spec.diagnostics import Report

HERE = Path(__file__).parent
SOUND = sorted(path.stem for path in LOOPS.glob("*.yaml"))
assert SOUND


def _cases() -> Iterator[Any]:
    for path in sorted((HERE / "wrong").glob("*.yaml")):
        for case in YAML(typ="safe").load(path.read_text("utf-8")):
            values = (case["loop"], case["changes"], case["codes"])
            yield pytest.param(*values, id=f"{path.stem}: {case['case']}")


@pytest.mark.parametrize("name", SOUND)
def test_sound_loops_have_no_finding(name: str, check: Callable[..., Report]) -> None:
    report = check(name)

    assert [one.describe() for one in report.diagnostics] == []


@pytest.mark.parametrize(("base", "changes", "codes"), list(_cases()))
def test_a_broken_rule_gets_exactly_its_finding(
    base: str, changes: list[list[Any]], codes: list[str], check: Callable[..., Report]
) -> None:
    report = check(base, *changes)

    assert sorted(one.code for one in report.diagnostics) == sorted(codes), [
        one.describe() for one in report.diagnostics
    ]
