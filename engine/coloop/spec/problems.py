"""Errors of validation as diagnostics: what was found, what is expected, how to fix it.

pydantic says where and what kind; this module finds the section at that place, says it in words
of the language, adds what was probably meant with its one-click fix, and line and column where
the text is known.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from coloop.spec.algorithm import PORTS_OF
from coloop.spec.base import Section, load_yaml
from coloop.spec.diagnostics import Change, Diagnostic, Fix, at, closest, did_you_mean
from coloop.spec.documents import Parts, join_path, look_along
from coloop.spec.fields import (
    TYPE_WORDS,
    describe_type,
    describe_value,
    field_type,
    fields_by_key,
    join_words,
    narrow,
    plain_path,
    tags,
    type_at,
    words_of,
)
from coloop.spec.installed import problem_with
from coloop.spec.lean import docstrings_of, is_lean, record

Locate = Callable[[Parts], tuple[int, int] | None]

_MOST = 50
_KINDS = {
    "bad_edge": "structure.bad_edge",
    "bad_value": "structure.bad_value",
    "conflict": "structure.conflict",
    "missing_field": "structure.missing_field",
    "out_of_range": "numbers.out_of_range",
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_WANTED = {kind.__name__: words for kind, words in TYPE_WORDS.items()} | {
    "string": "text",
    "model": "a mapping",
    "list": "a list",
}
_NODE_NAME = "a lower-case letter, then lower-case letters, digits and `_`"
_ANY_NAME = "letters, digits, `.`, `_` and `-`, starting with a letter or digit"
_EDGE_HINT = "e.g. `problems.rows -> actor.prompts`"


def translate(
    error: ValidationError, root: type[Section], data: Any, locate: Locate | None = None
) -> tuple[Diagnostic, ...]:
    found: dict[tuple[str | None, str], Diagnostic] = {}
    for detail in error.errors(include_url=False)[:_MOST]:
        diagnostic = _translate(detail, root, data, locate)
        found.setdefault((diagnostic.path, diagnostic.code), diagnostic)
    return tuple(found.values())


def _translate(
    detail: ErrorDetails, root: type[Section], data: Any, locate: Locate | None
) -> Diagnostic:
    path, is_key = plain_path(root, detail["loc"])
    error = _Error(root=root, data=data, path=path, detail=detail, locate=locate)
    kind = "key" if is_key else detail["type"]
    match kind:
        case "key":
            return error.bad_key()
        case "coloop_problem":
            return error.own_problem()
        case "extra_forbidden":
            return error.unknown_field()
        case "missing":
            return error.missing_field()
        case "union_tag_invalid" | "union_tag_not_found":
            return error.bad_tag()
        case "literal_error":
            return error.bad_word()
        case "too_short" | "too_long":
            return error.bad_length()
        case "string_pattern_mismatch":
            return error.bad_pattern()
        case "string_too_short":
            return error.say("structure.bad_value", "found an empty text; some text is expected")
        case "string_too_long":
            limit = detail["ctx"]["max_length"]
            return error.say("structure.bad_value", f"the text has more than {limit} characters")
        case "finite_number":
            return error.say("yaml.not_finite", f"{error.found}; a finite number is expected")
        case "plain_value" | "plain_key":
            return error.say("structure.wrong_type", f"{error.found}; {detail['msg']}")
    if kind in _BOUNDS:
        return error.out_of_range()
    return error.wrong_type()


_YES_NO = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}

_OF_A_LOOP = {
    "name": ("the loop has no `name`", "write `name: my-loop`"),
    "nodes": ("the loop has no `nodes`", "they are its boxes: `nodes: {problems: {kind: ...}}`"),
    "schedule": (
        "the loop has no `schedule`, so its length is unknown",
        "write `schedule: {steps: 100}`, or phases",
    ),
}
"""Required top-level keys, each with an example."""


@record
class _Error:
    """One error of pydantic, with everything needed to say it well."""

    root: type[Section]
    data: Any
    path: Parts
    detail: ErrorDetails
    locate: Locate | None

    @property
    def value(self) -> Any:
        return self.detail["input"]

    @property
    def context(self) -> dict[str, Any]:
        return self.detail.get("ctx", {})

    @property
    def found(self) -> str:
        return f"found {describe_value(self.value)}"

    def say(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        more: Parts = (),
        fixes: tuple[Fix, ...] = (),
    ) -> Diagnostic:
        path = (*self.path, *more)
        place = self.locate(path) if self.locate is not None else None
        return at(path, code, message, hint, place=place, fixes=fixes)

    def section(self) -> type[Section] | None:
        holder = type_at(self.root, self.path[:-1], self.data)
        return None if holder is None else narrow(holder, None).section

    def own_problem(self) -> Diagnostic:
        code = _KINDS[self.context.get("kind", "bad_value")]
        message = self.detail["msg"]
        field = self.context.get("field")
        if field is not None:
            return self.say(code, message, None, (field,), self._removal(code, field))
        if "found" in self.context:
            message = f"found {describe_value(self.context['found'])}; {message}"
        if code != "structure.bad_edge":
            return self.say(code, message)
        return self.say(code, message, _EDGE_HINT, (), self._edge_fixes(self.context.get("found")))

    def _removal(self, code: str, field: str) -> tuple[Fix, ...]:
        """A fix for a field that is set and excluded by another one."""
        if code != "structure.conflict" or look_along(self.data, (*self.path, field)) is None:
            return ()
        return (Fix.remove(f"Remove `{field}`", join_path((*self.path, field))),)

    def _edge_fixes(self, text: Any) -> tuple[Fix, ...]:
        """A fix for two ports with a wrong mark between them."""
        ports = re.findall(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", str(text))
        if len(ports) != 2:
            return ()
        edge = " -> ".join(ports)
        return (Fix.set(f"Write `{edge}`", join_path(self.path), edge),)

    def bad_key(self) -> Diagnostic:
        name = str(self.path[-1])
        is_node = len(self.path) == 2 and self.path[0] == "nodes"
        what = "node id" if is_node else "name"
        return self.say("structure.bad_name", f"`{name[:60]}` is not a valid {what}", _NODE_NAME)

    def unknown_field(self) -> Diagnostic:
        key = str(self.path[-1])
        meaning = meant_key(self.section(), key)
        fixes = (self._move(meaning.instead),) if meaning.instead is not None else ()
        message = f"there is no `{key[:60]}` here"
        return self.say("structure.unknown_field", message, meaning.hint, (), fixes)

    def _move(self, instead: str) -> Fix:
        old = join_path(self.path)
        if "." not in instead:
            change = Change(op="rename", path=old, value=instead)
            return Fix(title=f"Rename to `{instead}`", changes=(change,))
        new = ".".join(filter(None, (join_path(self.path[:-1]), instead)))
        changes = (Change(op="set", path=new, value=self.value), Change(op="remove", path=old))
        return Fix(title=f"Move to `{instead}`", changes=changes)

    def missing_field(self) -> Diagnostic:
        key = str(self.path[-1])
        section = self.section()
        info = fields_by_key(section).get(key) if section is not None else None
        expected = describe_type(field_type(info)) if info is not None else "a value"
        text = info.description if info is not None else None
        if text is None and is_lean() and section is not None:
            text = docstrings_of(section).get(key)
        hint = text.strip().splitlines()[0] if text else None
        if len(self.path) == 1 and key in _OF_A_LOOP:
            return self.say("structure.missing_field", *_OF_A_LOOP[key])
        message = f"`{key}` is missing; {expected} is expected"
        return self.say("structure.missing_field", message, hint)

    def bad_tag(self) -> Diagnostic:
        union = type_at(self.root, self.path, self.data)
        if union is None or not isinstance(union.discriminator, str):
            return self.wrong_type()
        key, words = union.discriminator, [str(tag) for tag in tags(union)]
        if not isinstance(self.value, dict):
            message = f"{self.found}; a mapping with `{key}` is expected"
            return self.say(
                "structure.wrong_type", message, f"`{key}` is one of {join_words(words)}"
            )
        if key not in self.value:
            message = f"`{key}` is missing; one of {join_words(words)} is expected"
            return self.say("structure.missing_field", message, None, (key,))
        code = "structure.unknown_kind" if key == "kind" else "structure.unknown_value"
        return self._wrong_word(code, self.value[key], words, (key,))

    def bad_word(self) -> Diagnostic:
        found = type_at(self.root, self.path, self.data)
        words = words_of(found) if found is not None else []
        return self._wrong_word("structure.unknown_value", self.value, words, ())

    def _wrong_word(self, code: str, word: Any, words: list[str], more: Parts) -> Diagnostic:
        one_of = "one of " if len(words) > 1 else ""
        message = f"found {describe_value(word)}; {one_of}{join_words(words)} is expected"
        refused = problem_with(word)
        meaning = meant_word(word, words) if refused is None else Meaning(refused)
        if meaning.hint is None and "algorithm" in self.path:
            meaning = Meaning(_other_port(word))
        path = join_path((*self.path, *more))
        fixes: tuple[Fix, ...] = ()
        if meaning.instead is not None:
            fixes = (Fix.set(f"Use `{meaning.instead}`", path, meaning.instead),)
        return self.say(code, message, meaning.hint, more, fixes)

    def bad_length(self) -> Diagnostic:
        is_short = self.detail["type"] == "too_short"
        bound = self.context["min_length" if is_short else "max_length"]
        words = "at least" if is_short else "at most"
        count = self.context["actual_length"]
        message = f"found {count} items; {words} {bound} are expected"
        return self.say("structure.bad_value", message)

    def bad_pattern(self) -> Diagnostic:
        pattern = str(self.context.get("pattern", ""))
        if pattern.startswith("^https"):
            hint = "an address that starts with http:// or https://"
            return self.say("structure.bad_value", f"{self.found}; that is not an address", hint)
        is_node = pattern.startswith("^[a-z]")
        if self.value == "":
            wanted = "the name of a node" if is_node else "a name"
            return self.say("structure.bad_name", f"{wanted} is missing")
        hint = _NODE_NAME if is_node else _ANY_NAME
        return self.say("structure.bad_name", f"{self.found}; that is not a name", hint)

    def out_of_range(self) -> Diagnostic:
        key, words = _BOUNDS[self.detail["type"]]
        bound = self.context[key]
        is_whole = isinstance(bound, float) and bound.is_integer() and abs(bound) < 1e15
        shown = int(bound) if is_whole else bound
        return self.say("numbers.out_of_range", f"{self.found}; {words} {shown} is expected")

    def wrong_type(self) -> Diagnostic:
        kind = self.detail["type"].split("_")[0]
        found = type_at(self.root, self.path, self.data)
        is_plain = found is not None and not found.options
        wanted = describe_type(found) if found and is_plain else _WANTED.get(kind, "another value")
        message = f"{self.found}; {wanted} is expected"
        hint, value = self._other_spelling(kind)
        fixes: tuple[Fix, ...] = ()
        if value is not None:
            fixes = (Fix.set(f"Write {value!r}", join_path(self.path), value),)
        return self.say("structure.wrong_type", message, hint, (), fixes)

    def _other_spelling(self, kind: str) -> tuple[str | None, Any]:
        value = self.value
        if isinstance(value, str) and kind in ("int", "float", "bool"):
            if kind == "bool" and value.lower() in _YES_NO:
                return "YAML 1.2 has `true` and `false`", _YES_NO[value.lower()]
            plain = _plain_value(value)
            return (None, None) if plain is None else ("write it without quotes", plain)
        if kind == "int" and isinstance(value, float) and value.is_integer():
            return "write it without a dot", int(value)
        if kind == "string" and isinstance(value, (int, float)):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            return "put it in quotes", text
        if kind == "tuple" and isinstance(value, str):
            return "write it as a list", [value]
        return None, None


def _plain_value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for read in (int, float):
        try:
            return read(text)
        except (ValueError, OverflowError):
            continue
    return None


def _other_port(name: Any) -> str | None:
    for section, ports in PORTS_OF.items():
        if name in get_args(section.model_fields["name"].annotation):
            return f"`{name}` belongs to port " + " or ".join(f"`{port}`" for port in ports)
    return None


# What was probably meant: names of other frameworks, deeper keys, words that look alike.

_NAMES = load_yaml(Path(__file__).with_name("other_names.yaml"))
OTHER_NAMES: dict[str, str] = {name: ours for ours, names in _NAMES.items() for name in names}
"""Names that other frameworks use, and ours."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a wrong word probably stands for."""

    hint: str | None
    """The sentence for people."""
    instead: str | None = None
    """The one right word, or key below this section, if there is one."""


def meant_key(section: type[Section] | None, key: str) -> Meaning:
    """What an unknown key of a section stands for."""
    if section is None:
        return Meaning(None)
    known = list(fields_by_key(section))
    other = OTHER_NAMES.get(key.lower())
    if other in known:
        return Meaning(f"did you mean `{other}`?", other)
    for wanted in (key, other):
        deeper = None if wanted is None else _deeper(section, wanted)
        if deeper is not None:
            return Meaning(f"did you mean `{deeper}`?", deeper)
    return _alike(key, known, did_you_mean(key, known))


def meant_word(word: object, words: list[str]) -> Meaning:
    """What a word that is not among the allowed ones stands for."""
    if not isinstance(word, str):
        return Meaning(None)
    hint = did_you_mean(word, words)
    is_near = hint is not None and hint.startswith("did you")
    return _alike(word, words, hint if is_near else None)


def _alike(word: str, words: list[str], hint: str | None) -> Meaning:
    near = closest(word, words, 1)
    is_one = hint is not None and " or " not in hint
    return Meaning(hint, near[0] if near and is_one else None)


def _deeper(section: type[Section], key: str, depth: int = 2) -> str | None:
    for name, info in fields_by_key(section).items():
        inner = field_type(info).section
        if inner is None or depth == 0:
            continue
        if key in fields_by_key(inner):
            return f"{name}.{key}"
        found = _deeper(inner, key, depth - 1)
        if found is not None:
            return f"{name}.{found}"
    return None
