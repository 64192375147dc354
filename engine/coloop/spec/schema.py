"""JSON Schema of the loop language, for editors and for `coloop schema`.

It says what fields, types and bounds there are; conditions between fields stand as `x-when` and
`x-needed`, and by what a field is read as `x-read-when`; forms use them, JSON Schema does not. An
edge may also be written as text.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from coloop.spec.algorithm_reads import READ_WHERE
from coloop.spec.fields import field_type
from coloop.spec.graph import LoopSpec
from coloop.spec.migrate import VERSION

EDGE_PATTERN = r"^\s*[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*\s*->\s*[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*\s*$"


def json_schema() -> dict[str, Any]:
    """The schema of a whole loop document."""
    return copy.deepcopy(_loop_schema())


@lru_cache(maxsize=1)
def _loop_schema() -> dict[str, Any]:
    schema = section_schema(LoopSpec)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = f"coloop loop, version {VERSION}"
    edges = schema["properties"]["edges"]
    edges["items"] = {"anyOf": [{"type": "string", "pattern": EDGE_PATTERN}, edges["items"]]}
    return schema


def section_schema(section: type[BaseModel]) -> dict[str, Any]:
    """The schema of one section, what it refers to under `$defs`."""
    schema = section.model_json_schema(by_alias=True, mode="validation")
    _mend_mappings(schema)
    _mark_readers(schema.get("$defs", {}))
    return schema


def _mark_readers(parts: dict[str, Any]) -> None:
    """Say by which of its siblings a field is read, and at which of their values; none: at any."""
    for section, fields in READ_WHERE.items():
        for field, readers in fields.items():
            if section.__name__ not in parts:
                continue
            place, _, name = field.rpartition(".")
            holder = parts[_section_at(section, place)] if place else parts[section.__name__]
            holder["properties"][name]["x-read-when"] = {
                reader.by.removeprefix(f"{place}."): sorted(reader.values, key=str)
                for reader in readers
            }


def _section_at(section: type[BaseModel], field: str) -> str:
    found = field_type(section.model_fields[field]).section
    assert found is not None
    return found.__name__


def _mend_mappings(part: Any) -> None:
    """A discriminator maps to references only; pydantic also maps to unions within a union."""
    if isinstance(part, list):
        for item in part:
            _mend_mappings(item)
    elif isinstance(part, dict):
        union = part.get("discriminator")
        if isinstance(union, dict) and isinstance(union.get("mapping"), dict):
            mapping = union["mapping"]
            union["mapping"] = {tag: to for tag, to in mapping.items() if isinstance(to, str)}
        for item in part.values():
            _mend_mappings(item)
