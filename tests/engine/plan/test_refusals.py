"""What is drawn of scorers, searches and tools and not carried out is refused by name, with a way
out; and there is a loop for every refusal."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.engine.plan.refusals import ALL, MORE, refused_loop

from coloop.plan import refusals
from coloop.plan.compile import compile_plan
from coloop.plan.refusals import cause_of
from coloop.plan.run_check import check_runs

SAYS = {refusals: ("refusal",)}
"""By module, what it refuses with."""
GUARDS = ("nodes of kind", "rewards of type", "algorithm `")
"""Refusals of what the language has and a version may lack; this one lacks none."""

Place = tuple[str, int]


@pytest.mark.parametrize("what", MORE)
def test_what_no_run_carries_out_is_refused_by_name(what: str) -> None:
    spec = refused_loop(what)

    compile_plan(spec)
    found = {cause_of(one.message): one for one in check_runs(spec)}

    refusal = found[what]
    assert refusal.code == "run.not_yet_runnable"
    assert refusal.hint


def test_every_refusal_is_met_by_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    met: set[Place] = set()
    for module, names in SAYS.items():
        for name in names:
            monkeypatch.setattr(module, name, _noting(getattr(module, name), met))

    for what in ALL:
        check_runs(refused_loop(what))

    refused = {place: said for module in SAYS for place, said in _refusals_in(module)}
    assert {place: said for place, said in refused.items() if place not in met} == {}


def _noting(say: Any, met: set[Place]) -> Any:
    """The same, noting from where it is called."""

    def noted(*given: Any, **named: Any) -> Any:
        caller = sys._getframe(1)
        met.add((Path(caller.f_code.co_filename).name, caller.f_lineno))
        return say(*given, **named)

    return noted


def _refusals_in(module: ModuleType) -> Iterator[tuple[Place, str]]:
    """Where a module refuses something, and the call as it is written."""
    path = Path(str(module.__file__))
    text = path.read_text(encoding="utf-8")
    for function in ast.parse(text).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SAYS[module]:
                said = ast.get_source_segment(text, node) or ""
                if not any(guard in said for guard in GUARDS):
                    yield (path.name, node.lineno), said
