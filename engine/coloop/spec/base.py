"""What every section of the language is made of: strict values, field metadata, conditions.

A field says in one place what it is; forms, schema and docs are derived from it. Sections are
frozen and refuse unknown keys; numbers are finite; text is never read as a number. `None` means
"not set" or "decided by the compiler", as the docstring of the field says.
"""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, PydanticUndefined

from coloop.spec.lean import is_lean

Level = Literal["simple", "advanced", "expert"]
LEVELS: tuple[Level, ...] = get_args(Level)

Widget = Literal[
    "bytes",
    "code",
    "column",
    "metrics",
    "node",
    "path",
    "phase",
    "port",
    "regex",
    "scorer",
    "seconds",
    "select",
    "slider",
    "text",
]
"""Which control shows the value; none: the control of its type."""
Choices = Literal[
    "algorithms",
    "architectures",
    "columns",
    "groupings",
    "hardware",
    "metrics",
    "nodes",
    "phases",
    "pools",
    "ports",
    "probe_metrics",
    "scorers",
    "task_columns",
]
"""What a value is chosen from: things of the loop, or lists of the catalog."""
Reference = Literal["node", "metric", "path", "template"]
"""How a text mentions nodes. `node`: it is a node's id or begins with one and a dot; `metric`:
`node.metric` or `node.scorer.metric`; `path`: `nodes.<id>...`; `template`: Jinja, in which
`id.column` may stand."""

FormSection = Literal[
    "model", "reading", "generation", "learning", "placement", "checkpoint", "note"
]
"""Section of a form that shows a field; its fields fold together. None: above all sections."""

_CHOICES_OF_WIDGET: dict[str, Choices] = {
    "node": "nodes",
    "scorer": "scorers",
    "port": "ports",
    "phase": "phases",
    "column": "columns",
    "metrics": "probe_metrics",
}
_REFERENCE_OF_WIDGET: dict[str, Reference] = {
    "node": "node",
    "scorer": "node",
    "port": "node",
    "column": "node",
}

NODE_PATTERN = r"^[a-z][a-z0-9_]*$"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"

MOST = 2**53 - 1
"""Greatest whole number that JSON and YAML carry everywhere."""


class _Carried:
    """A default upper bound: a field's own `le` replaces it instead of being added."""

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        return {"le": MOST, **schema} if schema["type"] == "int" else schema


Whole = Annotated[int, Field(strict=True), _Carried()]
Count = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
NodeId = Annotated[str, StringConstraints(pattern=NODE_PATTERN, max_length=64)]
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=100)]
Text = Annotated[str, StringConstraints(min_length=1)]

PORT_PATTERN = r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"


def _formed(pattern: str, example: str) -> AfterValidator:
    form = re.compile(pattern)

    def check(text: str) -> str:
        if not form.fullmatch(text):
            raise problem("bad_value", f"`{example}` is expected", found=text)
        return text

    return AfterValidator(check)


PortName = Annotated[str, _formed(PORT_PATTERN, "node.port")]
LearnName = Annotated[str, _formed(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?", "node.port")]
FullName = Annotated[str, _formed(r"[a-z][a-z0-9_]*\.full", "buffer.full")]
MetricName = Annotated[str, _formed(r"[a-z][a-z0-9_]*\.[A-Za-z0-9_@./-]+", "node.metric")]

T = TypeVar("T")
S = TypeVar("S")


def _one_or_many(value: Any) -> str:
    return "<many>" if isinstance(value, (list, tuple)) else "<one>"


OneOrMany = Annotated[
    Annotated[T, Tag("<one>"), Field(title="just one")]
    | Annotated[tuple[T, ...], Tag("<many>"), Field(title="several")],
    Discriminator(_one_or_many),
]
PlainOr = Annotated[
    Annotated[T, Tag("<plain>")] | Annotated[S, Tag("<section>")],
    Discriminator(lambda value: "<section>" if isinstance(value, dict | BaseModel) else "<plain>"),
]
"""A single value, or a section instead of it: `PlainOr[Count, EpochsOf]`."""
Range = Annotated[
    Annotated[Whole, Tag("<one>")] | Annotated[tuple[Whole, Whole], Tag("<many>")],
    Discriminator(_one_or_many),
]
"""A whole number, or [least, greatest]."""


def _plain_value(value: Any) -> Any:
    """Refuse what YAML and JSON cannot carry: non-finite numbers and foreign objects."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise PydanticCustomError("finite_number", "a finite number is expected")
            return value
        case list() | tuple():
            return [_plain_value(item) for item in value]
        case dict():
            return {_plain_key(key): _plain_value(item) for key, item in value.items()}
    raise PydanticCustomError(
        "plain_value", "text, a number, true, false, null, a list or a mapping is expected"
    )


def _plain_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise PydanticCustomError("plain_key", "text is expected as a key")


PlainValue = Annotated[Any, AfterValidator(_plain_value)]
"""Any value that YAML can carry."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One value or several as a tuple; `None` is none."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def setting(
    default: Any = PydanticUndefined,
    *,
    level: Level = "simple",
    hot: bool = False,
    widget: Widget | None = None,
    choices: Choices | None = None,
    reference: Reference | None = None,
    key_reference: Reference | None = None,
    starter: str | None = None,
    short: str | None = None,
    section: FormSection | None = None,
    unit: str | None = None,
    when: Mapping[str, tuple[Any, ...]] | None = None,
    needed: Mapping[str, tuple[Any, ...]] | None = None,
    hidden: bool = False,
    solver: bool = False,
    span: tuple[int, int] | None = None,
    **options: Any,
) -> Any:
    """A field of a section, with metadata for forms, schema and checks.

    Args:
        choices: what the value, or each of several, is chosen from; a widget has its own.
        reference: how the value mentions nodes; a widget has its own.
        key_reference: how the keys of a mapping do.
        starter: a valid text to start from.
        short: the value in a few words, with `{}` in its place; shown when its section is folded.
        section: section of the form; a nested field leaves its parent for it.
        when: the field is only allowed if these siblings (dots go deeper) have one of these values.
        needed: likewise, the field is required.
        solver: whether fitting into memory may set it; only for how work is carried out.
        span: bounds of a `Range`.
    """
    extra: dict[str, Any] = {"x-level": level, "x-hot": hot}
    optional = {
        "x-widget": widget or (unit if unit in ("seconds", "bytes") else None),
        "x-choices": choices or _CHOICES_OF_WIDGET.get(widget or ""),
        "x-reference": reference or _REFERENCE_OF_WIDGET.get(widget or ""),
        "x-key-reference": key_reference,
        "x-starter": starter,
        "x-short": short,
        "x-section": section,
        "x-unit": unit,
        "x-when": _lists(when),
        "x-needed": _lists(needed),
        "x-span": span and list(span),
        "x-hidden": hidden or None,
        "x-solver": solver or None,
    }
    extra |= {name: value for name, value in optional.items() if value is not None}
    return Field(default, json_schema_extra=extra, **options)


def _lists(values: Mapping[str, tuple[Any, ...]] | None) -> dict[str, list[Any]] | None:
    return None if values is None else {name: list(of) for name, of in values.items()}


def problem(
    kind: str, message: str, field: str | None = None, **context: Any
) -> PydanticCustomError:
    """An error of a validator; `kind` ends the code, `field` is the place in the section."""
    shown = message.replace("{", "{{").replace("}", "}}")
    return PydanticCustomError("coloop_problem", shown, {"kind": kind, "field": field, **context})


_TITLES = {
    "lr": "Learning rate",
    "min_lr": "Least learning rate",
    "kl": "KL",
    "ema": "EMA",
    "url": "URL",
    "id": "ID",
    "json_path": "JSON path",
    "lora": "LoRA",
    "gae_lambda": "GAE lambda",
    "sft": "SFT share",
    "gpu": "GPU",
    "gpus": "GPUs",
    "gpus_per_node": "GPUs per node",
    "gpu_memory_utilization": "GPU memory share",
    "top_p": "Top p",
    "top_k": "Top k",
    "memory_mib": "Memory (MiB)",
    "zero_stage": "ZeRO stage",
}


def title_of(name: str, _: object = None) -> str:
    """The title of a field in forms: `rows_per_step` is "Rows per step"."""
    words = name.rstrip("_").replace("_", " ")
    return _TITLES.get(name, words[:1].upper() + words[1:])


def _section_title(section: type) -> str:
    """The title of a section that gives none: `AccuracyBand` is "Accuracy band"."""
    return title_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", section.__name__).lower())


class FrozenRecord(BaseModel):
    """A value that the API describes by the docstrings of its fields."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=not is_lean(), defer_build=is_lean()
    )


SectionType = TypeVar("SectionType", bound="Section")


class Section(BaseModel):
    """A part of a loop: frozen, closed, documented field by field."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=not is_lean(),
        defer_build=is_lean(),
        allow_inf_nan=False,
        protected_namespaces=(),
        coerce_numbers_to_str=False,
        field_title_generator=title_of,
        model_title_generator=_section_title,
    )

    unset_is_preset: ClassVar[bool] = False
    """Whether a field that is not written takes a preset's value (`null` is something else)."""

    conditions: ClassVar[dict[str, tuple[str, dict[str, tuple[Any, ...]]]]] = {}

    spans: ClassVar[dict[str, tuple[int, int]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        marks = [(name, extra) for name, (_, extra) in marks_of(cls).items()]
        cls.spans = {name: tuple(extra["x-span"]) for name, extra in marks if "x-span" in extra}
        cls.conditions = {
            f"{rule}:{name}": (name, {path: tuple(of) for path, of in extra[rule].items()})
            for name, extra in marks
            for rule in ("x-when", "x-needed")
            if rule in extra
        }

    @model_validator(mode="after")
    def _meets_conditions(self) -> Self:
        for name, bounds in self.spans.items():
            _check_span(name, getattr(self, name), bounds)
        for key, (name, wanted) in self.conditions.items():
            value = getattr(self, name)
            holds = all(_look_up(self, path) in values for path, values in wanted.items())
            written = name in self.model_fields_set and value is not None
            if key.startswith("x-when") and written and not holds:
                kind, words = "conflict", "belongs only to"
            elif key.startswith("x-needed") and value is None and holds:
                kind, words = "missing_field", "is needed with"
            else:
                continue
            field = yaml_key(type(self), name)
            found = "" if holds else _found(self, wanted)
            if kind == "missing_field":
                wanted = _set_conditions(wanted)
            raise problem(kind, f"{words} {_condition(wanted)}{found}", field=field)
        return self


@cache
def marks_of(section: type[Section]) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """By attribute, the key in YAML and what `setting` says of the field."""
    fields = section.model_fields.items()
    return {
        name: (info.alias or name, info.json_schema_extra)
        for name, info in fields
        if isinstance(info.json_schema_extra, dict)
    }


def texts_in(section: Section) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every text in a section, at any depth: its path, the text, and what its field says of itself
    (`x-widget`, `x-reference`, ...)."""
    marks = marks_of(type(section))
    for name, value in section.__dict__.items():
        if name in marks and value is not None and not isinstance(value, int | float):
            key, extra = marks[name]
            yield from _texts_in(value, key, extra)


def _texts_in(
    value: Any, path: str, extra: Mapping[str, Any]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    if isinstance(value, str):
        yield path, value, extra
    elif isinstance(value, Section):
        for inner, text, marks in texts_in(value):
            yield f"{path}.{inner}", text, marks
    elif isinstance(value, tuple | dict):
        items = enumerate(value) if isinstance(value, tuple) else value.items()
        for key, item in items:
            yield from _texts_in(item, f"{path}.{key}", extra)


def either(first: str, second: str, message: str | None = None) -> Any:
    """A validator of a section in which one of two fields must be set, and not both."""

    def check(section: SectionType) -> SectionType:
        if (getattr(section, first) is None) == (getattr(section, second) is None):
            words = message or f"set either `{first}` or `{second}`"
            raise problem("conflict", words, field=first)
        return section

    return model_validator(mode="after")(check)


def rising(low: str, high: str) -> Any:
    """A validator of a section in which one field must be greater than another."""

    def check(section: SectionType) -> SectionType:
        if not getattr(section, low) < getattr(section, high):
            raise problem("bad_value", f"must be greater than `{low}`", field=high)
        return section

    return model_validator(mode="after")(check)


def rising_pairs(*names: str) -> Any:
    """A validator of a section with fields that are two bounds, if they are set."""

    def check(section: SectionType) -> SectionType:
        for name in names:
            bounds = getattr(section, name)
            if bounds is not None and not bounds[0] < bounds[1]:
                message = "the second bound must be greater than the first"
                raise problem("bad_value", message, field=name)
        return section

    return model_validator(mode="after")(check)


def _check_span(name: str, value: Any, bounds: tuple[int, int]) -> None:
    low, high = bounds
    first, last = (value, value) if isinstance(value, int) else value
    if not low <= first <= last <= high:
        found = first if isinstance(value, int) else list(value)
        expected = f"{low} to {high}, or [least, greatest] of these, is expected"
        raise problem("out_of_range", f"found {found}; {expected}", field=name)


def _look_up(section: Any, path: str) -> Any:
    for name in path.split("."):
        section = getattr(section, name, None)
    return section


def _condition(wanted: Mapping[str, tuple[Any, ...]]) -> str:
    parts = [f"`{path}: {' | '.join(map(_written, values))}`" for path, values in wanted.items()]
    return " and ".join(parts)


def _set_conditions(wanted: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """The conditions that something has to be set for; all of them if there is none."""
    return {path: values for path, values in wanted.items() if None not in values} or wanted


def _found(section: Any, wanted: Mapping[str, tuple[Any, ...]]) -> str:
    """The first value for which a condition does not hold, if it is set."""
    found = {path: _look_up(section, path) for path in wanted}
    path = next(path for path, value in found.items() if value not in wanted[path])
    return "" if found[path] is None else f", and `{path}` is `{_written(found[path])}`"


def _written(value: Any) -> str:
    return "null" if value is None else str(value)


def yaml_key(section: type[BaseModel], attribute: str) -> str:
    """The key in YAML of an attribute (`from_` is written `from`)."""
    return section.model_fields[attribute].alias or attribute


def load_yaml(path: Path) -> Any:
    """A YAML file that ships with coloop."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text("utf-8"), Loader=loader)
