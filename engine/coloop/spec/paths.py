"""Paths name values of a loop: `nodes.actor.training.optimizer.lr`, `edges.outcome.weight`.

Edges are named by id, by position, or as `a.x->b.y`; phases by position or name. Behind a phase's
`set` the rest of a path is the path that is set (`schedule.phases.0.set.nodes.actor.pool`). A path
may name the teaching port of an algorithm that is written in the short form. Wrong paths end in a
diagnostic with what was probably meant; which fields may change in a run (`hot`) is known for
every path.

Invariants: nothing here changes a spec in place; what comes back from `apply_overrides` is
validated.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from coloop.errors import SpecProblem
from coloop.spec.algorithm import PORTS_OF
from coloop.spec.base import Section
from coloop.spec.diagnostics import Diagnostic, did_you_mean
from coloop.spec.documents import (
    Parts,
    edge_names,
    holds_paths,
    set_in,
    split_path,
    words_of_key,
)
from coloop.spec.fields import (
    Type,
    describe_type,
    fields_by_key,
    inside,
    look,
    narrow,
)
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.nodes import Node
from coloop.spec.placement import Hardware, Run
from coloop.spec.problems import translate
from coloop.spec.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a path names."""

    path: str
    """As it was asked for."""
    parts: Parts
    """Keys and positions, edges and phases by position."""
    kind: Type
    """The type at the place."""
    field: FieldInfo | None
    """The nearest field of a section on the way."""
    owner: type[Section] | None
    """The section that has that field."""
    value: Any
    """What is there; `None` where nothing is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFacts:
    """What the language says about a field."""

    path: str
    level: str
    hot: bool
    docs: str
    unit: str | None
    widget: str | None
    expected: str


def find(spec: LoopSpec | Mapping[str, Any], path: str) -> Found:
    """What a path names in a spec or a plain document; raises `SpecProblem` for a wrong path."""
    here: Any = spec
    found = Type(LoopSpec)
    parts: list[str | int] = []
    field: FieldInfo | None = None
    owner: type[Section] | None = None
    words = split_path(path) or (path,)
    while words:
        found = narrow(found, here)
        word, words = _next_key(found, here, words, tuple(parts))
        if _is_port_of_short_form(found, word):
            continue
        part = _position(found, here, word)
        step, info = inside(found, part) if part is not None else (None, None)
        is_missing = _is_open(found) and not holds_paths(tuple(parts))
        if part is None or step is None or (is_missing and not _is_there(here, part)):
            raise _unknown(path, tuple(parts), word, found, here)
        if info is not None:
            field, owner = info, found.section
        parts.append(part)
        found, here = step, look(here, part)
    narrowed = narrow(found, here)
    return Found(path=path, parts=tuple(parts), kind=narrowed, field=field, owner=owner, value=here)


def _next_key(
    found: Type, here: Any, words: tuple[str, ...], parts: Parts
) -> tuple[str, tuple[str, ...]]:
    """The key or position that comes next, and the words after it."""
    is_mapping = found.section is None and not isinstance(here, (list, tuple))
    known = here if isinstance(here, Mapping) else {}
    count = words_of_key(known, words, parts) if is_mapping and parts else 1
    return ".".join(words[:count]), words[count:]


def _is_open(found: Type) -> bool:
    """Whether only entries that exist can be named: a mapping of ids or a list."""
    return found.section is None


def _is_there(here: Any, part: str | int) -> bool:
    if isinstance(here, Mapping):
        return part in here
    return isinstance(here, (list, tuple)) and isinstance(part, int) and 0 <= part < len(here)


def _is_port_of_short_form(found: Type, word: str) -> bool:
    section = found.section
    return section is not None and section in PORTS_OF and word in PORTS_OF[section]


def _position(found: Type, here: Any, word: str) -> str | int | None:
    """A word as key or position; names of edges and phases become positions."""
    if found.section is not None or not isinstance(here, (list, tuple)):
        return word
    if word.isdigit():
        return int(word)
    for index, item in enumerate(here):
        if word in _names_of(item):
            return index
    return None


def _names_of(item: Any) -> tuple[str, ...]:
    name = look(item, "name")
    return (*edge_names(item), name) if isinstance(name, str) else edge_names(item)


def _unknown(path: str, parts: Parts, word: str, found: Type, here: Any) -> SpecProblem:
    known = _known_words(found, here)
    place = ".".join(map(str, parts)) or "the loop"
    diagnostic = Diagnostic(
        code="structure.unknown_path",
        message=f"the path `{path}` does not exist: there is no `{word}` in {place}",
        hint=did_you_mean(word, known),
        field=path,
    )
    return SpecProblem(diagnostic.describe(), (diagnostic,))


def _known_words(found: Type, here: Any) -> list[str]:
    if found.section is not None:
        return list(fields_by_key(found.section))
    if isinstance(here, Mapping):
        return [str(key) for key in here]
    if isinstance(here, (list, tuple)):
        names = [name for item in here for name in _names_of(item) if name and "->" not in name]
        return names or [str(index) for index in range(len(here))]
    return []


def field_info(path: str, spec: LoopSpec | Mapping[str, Any]) -> FieldFacts:
    """Level, hotness, docs of the field that a path names; raises `SpecProblem`."""
    found = find(spec, path)
    extra = found.field.json_schema_extra if found.field is not None else None
    facts: Any = extra if isinstance(extra, dict) else {}
    return FieldFacts(
        path=path,
        level=facts.get("x-level", "expert"),
        hot=bool(facts.get("x-hot", False)),
        docs=(found.field.description or "") if found.field is not None else "",
        unit=facts.get("x-unit"),
        widget=facts.get("x-widget"),
        expected=describe_type(found.kind),
    )


def check_path(
    spec: LoopSpec | Mapping[str, Any], path: str, *, hot: bool = False, field: str | None = None
) -> Diagnostic | None:
    """Why a path cannot be used, or nothing. `field` says where the path itself is written."""
    try:
        facts = field_info(path, spec)
    except SpecProblem as problem:
        diagnostic: Diagnostic = problem.diagnostics[0]  # type: ignore[assignment]
        return diagnostic.model_copy(update={"field": field or path})
    if not hot or facts.hot:
        return None
    return Diagnostic(
        code="structure.not_hot",
        message=f"`{path}` cannot change in a run",
        hint="learning rates, weights, batch sizes, rollout settings and dataset parameters can",
        field=field or path,
    )


def get_value(spec: LoopSpec, path: str) -> Any:
    """The value of a path, defaults included; raises `SpecProblem` where it names nothing."""
    found = find(spec, path)
    here: Any = spec
    step = Type(LoopSpec)
    for part in found.parts:
        step = inside(narrow(step, here), part)[0] or step
        here = look(here, part)
        if here is None:
            here = _empty(narrow(step, None)) if part != found.parts[-1] else None
    return here


def _empty(found: Type) -> Any:
    """A section with nothing written, where that is possible."""
    try:
        return found.section() if found.section is not None else None
    except ValidationError:
        return None


_NODE: TypeAdapter[Any] = TypeAdapter(Node)
_SECTIONS: dict[str, type[Section]] = {"schedule": Schedule, "hardware": Hardware, "run": Run}


def apply_overrides(spec: LoopSpec, overrides: Mapping[str, Any]) -> LoopSpec:
    """The spec with other values at these paths, validated; raises `SpecProblem`."""
    if not overrides:
        return spec
    touched: dict[Parts, list[tuple[Parts, str, Any]]] = {}
    for path, value in overrides.items():
        parts = find(spec, path).parts
        depth = 2 if parts[0] in ("nodes", "edges") and len(parts) > 1 else 1
        if len(parts) == depth and parts[0] in ("nodes", "edges"):
            depth = 1
        touched.setdefault(parts[:depth], []).append((parts[depth:], path, value))
    changed: dict[str, Any] = {}
    for head, settings in touched.items():
        new = _rebuilt(spec, head, settings)
        name = str(head[0])
        if name == "nodes" and len(head) == 2:
            changed[name] = {**changed.get(name, spec.nodes), head[1]: new}
        elif name == "edges" and len(head) == 2:
            edges = list(changed.get(name, spec.edges))
            edges[int(head[1])] = new
            changed[name] = tuple(edges)
        else:
            changed[name] = new
    return with_parts(spec, **changed)


def with_parts(spec: LoopSpec, **parts: Any) -> LoopSpec:
    """The spec with other top-level parts, which must be valid already."""
    values = {name: getattr(spec, name) for name in LoopSpec.model_fields} | parts
    return LoopSpec.model_construct(spec.model_fields_set | set(parts), **values)


def _rebuilt(spec: LoopSpec, head: Parts, settings: list[tuple[Parts, str, Any]]) -> Any:
    """One node, edge or top-level part with new values, validated."""
    old: Any = spec
    for part in head:
        old = look(old, part)
    data: Any = _plain(old)
    for rest, _, value in settings:
        data = set_in(data, rest, value) if rest else copy.deepcopy(value)
    try:
        if head[0] == "nodes" and len(head) == 2:
            return _NODE.validate_python(data)
        if head[0] == "edges" and len(head) == 2:
            return Edge.model_validate(data)
        if head[0] in _SECTIONS:
            return _SECTIONS[str(head[0])].model_validate(data)
        document = {**spec.model_dump(by_alias=True, exclude_unset=True), str(head[0]): data}
        return getattr(LoopSpec.model_validate(document), str(head[0]))
    except ValidationError as error:
        raise _override_problem(error, spec, head, data, settings) from None


def _override_problem(
    error: ValidationError,
    spec: LoopSpec,
    head: Parts,
    data: Any,
    settings: list[tuple[Parts, str, Any]],
) -> SpecProblem:
    """The error of a part as diagnostics of the loop, by validating the whole with that part."""
    document = spec.model_dump(by_alias=True, exclude_unset=True)
    document = set_in(document, head, data)
    try:
        LoopSpec.model_validate(document)
    except ValidationError as whole:
        found = translate(whole, LoopSpec, document)
    else:
        found = (Diagnostic(code="structure.bad_value", message=str(error)[:300]),)
    paths = ", ".join(path for _, path, _ in settings)
    first = found[0]
    return SpecProblem(
        f"{paths}: {first.message}" + (f" ({first.hint})" if first.hint else ""), found
    )


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, exclude_unset=True)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
