"""Every field of the language: documented, levelled, with a default that validates."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from coloop.spec.base import LEVELS, Section, Widget
from coloop.spec.diagnostics import Change
from coloop.spec.fields import Type, field_type, fields_by_key, type_of
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, patch
from coloop.spec.regexes import says_no_number

WIDGETS = get_args(Widget)


def sections() -> list[type[Section]]:
    """Every section of the language, found by walking its types."""
    seen: dict[type[Section], None] = {}
    _visit(Type(LoopSpec), seen)
    return list(seen)


def _visit(found: Type, seen: dict[type[Section], None]) -> None:
    if found.options:
        assert found.discriminator is not None, found.base
        for option in found.options:
            _visit(type_of(option), seen)
    elif found.section is not None:
        if found.section not in seen:
            seen[found.section] = None
            for info in fields_by_key(found.section).values():
                _visit(field_type(info), seen)
    elif get_origin(found.base) is not Literal:
        for argument in get_args(found.base):
            if argument is not Ellipsis:
                _visit(type_of(argument), seen)


SECTIONS = sections()


def test_every_union_of_sections_can_be_told_apart() -> None:
    assert len(SECTIONS) > 100


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_section_says_what_it_is(section: type[Section]) -> None:
    doc = inspect.getdoc(section)

    assert doc
    assert doc != inspect.getdoc(Section)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_field_is_documented_and_levelled(section: type[Section]) -> None:
    for key, info in fields_by_key(section).items():
        assert info.description, key
        is_tag = get_origin(info.annotation) is Literal and len(get_args(info.annotation)) == 1
        extra: Any = info.json_schema_extra or {}
        if is_tag and not extra:
            continue
        assert extra["x-level"] in LEVELS
        assert isinstance(extra["x-hot"], bool)
        assert extra.get("x-widget") in {None, *WIDGETS}, key


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_default_is_a_value_that_may_be_written(section: type[Section]) -> None:
    for key, info in fields_by_key(section).items():
        if not info.is_required():
            default = info.get_default(call_default_factory=True)
            adapter: TypeAdapter[Any] = TypeAdapter(_annotated(info))

            assert adapter.validate_python(default) == default, key


def _annotated(info: FieldInfo) -> Any:
    if info.discriminator is not None:
        return info.annotation if _default_is_none(info) else Annotated[info.annotation, info]
    return Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation


def _default_is_none(info: FieldInfo) -> bool:
    """Whether silence means `null`."""
    return info.get_default(call_default_factory=True) is None


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_conditions_name_siblings_that_exist(section: type[Section]) -> None:
    for _, wanted in section.conditions.values():
        for path, values in wanted.items():
            first, *deeper = path.split(".")
            assert first in section.model_fields
            info = section.model_fields[first]
            if not deeper and get_origin(info.annotation) is Literal:
                assert set(values) <= set(get_args(info.annotation))


def node(text: str) -> Any:
    """One node of a loop, or the codes of its findings."""
    found = parse(f"coloop: 1\nname: x\nnodes:\n  a: {text}\nschedule: {{steps: 1}}\n")
    return found.spec.nodes["a"] if found.spec else [d.code for d in found.diagnostics]


@pytest.mark.parametrize(
    "text",
    [
        "{kind: verifier, method: rule, model: {type: pretrained, path: x}}",
        "{kind: verifier, method: vote, template: {text: x}}",
        "{kind: verifier, method: generative, model: {type: pretrained, path: x}, "
        "template: {text: x}, answer: y}",
        "{kind: tool, type: calculator, code: x}",
        "{kind: tool, type: environment}",
        "{kind: tool, type: environment, name: proof, code: x}",
        "{kind: buffer, capacity: 1, weight: w}",
        "{kind: buffer, capacity: 1, unique: a, key: b}",
        "{kind: buffer, capacity: 1, balance: {by: x}, sample: oldest}",
        "{kind: buffer, capacity: 1, balance: {by: x}, sample: weighted, weight: w}",
        "{kind: pairs, method: all, margin: 1.0}",
        "{kind: template, text: x, messages: [{role: user, content: x}]}",
        "{kind: template, text: x, code: y}",
        "{kind: filter, fill: {groups: 1, rows: 2}}",
        "{kind: filter, fill: {max_rounds: 2}}",
        "{kind: reward, source: {type: builtin, name: format}}",
        "{kind: reward, source: {type: builtin, name: format, pattern: x, shape: sum}}",
    ],
)
def test_impossible_combinations_are_refused(text: str) -> None:
    assert node(text) == ["structure.conflict"]


@pytest.mark.parametrize(
    "text",
    [
        "{kind: verifier, method: formal}",
        "{kind: verifier, method: discriminative}",
        "{kind: buffer, capacity: 1, sample: weighted}",
        "{kind: pairs, method: margin}",
        "{kind: search, method: puct, budget: {}}",
        "{kind: tool, type: model}",
        "{kind: reward, source: {type: builtin, name: gate, value: a, by: b}}",
        "{kind: actor, model: {type: scratch}}",
    ],
)
def test_what_a_choice_needs_must_be_there(text: str) -> None:
    assert node(text) == ["structure.missing_field"]


@pytest.mark.parametrize(
    "options",
    [
        "pattern: '([0-9])', scale: [9, 9]",
        "pattern: '([0-9])', scale: [9, 0]",
        "pattern: '(yes|no)'",
        "pattern: 'so ([a-z]+)'",
    ],
)
def test_a_regex_reward_that_never_says_a_number_or_upside_down_is_refused(options: str) -> None:
    found = node(f"{{kind: reward, source: {{type: builtin, name: regex, {options}}}}}")

    assert found == ["structure.bad_value"]


@pytest.mark.parametrize(
    ("pattern", "is_none"),
    [
        ("yes|no", False),
        ("(?:yes|no)", False),
        ("(yes|no)", True),
        ("(yes)|(no)", True),
        ("(yes)|([0-9])", False),
        ("((yes)+)", True),
        (r"(\s*)", True),
        (r"(\D)", True),
        ("([a-zA-Z]+)", True),
        ("([A-C0-9])", False),
        ("(a{0}b)", True),
        ("(a[1-3]{0})", True),
        ("(a(?=1))", True),
        (r"(\w)", False),
        ("(.)", False),
        ("([^a])", False),
        ("(one|2)", False),
        (r"(1)(\1)", False),
        ("(?>(a)|(7))", False),
        ("(", False),
        ("score: ([[:digit:]])", False),
        ("score: ([[:alpha:]])", False),
        (r"(?V1)([\w--\d])", False),
        (r"(?V1)([\w--a])", False),
        (r"(\p{N}+)", False),
        (r"(\p{L}+)", False),
        ("([\u0660-\u0669])", False),
        ("([a[:digit:]])", False),
        ("([A-Z]{2,3}) [a-z]{2}", True),
        ("((?:cat){e})", False),
        ("(yes){e}", False),
        (r"x(?=(\d))(y)", False),
        (r"(\d){0}(y)", True),
        ("(yes)|5", False),
        ("(-)?5", False),
        ("(-)5", True),
        ("(?i)(yes)", True),
        ("(?x) ( yes # 1\n )", True),
        (r"(?<a>\d)?((?&a))", False),
        (r"(?(DEFINE)(?P<d>\d))(y)(?&d)", False),
    ],
)
@pytest.mark.filterwarnings("error::FutureWarning")
def test_a_group_without_a_digit_is_no_number(pattern: str, is_none: bool) -> None:
    assert says_no_number(pattern) is is_none


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        (
            "{kind: reward, source: {type: python, code: x}, on_error: {score: -1}}",
            "on_error.score",
            -1.0,
        ),
        ("{kind: reward, source: {type: python, code: x}, join: {gather: b}}", "join.gather", "b"),
        ("{kind: template, parse: {q: {tag: question}}}", "parse.q.tag", "question"),
        ("{kind: template, parse: {q: '(x)'}}", "parse.q", "(x)"),
        ("{kind: filter, fill: {groups: all}}", "fill.groups", "all"),
        ("{kind: pairs, method: all, soft: {scale: 5.0}}", "soft.scale", 5.0),
        ("{kind: pairs, method: relabel, soft: true}", "soft", True),
    ],
)
def test_values_of_several_forms_are_told_apart(text: str, path: str, value: object) -> None:
    found = node(text)

    for name in path.split("."):
        found = found[name] if isinstance(found, dict) else getattr(found, name)
    assert found == value


def test_sections_cannot_be_changed() -> None:
    found = node("{kind: filter, keep: [{rule: score, min: 1.0}]}")

    with pytest.raises(ValueError, match="frozen"):
        found.keep = ()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("nodes.problems.tokens", tokens) for tokens in ({"mean": 40, "max": 40}, None)),
        ("nodes.actor.rollout.expected_tokens", 12),
        ("nodes.actor.training.dtype", "fp8"),
        *(
            ("nodes.actor.training.gradient_checkpointing", value)
            for value in (False, True, "selective", "offload")
        ),
        *(("nodes.actor.model.quantization", one) for one in ("nf4", "int8", "fp8", "mxfp4")),
    ],
)
def test_fields_that_the_estimate_counts_can_be_written(path: str, value: object) -> None:
    parsed = parse(patch(LOOP, [Change(op="set", path=path, value=value)]))

    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("nodes.problems.tokens", {"mean": 50, "max": 40}, "mean"),
        ("nodes.problems.tokens", {"mean": 50}, "max"),
        ("nodes.problems.tokens", {"mean": 0, "max": 40}, "more than 0"),
        ("nodes.actor.rollout.expected_tokens", 0, "at least 1"),
        ("nodes.actor.training.dtype", "fp4", "fp8"),
        ("nodes.actor.training.gradient_checkpointing", 1, "false, true, selective, offload"),
        ("nodes.actor.training.gradient_checkpointing", "full", "selective"),
        ("nodes.actor.model.dtype", "fp8", "bfloat16"),
    ],
)
def test_what_these_fields_cannot_be_is_refused(path: str, value: object, message: str) -> None:
    parsed = parse(patch(LOOP, [Change(op="set", path=path, value=value)]))

    assert parsed.spec is None
    told = [f"{one.describe()} {one.hint or ''}" for one in parsed.diagnostics]
    assert len(told) == 1
    assert message in told[0], told


LOOP = """
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: file, path: rows.jsonl}, rows_per_step: 4}
  actor:
    kind: actor
    model: {type: pretrained, path: somewhere}
    training: {mini_batch: 4}
    rollout: {max_new_tokens: 4}
edges: ["problems.rows -> actor.prompts"]
schedule: {steps: 3}
"""
