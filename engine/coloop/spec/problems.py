"""Errors of validation as diagnostics: what was found, what is expected, how to mend it.

pydantic says where and what kind; this module finds the section at that place, looks for the key
or word that was probably meant, and gives line and column where the text is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from coloop.diagnostics import Diagnostic, did_you_mean
from coloop.spec.base import Section
from coloop.spec.fields import (
    Type,
    describe_type,
    describe_value,
    field_type,
    fields_by_key,
    narrow,
    plain_path,
    tags,
    type_at,
)

Locate = Callable[[tuple[str | int, ...]], tuple[int, int] | None]
Path = tuple[str | int, ...]

_MOST = 50

_CODES = {
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

OTHER_NAMES: dict[str, str] = {
    "batch_size": "rows_per_step",
    "train_batch_size": "mini_batch",
    "mini_batch_size": "mini_batch",
    "ppo_mini_batch_size": "mini_batch",
    "micro_batch_size": "micro_batch",
    "per_device_train_batch_size": "micro_batch",
    "learning_rate": "lr",
    "lr_scheduler": "schedule",
    "lr_scheduler_type": "schedule",
    "warmup_steps": "warmup",
    "warmup_ratio": "warmup",
    "max_grad_norm": "gradient_clip",
    "grad_clip": "gradient_clip",
    "num_generations": "completions_per_prompt",
    "group_size": "completions_per_prompt",
    "n": "completions_per_prompt",
    "n_samples": "completions_per_prompt",
    "max_tokens": "max_new_tokens",
    "max_completion_length": "max_new_tokens",
    "max_length": "max_new_tokens",
    "kl_coef": "kl",
    "kl_beta": "kl",
    "lam": "gae_lambda",
    "lambda": "gae_lambda",
    "clip_range": "clip_low",
    "cliprange": "clip_low",
    "clip_ratio": "clip_low",
    "epsilon_high": "clip_high",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "max_steps": "steps",
    "total_steps": "steps",
    "save_steps": "checkpoint_every",
    "save_every": "checkpoint_every",
    "eval_every": "every",
    "gradient_accumulation_steps": "micro_batch",
    "prompt_template": "text",
    "system_prompt": "messages",
}
"""Names that other frameworks use, and ours."""


def translate(
    error: ValidationError,
    root: type[Section],
    data: Any,
    prefix: Path = (),
    locate: Locate | None = None,
) -> tuple[Diagnostic, ...]:
    """Diagnostics for an error of `root`; `prefix` is where its data stands in the loop."""
    found: list[Diagnostic] = []
    for detail in error.errors(include_url=False)[:_MOST]:
        diagnostic = _translate(detail, root, data, prefix, locate)
        if all((d.path, d.code) != (diagnostic.path, diagnostic.code) for d in found):
            found.append(diagnostic)
    return tuple(found)


def at(
    path: Path, code: str, message: str, hint: str | None = None, locate: Locate | None = None
) -> Diagnostic:
    """A diagnostic at a full path; under `nodes` it names the node."""
    place = locate(path) if locate is not None else None
    is_node = len(path) >= 2 and path[0] == "nodes"
    rest = path[2:] if is_node else path
    return Diagnostic(
        code=code,
        message=message,
        hint=hint,
        node=str(path[1]) if is_node else None,
        field=".".join(map(str, rest)) or None,
        line=None if place is None else place[0],
        column=None if place is None else place[1],
    )


def _translate(
    detail: ErrorDetails, root: type[Section], data: Any, prefix: Path, locate: Locate | None
) -> Diagnostic:
    path, is_key = plain_path(root, detail["loc"])
    kind, value = detail["type"], detail["input"]
    context = detail.get("ctx", {})

    def make(code: str, message: str, hint: str | None = None, more: Path = ()) -> Diagnostic:
        return at((*prefix, *path, *more), code, message, hint, locate)

    if is_key:
        return _bad_key(path, make)
    match kind:
        case "coloop_problem":
            return _own_problem(detail, make)
        case "extra_forbidden":
            return _unknown_field(root, path, data, make)
        case "missing":
            return _missing_field(root, path, data, make)
        case "union_tag_invalid" | "union_tag_not_found":
            return _bad_tag(root, path, data, value, make)
        case "literal_error":
            return _bad_word(context, value, make)
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            key, words = _BOUNDS[kind]
            message = f"{_found(value)}; {words} {_number(context.get(key))} is expected"
            return make("numbers.out_of_range", message)
        case "finite_number":
            return make("yaml.not_finite", f"{_found(value)}; a finite number is expected")
        case "string_too_short":
            return make("structure.bad_value", "an empty text was found; some text is expected")
        case "string_too_long":
            limit = context.get("max_length")
            return make("structure.bad_value", f"the text is longer than {limit} characters")
        case "too_short" | "too_long":
            return _bad_length(kind, context, make)
        case "string_pattern_mismatch":
            return _bad_pattern(path, value, context, make)
        case "plain_value" | "plain_key":
            return make("structure.wrong_type", f"{_found(value)}; {detail['msg']}")
    wanted = _expected(root, path, data, kind)
    return make(
        "structure.wrong_type", f"{_found(value)}; {wanted} is expected", _type_hint(kind, value)
    )


Make = Callable[..., Diagnostic]


def _own_problem(detail: ErrorDetails, make: Make) -> Diagnostic:
    context = detail.get("ctx", {})
    code = _CODES[context.get("kind", "bad_value")]
    message = detail["msg"]
    if context.get("field") is not None:
        return make(code, message, None, (context["field"],))
    if "found" in context:
        message = f"found {describe_value(context['found'])}; {message}"
    hint = "e.g. `problems.rows -> actor.prompts`" if code == "structure.bad_edge" else None
    return make(code, message, hint)


def _bad_key(path: Path, make: Make) -> Diagnostic:
    name = str(path[-1])
    what = "node id" if len(path) == 2 and path[0] == "nodes" else "name"
    return make(
        "structure.bad_name",
        f"`{name[:60]}` is no {what}",
        "a lower-case letter, then lower-case letters, digits and `_`",
    )


def _unknown_field(root: type[Section], path: Path, data: Any, make: Make) -> Diagnostic:
    key = str(path[-1])
    section = _section(root, path[:-1], data)
    known = list(fields_by_key(section)) if section is not None else []
    return make(
        "structure.unknown_field", f"there is no `{key[:60]}` here", _meant(section, key, known)
    )


def _meant(section: type[Section] | None, key: str, known: list[str]) -> str | None:
    other = OTHER_NAMES.get(key.lower())
    if other in known:
        return f"did you mean `{other}`?"
    if section is None:
        return None
    for wanted in (key, other):
        deeper = None if wanted is None else _deeper(section, wanted)
        if deeper is not None:
            return f"did you mean `{deeper}`?"
    return did_you_mean(key, known)


def _deeper(section: type[Section], key: str, depth: int = 2) -> str | None:
    """Where a key stands in the sections below, e.g. `rollout.temperature`."""
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


def _missing_field(root: type[Section], path: Path, data: Any, make: Make) -> Diagnostic:
    key = str(path[-1])
    section = _section(root, path[:-1], data)
    info = fields_by_key(section).get(key) if section is not None else None
    expected = describe_type(field_type(info)) if info is not None else "a value"
    hint = _first_line(info.description) if info is not None else None
    return make("structure.missing_field", f"`{key}` is missing; {expected} is expected", hint)


def _bad_tag(root: type[Section], path: Path, data: Any, value: Any, make: Make) -> Diagnostic:
    union = type_at(root, path, data)
    if union is None or not isinstance(union.discriminator, str):
        return make("structure.wrong_type", f"{_found(value)}; a mapping is expected")
    key, words = union.discriminator, [str(tag) for tag in tags(union)]
    if not isinstance(value, dict):
        message = f"{_found(value)}; a mapping with `{key}` is expected"
        return make("structure.wrong_type", message, f"`{key}` is one of " + ", ".join(words))
    if key not in value:
        message = f"`{key}` is missing; one of {', '.join(words)} is expected"
        return make("structure.missing_field", message, None, (key,))
    word = value[key]
    code = "structure.unknown_kind" if key == "kind" else "structure.unknown_value"
    message = f"{_found(word)}; one of {', '.join(words)} is expected"
    return make(code, message, _near(word, words), (key,))


def _bad_word(context: dict[str, Any], value: Any, make: Make) -> Diagnostic:
    expected = str(context.get("expected", "")).replace("'", "")
    words = [word.strip() for word in expected.replace(" or ", ", ").split(",")]
    message = (
        f"{_found(value)}; {'one of ' if len(words) > 1 else ''}{', '.join(words)} is expected"
    )
    return make("structure.unknown_value", message, _near(value, words))


def _near(word: Any, words: list[str]) -> str | None:
    hint = did_you_mean(word, words) if isinstance(word, str) else None
    return hint if hint is not None and hint.startswith("did you") else None


def _bad_length(kind: str, context: dict[str, Any], make: Make) -> Diagnostic:
    bound = context.get("min_length" if kind == "too_short" else "max_length")
    words = "at least" if kind == "too_short" else "at most"
    count = context.get("actual_length")
    return make("structure.bad_value", f"found {count} items; {words} {bound} are expected")


def _bad_pattern(path: Path, value: Any, context: dict[str, Any], make: Make) -> Diagnostic:
    pattern = str(context.get("pattern", ""))
    if pattern.startswith("^https"):
        hint: str | None = "an address that starts with http:// or https://"
    elif pattern.startswith("^[a-z]"):
        hint = "a lower-case letter, then lower-case letters, digits and `_`"
    else:
        hint = "letters, digits, `.`, `_` and `-`, beginning with a letter or digit"
    del path
    return make("structure.bad_name", f"{_found(value)}; that is no name", hint)


def _expected(root: type[Section], path: Path, data: Any, kind: str) -> str:
    found = type_at(root, path, data)
    if found is not None and not found.options:
        return describe_type(found)
    by_kind = {
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "string": "text",
        "dict": "a mapping",
        "model": "a mapping",
        "tuple": "a list",
        "list": "a list",
    }
    return by_kind.get(kind.split("_")[0], "another value")


def _type_hint(kind: str, value: Any) -> str | None:
    if isinstance(value, str) and kind.split("_")[0] in ("int", "float", "bool"):
        return "write it without quotes" if _looks_plain(value) else None
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        return "put it in quotes"
    if kind == "tuple_type" and isinstance(value, str):
        return f"write it as a list: [{value[:40]}]"
    return None


def _looks_plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.lower() in ("true", "false")
    return True


def _section(root: type[Section], path: Path, data: Any) -> type[Section] | None:
    found: Type | None = type_at(root, path, data)
    return None if found is None else narrow(found, None).section


def _found(value: Any) -> str:
    return f"found {describe_value(value)}"


def _number(value: Any) -> str:
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if is_whole else str(value)


def _first_line(text: str | None) -> str | None:
    return text.strip().splitlines()[0] if text else None
