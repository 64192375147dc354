"""Texts, code and regular expressions in a loop are valid; `columns` checks the names in them."""

import ast
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from jinja2 import TemplateSyntaxError, meta, nodes

from coloop.data.templates.chat import chat_template_problem
from coloop.data.templates.environment import environment
from coloop.sandbox.code_files import text_of
from coloop.sandbox.inside.parsing import parse_code
from coloop.spec.base import texts_in
from coloop.spec.diagnostics import Diagnostic, error
from coloop.spec.lean import record
from coloop.spec.nodes import Node, TemplateNode, ToolNode
from coloop.spec.regexes import why_too_large
from coloop.spec.tools import ARGUMENTS
from coloop.validate.facts import Facts

# Which names a Jinja text or a Python function reads, found without running either.
#
# Results are remembered by text: a loop is checked at every edit, and its texts seldom change.

TEXT_FUNCTIONS: Final = frozenset({"others", "past"})
"""Functions of the loop language in texts; their first argument names a column."""


FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
SHOWN_CHARACTERS: Final = 100
"""Of a line of code that a hint names."""


@record
class TextNames:
    """Names that a text reads, or why it is invalid."""

    bare: frozenset[str] = frozenset()
    """Names that the text does not set itself."""
    dotted: frozenset[tuple[str, str]] = frozenset()
    """`name.attribute` of such names."""
    alone: frozenset[str] = frozenset()
    """Names that are also read without an attribute."""
    columns_of_others: frozenset[str] = frozenset()
    """Columns named in `others(...)` and `past(...)`."""
    problem: str | None = None
    line: int | None = None


@record
class FunctionNames:
    """Parameters of a Python function, or why it is invalid."""

    parameters: tuple[str, ...] = ()
    """Parameters without a default."""
    takes_rest: bool = False
    """Whether it has `**columns`."""
    problem: str | None = None
    is_syntax: bool = False
    line: int | None = None
    column: int | None = None
    """Column of a syntax error, from 1."""


@lru_cache(maxsize=2048)
def names_in_text(text: str) -> TextNames:
    try:
        tree = environment().parse(text)
        environment().compile(text)
        bare = frozenset(meta.find_undeclared_variables(tree))
    except TemplateSyntaxError as error:
        return TextNames(problem=error.message or "cannot be read", line=error.lineno)
    except (RecursionError, ValueError, OverflowError) as error:
        return TextNames(problem=f"cannot be read: {type(error).__name__}")
    bare -= environment().globals.keys()
    dotted: set[tuple[str, str]] = set()
    inner: set[int] = set()
    accesses: list[nodes.Getattr | nodes.Getitem] = [
        *tree.find_all(nodes.Getattr),
        *tree.find_all(nodes.Getitem),
    ]
    for access in accesses:
        name, attribute = _accessed(access)
        if name is not None and attribute is not None and name in bare:
            dotted.add((name, attribute))
            inner.add(id(access.node))
    alone = {
        node.name
        for node in tree.find_all(nodes.Name)
        if node.ctx == "load" and node.name in bare and id(node) not in inner
    }
    return TextNames(
        bare=bare - TEXT_FUNCTIONS,
        dotted=frozenset(dotted),
        alone=frozenset(alone) - TEXT_FUNCTIONS,
        columns_of_others=frozenset(_columns_of_others(tree)),
    )


def _accessed(access: nodes.Getattr | nodes.Getitem) -> tuple[str | None, str | None]:
    if not isinstance(access.node, nodes.Name):
        return None, None
    if isinstance(access, nodes.Getattr):
        return access.node.name, access.attr
    if isinstance(access.arg, nodes.Const) and isinstance(access.arg.value, str):
        return access.node.name, access.arg.value
    return None, None


def _columns_of_others(tree: nodes.Template) -> set[str]:
    columns: set[str] = set()
    for call in tree.find_all(nodes.Call):
        if not isinstance(call.node, nodes.Name) or call.node.name not in TEXT_FUNCTIONS:
            continue
        first = call.args[0] if call.args else None
        if isinstance(first, nodes.Const) and isinstance(first.value, str):
            columns.add(first.value)
    return columns


def parsed_code(code: str) -> ast.Module | FunctionNames:
    """Parsed Python, or why it does not compile; it is never run."""
    try:
        return parse_code(code, is_compiled=True)
    except SyntaxError as error:
        return FunctionNames(
            problem=error.msg, is_syntax=True, line=error.lineno, column=error.offset
        )


@lru_cache(maxsize=1024)
def names_in_function(code: str, function: str) -> FunctionNames:
    """Parameters of a function in a piece of Python."""
    tree = parsed_code(code)
    if isinstance(tree, FunctionNames):
        return tree
    made = next((n for n in tree.body if isinstance(n, FUNCTIONS) and n.name == function), None)
    if made is None:
        if any(_binds(statement, function) for statement in tree.body):
            return FunctionNames(takes_rest=True)
        return FunctionNames(problem=f"has no function `{function}`")
    arguments = made.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[: len(positional) - len(arguments.defaults)]
    keyword = [
        argument
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    return FunctionNames(
        parameters=tuple(argument.arg for argument in (*needed, *keyword)),
        takes_rest=arguments.kwarg is not None,
        line=made.lineno,
    )


@lru_cache(maxsize=256)
def methods_in_class(code: str, name: str, methods: tuple[str, ...]) -> FunctionNames:
    """`problem` is set if Python code has no class with this name and methods."""
    tree = parsed_code(code)
    if isinstance(tree, FunctionNames):
        return tree
    made = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name), None)
    if made is None:
        return FunctionNames(problem=f"has no class `{name}`")
    own = {n.name for n in made.body if isinstance(n, FUNCTIONS)}
    missing = [method for method in methods if method not in own]
    if missing and not made.bases:
        return FunctionNames(
            problem=f"the class `{name}` has no method `{missing[0]}`", line=made.lineno
        )
    return FunctionNames()


def _binds(statement: ast.stmt, name: str) -> bool:
    """Whether a statement assigns a name other than by `def`."""
    match statement:
        case ast.Assign(targets=targets):
            return any(isinstance(t, ast.Name) and t.id == name for t in targets)
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            return any((alias.asname or alias.name) == name for alias in names)
        case ast.If() | ast.Try() | ast.With():
            return any(isinstance(n, FUNCTIONS) and n.name == name for n in ast.walk(statement))
        case _:
            return False


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str] | str:
    """A compiled regular expression, or why it is invalid."""
    try:
        with warnings.catch_warnings():
            # of sets in sets (`[[:digit:]]`), which what applies it knows
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)


ENVIRONMENT_METHODS: Final = ("reset", "step")


@record
class Snippet:
    """A text, code or pattern, and where it is written."""

    field: str
    content: str
    groups: int = 0
    """Required number of groups of a pattern."""
    function: str | None = None
    """Required function of code."""
    file: str | None = None
    """The file with the content, as named in the loop."""


def texts_of(node: Node) -> Iterator[Snippet]:
    for field, text, marks in texts_in(node):
        if marks.get("x-reference") == "template":
            yield Snippet(field=field, content=text)


FUNCTION_OF: Final = {"template": "write", "reward": "reward", "filter": "keep"}
"""By kind, the function that its code defines; tools define the class of an environment."""


def codes_of(node: Node) -> Iterator[Snippet]:
    """Every piece of Python of a node that defines a function, or the class of an environment."""
    for field, text, marks in texts_in(node):
        if marks.get("x-widget") == "code":
            yield Snippet(field=field, content=text, function=FUNCTION_OF.get(node.kind))


def all_code_of(facts: Facts, node: Node) -> Iterator[Snippet]:
    """`codes_of`, and the content of Python files that can be read."""
    yield from codes_of(node)
    for field, file, path in code_paths_of(facts, node):
        try:
            content = text_of(path, path.name)
        except (OSError, ValueError):
            continue
        yield Snippet(field=field, content=content, function=FUNCTION_OF.get(node.kind), file=file)


def code_paths_of(facts: Facts, node: Node) -> Iterator[tuple[str, str, Path]]:
    """Python files that a node names: field, name, path; none without a root folder."""
    for field, file, marks in texts_in(node):
        is_code = marks.get("x-widget") == "path" and field.endswith("file")
        if is_code and (path := facts.local(file)) is not None:
            yield field, file, path


GROUPS: Final = {"step_verdicts": 2, "numbers": 2, "pattern": 0, "call": 0}
"""By field, how many groups its pattern must have; one if not listed."""


def patterns_of(node: Node) -> Iterator[Snippet]:
    parsed = node.parse if isinstance(node, TemplateNode) else {}
    for field, text, marks in texts_in(node):
        if field.removeprefix("parse.") in parsed:
            yield Snippet(field=field, content=text, groups=1)
        elif marks.get("x-widget") == "regex":
            groups = GROUPS.get(field.rpartition(".")[2], 1)
            yield Snippet(field=field, content=text, groups=groups)


def texts_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.nodes.items():
        for snippet in texts_of(node):
            names = names_in_text(snippet.content)
            if names.problem is not None:
                line = f" in line {names.line}" if names.line and "\n" in snippet.content else ""
                yield error(
                    "text.template_syntax",
                    f"nodes.{name}.{snippet.field}",
                    f"invalid template{line}: {names.problem}",
                    "write columns as `{{ ... }}`, conditions and loops as `{% ... %}`",
                    text_line=names.line,
                )


def chat_templates_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
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
    for name, node in facts.nodes.items():
        for snippet in all_code_of(facts, node):
            read = (
                methods_in_class(snippet.content, "Environment", ENVIRONMENT_METHODS)
                if snippet.function is None
                else names_in_function(snippet.content, snippet.function)
            )
            if read.problem is not None:
                yield _code_problem(name, snippet, read)


def patterns_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.nodes.items():
        for snippet in patterns_of(node):
            pattern = why_too_large(snippet.content) or compiled(snippet.content)
            if isinstance(pattern, str):
                yield error(
                    "text.pattern",
                    f"nodes.{name}.{snippet.field}",
                    f"`{snippet.content}` is not a valid regular expression: {pattern}",
                    "escape literal characters with a backslash",
                )
            elif pattern.groups < snippet.groups:
                wanted = "a group" if snippet.groups == 1 else f"{snippet.groups} groups"
                yield error(
                    "text.pattern_groups",
                    f"nodes.{name}.{snippet.field}",
                    f"`{snippet.content}` has {pattern.groups or 'no'} groups, but needs {wanted}",
                    "put the part to extract in parentheses: `answer: (\\d+)`",
                )


def calls_have_their_arguments(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.of(ToolNode):
        if node.call is None or node.type not in ARGUMENTS:
            continue
        argument = ARGUMENTS[node.type]
        is_readable = not why_too_large(node.call) and not isinstance(compiled(node.call), str)
        if is_readable and f"(?P<{argument}>" not in node.call:
            yield error(
                "text.pattern_groups",
                f"nodes.{name}.call",
                f"the call pattern of a {node.type} tool has no group `{argument}`",
                f"name the argument in the pattern: `(?P<{argument}>.*?)`",
            )


def _code_problem(node: str, snippet: Snippet, read: FunctionNames) -> Diagnostic:
    problem, line = read.problem or "", read.line
    is_long = snippet.file is not None or "\n" in snippet.content
    where = f" in line {line}" if line and is_long else ""
    if where and snippet.file is not None and read.column:
        where += f", column {read.column}"
    code = "the code" if snippet.file is None else f"`{snippet.file}`"
    if read.is_syntax:
        lines = snippet.content.splitlines()
        text = lines[line - 1].strip() if line and line <= len(lines) else ""
        text = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
        message = f"{code} does not compile{where}: {problem}"
        hint = f"fix the line `{text}`, or the one before it" if text else None
    else:
        message = f"{code} {problem}" if problem.startswith("defines") else problem
        hint = f"write `def {snippet.function}(...)`" if snippet.function else None
        if snippet.function is None:
            hint = "write `class Environment` with `reset(self, row)` and `step(self, text)`"
    return error(
        "text.code_syntax" if read.is_syntax else "text.code_function",
        f"nodes.{node}.{snippet.field}",
        message,
        hint,
        text_line=None if snippet.file is not None else line,
    )
