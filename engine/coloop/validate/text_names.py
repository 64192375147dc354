"""Which names a Jinja text or a Python function reads, found without running either.

Results are remembered by text: a loop is checked at every edit, and its texts seldom change.
"""

import ast
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from jinja2 import TemplateSyntaxError, meta, nodes

from coloop.data.templates.environment import environment
from coloop.spec.regexes import why_too_large

TEXT_FUNCTIONS: Final = frozenset({"others", "past"})
"""Functions of the loop language in texts; their first argument names a column."""


FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextNames:
    """What a text reads, or why it is no text."""

    bare: frozenset[str] = frozenset()
    """Names that the text does not set itself."""
    dotted: frozenset[tuple[str, str]] = frozenset()
    """`name.attribute` of such names."""
    alone: frozenset[str] = frozenset()
    """Names that are read without an attribute somewhere."""
    columns_of_others: frozenset[str] = frozenset()
    """Columns named in `others(...)` and `past(...)`."""
    problem: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionNames:
    """What a Python function asks for, or why there is none."""

    parameters: tuple[str, ...] = ()
    """Parameters without a default."""
    takes_rest: bool = False
    """Whether it has `**columns`."""
    problem: str | None = None
    is_syntax: bool = False
    line: int | None = None
    column: int | None = None
    """Of a syntax error, from 1."""


@lru_cache(maxsize=2048)
def names_in_text(text: str) -> TextNames:
    """Names that a Jinja text reads."""
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
    found: set[str] = set()
    for call in tree.find_all(nodes.Call):
        if not isinstance(call.node, nodes.Name) or call.node.name not in TEXT_FUNCTIONS:
            continue
        first = call.args[0] if call.args else None
        if isinstance(first, nodes.Const) and isinstance(first.value, str):
            found.add(first.value)
    return found


@lru_cache(maxsize=1024)
def names_in_function(code: str, function: str) -> FunctionNames:
    """What a function of a piece of Python asks for; the code is compiled, never run."""
    try:
        tree = ast.parse(code)
        compile(tree, "<loop>", "exec")
    except SyntaxError as error:
        return FunctionNames(
            problem=error.msg, is_syntax=True, line=error.lineno, column=error.offset
        )
    except (ValueError, RecursionError, MemoryError) as error:
        return FunctionNames(problem=f"cannot be read: {error}", is_syntax=True)
    made = next((n for n in tree.body if isinstance(n, FUNCTIONS) and n.name == function), None)
    if made is None:
        if any(_binds(statement, function) for statement in tree.body):
            return FunctionNames(takes_rest=True)
        return FunctionNames(problem=f"has no function `{function}`")
    arguments = made.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[: len(positional) - len(arguments.defaults)]
    keyword = [
        one
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    return FunctionNames(
        parameters=tuple(one.arg for one in (*needed, *keyword)),
        takes_rest=arguments.kwarg is not None,
        line=made.lineno,
    )


@lru_cache(maxsize=256)
def methods_in_class(code: str, name: str, methods: tuple[str, ...]) -> FunctionNames:
    """Why a piece of Python has no class of this name with these methods, where it has none."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        return FunctionNames(
            problem=error.msg, is_syntax=True, line=error.lineno, column=error.offset
        )
    except (ValueError, RecursionError, MemoryError) as error:
        return FunctionNames(problem=f"cannot be read: {error}", is_syntax=True)
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
    """Whether a statement gives a value to a name in another way than `def`."""
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
def regex_problem(pattern: str) -> tuple[str | None, int]:
    """Why a regular expression cannot be read, and how many groups it has."""
    if (too_large := why_too_large(pattern)) is not None:
        return too_large, 0
    try:
        return None, _compiled(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        return str(error), 0


@lru_cache(maxsize=1024)
def regex_groups(pattern: str) -> frozenset[str]:
    """Named groups of a regular expression; none where it cannot be read."""
    try:
        return frozenset(_compiled(pattern).groupindex)
    except (re.error, OverflowError, RecursionError):
        return frozenset()


def _compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression; of sets in sets (`[[:digit:]]`), which what applies it knows, no
    warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern)
