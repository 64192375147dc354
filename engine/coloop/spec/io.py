"""Reading and writing loops: text, documents, the canonical form and its hash.

    text --parse--> Parsed(spec, document, diagnostics)       never raises on what a user wrote
    dict --from_dict--> Parsed
    spec --to_dict--> sparse document --dump--> canonical YAML, --content_hash--> sha256

Canonical form: only what is set, in the order of the language. What is only for people (`layout`,
`description`, `note`, `run.control`, `run.sweep`), formatting, key order and defaults that are
written out are not hashed.
"""

import hashlib
import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from coloop.errors import SpecProblem, SpecUnreadable
from coloop.spec.base import Section
from coloop.spec.changes import apply_changes as apply_changes
from coloop.spec.changes import locate
from coloop.spec.diagnostics import Diagnostic, Report, at
from coloop.spec.documents import migrate, split_path
from coloop.spec.graph import Edge, LoopSpec, PortRef
from coloop.spec.lean import record
from coloop.spec.nodes import BaseNode
from coloop.spec.placement import Run
from coloop.spec.problems import translate
from coloop.spec.schedule import Phase, PhaseGroup
from coloop.spec.text.emit import to_yaml
from coloop.spec.text.patch import patch as patch
from coloop.spec.text.reader import MAX_DEPTH, MAX_VALUES, Reading, read

_FOR_PEOPLE: dict[type[Section], frozenset[str]] = {
    LoopSpec: frozenset({"layout", "description", "mode"}),
    BaseNode: frozenset({"note"}),
    Phase: frozenset({"note"}),
    PhaseGroup: frozenset({"note"}),
    Run: frozenset({"control", "sweep"}),
}
"""Fields that mean nothing to a run; columns, rows and overrides of these names do."""


@record
class Parsed:
    spec: LoopSpec | None
    diagnostics: tuple[Diagnostic, ...] = ()
    document: dict[str, Any] | None = None
    """The plain data as written, migrated; set even if there is no spec."""
    reading: Reading | None = None
    """Positions in the text, if it was read from text."""

    @property
    def report(self) -> Report:
        return Report(diagnostics=self.diagnostics)

    def locate(self, diagnostic: Diagnostic) -> Diagnostic:
        """The same finding with line and column, where the text is known."""
        path = diagnostic.path
        if self.reading is None or path is None or diagnostic.line is not None:
            return diagnostic
        try:
            parts = locate(self.document or {}, path)
        except SpecProblem:
            parts = split_path(path)
        found = self.reading.find(parts)
        if found is None:
            return diagnostic
        return diagnostic.model_copy(update={"line": found[0], "column": found[1]})


def parse(text: str) -> Parsed:
    """Read a loop from YAML text."""
    return _with_spec(read_document(text))


def read_document(text: str) -> Parsed:
    """Read a loop from YAML text as plain data, without a spec."""
    reading = read(text)
    if reading.diagnostics:
        return Parsed(spec=None, diagnostics=reading.diagnostics)
    return replace(_document_of(reading.data, reading), reading=reading)


def from_dict(data: Any) -> Parsed:
    """Read a loop from plain data, e.g. the body of a request."""
    unfit = find_unfit(data)
    if unfit is not None:
        return Parsed(spec=None, diagnostics=(at(*unfit),))
    return _with_spec(_document_of(data, None))


def load(source: str | Path) -> LoopSpec:
    """The spec of a file, or of YAML text that has more than one line; raises `SpecUnreadable`."""
    text = source if isinstance(source, str) and "\n" in source else _read_file(Path(source))
    parsed = parse(text)
    if parsed.spec is None:
        lines = "\n".join(f"  {found.describe()}" for found in parsed.diagnostics)
        raise SpecUnreadable(f"the loop cannot be read:\n{lines}", parsed.diagnostics)
    return parsed.spec


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecUnreadable(f"{path} cannot be read: {error}") from error


def _document_of(data: Any, reading: Reading | None) -> Parsed:
    """The migrated document without a spec, or diagnostics."""
    locate = reading.find if reading is not None else None
    if not isinstance(data, dict):
        what = "a list" if isinstance(data, (list, tuple)) else "a single value"
        hint = "a loop starts with `coloop: 1`, `name: ...`, `nodes: ...`"
        place = locate(()) if locate is not None else None
        message = f"the document is {what}, no mapping"
        found = at((), "yaml.not_a_mapping", message, hint, place=place)
        return Parsed(spec=None, diagnostics=(found,))
    document, problem = migrate(data)
    if problem is None:
        return Parsed(spec=None, document=document)
    place = locate(("coloop",) if "coloop" in data else ()) if locate is not None else None
    if place is not None:
        problem = problem.model_copy(update={"line": place[0], "column": place[1]})
    return Parsed(spec=None, diagnostics=(problem,), document=document)


def _with_spec(parsed: Parsed) -> Parsed:
    """The same with its spec, or with diagnostics."""
    if parsed.document is None or parsed.diagnostics:
        return parsed
    try:
        return replace(parsed, spec=LoopSpec.model_validate(parsed.document))
    except ValidationError as error:
        locate = parsed.reading.find if parsed.reading is not None else None
        found = translate(error, LoopSpec, parsed.document, locate=locate)
        return replace(parsed, diagnostics=found)


SURROGATE = re.compile("[\ud800-\udfff]")
"""A lone surrogate, which UTF-8 cannot encode."""


def find_unfit(data: Any) -> tuple[tuple[str | int, ...], str, str] | None:
    """The first value that breaks a limit of the text format: path, code, message.

    Iterative, so that deep data cannot exhaust Python's stack.
    """
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [([data], ())]
    seen = 0
    while waiting:
        holder, place = waiting.pop()
        seen += len(holder)
        if seen > MAX_VALUES:
            return (), "yaml.too_many_values", f"the loop has more than {MAX_VALUES:,} values"
        if len(place) > MAX_DEPTH:
            return place[1:4], "yaml.too_deep", f"values are nested more than {MAX_DEPTH} deep"
        for key in holder if isinstance(holder, dict) else ():
            if not isinstance(key, str):
                return place[1:], "yaml.key", f"the key {key!r} is not a text"[:100]
            if not key.isascii() and SURROGATE.search(key):
                return place[1:], "yaml.character", "a key contains half of a character"
        for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(value, (dict, list, tuple)):
                waiting.append((value, (*place, key)))
            elif (found := _unfit(value)) is not None:
                return (*place, key)[1:], *found
    return None


def _unfit(value: Any) -> tuple[str, str] | None:
    match value:
        case None | bool():
            return None
        case str():
            is_whole = value.isascii() or SURROGATE.search(value) is None
            return None if is_whole else ("yaml.character", "the text contains half of a character")
        case int():
            is_fit = -(2**63) < value < 2**63
            return None if is_fit else ("yaml.not_finite", "the number is too large")
        case float():
            is_fit = math.isfinite(value)
            return None if is_fit else ("yaml.not_finite", f"{value} is not a finite number")
    return "structure.wrong_type", f"a value of type {type(value).__name__} is not a plain value"


_SCALARS = frozenset({str, int, float, bool, type(None)})
_FIRST = ("kind", "type", "task", "method", "rule", "name", "from", "to")


def to_dict(section: Section, *, is_bare: bool = False) -> dict[str, Any]:
    """The sparse document of a section: only what is set, in the order of the language.

    `is_bare` also leaves out notes and explicit defaults, as the hash needs it.
    """
    plain: dict[str, Any] = {}
    written, may_go = section.model_fields_set, is_bare and not section.unset_is_preset
    for name, key, is_required, default in _fields(type(section)):
        if name not in written or (is_bare and name in _for_people(type(section))):
            continue
        value = getattr(section, name)
        if may_go and not is_required and value == default:
            continue
        plain[key] = _plain(value, is_bare)
    if isinstance(section, LoopSpec):
        return plain
    first = {key: plain[key] for key in _FIRST if key in plain}
    return {**first, **plain}


@cache
def _fields(section: type[Section]) -> tuple[tuple[str, str, bool, Any], ...]:
    """Name, document key, whether required, and default of every field."""
    return tuple(
        (name, info.alias or name, info.is_required(), info.get_default(call_default_factory=True))
        for name, info in section.model_fields.items()
    )


@cache
def _for_people(section: type[Section]) -> frozenset[str]:
    return frozenset().union(
        *(names for kind, names in _FOR_PEOPLE.items() if issubclass(section, kind))
    )


def _plain(value: Any, is_bare: bool) -> Any:
    if type(value) in _SCALARS:
        return value
    match value:
        case Edge():
            edge = to_dict(value, is_bare=is_bare)
            return value.label if set(edge) == {"from", "to"} else edge
        case Section():
            return to_dict(value, is_bare=is_bare)
        case PortRef():
            return str(value)
        case dict():
            return {key: _plain(item, is_bare) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, is_bare) for item in value]
        case BaseModel():
            return value.model_dump(mode="json")
    return value


def dump(spec: LoopSpec) -> str:
    """Canonical YAML of a loop, without comments."""
    return to_yaml(to_dict(spec))


def content_hash(spec: LoopSpec) -> str:
    """sha256 over what the loop means: no layout, no notes, no formatting, no defaults."""
    text = json.dumps(
        _hashed(to_dict(spec, is_bare=True)),
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _hashed(value: Any) -> Any:
    if type(value) is str:
        return value
    match value:
        case dict():
            return {key: _hashed(item) for key, item in value.items()}
        case list():
            return [_hashed(item) for item in value]
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
    return value


def require(parsed: Parsed) -> LoopSpec:
    """The spec, or `SpecProblem` with the diagnostics."""
    if parsed.spec is None:
        first = parsed.diagnostics[0].describe() if parsed.diagnostics else "no spec"
        raise SpecProblem(first, parsed.diagnostics)
    return parsed.spec
