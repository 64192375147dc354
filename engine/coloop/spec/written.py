"""Columns that several kinds write on their rows, as far as the spec tells.

`None` stands for "not known before the run": free code, a file, a dataset of the hub.
"""

import ast
from functools import lru_cache
from typing import Final

from coloop.spec.tasks import TASK_COLUMNS, TaskSource

ROLLOUT_COLUMNS: Final = (
    "prompt",
    "completion",
    "length",
    "finished",
    "turns",
    "tool_calls",
    "tool_outputs",
)
"""Standard columns of every rollout."""

TREE_COLUMNS: Final = (*ROLLOUT_COLUMNS, "share")
"""Of what a tree gives: also its share of the visits."""

PAIR_COLUMNS: Final = ("prompt", "chosen", "rejected")
"""Standard columns of every pair that a node makes."""

TASK_COLUMN: Final = "task"
"""Column by which a row knows the checker of its task."""


def own_columns(source: TaskSource) -> frozenset[str]:
    """Columns of the rows that a task makes."""
    return frozenset({*TASK_COLUMNS[source.task, getattr(source, "part", None)], TASK_COLUMN})


@lru_cache(maxsize=512)
def returned_keys(code: str, function: str = "write") -> frozenset[str] | None:
    """Keys of the mappings that a function returns, or `None` where they are not literal."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = next(
        (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function), None
    )
    if found is None:
        return None
    keys: set[str] = set()
    for statement in _own_statements(found):
        if not isinstance(statement, ast.Return):
            continue
        literal = _literal_keys(statement.value)
        if literal is None:
            return None
        keys |= literal
    return frozenset(keys)


def _own_statements(function: ast.FunctionDef) -> list[ast.AST]:
    """Every node of the function's body that is not inside a function of its own."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _literal_keys(value: ast.expr | None) -> set[str] | None:
    match value:
        case None | ast.Constant(value=None):
            return set()
        case ast.Dict(keys=keys) if all(
            isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys
        ):
            return {str(key.value) for key in keys if isinstance(key, ast.Constant)}
        case _:
            return None
