"""Loops to check and ways to spoil them.

A variant is a loop of `loops/` with changes, written as data so that cases can be listed:
`(set, path, value)`, `(del, path)`, `(add, edge)`, `(cut, edge)`, `(edge, edge, options)`.
"""

import copy
import functools
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from coloop.diagnostics import Diagnostic, Report
from coloop.spec.io import parse
from coloop.validate import validate

LOOPS = Path(__file__).parent / "loops"

Check = Callable[..., Report]


@functools.cache
def _load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load((LOOPS / f"{name}.yaml").read_text("utf-8"))
    return loaded


def _ends(edge: Any) -> str:
    if isinstance(edge, str):
        return " -> ".join(side.strip() for side in edge.split("->"))
    return f"{edge['from']} -> {edge['to']}"


def _owner(document: Any, path: str) -> tuple[Any, Any]:
    """The mapping or list that holds the last part of a path, and that part."""
    here, parts = document, split(path)
    for part in parts[:-1]:
        here = here[int(part)] if isinstance(here, list) else here.setdefault(part, {})
    last: Any = parts[-1]
    return here, int(last) if isinstance(here, list) else last


def split(path: str) -> list[str]:
    """Parts of a path; a quoted part (`set."nodes.a.b"`) is one."""
    parts: list[str] = []
    for index, chunk in enumerate(path.split('"')):
        parts += [chunk] if index % 2 else [part for part in chunk.split(".") if part]
    return parts


def changed(base: str, *changes: tuple[Any, ...]) -> dict[str, Any]:
    """A loop of `loops/` with changes."""
    document = copy.deepcopy(_load(base))
    edges = document["edges"]
    for what, *rest in changes:
        if what == "add":
            edges.append(rest[0])
        elif what == "cut":
            kept = [edge for edge in edges if _ends(edge) != rest[0]]
            assert len(kept) < len(edges), f"no edge {rest[0]}"
            edges[:] = kept
        elif what == "edge":
            index = next(i for i, edge in enumerate(edges) if _ends(edge) == rest[0])
            source, target = rest[0].split(" -> ")
            old = edges[index] if isinstance(edges[index], dict) else {"from": source, "to": target}
            merged = {**old, **rest[1]}
            edges[index] = {key: value for key, value in merged.items() if value is not None}
        else:
            owner, key = _owner(document, rest[0])
            if what == "del":
                del owner[key]
            else:
                owner[key] = copy.deepcopy(rest[1])
    return document


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
    """The one finding about a loop with changes."""

    def run(base: str, *changes: tuple[Any, ...], **options: Any) -> Diagnostic:
        diagnostics = check(base, *changes, **options).diagnostics
        assert len(diagnostics) == 1, [one.describe() for one in diagnostics]
        return diagnostics[0]

    return run
