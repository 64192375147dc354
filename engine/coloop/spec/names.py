"""What the rows of one level have to offer: bare columns, exact ones, scores.

A bare name means the nearest value: the row's own, else its parents'; two values at the same
distance from different rows make it ambiguous. `node.column` is exact. Where a source's columns are
not known before the run (a file, free code) the names are open: any may be there.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from coloop.sandbox.inside.parsing import parse_code
from coloop.spec.lean import record
from coloop.spec.levels import Level
from coloop.spec.tasks import TASK_COLUMNS, TaskSource

ANY: Final = None
"""In `exact`: the columns of a node are not known, any may be there."""


@dataclass(frozen=True, slots=True)
class Found:
    distance: int
    """Number of births between the row and the row that has the value."""
    rows: frozenset[Level]
    """Levels of the rows that have it at that distance; several make the name ambiguous."""


@record
class Names:
    """Columns and scores that rows of one level can give; see the module."""

    bare: Mapping[str, Found] = field(default_factory=dict)
    exact: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Node id to the columns that it wrote."""
    scores: frozenset[str] = frozenset()
    """Scorers whose scores came along."""
    is_open: bool = False
    """There may be further, unknown columns."""
    hidden: frozenset[str] = frozenset()
    """Dropped names: gone even where the rest is open."""

    def gives(self, name: str) -> bool:
        """Whether a bare column, a score or a `node.column` of this name can be there."""
        node, dot, column = name.partition(".")
        if dot:
            columns = self.exact.get(node, frozenset())
            return columns is ANY or column in columns
        return name in self.bare or name in self.scores or self._may_have(name)

    def gives_column(self, name: str) -> bool:
        return name in self.bare or self._may_have(name)

    def is_ambiguous(self, name: str) -> bool:
        """Whether two rows at the same distance have this bare column."""
        nearest = self.bare.get(name)
        return nearest is not None and len(nearest.rows) > 1

    def own(self, node: str, columns: Iterable[str], level: Level) -> "Names":
        """With columns that `node` writes on the row itself."""
        written = tuple(columns)
        here = Found(0, frozenset({level}))
        known = self.exact.get(node, frozenset())
        exact = ANY if known is ANY else known | frozenset(written)
        return replace(
            self,
            bare={**self.bare, **dict.fromkeys(written, here)},
            exact={**self.exact, node: exact},
            hidden=self.hidden.difference(written),
        )

    def opened(self, node: str) -> "Names":
        """With columns of `node` that are not known before the run."""
        return replace(self, is_open=True, exact={**self.exact, node: ANY})

    def below(self, births: int) -> "Names":
        """The same names seen from a row that many births below."""
        if births == 0:
            return self
        bare = {n: Found(f.distance + births, f.rows) for n, f in self.bare.items()}
        return replace(self, bare=bare)

    def with_scores(self, scores: Iterable[str]) -> "Names":
        """With scores that reach these rows."""
        return replace(self, scores=self.scores.union(scores))

    def dropped(self, names: Iterable[str]) -> "Names":
        """Without these bare names; the exact ones stay."""
        gone = frozenset(names)
        bare = {name: nearest for name, nearest in self.bare.items() if name not in gone}
        return replace(self, bare=bare, hidden=self.hidden | gone)

    def _may_have(self, name: str) -> bool:
        return self.is_open and name not in self.hidden


NOTHING: Final = Names()
ANYTHING: Final = Names(is_open=True)
NamesOf = dict[Level, Names]
"""Names of a table's rows, level by level."""
NamesByPort = Iterable[tuple[str, NamesOf]]


def merged(parts: Sequence[Names]) -> Names:
    """Names of a row with several sources, all seen from that row: the nearest wins."""
    if len(parts) == 1:
        return parts[0]
    bare: dict[str, Found] = {}
    for part in parts:
        for name, nearest in part.bare.items():
            known = bare.get(name)
            if known is None or nearest.distance < known.distance:
                bare[name] = nearest
            elif nearest.distance == known.distance:
                bare[name] = Found(known.distance, known.rows | nearest.rows)
    hidden = frozenset(name for part in parts for name in part.hidden if name not in bare)
    return Names(
        bare=bare,
        exact=_merged_exact(parts),
        scores=frozenset().union(*(part.scores for part in parts)),
        is_open=any(part.is_open for part in parts),
        hidden=hidden,
    )


def shared(parts: Sequence[Names]) -> Names:
    """Names that every part of a table can give; one that is ambiguous in a part stays so."""
    if len(parts) == 1:
        return parts[0]
    names = {name for part in parts for name in part.bare}
    bare: dict[str, Found] = {}
    for name in names:
        if all(part.gives_column(name) for part in parts):
            nearest = [part.bare[name] for part in parts if name in part.bare]
            bare[name] = max(nearest, key=lambda where: (len(where.rows), -where.distance))
    exact: dict[str, frozenset[str] | None] = {}
    for node in set[str]().union(*(part.exact for part in parts)):
        known = [
            columns for part in parts if (columns := part.exact.get(node, frozenset())) is not ANY
        ]
        exact[node] = frozenset.intersection(*known) if known else ANY
    return Names(
        bare=bare,
        exact=exact,
        scores=frozenset.intersection(*(part.scores for part in parts)),
        is_open=all(part.is_open for part in parts),
        hidden=frozenset().union(*(part.hidden for part in parts)),
    )


def rooted(names: Names, node: str, level: Level) -> Names:
    """Names of rows that a buffer gives: the old ones, as columns of rows without parents."""
    here = Found(0, frozenset({level}))
    clear = [name for name, nearest in names.bare.items() if len(nearest.rows) == 1]
    own: frozenset[str] | None = ANY if names.is_open else frozenset(clear)
    return replace(names, bare=dict.fromkeys(clear, here), exact={**names.exact, node: own})


def _merged_exact(parts: Sequence[Names]) -> dict[str, frozenset[str] | None]:
    exact: dict[str, frozenset[str] | None] = {}
    for part in parts:
        for node, columns in part.exact.items():
            known = exact.get(node, frozenset())
            exact[node] = ANY if columns is ANY or known is ANY else known | columns
    return exact


# Columns that several kinds write on their rows, as far as the spec tells.

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
"""Columns of rows from a search tree: also their share of the visits."""

EPISODE_COLUMNS: Final = (
    "seat",
    "turn",
    "episode",
    "observation",
    "action",
    "invalid",
    "reason",
)
"""Columns of a turn in an environment."""

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
        tree = parse_code(code)
    except SyntaxError:
        return None
    definition = next(
        (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function), None
    )
    if definition is None:
        return None
    keys: set[str] = set()
    for statement in _own_statements(definition):
        if not isinstance(statement, ast.Return):
            continue
        literal = _literal_keys(statement.value)
        if literal is None:
            return None
        keys |= literal
    return frozenset(keys)


def _own_statements(function: ast.FunctionDef) -> list[ast.AST]:
    statements: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        statements.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))
    return statements


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
