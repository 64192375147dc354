"""Every field of the language has a reader: what a run uses, or what refuses it by name.

`readers` lists them; a field that nothing on this path reads is refused, never silently ignored.
"""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_origin

import pytest
from tests.engine.smallest import GRPO
from tests.house.readers import (
    DISCRIMINATORS,
    ELSEWHERE,
    LATER,
    READERS,
    REFUSED,
    WANTS,
)

import coloop.spec
from coloop.plan.run_check import BEYOND_BACKENDS, check_runs
from coloop.plan.unused import OF_BACKENDS, OF_ENGINES
from coloop.spec.base import Section
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, patch
from coloop.spec.nodes import BaseNode

ENGINE = Path(coloop.spec.__file__).parents[1]


def sections() -> list[type[Any]]:
    """Every section of the language."""
    found: dict[str, type[Any]] = {"LoopSpec": LoopSpec}
    for module in pkgutil.walk_packages(coloop.spec.__path__, "coloop.spec."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Section) and value is not Section:
                found.setdefault(value.__name__, value)
    return list(found.values())


def names_in(path: Path) -> Iterator[str]:
    """Attributes and texts of a module, and what its patterns match."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.MatchClass):
            yield from node.kwd_attrs
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def named_in(reader: str) -> frozenset[str]:
    """Attributes and texts of a module, or of all modules of a package."""
    root = ENGINE / reader
    files = [root] if reader.endswith(".py") else sorted(root.rglob("*.py"))
    assert files, f"{reader}: there is no such module"
    return frozenset(name for file in files for name in names_in(file))


def fields_of(section: type[Any]) -> list[str]:
    """Fields of its own, those that choose it left out."""
    inherited = BaseNode.model_fields if section is not BaseNode else {}
    inherited = inherited if issubclass(section, BaseNode) else {}
    return [
        name
        for name, field in section.model_fields.items()
        if name not in inherited
        and not (name in DISCRIMINATORS and get_origin(field.annotation) is Literal)
    ]


def test_every_section_has_a_line() -> None:
    known = {section.__name__ for section in sections()}

    assert known == READERS.keys() | LATER.keys()
    assert READERS.keys().isdisjoint(LATER)


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.__name__)
def test_every_field_has_a_reader(section: type[Any]) -> None:
    name = section.__name__
    read = frozenset().union(*map(named_in, READERS.get(name, ())))
    fields = [] if name in LATER else fields_of(section)

    unread = {(name, field) for field in fields if field not in read}

    assert sorted(unread - ELSEWHERE.keys() - REFUSED.keys()) == []


def test_the_tables_name_fields_that_there_are() -> None:
    by_name = {section.__name__: section for section in sections()}

    for section, field in (*ELSEWHERE, *REFUSED):
        assert field in by_name[section].model_fields


def test_every_reader_reads_something() -> None:
    by_name = {section.__name__: section for section in sections()}

    for section, readers in READERS.items():
        fields = fields_of(by_name[section])
        for reader in readers:
            assert not fields or not named_in(reader).isdisjoint(fields), f"{section}: {reader}"


@pytest.mark.parametrize("key", REFUSED, ids=".".join)
def test_a_field_that_nothing_reads_is_refused_by_name(key: tuple[str, str]) -> None:
    path, value = REFUSED[key]
    wanted = {**WANTS.get(key[1], {}), path: value}
    changes = [Change(op="set", path=one, value=given) for one, given in wanted.items()]
    parsed = parse(patch(GRPO, changes))
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]

    found = check_runs(parsed.spec)

    fields = {f"nodes.{one.node}.{one.field}" if one.node else one.field for one in found}
    expected = {one.replace("algorithm.", "algorithm.rewards.") for one in wanted}
    assert expected & fields


FINE = [
    (section, field, list(value) if isinstance(value, tuple) else value)
    for section, table in (("training", OF_BACKENDS), ("rollout", OF_ENGINES))
    for field, idle in table.items()
    if field not in WANTS
    for value in idle.fine
]


@pytest.mark.parametrize(("section", "field", "value"), FINE)
def test_a_value_that_says_what_happens_anyway_is_fine(
    section: str, field: str, value: Any
) -> None:
    path = f"nodes.actor.{section}.{field}"
    spec = parse(patch(GRPO, [Change(op="set", path=path, value=value)])).spec
    assert spec is not None

    assert check_runs(spec) == []


BEYOND = [(field, value) for field, values in BEYOND_BACKENDS.items() for value in values]


@pytest.mark.parametrize(("field", "value"), BEYOND)
def test_a_value_beyond_the_backend_is_refused_by_name(field: str, value: Any) -> None:
    path = f"nodes.actor.training.{field}"
    spec = parse(patch(GRPO, [Change(op="set", path=path, value=value)])).spec
    assert spec is not None

    (found,) = check_runs(spec)

    assert (found.code, found.node) == ("run.not_yet_runnable", "actor")
    assert found.field == f"training.{field}"
    assert f"{field}: {value}" in found.message


def test_what_the_backend_does_is_not_refused() -> None:
    for given in (
        {"gradient_checkpointing": True},
        {"dtype": "bfloat16"},
        {"backend": "fsdp2", "reshard_after_forward": True},
        {"backend": "deepspeed", "zero_stage": 3},
    ):
        changes = [
            Change(op="set", path=f"nodes.actor.training.{path}", value=value)
            for path, value in given.items()
        ]
        spec = parse(patch(GRPO, changes)).spec
        assert spec is not None
        assert check_runs(spec) == []
