"""Samples of cases are what they say, and wrong programs are programs."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest
from tests.conftest import is_slow, spread
from tests.mutants import page_source, python_source
from tests.mutants.drawn import mutated, read
from tests.mutants.places import ROOMS

SOURCE = '''
def share(rows, limit=2):
    """Part of 2 rows."""
    if not rows:
        raise ValueError(f"{limit} rows")
    if len(rows) > limit and limit >= 1:
        return rows[:limit]
    log.info("all")
    rows.append(0)
    return max(rows) * 0.5
'''
PAGE = """export function share(rows: number[]): number {
  // Not rows.length === 1.
  if (!rows.length) return 0;
  return rows.length === 1 && rows[0] > 2 ? 1 : Math.min(...rows);
}
"""


@pytest.mark.parametrize(("size", "count"), [(1, 1), (3, 8), (10, 3), (59, 5), (700, 1)])
def test_a_sample_is_spread_over_all_cases(size: int, count: int) -> None:
    places = spread("tests/test_some.py::test_one", size, count)

    assert places == sorted(set(places) & set(range(size)))
    assert len(places) == min(size, count)
    gaps = {after - before for before, after in pairwise(places)}
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pytestmark = pytest.mark.slow", True),
        ("pytestmark = [pytest.mark.e2e, pytest.mark.slow]", True),
        ("pytestmark = [\n    pytest.mark.ray,\n    pytest.mark.slow,\n]", True),
        ("pytestmark = pytest.mark.e2e\n\n\n@pytest.mark.slow\ndef test_one(): ...", False),
        ("@pytest.mark.slow\ndef test_one(): ...", False),
    ],
)
def test_a_file_is_slow_by_its_own_mark(text: str, said: bool, tmp_path: Path) -> None:
    path = tmp_path / "test_some.py"
    path.write_text(f"import pytest\n\n{text}\n", encoding="utf-8")

    assert is_slow(path) is said


def test_every_change_of_python_is_another_program() -> None:
    changes = python_source.mutations(SOURCE)
    whole = ast.dump(ast.parse(SOURCE))

    assert {change.operator for change in changes} >= {
        *("comparison", "connective", "negation dropped", "off by one", "constant"),
        *("condition negated", "guard dropped", "return dropped", "call dropped", "arithmetic"),
        "other function",
    }
    for change in changes:
        assert ast.dump(ast.parse(mutated(SOURCE, change))) != whole
        assert "log" not in change.before
        assert change.where == "share"


def test_every_change_of_the_page_is_of_its_code() -> None:
    changes = page_source.mutations(PAGE)

    assert [change.after for change in changes if change.operator == "comparison"] == [
        " !== ",
        " >= ",
    ]
    assert {change.where for change in changes} == {"share"}
    assert all("//" not in change.line for change in changes)


def test_the_drawn_mutants_are_two_hundred_of_all_rooms() -> None:
    drawn = read()

    assert [mutant.id for mutant in drawn] == list(range(1, 201))
    for name, room in ROOMS.items():
        assert sum(mutant.room == name for mutant in drawn) == room.count
