"""Texts, code and regular expressions inside a loop: can they be read at all.

`places` lists where a loop holds them; whether the names in them exist is looked at by `columns`.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coloop.data.templates.chat import chat_template_problem
from coloop.sandbox.code_files import text_of
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.nodes import (
    FilterNode,
    Node,
    RewardNode,
    TemplateNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.reading import PromptTemplate
from coloop.spec.reward import PythonSource
from coloop.spec.tools import ARGUMENTS
from coloop.validate.facts import Facts, found
from coloop.validate.text_names import (
    FunctionNames,
    methods_in_class,
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
    file: str | None = None
    """The file that the content was read from, as the loop names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFileName:
    """A file with the user's Python, and the field that names it."""

    file: str
    field: str
    function: str | None
    """That it must define; None: the class of an environment."""


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
    """Every piece of Python of a node that defines a function, or the class of an environment."""
    match node:
        case TemplateNode() if node.code is not None:
            yield Place(field="code", content=node.code, function="write")
        case RewardNode() if node.source.type == "python" and node.source.code is not None:
            yield Place(field="source.code", content=node.source.code, function="reward")
        case FilterNode():
            for index, rule in enumerate(node.keep):
                if rule.rule == "python":
                    yield Place(field=f"keep.{index}.code", content=rule.code, function="keep")
        case ToolNode() if node.code is not None:
            yield Place(field="code", content=node.code)


def code_files_of(facts: Facts, node: Node) -> Iterator[Place]:
    """Files with the user's Python that can be read from here."""
    named = code_file_of(node)
    path = path_of_code(facts, named.file) if named is not None else None
    if named is None or path is None:
        return
    try:
        content = text_of(path, path.name)
    except (OSError, ValueError):
        return
    yield Place(field=named.field, content=content, function=named.function, file=named.file)


def code_file_of(node: Node) -> CodeFileName | None:
    """The file with Python that a node names."""
    match node:
        case RewardNode(source=PythonSource(file=str(file))):
            return CodeFileName(file=file, field="source.file", function="reward")
        case ToolNode(file=str(file)):
            return CodeFileName(file=file, field="file", function=None)
    return None


def path_of_code(facts: Facts, file: str) -> Path | None:
    """Where a file of Python lies; None where it may not be looked at."""
    if facts.root is None or facts.is_outside(file):
        return None
    return facts.root / os.path.expanduser(file)


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
                    f"invalid template{line}: {names.problem}",
                    hint="write columns as `{{ ... }}`, conditions and loops as `{% ... %}`",
                    node=name,
                    field=place.field,
                    text_line=names.line,
                )


def chat_templates_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """Chat templates that a loop brings parse."""
    for name in facts.nodes:
        template = getattr(facts.model(name), "chat_template", None)
        problem = None if template is None else chat_template_problem(template)
        if problem is not None:
            yield found(
                "text.template_syntax",
                f"invalid chat template: {problem}",
                hint=(
                    "a chat template is Jinja over `messages`, like `chat_template.jinja` of a "
                    "model folder"
                ),
                node=name,
                field="model.chat_template",
            )


def codes_define_their_function(facts: Facts) -> Iterator[Diagnostic]:
    """Python compiles and defines what is called."""
    for name, node in facts.nodes.items():
        for place in (*codes_of(node), *code_files_of(facts, node)):
            read = (
                methods_in_class(place.content, "Environment", ENVIRONMENT_METHODS)
                if place.function is None
                else names_in_function(place.content, place.function)
            )
            if read.problem is not None:
                yield _code_problem(name, place, read)


def patterns_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """Regular expressions compile and have the groups that are read."""
    for name, node in facts.nodes.items():
        for place in patterns_of(node):
            problem, groups = regex_problem(place.content)
            if problem is not None:
                yield found(
                    "text.pattern",
                    f"`{place.content}` is not a valid regular expression: {problem}",
                    hint="escape literal characters with a backslash",
                    node=name,
                    field=place.field,
                )
            elif groups < place.groups:
                wanted = "a group" if place.groups == 1 else f"{place.groups} groups"
                yield found(
                    "text.pattern_groups",
                    f"`{place.content}` has {groups or 'no'} groups, but needs {wanted}",
                    hint="put the part to extract in parentheses: `answer: (\\d+)`",
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
                f"the call pattern of a {node.type} tool has no group `{argument}`",
                hint=f"name the argument in the pattern: `(?P<{argument}>.*?)`",
                node=name,
                field="call",
            )


def _code_problem(node: str, place: Place, read: FunctionNames) -> Diagnostic:
    problem, line = read.problem or "", read.line
    is_long = place.file is not None or "\n" in place.content
    where = f" in line {line}" if line and is_long else ""
    if where and place.file is not None and read.column:
        where += f", column {read.column}"
    code = "the code" if place.file is None else f"`{place.file}`"
    if read.is_syntax:
        lines = place.content.splitlines()
        text = lines[line - 1].strip() if line and line <= len(lines) else ""
        message = f"{code} does not compile{where}: {problem}"
        hint = f"fix the line `{text}`, or the one before it" if text else None
    else:
        message = f"{code} {problem}" if problem.startswith("defines") else problem
        hint = f"write `def {place.function}(...)`" if place.function else None
        if place.function is None:
            hint = "write `class Environment` with `reset(self, row)` and `step(self, text)`"
    return found(
        "text.code_syntax" if read.is_syntax else "text.code_function",
        message,
        hint=hint,
        node=node,
        field=place.field,
        text_line=None if place.file is not None else line,
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
    chat_templates_can_be_read,
    codes_define_their_function,
    patterns_can_be_read,
    calls_have_their_arguments,
)
