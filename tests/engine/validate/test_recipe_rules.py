"""Each of the nine rules is enforced: a loop that breaks it gets the finding, and the alerts and
tests that are named exist.

`--update-golden` writes the table in the README of `validate`.
"""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.validate.recipe_rules import RULES, Wrong, written

from coloop.explain.codes import page_of
from coloop.spec.algorithm import PREFERENCE_NAMES, PreferenceAlgorithm, resolve_algorithm
from coloop.spec.diagnostics import Report

ENGINE_TESTS = Path(__file__).resolve().parents[1]
README = ENGINE_TESTS.parents[1] / "engine" / "coloop" / "validate" / "README.md"
BEGIN, END = "<!-- rules -->\n", "\n<!-- end of rules -->"
BROKEN = [
    pytest.param(code, wrong, id=f"rule {number}: {code}")
    for number, rule in enumerate(RULES.values(), start=1)
    for code, wrong in rule.wrong.items()
]


@pytest.mark.parametrize(("code", "wrong"), BROKEN)
def test_a_loop_that_breaks_a_rule_is_told_where_and_what_to_do(
    code: str, wrong: Wrong, check: Callable[..., Report]
) -> None:
    base, changes = wrong

    found = check(base, *changes).diagnostics

    [one, *_] = [one for one in found if one.code == code]
    assert one.message
    assert one.node or one.field or one.line
    assert page_of(code) is not None


def test_the_alerts_and_tests_of_the_rules_exist() -> None:
    assert len(RULES) == 9
    for rule in RULES.values():
        assert [code for code in rule.alerts if page_of(code) is None] == []
        for test in rule.tests:
            file, _, name = test.partition("::")
            tree = ast.parse((ENGINE_TESTS / file).read_text(encoding="utf-8"))
            assert name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, test


@pytest.mark.parametrize("name", PREFERENCE_NAMES)
def test_every_preference_loss_sums_or_averages(name: str) -> None:
    assert resolve_algorithm(PreferenceAlgorithm(name=name)).reduce in ("sum", "mean")


def test_the_readme_shows_the_rules(update_golden: bool) -> None:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    shown, _, after = rest.partition(END)
    if update_golden:
        README.write_text(before + BEGIN + written() + END + after, encoding="utf-8")
        return

    assert shown == written(), "write it anew with --update-golden"
