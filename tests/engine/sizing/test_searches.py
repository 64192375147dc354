"""Texts that a search writes for one row, as numbers."""

from typing import Any

import pytest

from coloop.spec.nodes import SearchNode


@pytest.mark.parametrize(
    ("method", "fields", "texts"),
    [
        ("monte_carlo", {"completions": 4}, 4),
        ("monte_carlo", {"completions": 4, "budget": {"searches_per_row": 3}}, 3),
        ("binary_search", {"completions": 8, "budget": {"searches_per_row": 8}}, 8 + 8 * 8),
        ("puct", {"budget": {"searches_per_row": 6}}, 4 * 6),
        ("puct", {"budget": {"searches_per_row": 6, "nodes": 20}}, 20),
        ("and_or", {"budget": {"searches_per_row": 6}, "expand": {"samples": 2}}, 2 * 6),
        (
            "and_or",
            {"budget": {"searches_per_row": 6}, "expand": {"progressive": {"c": 2.5}}},
            2 * 6,
        ),
    ],
)
def test_texts_of_a_row(method: str, fields: dict[str, Any], texts: int) -> None:
    budget = {"budget": {"tokens": 1000}}
    node = SearchNode.model_validate({"kind": "search", "method": method, **budget, **fields})

    assert node.texts_per_row == texts
