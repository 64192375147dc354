"""Changes of Python source of which each makes another program: one place, one change."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
COUNTED = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
METHODS = {
    "sum": "mean",
    "mean": "sum",
    "max": "min",
    "min": "max",
    "argmax": "argmin",
    "argmin": "argmax",
    "cumsum": "cumprod",
    "minimum": "maximum",
    "maximum": "minimum",
    "append": "count",
    "update": "copy",
    "add": "discard",
}
SAYING = ("log", "warn", "debug", "info", "exception", "print", "notice")
"""Calls whose loss changes what is said, not what is done."""


@dataclass(frozen=True)
class Mutation:
    """One change: the text of a place is another.

    Attributes:
        where: qualified name of the function that it stands in.
        operator: what kind of change it is.
        before: source of the place.
        after: source that takes its place.
        line: the line that the place begins in, without its indentation.
        start, end: offsets of the place in the bytes of the source.
    """

    where: str
    operator: str
    before: str
    after: str
    line: str
    start: int
    end: int


def mutations(source: str) -> list[Mutation]:
    """All changes of a source, in the order of their places."""
    found = list(_Walk(source).of(ast.parse(source), ()))
    return sorted(found, key=lambda change: (change.start, change.end, change.operator))


class _Walk:
    def __init__(self, source: str) -> None:
        self._bytes = source.encode()
        self._lines = source.splitlines()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def of(self, node: ast.AST, names: tuple[str, ...]) -> Iterator[Mutation]:
        """Changes within a node that stands in functions and classes of these names."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (*names, node.name)
            for statement in node.body:
                yield from self.of(statement, names)
            return
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from self.of(node.value, names)
            return
        if names:
            for operator, start, end, after in self._changes(node):
                before = self._bytes[start:end].decode()
                line = self._lines[self._bytes[:start].count(b"\n")].strip()
                yield Mutation(".".join(names), operator, before, after, line, start, end)
        for child in ast.iter_child_nodes(node):
            yield from self.of(child, names)

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            old, new = COMPARED[type(node.ops[0])]
            yield self._between(node.left, node.comparators[0], "comparison", old, new)
        elif isinstance(node, ast.BinOp) and type(node.op) in COUNTED and not _text(node):
            old, new = COUNTED[type(node.op)]
            yield self._between(node.left, node.right, "arithmetic", old, new)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield self._between(node.values[0], node.values[1], "connective", old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield self._whole(node, "negation dropped", self._text(node.operand))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if not isinstance(node.operand, ast.Constant):
                yield self._whole(node, "sign dropped", self._text(node.operand))
        elif isinstance(node, ast.Constant):
            yield from self._constant(node)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield from self._condition(node)
        elif isinstance(node, ast.Return) and node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                yield self._whole(node, "return dropped", "return None")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if not _says(node.value):
                yield self._whole(node, "call dropped", "pass")
        elif isinstance(node, ast.Call):
            yield from self._call(node)

    def _constant(self, node: ast.Constant) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node.value, bool):
            yield self._whole(node, "truth value", str(not node.value))
        elif isinstance(node.value, int) and abs(node.value) < 10_000:
            yield self._whole(node, "off by one", str(node.value + 1))
        elif isinstance(node.value, float):
            yield self._whole(node, "constant", repr(node.value * 2 if node.value else 1.0))

    def _condition(
        self, node: ast.If | ast.IfExp | ast.While
    ) -> Iterator[tuple[str, int, int, str]]:
        start, end = self._span(node.test)
        text = self._text(node.test)
        yield "condition negated", start, end, f"not ({text})"
        last = node.body[-1] if isinstance(node, ast.If) else None
        if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
            if isinstance(last, ast.Raise | ast.Return | ast.Continue | ast.Break):
                yield "guard dropped", start, end, f"({text}) and False"

    def _call(self, node: ast.Call) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node.func, ast.Name) and node.func.id in NAMES:
            yield self._whole(node.func, "other function", NAMES[node.func.id])
        elif isinstance(node.func, ast.Attribute):
            if node.func.attr in METHODS:
                end = self._span(node.func)[1]
                new = METHODS[node.func.attr]
                yield "other method", end - len(node.func.attr), end, new
            elif node.func.attr == "detach" and not node.args:
                yield self._whole(node, "detach dropped", self._text(node.func.value))

    def _between(
        self, left: ast.expr, right: ast.expr, operator: str, old: str, new: str
    ) -> tuple[str, int, int, str]:
        """The sign between two operands, without brackets and comments beside it."""
        start, end = self._span(left)[1], self._span(right)[0]
        gap = self._bytes[start:end].decode()
        at = gap.index(old)
        begin = start + len(gap[:at].encode())
        return operator, begin, begin + len(old), new

    def _whole(
        self, node: ast.expr | ast.stmt, operator: str, new: str
    ) -> tuple[str, int, int, str]:
        return operator, *self._span(node), new

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._bytes[start:end].decode()


def _text(node: ast.BinOp) -> bool:
    """Whether texts or lists are joined or formatted: no other sign makes a program of it."""
    sides = (node.left, node.right)
    joined = ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp
    return any(
        isinstance(side, joined) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _says(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return any(word in name.lower() for word in SAYING)
