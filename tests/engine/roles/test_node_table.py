"""No kind of node and no way of being it without its proofs; the README of the roles shows them.

`--update-golden` writes the table of the README anew.
"""

import ast
from pathlib import Path

import pytest
from tests.engine.roles import bad_input
from tests.engine.roles import node_table as table
from tests.engine.roles.node_contracts import CONTRACTS
from tests.engine.roles.node_forms import FORMS, METHOD, SOURCES, Form, all_forms, methods_of

from coloop.spec.nodes import KINDS

ENGINE_TESTS = Path(__file__).resolve().parents[1]
README = (
    Path(__file__).resolve().parents[3] / "engine" / "coloop" / "runtime" / "roles" / "README.md"
)
TABLES = {"table": table.written, "bad input": bad_input.written}
"""By the mark in the README, what writes each of its tables."""

AWAY = {("dataset", "hub")}
"""What no whole run of the tests has: rows of a hub want a network."""


def test_every_kind_and_every_method_has_a_row() -> None:
    assert set(FORMS) == {*KINDS, "rounds"}
    for kind in (*METHOD, *SOURCES):
        assert {form.partition(",")[0] for form in FORMS[kind]} == methods_of(kind), kind


@pytest.mark.parametrize("form", all_forms())
def test_a_form_is_proved(form: Form) -> None:
    assert CONTRACTS[form]
    assert form in table.on_cpu() or form in AWAY


def test_the_tests_that_are_named_are_there() -> None:
    named = {
        test for listed in (CONTRACTS, bad_input.BAD) for tests in listed.values() for test in tests
    }
    there = {
        f"{file}::{node.name}"
        for file in {test.partition("::")[0] for test in named}
        for node in ast.parse((ENGINE_TESTS / file).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }

    assert sorted(named - there) == []


@pytest.mark.parametrize("mark", TABLES)
def test_the_readme_shows_the_table(mark: str, update_golden: bool) -> None:
    text = README.read_text(encoding="utf-8")
    begin, end = f"<!-- {mark} -->\n", f"\n<!-- end of {mark} -->"
    before, _, rest = text.partition(begin)
    shown, _, after = rest.partition(end)
    if update_golden:
        README.write_text(before + begin + TABLES[mark]() + end + after, encoding="utf-8")
        return

    assert shown == TABLES[mark](), "write it anew with --update-golden"
