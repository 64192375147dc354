"""What a judge is told of the answer that `read` expects: its criteria, and a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coloop.spec.reading import Read


def expects_json(read: Read) -> bool:
    """Whether an answer is read as JSON."""
    return read.json_path is not None or (read.rubric is not None and read.ask == "together")


def asked_names(read: Read) -> frozenset[str]:
    """Names that a judge's template can use besides columns of the rows."""
    names = {"criteria"} if read.rubric is not None else set()
    if read.rubric is not None and read.ask == "one_by_one":
        names.add("criterion")
    return frozenset(names | ({"answer_format"} if expects_json(read) else set()))


def criteria_text(read: Read) -> str:
    """The criteria of a rubric, a line each: name and text."""
    return "\n".join(f"{one.name}: {one.text}" for one in read.rubric or ())


def answer_schema(read: Read, things: int | None = None) -> dict[str, Any] | None:
    """The JSON Schema of an answer that `read` can read; None if that is no JSON.

    Args:
        things: number of things judged together; None: one.
    """
    is_rubric = read.rubric is not None and read.ask == "together"
    path = [step for step in (read.json_path or "").split(".") if step]
    if not expects_json(read) or any(step.isdigit() for step in path):
        return None
    value = _value_schema(read)
    if is_rubric:
        value = _object({one.name: value for one in read.rubric or ()})
    elif things is not None:
        item = {"type": "integer", "minimum": 1, "maximum": things} if read.ranking else value
        value = {"type": "array", "items": item, "minItems": things, "maxItems": things}
    for step in reversed(path):
        value = _object({step: value})
    return value


def _value_schema(read: Read) -> dict[str, Any]:
    if read.values:
        return {"type": "string", "enum": list(read.values)}
    if read.scale is None:
        return {"type": "number"}
    low, high = (int(bound) if bound == int(bound) else bound for bound in read.scale)
    return {"type": "number", "minimum": low, "maximum": high}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
