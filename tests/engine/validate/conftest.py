"""Loops to check and ways to spoil them.

A variant is one of the loops that help is explained with, and changes of it
(`coloop.explain.codes`).
"""

import io
from collections.abc import Callable
from typing import Any

import pytest
from ruamel.yaml import YAML

from coloop.explain.codes import LOOPS, changed, ends
from coloop.spec.diagnostics import Diagnostic, Report
from coloop.spec.io import parse
from coloop.validate import validate

__all__ = ["LOOPS", "as_text", "changed", "ends"]

Check = Callable[..., Report]


def as_text(document: dict[str, Any]) -> str:
    """A loop as YAML."""
    stream = io.StringIO()
    yaml = YAML()
    yaml.representer.ignore_aliases = lambda _: True
    yaml.dump(document, stream)
    return stream.getvalue()


@pytest.fixture(name="changed")
def _changed() -> Callable[..., dict[str, Any]]:
    return changed


@pytest.fixture
def text() -> Callable[[dict[str, Any]], str]:
    return as_text


@pytest.fixture
def check() -> Check:
    """Read and validate a loop with changes; problems of reading come first."""

    def run(base: str, *changes: tuple[Any, ...], **options: Any) -> Report:
        parsed = parse(as_text(changed(base, *changes)))
        if parsed.spec is None:
            return Report(diagnostics=parsed.diagnostics)
        report = validate(parsed.spec, **options)
        return Report(diagnostics=(*parsed.diagnostics, *report.diagnostics))

    return run


@pytest.fixture
def finding(check: Check) -> Callable[..., Diagnostic]:
    """The one finding about a loop with changes, whose models' folders are nowhere."""

    def run(base: str, *changes: tuple[Any, ...], **options: Any) -> Diagnostic:
        found = check(base, *changes, **options).diagnostics
        diagnostics = [one for one in found if one.code != "memory.unknown"]
        assert len(diagnostics) == 1, [one.describe() for one in diagnostics]
        return diagnostics[0]

    return run
