"""No algorithm of the language without its proofs; the README of the recipes shows them.

`--update-golden` writes the table of the README anew.
"""

from pathlib import Path

import pytest
from tests.engine.recipes import literals, table

from coloop.algorithms.recipes import RECIPES

README = (
    Path(__file__).resolve().parents[3]
    / "engine"
    / "coloop"
    / "algorithms"
    / "recipes"
    / "README.md"
)
TABLES = {
    "table": table.written,
    "parity": table.parity_written,
}
"""Written tables by their mark in the README."""


@pytest.mark.parametrize("name", [name for name in table.FAMILIES if table.is_policys(name)])
def test_an_algorithm_of_a_policy_is_proved(name: str) -> None:
    assert name in RECIPES
    assert table.golden(name) or name in table.WITHOUT_GOLDEN, "no golden numbers of it"
    assert name in table.invariant(), "nothing holds its loss against micro-batches"


@pytest.mark.parametrize("name", table.FAMILIES)
def test_an_algorithm_is_run_and_learned_by(name: str) -> None:
    assert name in table.in_short_runs(), "no run takes a few steps by it"
    assert name in table.learning(), "no slow test asks that it learns"


def test_every_recipe_is_held_against_micro_batches() -> None:
    assert set(RECIPES) <= table.invariant()


@pytest.mark.parametrize("name", RECIPES)
def test_each_part_of_an_algorithm_is_held_by_literal_numbers(name: str) -> None:
    assert literals.held(name) == literals.parts(name), "write a test and declare it"


@pytest.mark.parametrize("one", literals.DECLARED, ids=str)
def test_what_declares_literal_numbers_fails_where_the_algorithm_is_off(
    one: literals.Literal,
) -> None:
    own = literals.parts(one.algorithm)

    assert any(one.holds(part) for part in own), "it does not go through the algorithm"
    assert not any(one.holds(part, factor=1.0) for part in own)


def test_a_test_that_only_names_an_algorithm_holds_nothing_of_it() -> None:
    idle = literals.Literal("grpo", lambda: None)

    assert not idle.holds("advantage")
    assert not idle.holds("loss")


@pytest.mark.parametrize("mark", TABLES)
def test_the_readme_shows_the_table(mark: str, update_golden: bool) -> None:
    begin, end = f"<!-- {mark} -->\n", f"\n<!-- end of {mark} -->"
    text, written = README.read_text(encoding="utf-8"), TABLES[mark]()
    before, _, rest = text.partition(begin)
    shown, _, after = rest.partition(end)
    if update_golden:
        README.write_text(before + begin + written + end + after, encoding="utf-8")
        return

    assert shown == written, "write it anew with --update-golden"
