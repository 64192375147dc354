"""Reads the tests of a row, and finds the program in a completion. Runs nothing.

    "assert f(1) == 2", "f(1) == 2"              a call and its value
    "def check(candidate): assert ..."           called with the row's `entry_point`
    {"input": "1", "output": "2"}                standard input and expected output
    '["assert f(1) == 2"]'                       the same as JSON text

Code that passes whatever the program does (`import math`) is not a test but a helper, which runs
before each test. A row with helpers only is an error: it would reward every program.
"""

import ast
import builtins
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from coloop.errors import DataError
from coloop.sandbox.inside.parsing import parse_code, parse_expression

FENCED: Final = re.compile(r"^[ \t]*```([^\n`]*)\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
PYTHON: Final = frozenset({"", "python", "python3", "py"})
"""Language tags of Python code fences."""
UNREADABLE: Final = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
CHECK: Final = "check"
"""The function that HumanEval's tests define but do not call."""
ENTRY_POINT: Final = "entry_point"
"""The column with the name of the function to test."""

SOLUTION: Final = "solution"
"""The module from which pytest tests import the program."""
LEAVING: Final = frozenset({"exit", "quit", "_exit", "raises"})
"""Names of calls that can fail a test: they end it or expect an exception."""

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    """`call`, `statement`, `check` (defines `check`, which must be called) or `input`."""
    text: str
    expected: Any = None
    before: str = ""


def read_tests(value: Any, column: str) -> list[Case]:
    """The tests of a row; raises DataError if they are invalid or none can fail."""
    value = _decoded(value)
    items = [value] if isinstance(value, str | Mapping) else value
    if not isinstance(items, list | tuple) or not items:
        raise DataError(
            f'column `{column}` must be a list of tests (`assert f(1) == 2`, or {{"input": '
            f'"1", "output": "2"}}), found {repr(value)[:80]}'
        )
    tests: list[Case] = []
    helpers: list[str] = []
    for item in map(_decoded, items):
        if isinstance(item, Mapping) and set(item) == {"input", "output"}:
            tests.append(Case("input", str(item["input"]), lines_of(str(item["output"]))))
            continue
        try:
            tree = _tree(item, column)
            if _can_fail(tree):
                tests += _cases(tree)
            else:
                helpers.append(ast.unparse(tree))
        except RecursionError:
            message = f"column `{column}`: {str(item)[:80]!r} is nested too deeply"
            raise DataError(message) from None
    if not tests:
        what = (
            "a test passes whatever the program does: it does not call, assert or compare anything "
            "of the program, or only in functions that are never called; write `assert f(1) == 2`"
            if any(helpers)
            else "a test is empty"
        )
        raise DataError(f"column `{column}`: {what}: {str(items[0])[:80]!r}")
    return [replace(test, before="\n".join(helpers)) for test in tests]


def _decoded(value: Any) -> Any:
    """JSON text of tests, decoded; other values unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{", '"')):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _tree(item: Any, column: str) -> ast.Module:
    """A test as Python, without imports of the program; raises DataError for invalid code or an
    assertion of a tuple."""
    if not isinstance(item, str):
        raise DataError(
            f"column `{column}`: a test is a text or has `input` and `output`, found "
            f"{repr(item)[:80]}"
        )
    try:
        tree = parse_code(item)
    except SyntaxError as error:
        raise DataError(f"column `{column}`: {item[:80]!r} is not valid Python: {error}") from None
    asserts = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    if any(isinstance(test, ast.Tuple) and test.elts for test in asserts):
        raise DataError(
            f"column `{column}`: `assert (x, y)` holds for every program, a tuple is true; write "
            f"`assert x, y`: {item[:80]!r}"
        )
    # What imports the program is left out: the program is there already.
    tree.body = [
        _as_assert(statement)
        for statement in tree.body
        if not (isinstance(statement, ast.ImportFrom) and statement.module == SOLUTION)
    ]
    return tree


def _cases(tree: ast.Module) -> list[Case]:
    if _leaves_check(tree):
        return [Case("check", ast.unparse(tree))]
    calls = [_call(statement) for statement in tree.body]
    known = [call for call in calls if call is not None]
    return known if len(known) == len(calls) else [Case("statement", ast.unparse(tree))]


def _as_assert(statement: ast.stmt) -> ast.stmt:
    """A bare comparison as an assertion."""
    match statement:
        case ast.Expr(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp() as compared):
            return ast.copy_location(ast.Assert(test=compared), statement)
    return statement


def _call(statement: ast.stmt) -> Case | None:
    """`assert f(1) == 2` as a test of a call; None for other statements."""
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            try:
                return Case("call", ast.unparse(left), ast.literal_eval(right))
            except UNREADABLE:
                return None
    return None


def _leaves_check(tree: ast.Module) -> bool:
    """Whether a test defines `check(candidate)` and does not call it."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    checks = [function for function in functions if function.name == CHECK]
    return bool(checks) and len(checks[-1].args.args) == 1 and CHECK not in _names(tree)


def _can_fail(tree: ast.Module) -> bool:
    """Whether the code depends on the program, so that it is a test."""
    reached = _reached(tree, {CHECK} if _leaves_check(tree) else set())
    own = set(_defined(tree))
    return any(_fails(node, own) for node in reached)


def _reached(tree: ast.Module, called: set[str]) -> Iterator[ast.AST]:
    """Nodes that may run: functions and classes only if they are used or in `called`."""
    named = _names(tree) | called
    left: list[ast.AST] = [*tree.body]
    while left:
        node = left.pop()
        if isinstance(node, Definition) and node.name not in named:
            continue
        yield node
        left += [node.test] if isinstance(node, ast.Assert) else ast.iter_child_nodes(node)


def _names(tree: ast.AST) -> set[str]:
    nodes = [*ast.walk(tree)]
    names = {node.id for node in nodes if isinstance(node, ast.Name) and _is_read(node)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _fails(node: ast.AST, own: set[str]) -> bool:
    """Whether a node can fail because of the program; `own` are names that the test defines."""
    match node:
        case ast.Raise():
            return True
        case ast.Assert(test=test):
            return bool(_names(test)) or (isinstance(test, ast.Constant) and not test.value)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if (
            name in LEAVING or "assert" in name.casefold()
        ):
            return True
        case ast.Call():
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            return any(name not in own and not hasattr(builtins, name) for name in names)
    return False


def wanted_by(tests: list[Case], candidate: str | None) -> set[str]:
    """Names that the program must define: used by tests, but not defined there or built in."""
    texts = [f"{test.before}\n{test.text}" for test in tests if test.kind in ("call", "statement")]
    if candidate is not None:
        texts.append(candidate)
    free = {name for text in texts for name in _free_names(parse_code(text))}
    return {name for name in free if not hasattr(builtins, name)}


def entry_point_of(value: Any) -> str | None:
    """The argument for `check`, such as `add` or `Solution().add`; None without one. Raises
    DataError if it is not an expression."""
    if value is None:
        return None
    try:
        return ast.unparse(parse_expression(value))
    except UNREADABLE:
        raise DataError(
            f"column `{ENTRY_POINT}` must be the name of the function that is tested, found "
            f"{repr(value)[:80]}"
        ) from None


def _free_names(tree: ast.Module) -> set[str]:
    bound: set[str] = set()
    read: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                (read if _is_read(node) else bound).add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
    return read - bound


def program_of(text: str, wanted: set[str] | frozenset[str] = frozenset()) -> str:
    """The program in a completion: the last Python or unlabelled code block that defines the wanted
    names, else the last one with more than bare values; without blocks, the whole text."""
    blocks = FENCED.findall(text)
    if not blocks:
        return text
    ours = [
        code
        for label, code in blocks
        if next(iter(label.split()), "").strip("{}.").casefold() in PYTHON
    ]
    read = [(code, tree) for code in ours if (tree := read_program(code)) is not None]
    if wanted:
        for code, tree in reversed(read):
            if wanted <= defined_by(tree):
                return str(code)
    acting = [code for code, tree in read if not all(map(_is_idle, tree.body))]
    return str(next(reversed(acting or [code for code, _ in read] or ours or [blocks[-1][1]])))


def read_program(code: str) -> ast.Module | None:
    """Parsed program; None for invalid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as about invalid escapes in a policy's code
            return parse_code(code)
    except SyntaxError:
        return None


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement is a bare value without a call, like pasted output."""
    return isinstance(statement, ast.Expr) and not any(
        isinstance(node, ast.Call | ast.Await) for node in ast.walk(statement)
    )


def defined_by(tree: ast.Module) -> set[str]:
    """Names that a program defines at top level: functions, classes, values, imports."""
    return {name for statement in tree.body for name in _defined(statement)}


def _defined(statement: ast.AST) -> Iterator[str]:
    if isinstance(statement, Definition):
        yield statement.name
        return
    for node in ast.walk(statement):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]


def functions_of(code: str) -> list[str]:
    tree = read_program(code)
    return [] if tree is None else [node.name for node in tree.body if isinstance(node, FUNCTIONS)]


def lines_of(text: str) -> list[str]:
    """Output for comparison: without space at the ends of lines and of the text."""
    return [line.rstrip() for line in text.strip().splitlines()]
