"""Limits the source of templates, and inserts checks that run while a template is rendered.

    Jinja's tree -> few nodes, of known types? -> checks around operands, lists and loops

A check is a filter whose name cannot be written in a template.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Final

from jinja2 import TemplateSyntaxError, nodes
from jinja2.lexer import Token
from jinja2.visitor import NodeTransformer

LONGEST_SOURCE: Final = 200_000

MOST_NODES: Final = 5_000
"""Maximum nodes of a parsed source."""

DEEPEST_SOURCE: Final = 100
DEEPEST_TAGS: Final = 15
"""Maximum nesting of tags: Python compiles only a few more."""

MOST_TOKENS: Final = 20_000
"""Maximum tokens between the braces of a source."""

LONGEST_NUMBER: Final = 1024
"""Maximum bits of a number in a source."""

JOIN, LOOP, PASS, COMPARE, SHOWN = "~", "~loop", "~pass", "~compare", "~shown"
MADE, TAKEN = "~made", "~taken"
OWN_FILTERS: Final = frozenset({JOIN, LOOP, PASS, COMPARE, SHOWN, MADE, TAKEN})
"""Filters that `Guarded` inserts; they check and count against the budget."""

ORDERS: Final = frozenset({"eq", "ne", "lt", "lteq", "gt", "gteq"})

KNOWN: Final[tuple[type[nodes.Node], ...]] = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Macro),
    *(nodes.CallBlock, nodes.FilterBlock, nodes.With, nodes.Assign, nodes.AssignBlock),
    *(nodes.ExprStmt, nodes.Name, nodes.NSRef, nodes.Const, nodes.Tuple, nodes.List, nodes.Dict),
    *(nodes.Pair, nodes.Keyword, nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Call),
    *(nodes.Getitem, nodes.Getattr, nodes.Slice, nodes.Concat, nodes.Compare, nodes.Operand),
    *(nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Add, nodes.Mod, nodes.Sub, nodes.Pow),
    *(nodes.Not, nodes.Neg, nodes.Pos, nodes.And, nodes.Or),
    *(nodes.Break, nodes.Continue),
)
"""Allowed nodes; the last two only occur in chat templates."""
TAGS: Final = (nodes.For, nodes.If, nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.With)
REPEATED: Final = (nodes.For, nodes.Macro, nodes.CallBlock)
"""Nodes whose body may run repeatedly."""


def check_source(source: str) -> None:
    """Raise TemplateSyntaxError if a source is too long."""
    if len(source) > LONGEST_SOURCE:
        raise TemplateSyntaxError(
            f"the text has {len(source):,} characters, the limit is {LONGEST_SOURCE:,}; put long "
            "passages into columns",
            1,
        )


def limited(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens; raises TemplateSyntaxError if there are too many."""
    for index, token in enumerate(tokens):
        if index >= MOST_TOKENS:
            raise _too_many_parts(token.lineno)
        yield token


def _too_many_parts(line: int) -> TemplateSyntaxError:
    return TemplateSyntaxError(
        f"the text has more than {MOST_NODES:,} names, operators and tags; use `code`, or split it "
        "into several columns",
        line,
    )


def check_tree(tree: nodes.Template) -> None:
    """Raise TemplateSyntaxError for a tree that is too large, too deep, or has unknown nodes."""
    level: list[tuple[nodes.Node, int]] = [(tree, 0)]
    count = depth = 0
    while level:
        count, depth = count + len(level), depth + 1
        line = level[0][0].lineno or 1
        if count > MOST_NODES:
            raise _too_many_parts(line)
        if depth > DEEPEST_SOURCE:
            raise TemplateSyntaxError(
                f"expressions are nested deeper than {DEEPEST_SOURCE}; name the inner ones with "
                "`set`",
                line,
            )
        level = [
            (child, tags + isinstance(child, TAGS))
            for node, tags in level
            for child in _checked(node, tags).iter_child_nodes()
        ]


def _checked(node: nodes.Node, tags: int) -> nodes.Node:
    if type(node) not in KNOWN:
        name = type(node).__name__.lower()
        raise TemplateSyntaxError(
            f"`{name}` is not supported, because each text stands alone; use a `macro` to name a "
            "passage",
            node.lineno or 1,
        )
    if tags > DEEPEST_TAGS:
        raise TemplateSyntaxError(
            f"tags are nested deeper than {DEEPEST_TAGS}; move the inner ones into a `macro`",
            node.lineno or 1,
        )
    value = node.value if isinstance(node, nodes.Const) else None
    is_long = isinstance(value, int) and value.bit_length() > LONGEST_NUMBER
    if is_long or (isinstance(value, float) and not isfinite(value)):
        raise TemplateSyntaxError(
            f"a number needs more than {LONGEST_NUMBER} bits", node.lineno or 1
        )
    return node


class Guarded(NodeTransformer):
    """Inserts checks around everything that may be large or run repeatedly."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        first, *others = node.nodes
        return _filter(first, JOIN, *others)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        is_short = any(isinstance(side, nodes.Const) for side in sides) and all(
            operand.op in ORDERS for operand in node.ops
        )
        if is_short and len(sides) == 2:
            return node
        node.expr = _compared(node.expr)
        for operand in node.ops:
            operand.expr = _compared(operand.expr)
        return node

    def visit_List(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        return _filter(node, MADE)

    visit_Dict = visit_List

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        return self.visit_List(node) if node.ctx == "load" else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        return _filter(node, TAKEN) if isinstance(node.arg, nodes.Slice) else node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _filter(node.iter, LOOP)
        return _repeated(node)

    def visit_Macro(self, node: nodes.Macro | nodes.CallBlock) -> nodes.Node:
        self.generic_visit(node)
        return _repeated(node)

    visit_CallBlock = visit_Macro

    def visit_FilterBlock(self, node: nodes.FilterBlock) -> nodes.Node:
        self.generic_visit(node)
        node.filter = _filter(node.filter, SHOWN)
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:
        self.generic_visit(node)
        if node.filter is None:
            node.filter = nodes.Filter(None, TAKEN, [], [], None, None, lineno=node.lineno)
        return node


def _filter(node: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


def _compared(side: nodes.Expr) -> nodes.Expr:
    return side if isinstance(side, nodes.Const) else _filter(side, COMPARE)


def _repeated(node: nodes.For | nodes.Macro | nodes.CallBlock) -> nodes.Node:
    """Insert a check at the start of a body, which counts the literal text in it."""
    size = sum(data.data.__sizeof__() for data in _plain_texts(node.body))
    check = _filter(nodes.Const(size, lineno=node.lineno), PASS)
    node.body.insert(0, nodes.ExprStmt(check, lineno=node.lineno))
    return node


def _plain_texts(body: list[nodes.Node]) -> Iterator[nodes.TemplateData]:
    """Literal texts of a body, without those in nested REPEATED nodes."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.TemplateData):
            yield node
        elif not isinstance(node, REPEATED):
            waiting += node.iter_child_nodes()


# The names in the templates of a row.
#
# `{{ column }}` is the nearest value, `{{ node.column }}` an exact one, `{{ node }}` the score by a
# scorer. Values of None are left out, so that the name is undefined.


class NodeView:
    """A node without a score, with its columns in `known`. It is true, and as text empty."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.known = columns

    def __str__(self) -> str:
        return ""


class ScoredView(float):
    """The score of a node, which may also have columns, in `known`."""

    known: Mapping[str, Any]

    def __new__(cls, score: float, columns: Mapping[str, Any]) -> "ScoredView":
        view = super().__new__(cls, score)
        view.known = columns
        return view


def names_of(
    columns: Mapping[str, Any], scoped: Mapping[str, Any], scores: Mapping[str, Any]
) -> dict[str, Any]:
    """The names of a row in a template: its columns, and nodes with their scores and columns. None
    is left out."""
    by_node: dict[str, dict[str, Any]] = {}
    for name, value in scoped.items():
        node, _, column = name.partition(".")
        if value is not None:
            by_node.setdefault(node, {})[column] = value
    names: dict[str, Any] = {node: NodeView(known) for node, known in by_node.items()}
    for node, score in scores.items():
        if isinstance(score, dict):
            names[node] = dict(score)
        elif score is not None:
            names[node] = ScoredView(float(score), by_node.get(node, {}))
    names.update({name: value for name, value in columns.items() if value is not None})
    return names
