"""Validates JSON against a schema, and schemas themselves, with the package jsonschema.

`coloop check` imports this module; the sandbox of the reward `json_schema` runs its source, so it
imports nothing from coloop. References are resolved within the schema; nothing is fetched.

The dialect is that of `$schema`, by default draft 2020-12. Keywords that the dialect does not know
are errors: a schema with `requird` would accept everything. So are unknown values of `format`;
known ones that are not in CHECKED have no effect, as the standard allows.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import jsonschema.protocols
from jsonschema import Draft202012Validator, FormatChecker, SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

NOTES = {
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$defs", "id"),
    *("$vocabulary", "definitions", "title", "description", "default", "examples", "example"),
    *("deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"),
    *("contentSchema", "then", "else", "minContains", "maxContains", "additionalItems"),
}
"""Keywords without effect of their own: annotations, or parts of another keyword."""
NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
"""Keywords whose value maps names to schemas."""
DATA = {"enum", "const", "default", "examples", "example", "required", "dependentRequired"}
CHECKED = FormatChecker(["date", "email", "idn-email", "ipv4", "ipv6", "regex", "uuid"])
"""Formats that are checked without optional dependencies."""
FORMATS = {
    *(*CHECKED.checkers, "date-time", "time", "duration", "hostname", "idn-hostname", "uri"),
    *("uri-reference", "uri-template", "iri", "iri-reference", "json-pointer"),
    *("relative-json-pointer", "int32", "int64", "float", "double", "byte", "binary", "password"),
}
"""Known formats: those of the drafts since 4, and of OpenAPI."""
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    written = DATE_TIME.fullmatch(value)
    return written is not None and bool(datetime.fromisoformat(value.upper()))


CHECKED.checks("date-time", raises=ValueError)(_is_date_time)


def judge(schema: Any, text: str) -> dict[str, Any]:
    """`score` 1 if the text is JSON that fits the schema, else 0; or `problem` of the schema."""
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
        return {
            "problem": "the schema refers to itself endlessly, or the text is nested too deeply"
        }
    except Exception as error:
        if isinstance(error.__cause__, Unresolvable) or isinstance(error, Unresolvable):
            what = f"the schema refers to something that it does not contain: {str(error)[:300]}"
            return {"problem": what}
        raise


def dialect_of(schema: Any) -> Any:
    return validator_for(schema, default=Draft202012Validator)


def schema_problem(schema: Any) -> str | None:
    """What is wrong with a schema; None if nothing is."""
    kind = dialect_of(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return f"the schema's {error.json_path} is invalid: {error.message[:300]}"
    except RecursionError:
        return "the schema is nested too deeply"
    return next(_unknown(schema, kind), None)


def _unknown(schema: Any, kind: Any, at: str = "$") -> Iterator[str]:
    """Messages about unknown keywords and formats in a schema."""
    if isinstance(schema, list):
        for index, inner in enumerate(schema):
            yield from _unknown(inner, kind, f"{at}[{index}]")
    if not isinstance(schema, Mapping):
        return
    for name, value in schema.items():
        if name not in kind.VALIDATORS and name not in NOTES:
            yield f"the schema's {at}.{name} is not known"
        if name == "format" and value not in FORMATS:
            known = ", ".join(sorted(FORMATS))
            yield (
                f"the schema's {at}.format is not a known format: found {value!r}, known are "
                f"{known}"
            )
        if name in NAMED and isinstance(value, Mapping):
            for key, inner in value.items():
                yield from _unknown(inner, kind, f"{at}.{name}.{key}")
        elif name not in DATA:
            yield from _unknown(value, kind, f"{at}.{name}")
