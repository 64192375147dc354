"""No algorithm of the language without its proofs; the README of the recipes shows them.

`--update-golden` writes the table of the README anew.
"""

from pathlib import Path

import pytest
from tests.engine.recipes import table

from coloop.recipes import RECIPES

README = Path(__file__).resolve().parents[3] / "engine" / "coloop" / "recipes" / "README.md"
BEGIN, END = "<!-- table -->\n", "\n<!-- end of table -->"


@pytest.mark.parametrize("name", [name for name in table.FAMILIES if table.is_policys(name)])
def test_an_algorithm_of_a_policy_is_proved(name: str) -> None:
    assert name in RECIPES
    assert name in table.literal_names(), "no test has literal numbers of it"
    assert table.golden(name) or name in table.WITHOUT_GOLDEN, "no golden numbers of it"
    assert name in table.invariant(), "nothing holds its loss against micro-batches"


@pytest.mark.parametrize("name", table.FAMILIES)
def test_an_algorithm_is_run_and_learned_by(name: str) -> None:
    assert name in table.in_short_runs(), "no run takes a few steps by it"
    assert name in table.learning(), "no slow test asks that it learns"


def test_every_recipe_has_literal_numbers_and_is_held_against_micro_batches() -> None:
    assert set(RECIPES) <= table.literal_names()
    assert set(RECIPES) <= table.invariant()


def test_the_readme_shows_the_table(update_golden: bool) -> None:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    shown, _, after = rest.partition(END)
    if update_golden:
        README.write_text(before + BEGIN + table.written() + END + after, encoding="utf-8")
        return

    assert shown == table.written(), "write it anew with --update-golden"
