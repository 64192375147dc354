"""JSON schemas by which rewards judge, those of a node and those in rows: can they be read."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import jsonschema.protocols
from jsonschema import Draft202012Validator, FormatChecker, SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from coloop.spec.builtins import JsonSchema
from coloop.spec.data import FileSource, InlineSource
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.nodes import DatasetNode, RewardNode, ToolNode
from coloop.validate.facts import Facts, found
from coloop.validate.sources import PlacedRows, first_problem

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
                yield found("data.schema", problem, hint=HINT, node=name, field="source.shape")


def _check_rows(facts: Facts, reward: str, column: str) -> Iterator[Diagnostic]:
    for name, node in _origins(facts, reward, column):
        source, own = node.source, node.columns.get(column, column)
        if not isinstance(source, FileSource | InlineSource):
            continue
        if isinstance(source, FileSource) and (facts.root is None or facts.is_outside(source.path)):
            continue
        is_listed = node.unfold == column
        problem = first_problem(source, facts.root or Path(), _Schemas(own, is_listed))
        if problem is not None:
            yield found(
                "data.schema",
                f"{problem}; `{reward}` uses this schema",
                hint=HINT,
                node=name,
                field="source.path" if isinstance(source, FileSource) else "source.rows",
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

    return schema_problem(schema)


RULES = (schemas_can_be_read,)


# Whether a text is JSON that fits a JSON schema, and what is wrong with a schema, by jsonschema.
#
# The check of a loop imports it; the process that judges what models write runs its text, so it
# needs nothing of coloop. References stay within the schema: nothing is fetched.
#
# The dialect is what `$schema` says, else draft 2020-12. A keyword that the dialect does not know
# is refused, never ignored: a schema with `requird` would let everything pass. So is a `format`
# that no draft has; one that is not in CHECKED is a note, as the standard has it.

NOTES = {
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$defs", "id"),
    *("$vocabulary", "definitions", "title", "description", "default", "examples", "example"),
    *("deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"),
    *("contentSchema", "then", "else", "minContains", "maxContains", "additionalItems"),
}
"""Keywords that restrict nothing, or that another one reads."""
NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
"""Keywords whose value has schemas by names."""
DATA = {"enum", "const", "default", "examples", "example", "required", "dependentRequired"}
CHECKED = FormatChecker(["date", "email", "idn-email", "ipv4", "ipv6", "regex", "uuid"])
"""Formats that are checked: what they need is always there."""
FORMATS = {
    *(*CHECKED.checkers, "date-time", "time", "duration", "hostname", "idn-hostname", "uri"),
    *("uri-reference", "uri-template", "iri", "iri-reference", "json-pointer"),
    *("relative-json-pointer", "int32", "int64", "float", "double", "byte", "binary", "password"),
}
"""Those of the drafts from 4 on, and of OpenAPI."""
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    written = DATE_TIME.fullmatch(value)
    return written is not None and bool(datetime.fromisoformat(value.upper()))


CHECKED.checks("date-time", raises=ValueError)(_is_date_time)


def judge(schema: Any, text: str) -> dict[str, Any]:
    """1 where the text fits, else 0; or what is wrong with the schema."""
    try:
        problem = schema_problem(schema)
        if problem is not None:
            return {"problem": problem}
        checks: jsonschema.protocols.Validator = dialect_of(schema)(
            schema, registry=Registry(), format_checker=CHECKED
        )
        try:
            value = json.loads(text)
        except ValueError:
            return {"score": 0.0}
        return {"score": float(checks.is_valid(value))}
    except RecursionError:
        return {"problem": "the schema refers to itself without end, or the text is too deep"}
    except Exception as error:
        if isinstance(error.__cause__, Unresolvable) or isinstance(error, Unresolvable):
            return {"problem": f"the schema refers to what is not in it: {str(error)[:300]}"}
        raise


def dialect_of(schema: Any) -> Any:
    """The validator class of a schema's draft."""
    return validator_for(schema, default=Draft202012Validator)


def schema_problem(schema: Any) -> str | None:
    """What is wrong with a schema, or nothing."""
    kind = dialect_of(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return f"the schema's {error.json_path} is wrong: {error.message[:300]}"
    except RecursionError:
        return "the schema is too deep"
    return next(_unknown(schema, kind), None)


def _unknown(schema: Any, kind: Any, at: str = "$") -> Iterator[str]:
    """Keywords that neither restrict nor note anything, and formats that are none."""
    if isinstance(schema, list):
        for place, one in enumerate(schema):
            yield from _unknown(one, kind, f"{at}[{place}]")
    if not isinstance(schema, Mapping):
        return
    for name, value in schema.items():
        if name not in kind.VALIDATORS and name not in NOTES:
            yield f"the schema's {at}.{name} is not known"
        if name == "format" and value not in FORMATS:
            known = ", ".join(sorted(FORMATS))
            yield f"the schema's {at}.format is no format: found {value!r}, there are {known}"
        if name in NAMED and isinstance(value, Mapping):
            for key, one in value.items():
                yield from _unknown(one, kind, f"{at}.{name}.{key}")
        elif name not in DATA:
            yield from _unknown(value, kind, f"{at}.{name}")
