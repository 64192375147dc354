"""Paths to values of a loop: `nodes.actor.training.optimizer.lr`, `edges.outcome.weight`.

Edges are named by id, by position, or as `a.x->b.y`; phases by position or name. After a phase's
`set`, the rest of a path is the path that the phase sets. A path may include the teaching port of
an algorithm even if the algorithm is written in the short form, without ports. Nothing here changes
a spec in place.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from coloop.errors import SpecProblem
from coloop.spec.algorithm import PORTS_OF
from coloop.spec.base import Section
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.documents import (
    Parts,
    holds,
    holds_paths,
    look_along,
    names_of,
    path_problem,
    position_of,
    set_in,
    split_path,
    words_of_key,
)
from coloop.spec.fields import Type, fields_by_key, inside, look, narrow
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lean import record
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.placement import Hardware, Run
from coloop.spec.problems import translate
from coloop.spec.schedule import Schedule


@record
class Found:
    """What a path points to."""

    parts: Parts
    """Keys and indices; edges and phases always by index."""
    field: FieldInfo | None
    """The last field of a section along the path."""
    value: Any
    """The value there; `None` if it is not set."""

    @property
    def facts(self) -> dict[str, Any]:
        """Metadata of the field, as set with `base.setting`: `x-hot` and others."""
        extra = self.field.json_schema_extra if self.field is not None else None
        return extra if isinstance(extra, dict) else {}


def find(spec: LoopSpec | Mapping[str, Any], path: str) -> Found:
    """Resolve a path in a spec or a plain document; raises `SpecProblem` if it does not exist."""
    value: Any = spec
    kind = Type(LoopSpec)
    parts: list[str | int] = []
    field: FieldInfo | None = None
    words = split_path(path) or (path,)
    while words:
        kind = narrow(kind, value)
        word, words = _next_key(kind, value, words, tuple(parts))
        if kind.section in PORTS_OF and word in PORTS_OF[kind.section]:  # short form
            continue
        is_list = kind.section is None and isinstance(value, (list, tuple))
        part = position_of(value, word) if is_list else word
        step, info = inside(kind, part) if part is not None else (None, None)
        is_missing = kind.section is None and not holds_paths(tuple(parts))
        if part is None or step is None or (is_missing and not holds(value, part)):
            parent = ".".join(map(str, parts)) or "the loop"
            message = f"the path `{path}` does not exist: there is no `{word}` in {parent}"
            raise path_problem(message, path, word, _known_words(kind, value))
        field = info or field
        parts.append(part)
        kind, value = step, look(value, part)
    return Found(parts=tuple(parts), field=field, value=value)


def _next_key(
    kind: Type, value: Any, words: tuple[str, ...], parts: Parts
) -> tuple[str, tuple[str, ...]]:
    is_mapping = kind.section is None and not isinstance(value, (list, tuple))
    mapping = value if isinstance(value, Mapping) else {}
    count = words_of_key(mapping, words, parts) if is_mapping and parts else 1
    return ".".join(words[:count]), words[count:]


def _known_words(kind: Type, value: Any) -> list[str]:
    if kind.section is not None:
        return list(fields_by_key(kind.section))
    if isinstance(value, Mapping):
        return [str(key) for key in value]
    if isinstance(value, (list, tuple)):
        names = [name for item in value for name in names_of(item) if name and "->" not in name]
        return names or [str(index) for index in range(len(value))]
    return []


def check_path(
    spec: LoopSpec | Mapping[str, Any], path: str, *, hot: bool = False, field: str | None = None
) -> Diagnostic | None:
    """Why a path cannot be used; None if it can.

    Args:
        hot: also require that the value can change during a run.
        field: path of the field that contains `path`.
    """
    try:
        target = find(spec, path)
    except SpecProblem as problem:
        diagnostic: Diagnostic = problem.diagnostics[0]  # type: ignore[assignment]
        return diagnostic.model_copy(update={"field": field or path})
    if not hot or target.facts.get("x-hot"):
        return None
    return Diagnostic(
        code="structure.not_hot",
        message=f"`{path}` cannot change in a run",
        hint="learning rates, weights, batch sizes, rollout settings and dataset parameters can",
        field=field or path,
    )


def get_value(spec: LoopSpec, path: str) -> Any:
    """The value at a path, defaults included; raises `SpecProblem` if the path does not exist."""
    value: Any = spec
    kind = Type(LoopSpec)
    *parents, last = find(spec, path).parts
    for part in parents:
        kind = inside(narrow(kind, value), part)[0] or kind
        value = look(value, part)
        section = narrow(kind, None).section
        if value is None and section is not None:
            with suppress(ValidationError):  # it has required fields, which are not set
                value = section()
    return look(value, last)


_SECTIONS: dict[str, type[Section]] = {"schedule": Schedule, "hardware": Hardware, "run": Run}


def apply_overrides(spec: LoopSpec, overrides: Mapping[str, Any]) -> LoopSpec:
    """A validated copy of the spec with these values at these paths; raises `SpecProblem`."""
    if not overrides:
        return spec
    touched: dict[Parts, list[tuple[Parts, str]]] = {}
    for path in overrides:
        parts = find(spec, path).parts
        depth = 2 if parts[0] in ("nodes", "edges") and len(parts) > 2 else 1
        touched.setdefault(parts[:depth], []).append((parts[depth:], path))
    changed: dict[str, Any] = {}
    for head, targets in touched.items():
        data: Any = _plain(look_along(spec, head))
        for rest, path in targets:
            data = set_in(data, rest, overrides[path])
        new = _validated(spec, head, data, ", ".join(path for _, path in targets))
        match head:
            case ("nodes", name):
                changed["nodes"] = {**changed.get("nodes", spec.nodes), name: new}
            case ("edges", int() as index):
                edges = list(changed.get("edges", spec.edges))
                changed["edges"] = (*edges[:index], new, *edges[index + 1 :])
            case _:
                changed[str(head[0])] = new
    return with_parts(spec, **changed)


def with_parts(spec: LoopSpec, **parts: Any) -> LoopSpec:
    """A copy of the spec with these top-level parts replaced, which must already be valid."""
    values = {name: getattr(spec, name) for name in LoopSpec.model_fields} | parts
    return LoopSpec.model_construct(spec.model_fields_set | set(parts), **values)


def _validated(spec: LoopSpec, head: Parts, data: Any, paths: str) -> Any:
    with suppress(ValidationError):
        match head:
            case ("nodes", _):
                if isinstance(data, dict) and data.get("kind") in NODE_CLASSES:
                    return NODE_CLASSES[data["kind"]].model_validate(data)
            case ("edges", _):
                return Edge.model_validate(data)
            case (("schedule" | "hardware" | "run") as name,):
                return _SECTIONS[name].model_validate(data)
    document = set_in(spec.model_dump(by_alias=True, exclude_unset=True), head, data)
    try:  # validate the whole loop, so that the fields of diagnostics are full paths
        return look_along(LoopSpec.model_validate(document), head)
    except ValidationError as error:
        diagnostics = translate(error, LoopSpec, document)
    first = diagnostics[0]
    message = f"{paths}: {first.message}" + (f" ({first.hint})" if first.hint else "")
    raise SpecProblem(message, diagnostics)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, exclude_unset=True)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
