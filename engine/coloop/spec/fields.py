"""The types of the language along a path: which section, which field, which branch of a union.

Errors of pydantic name union branches in their place, which users do not see (`plain_path`); paths
such as `nodes.actor.training.optimizer.lr` are followed with the data at hand (`narrow`, `inside`).
"""

import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, Tag
from pydantic.fields import FieldInfo

from coloop.spec.base import Section
from coloop.spec.graph import PortRef


@dataclass(frozen=True, slots=True)
class Type:
    """One position of the language: a plain type or a union with its way of choosing a branch."""

    base: Any
    options: tuple[Any, ...] = ()
    discriminator: str | Callable[[Any], Any] | None = None

    @property
    def section(self) -> type[Section] | None:
        is_section = isinstance(self.base, type) and issubclass(self.base, Section)
        return self.base if is_section and not self.options else None


def type_of(annotation: Any, extra: Iterable[Any] = ()) -> Type:
    """Strip `Annotated`, `None` and aliases off a type."""
    key = (annotation, tuple(_marks(extra)))
    return _cached(*key)


def _marks(extra: Iterable[Any]) -> Iterable[Any]:
    for mark in extra:
        if isinstance(mark, FieldInfo) and mark.discriminator is not None:
            found = mark.discriminator
            yield found.discriminator if isinstance(found, Discriminator) else found
        elif isinstance(mark, Discriminator):
            yield mark.discriminator


@lru_cache(maxsize=4096)
def _cached(annotation: Any, marks: tuple[Any, ...]) -> Type:
    if get_origin(annotation) is Annotated:
        base, *extra = get_args(annotation)
        return _cached(base, (*marks, *_marks(extra)))
    if get_origin(annotation) in (Union, types.UnionType):
        options = tuple(option for option in get_args(annotation) if option is not type(None))
        if len(options) == 1:
            return _cached(options[0], marks)
        return Type(annotation, options, marks[0] if marks else None)
    return Type(annotation)


def field_type(info: FieldInfo) -> Type:
    return type_of(info.annotation, [info, *info.metadata])


def fields_by_key(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields under the keys that stand in YAML."""
    return {info.alias or name: info for name, info in section.model_fields.items()}


def branch(union: Type, tag: Any) -> Type | None:
    for option in union.options:
        if tag in _tags_of(option, union.discriminator):
            return type_of(option)
    return None


@lru_cache(maxsize=4096)
def _tags_of(option: Any, discriminator: Any) -> tuple[Any, ...]:
    if callable(discriminator):
        return tuple(mark.tag for mark in get_args(option)[1:] if isinstance(mark, Tag))
    inner = type_of(option)
    if inner.options:
        return tuple(tag for nested in inner.options for tag in _tags_of(nested, discriminator))
    info = inner.base.model_fields.get(discriminator) if inner.section else None
    return get_args(info.annotation) if info is not None else ()


def tags(union: Type) -> tuple[Any, ...]:
    """Values of the discriminator that select the branches of a union."""
    if not isinstance(union.discriminator, str):
        return ()
    seen: dict[Any, None] = {}
    for option in union.options:
        seen |= dict.fromkeys(_tags_of(option, union.discriminator))
    return tuple(seen)


def narrow(position: Type, value: Any) -> Type:
    """Select union branches by the value, as far as it decides them."""
    while position.options and position.discriminator is not None:
        if callable(position.discriminator):
            chosen = branch(position, position.discriminator(value))
        else:
            tag = look(value, position.discriminator)
            chosen = branch(position, tag)
        if chosen is None:
            return position
        position = chosen
    return position


def inside(position: Type, part: str | int) -> tuple[Type | None, FieldInfo | None]:
    """One step down: the type below a key or index, and its field if there is one."""
    if position.section is not None:
        info = fields_by_key(position.section).get(str(part))
        return (field_type(info), info) if info is not None else (None, None)
    origin, arguments = get_origin(position.base), get_args(position.base)
    if origin is dict:
        return type_of(arguments[1]), None
    if origin is tuple and isinstance(part, int):
        is_open = len(arguments) == 2 and arguments[1] is Ellipsis
        if is_open:
            return type_of(arguments[0]), None
        return (type_of(arguments[part]), None) if part < len(arguments) else (None, None)
    return None, None


def plain_path(
    root: type[Section], loc: tuple[str | int, ...]
) -> tuple[tuple[str | int, ...], bool]:
    """A pydantic location without union branch names, and whether it is about a key."""
    path: list[str | int] = []
    position: Type | None = Type(root)
    for part in loc:
        if part == "[key]":
            return tuple(path), True
        if position is not None and position.options:
            chosen = branch(position, part)
            if chosen is not None:
                position = chosen
                continue
        path.append(part)
        position = inside(position, part)[0] if position is not None else None
    return tuple(path), False


def type_at(root: type[Section], path: Iterable[str | int], data: Any) -> Type | None:
    """The type at a path, branches chosen by the data."""
    position: Type | None = narrow(Type(root), data)
    for part in path:
        if position is None:
            return None
        position = inside(position, part)[0]
        data = look(data, part)
        position = None if position is None else narrow(position, data)
    return position


def look(data: Any, part: str | int) -> Any:
    """The value below a key or position, in plain data or a section; `None` where there is none."""
    if isinstance(data, dict):
        return data.get(part)
    if isinstance(data, Section):
        fields = type(data).model_fields.items()
        name = next((name for name, info in fields if (info.alias or name) == str(part)), None)
        return None if name is None else getattr(data, name)
    if isinstance(data, (list, tuple)) and isinstance(part, int) and -1 < part < len(data):
        return data[part]
    return None


TYPE_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    dict: "a mapping",
    tuple: "a list",
}


def describe_type(position: Type) -> str:
    if position.options:
        words = [describe_type(type_of(option)) for option in position.options]
        unique = list(dict.fromkeys(words))
        if isinstance(position.discriminator, str):
            return f"a mapping with `{position.discriminator}`"
        return " or ".join(unique)
    if position.section is not None:
        keys = list(fields_by_key(position.section))
        if keys[:2] == ["from", "to"]:
            return "`node.port -> node.port`, or a mapping with `from` and `to`"
        return "a mapping (" + ", ".join(keys[:6]) + (", ..." if len(keys) > 6 else "") + ")"
    origin = get_origin(position.base) or position.base
    if origin is Literal:
        return "one of " + join_words(words_of(position))
    if origin is tuple:
        arguments = get_args(position.base)
        if len(arguments) == 2 and arguments[1] is not Ellipsis:
            return "a list of two"
        return "a list"
    if position.base is PortRef:
        return "`node.port`"
    return TYPE_WORDS.get(origin, "a value")


def words_of(position: Type) -> list[str]:
    """The values that a literal type allows, as YAML writes them."""
    words = get_args(position.base)
    return [str(word).lower() if isinstance(word, bool) else str(word) for word in words]


def join_words(words: list[str], most: int = 14) -> str:
    """Words with commas; of a long list the first ones."""
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def describe_value(value: Any) -> str:
    """A short description of a value."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            short = value if len(value) <= 40 else value[:39] + "…"
            return f"the text {short!r}" if value else "an empty text"
        case list() | tuple():
            return f"a list of {len(value)}" if value else "an empty list"
        case dict():
            keys = ", ".join(str(key)[:20] for key in list(value)[:3])
            return (
                f"a mapping ({keys}{', ...' if len(value) > 3 else ''})"
                if value
                else "an empty mapping"
            )
    return f"a {type(value).__name__}"
