"""The names that a row's templates may use, and what they stand for.

`{{ column }}` is the nearest value, `{{ node.column }}` an exact one, `{{ node }}` the number that
a scorer gave. A value of None is left out, so that it is absent.
"""

from collections.abc import Mapping
from typing import Any


class NodeView:
    """A node that wrote columns and gave no number: empty as a text, true."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.known = columns

    def __str__(self) -> str:
        return ""


class ScoredView(float):
    """The number of a node that may also have written columns."""

    known: Mapping[str, Any]

    def __new__(cls, score: float, columns: Mapping[str, Any]) -> "ScoredView":
        view = super().__new__(cls, score)
        view.known = columns
        return view


def names_of(
    columns: Mapping[str, Any], scoped: Mapping[str, Any], scores: Mapping[str, Any]
) -> dict[str, Any]:
    """Every name of a row, from its bare columns, its exact ones, and the incoming scores."""
    by_node: dict[str, dict[str, Any]] = {}
    for name, value in scoped.items():
        node, _, column = name.partition(".")
        if value is not None:
            by_node.setdefault(node, {})[column] = value
    names: dict[str, Any] = {node: NodeView(known) for node, known in by_node.items()}
    for node, score in scores.items():
        if isinstance(score, dict):
            names[node] = dict(score)
        elif score is not None:
            names[node] = ScoredView(float(score), by_node.get(node, {}))
    names.update({name: value for name, value in columns.items() if value is not None})
    return names
