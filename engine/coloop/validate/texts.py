"""Texts, code and regular expressions inside a loop: can they be read at all; whether the names in
them exist is looked at by `columns`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coloop.data.templates.chat import chat_template_problem
from coloop.sandbox.code_files import text_of
from coloop.spec.base import texts_in
from coloop.spec.diagnostics import Diagnostic, error
from coloop.spec.nodes import Node, TemplateNode, ToolNode
from coloop.spec.tools import ARGUMENTS
from coloop.validate.facts import Facts
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


def texts_of(node: Node) -> Iterator[Place]:
    """Every Jinja text of a node."""
    for field, text, marks in texts_in(node):
        if marks.get("x-reference") == "template":
            yield Place(field=field, content=text)


FUNCTIONS: Final = {"template": "write", "reward": "reward", "filter": "keep"}
"""By kind, the function that its code defines; that of a tool defines the class of an
environment."""


def codes_of(node: Node) -> Iterator[Place]:
    """Every piece of Python of a node that defines a function, or the class of an environment."""
    for field, text, marks in texts_in(node):
        if marks.get("x-widget") == "code":
            yield Place(field=field, content=text, function=FUNCTIONS.get(node.kind))


def code_files_of(facts: Facts, node: Node) -> Iterator[Place]:
    """Files with the user's Python that can be read from here."""
    for field, file, path in code_paths_of(facts, node):
        try:
            content = text_of(path, path.name)
        except (OSError, ValueError):
            continue
        yield Place(field=field, content=content, function=FUNCTIONS.get(node.kind), file=file)


def code_paths_of(facts: Facts, node: Node) -> Iterator[tuple[str, str, Path]]:
    """Files with Python that a node names and that may be looked at: field, name, where it is."""
    for field, file in named_code_files(node):
        if (path := facts.local(file)) is not None:
            yield field, file, path


def named_code_files(node: Node) -> Iterator[tuple[str, str]]:
    """Fields that name a file with Python, with the name."""
    for field, text, marks in texts_in(node):
        if marks.get("x-widget") == "path" and field.endswith("file"):
            yield field, text


GROUPS: Final = {"step_verdicts": 2, "numbers": 2, "pattern": 0, "call": 0}
"""By field, groups that its regular expression must have; others one."""


def patterns_of(node: Node) -> Iterator[Place]:
    """Every regular expression of a node, with the groups that it needs."""
    parsed = node.parse if isinstance(node, TemplateNode) else {}
    for field, text, marks in texts_in(node):
        if field.removeprefix("parse.") in parsed:
            yield Place(field=field, content=text, groups=1)
        elif marks.get("x-widget") == "regex":
            groups = GROUPS.get(field.rpartition(".")[2], 1)
            yield Place(field=field, content=text, groups=groups)


def texts_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """Jinja texts parse."""
    for name, node in facts.nodes.items():
        for place in texts_of(node):
            names = names_in_text(place.content)
            if names.problem is not None:
                line = f" in line {names.line}" if names.line and "\n" in place.content else ""
                yield error(
                    "text.template_syntax",
                    f"nodes.{name}.{place.field}",
                    f"invalid template{line}: {names.problem}",
                    "write columns as `{{ ... }}`, conditions and loops as `{% ... %}`",
                    text_line=names.line,
                )


def chat_templates_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """Chat templates that a loop brings parse."""
    for name in facts.nodes:
        template = getattr(facts.model(name), "chat_template", None)
        problem = None if template is None else chat_template_problem(template)
        if problem is not None:
            yield error(
                "text.template_syntax",
                f"nodes.{name}.model.chat_template",
                f"invalid chat template: {problem}",
                "a chat template is Jinja over `messages`, like `chat_template.jinja` of a "
                "model folder",
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
                yield error(
                    "text.pattern",
                    f"nodes.{name}.{place.field}",
                    f"`{place.content}` is not a valid regular expression: {problem}",
                    "escape literal characters with a backslash",
                )
            elif groups < place.groups:
                wanted = "a group" if place.groups == 1 else f"{place.groups} groups"
                yield error(
                    "text.pattern_groups",
                    f"nodes.{name}.{place.field}",
                    f"`{place.content}` has {groups or 'no'} groups, but needs {wanted}",
                    "put the part to extract in parentheses: `answer: (\\d+)`",
                )


def calls_have_their_arguments(facts: Facts) -> Iterator[Diagnostic]:
    """The pattern of a tool's call names the argument that the tool takes."""
    for name, node in facts.of(ToolNode):
        if node.call is None or node.type not in ARGUMENTS:
            continue
        argument = ARGUMENTS[node.type]
        if regex_problem(node.call)[0] is None and f"(?P<{argument}>" not in node.call:
            yield error(
                "text.pattern_groups",
                f"nodes.{name}.call",
                f"the call pattern of a {node.type} tool has no group `{argument}`",
                f"name the argument in the pattern: `(?P<{argument}>.*?)`",
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
    return error(
        "text.code_syntax" if read.is_syntax else "text.code_function",
        f"nodes.{node}.{place.field}",
        message,
        hint,
        text_line=None if place.file is not None else line,
    )
