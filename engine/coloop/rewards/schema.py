"""Whether a value fits a JSON schema: the part of the standard that describes one answer.

Knows `type enum const properties required additionalProperties minProperties maxProperties items
minItems maxItems uniqueItems minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength
maxLength pattern anyOf oneOf allOf not`. Any other keyword that would restrict is refused, never
ignored; references have no place in an answer's form.
"""

from collections.abc import Callable, Mapping, Sized
from typing import Any, Final

from coloop.data.patterns import PatternProblem, pattern

NOTES: Final = frozenset(
    {"$schema", "$id", "$comment", "title", "description", "default", "examples", "format"}
)
"""Keywords that restrict nothing."""

TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and float(value).is_integer(),
}


class SchemaProblem(ValueError):
    """A schema that is malformed, or says what is not known here."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sized(
    kind: type[Sized], compare: Callable[[int, int], bool]
) -> Callable[[Any, Any, Any], bool]:
    def is_within(value: Any, bound: Any, _: Any) -> bool:
        return not isinstance(value, kind) or compare(len(value), bound)

    return is_within


def _numeric(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any, Any], bool]:
    return lambda value, bound, _: not _is_number(value) or compare(value, bound)


def _has_type(value: Any, names: Any, _: Any) -> bool:
    wanted = names if isinstance(names, list) else [names]
    return any(TYPES[name](value) for name in wanted)


def _properties_fit(value: Any, properties: Any, schema: Any) -> bool:
    if not isinstance(value, dict):
        return True
    return all(fits(value[name], part) for name, part in properties.items() if name in value)


def _others_fit(value: Any, others: Any, schema: Any) -> bool:
    if not isinstance(value, dict) or others is True:
        return True
    spare = [item for name, item in value.items() if name not in schema.get("properties", {})]
    return not spare if others is False else all(fits(item, others) for item in spare)


def _differ(value: Any, wanted: Any, _: Any) -> bool:
    if not isinstance(value, list) or not wanted:
        return True
    return all(item not in value[:place] for place, item in enumerate(value))


def _is_multiple(value: Any, step: Any) -> bool:
    return bool(abs(value / step - round(value / step)) < 1e-9)


RULES: Final[Mapping[str, Callable[[Any, Any, Any], bool]]] = {
    "type": _has_type,
    "enum": lambda value, options, _: value in options,
    "const": lambda value, wanted, _: value == wanted,
    "properties": _properties_fit,
    "required": lambda value, names, _: not isinstance(value, dict) or set(names) <= value.keys(),
    "additionalProperties": _others_fit,
    "minProperties": _sized(dict, int.__ge__),
    "maxProperties": _sized(dict, int.__le__),
    "items": lambda value, part, _: (
        not isinstance(value, list) or all(fits(item, part) for item in value)
    ),
    "minItems": _sized(list, int.__ge__),
    "maxItems": _sized(list, int.__le__),
    "uniqueItems": _differ,
    "minimum": _numeric(lambda value, bound: bool(value >= bound)),
    "maximum": _numeric(lambda value, bound: bool(value <= bound)),
    "exclusiveMinimum": _numeric(lambda value, bound: bool(value > bound)),
    "exclusiveMaximum": _numeric(lambda value, bound: bool(value < bound)),
    "multipleOf": _numeric(_is_multiple),
    "minLength": _sized(str, int.__ge__),
    "maxLength": _sized(str, int.__le__),
    "pattern": lambda value, source, _: not isinstance(value, str) or pattern(source).is_in(value),
    "anyOf": lambda value, parts, _: any(fits(value, part) for part in parts),
    "oneOf": lambda value, parts, _: sum(fits(value, part) for part in parts) == 1,
    "allOf": lambda value, parts, _: all(fits(value, part) for part in parts),
    "not": lambda value, part, _: not fits(value, part),
}


def fits(value: Any, schema: Any) -> bool:
    """Whether a value of JSON fits a schema (a dict, or true and false)."""
    if isinstance(schema, bool):
        return schema
    return all(RULES[name](value, wanted, schema) for name, wanted in _restrictions(schema))


def _restrictions(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, wanted) for name, wanted in schema.items() if name not in NOTES]


def check_schema(schema: Any, *, at: str = "schema") -> None:
    """Raise SchemaProblem where a schema is malformed or says what is not known here."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise SchemaProblem(f"{at} wants an object, found {schema!r}")
    for name, wanted in _restrictions(schema):
        if name not in RULES:
            raise SchemaProblem(f"{at}.{name} is not known; known are {', '.join(RULES)}")
        _check_keyword(name, wanted, f"{at}.{name}")


def _check_keyword(name: str, wanted: Any, at: str) -> None:
    match name:
        case "type":
            for kind in wanted if isinstance(wanted, list) else [wanted]:
                if kind not in TYPES:
                    raise SchemaProblem(f"{at} wants one of {', '.join(TYPES)}, found {kind!r}")
        case "properties":
            if not isinstance(wanted, Mapping):
                raise SchemaProblem(f"{at} wants an object, found {wanted!r}")
            for key, part in wanted.items():
                check_schema(part, at=f"{at}.{key}")
        case "items" | "not" | "additionalProperties":
            check_schema(wanted, at=at)
        case "anyOf" | "oneOf" | "allOf" | "enum" | "required":
            if not isinstance(wanted, list):
                raise SchemaProblem(f"{at} wants a list, found {wanted!r}")
            if name.endswith("Of"):
                for place, part in enumerate(wanted):
                    check_schema(part, at=f"{at}.{place}")
        case "pattern":
            try:
                pattern(wanted)
            except (PatternProblem, TypeError) as problem:
                raise SchemaProblem(f"{at}: {problem}") from None
        case "const" | "uniqueItems":
            return
        case _:
            if not _is_number(wanted) or (name == "multipleOf" and wanted <= 0):
                raise SchemaProblem(f"{at} wants a number, found {wanted!r}")
