"""JSON schemas by which rewards judge, those of a node and those in rows: can they be read."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from coloop.spec.builtins import JsonSchema
from coloop.spec.data import FileSource
from coloop.spec.diagnostics import Diagnostic, error
from coloop.spec.nodes import DatasetNode, RewardNode, ToolNode
from coloop.validate.data import first_problem
from coloop.validate.facts import Facts
from coloop.validate.sources import PlacedRows

MOST_SCHEMAS: Final = 500
"""Of one source, each different from the others; those after them are checked when they judge."""
HINT: Final = "an unknown keyword would accept everything"


def schemas_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """The JSON schemas of a reward have keywords and formats that are known."""
    for name, node in facts.nodes.items():
        source = node.source if isinstance(node, RewardNode) else None
        if not isinstance(source, JsonSchema):
            continue
        if source.column is not None:
            yield from _check_rows(facts, name, source.column)
        elif source.shape is not None:
            problem = _problem_of(source.shape)
            if problem is not None:
                yield error("data.schema", f"nodes.{name}.source.shape", problem, HINT)


def _check_rows(facts: Facts, reward: str, column: str) -> Iterator[Diagnostic]:
    for name, node in _origins(facts, reward, column):
        schemas = _Schemas(node.columns.get(column, column), node.unfold == column)
        problem = first_problem(facts, node, schemas)
        if problem is not None:
            yield error(
                "data.schema",
                f"nodes.{name}.source.{'path' if isinstance(node.source, FileSource) else 'rows'}",
                f"{problem}; `{reward}` uses this schema",
                HINT,
            )


def _origins(facts: Facts, reward: str, column: str) -> Iterator[tuple[str, DatasetNode]]:
    """Datasets whose column a reward reads as it stands there: nothing after them writes it."""
    seen: set[str] = set()
    for names in facts.lineage.names.inputs(reward).values():
        writers = {
            writer: facts.nodes[writer]
            for writer, columns in names.exact.items()
            if (columns is None or column in columns)
            and not isinstance(facts.nodes.get(writer), ToolNode | None)
        }
        if all(isinstance(node, DatasetNode) for node in writers.values()):
            for name, node in writers.items():
                if isinstance(node, DatasetNode) and name not in seen:
                    seen.add(name)
                    yield name, node


@dataclass(frozen=True, slots=True)
class _Schemas:
    """Finds what is no schema in a column."""

    column: str
    is_listed: bool
    """Whether it holds a list with an entry for each row that comes of its row."""

    def __call__(self, rows: PlacedRows) -> str | None:
        seen: set[str] = set()
        for place, row in rows:
            value = row.get(self.column)
            entries = value if self.is_listed and isinstance(value, list) else [value]
            for schema in entries:
                if schema is None:
                    continue  # a row without one is told when it is judged
                text = schema if isinstance(schema, str) else json.dumps(schema, default=str)
                seen.add(text)
                if len(seen) > MOST_SCHEMAS:
                    return None
                if (problem := _problem_in_text(text)) is not None:
                    return f"{place}: the JSON schema in `{self.column}` is invalid: {problem}"
        return None


@lru_cache(maxsize=4096)
def _problem_in_text(text: str) -> str | None:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return f"it is not JSON: {text!r:.80}"
    if not isinstance(schema, Mapping | bool):
        return f"a schema must be an object, not {text:.80}"
    return _problem_of(schema)


def _problem_of(schema: Any) -> str | None:
    # A check of a loop without a schema does without the library.
    from coloop.data.json_schemas import schema_problem

    return schema_problem(schema)
