"""Texts, code and regular expressions inside a loop: can they be read at all.

`places` lists where a loop holds them; whether the names in them exist is looked at by `columns`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from coloop.diagnostics import Diagnostic
from coloop.spec.nodes import (
    FilterNode,
    Node,
    RewardNode,
    TemplateNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.reading import PromptTemplate
from coloop.spec.tools import ARGUMENTS
from coloop.validate.facts import Facts, found
from coloop.validate.text_names import (
    class_problem,
    names_in_function,
    names_in_text,
    regex_problem,
)

ENVIRONMENT_METHODS: Final = ("reset", "step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A text, a piece of code or a pattern, and where it is written."""

    field: str
    content: str
    groups: int = 0
    """Patterns: groups that it must have at least."""
    function: str | None = None
    """Code: the function that it must define."""


def texts_of(node: Node) -> Iterator[Place]:
    """Every Jinja text of a node."""
    match node:
        case TemplateNode():
            if node.text is not None:
                yield Place(field="text", content=node.text)
            for index, message in enumerate(node.messages or ()):
                yield Place(field=f"messages.{index}.content", content=message.content)
            if node.target is not None:
                yield Place(field="target", content=node.target)
            for name, text in node.columns.items():
                yield Place(field=f"columns.{name}", content=text)
        case VerifierNode() | RewardNode():
            yield from _template_texts(node.template)
        case ToolNode():
            yield from _template_texts(node.template)
            if node.result is not None:
                yield Place(field="result", content=node.result)


def codes_of(node: Node) -> Iterator[Place]:
    """Every piece of Python of a node that defines a function."""
    match node:
        case TemplateNode() if node.code is not None:
            yield Place(field="code", content=node.code, function="write")
        case RewardNode() if node.source.type == "python" and node.source.code is not None:
            yield Place(field="source.code", content=node.source.code, function="reward")
        case FilterNode():
            for index, rule in enumerate(node.keep):
                if rule.rule == "python":
                    yield Place(field=f"keep.{index}.code", content=rule.code, function="keep")


def patterns_of(node: Node) -> Iterator[Place]:
    """Every regular expression of a node, with the groups that it needs."""
    match node:
        case TemplateNode():
            for name, parse in node.parse.items():
                if isinstance(parse, str):
                    yield Place(field=f"parse.{name}", content=parse, groups=1)
                elif (regex := getattr(parse, "regex", None)) is not None:
                    yield Place(field=f"parse.{name}.regex", content=regex, groups=1)
        case FilterNode():
            for index, rule in enumerate(node.keep):
                if rule.rule == "regex":
                    yield Place(field=f"keep.{index}.pattern", content=rule.pattern)
        case ToolNode() if node.call is not None:
            yield Place(field="call", content=node.call)
        case RewardNode():
            yield from _builtin_patterns(node)
            yield from _read_patterns(node)
        case VerifierNode():
            yield from _read_patterns(node)
            if node.answer is not None:
                yield Place(field="answer", content=node.answer, groups=1)


def texts_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """Jinja texts parse."""
    for name, node in facts.nodes.items():
        for place in texts_of(node):
            names = names_in_text(place.content)
            if names.problem is not None:
                line = f" in line {names.line}" if names.line and "\n" in place.content else ""
                yield found(
                    "text.template_syntax",
                    f"the text cannot be read{line}: {names.problem}",
                    hint="columns stand in `{{ ... }}`, conditions and loops in `{% ... %}`",
                    node=name,
                    field=place.field,
                    text_line=names.line,
                )


def codes_define_their_function(facts: Facts) -> Iterator[Diagnostic]:
    """Python compiles and defines what is called."""
    for name, node in facts.nodes.items():
        for place in codes_of(node):
            names = names_in_function(place.content, place.function or "")
            if names.problem is None:
                continue
            yield from _code_problem(
                name, place, names.problem, is_syntax=names.is_syntax, line=names.line
            )
        if isinstance(node, ToolNode) and node.code is not None:
            place = Place(field="code", content=node.code)
            problem, is_syntax, line = class_problem(node.code, "Environment", ENVIRONMENT_METHODS)
            if problem is not None:
                yield from _code_problem(name, place, problem, is_syntax=is_syntax, line=line)


def patterns_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """Regular expressions compile and have the groups that are read."""
    for name, node in facts.nodes.items():
        for place in patterns_of(node):
            problem, groups = regex_problem(place.content)
            if problem is not None:
                yield found(
                    "text.pattern",
                    f"`{place.content}` is no regular expression: {problem}",
                    hint="escape characters that are meant as they stand with a backslash",
                    node=name,
                    field=place.field,
                )
            elif groups < place.groups:
                wanted = "a group" if place.groups == 1 else f"{place.groups} groups"
                yield found(
                    "text.pattern_groups",
                    f"`{place.content}` has {groups or 'no'} groups; {wanted} is expected",
                    hint="put what is to be read in brackets: `answer: (\\d+)`",
                    node=name,
                    field=place.field,
                )


def calls_have_their_arguments(facts: Facts) -> Iterator[Diagnostic]:
    """The pattern of a tool's call names the argument that the tool takes."""
    for name, node in facts.nodes.items():
        if not isinstance(node, ToolNode) or node.call is None or node.type not in ARGUMENTS:
            continue
        argument = ARGUMENTS[node.type]
        if regex_problem(node.call)[0] is None and f"(?P<{argument}>" not in node.call:
            yield found(
                "text.pattern_groups",
                f"the call of a {node.type} tool has no group `{argument}`",
                hint=f"name the argument in the pattern: `(?P<{argument}>.*?)`",
                node=name,
                field="call",
            )


def _code_problem(
    node: str, place: Place, problem: str, *, is_syntax: bool, line: int | None
) -> Iterator[Diagnostic]:
    where = f" in line {line}" if line and "\n" in place.content else ""
    if is_syntax:
        lines = place.content.splitlines()
        read = lines[line - 1].strip() if line and line <= len(lines) else ""
        message = f"the code does not compile{where}: {problem}"
        hint = f"mend the line `{read}`, or what stands before it" if read else None
    else:
        message = f"the code {problem}" if problem.startswith("defines") else problem
        hint = f"write `def {place.function}(...)`" if place.function else None
        if place.function is None:
            hint = "write `class Environment` with `reset(self, row)` and `step(self, text)`"
    yield found(
        "text.code_syntax" if is_syntax else "text.code_function",
        message,
        hint=hint,
        node=node,
        field=place.field,
        text_line=line,
    )


def _template_texts(template: PromptTemplate | None) -> Iterator[Place]:
    if template is None:
        return
    if template.text is not None:
        yield Place(field="template.text", content=template.text)
    for index, message in enumerate(template.messages or ()):
        yield Place(field=f"template.messages.{index}.content", content=message.content)


def _builtin_patterns(node: RewardNode) -> Iterator[Place]:
    source = node.source
    if source.type != "builtin":
        return
    extract = getattr(source, "extract", None)
    if extract is not None:
        yield Place(field="source.extract", content=extract, groups=1)
    pattern = getattr(source, "pattern", None)
    if pattern is not None:
        yield Place(field="source.pattern", content=pattern)


def _read_patterns(node: RewardNode | VerifierNode) -> Iterator[Place]:
    read = node.read
    if read is None:
        return
    for field, groups in (("verdict", 1), ("step_verdicts", 2), ("number", 1), ("numbers", 2)):
        pattern = getattr(read, field)
        if pattern is not None:
            yield Place(field=f"read.{field}", content=pattern, groups=groups)


RULES = (
    texts_can_be_read,
    codes_define_their_function,
    patterns_can_be_read,
    calls_have_their_arguments,
)
