"""Python scripts, read by `ast` and never run: calls with their values, and functions as text."""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coloop.errors import ImportRefused

_OPERATORS: Final[dict[type[ast.operator], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
MOST_OF_A_POWER: Final = 64


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that only running the script would tell."""

    text: str


@dataclass(slots=True)
class Call:
    """A call in a script: keywords with their lines, and positional values."""

    name: str
    line: int
    keywords: dict[str, tuple[Any, int]] = field(default_factory=dict)
    positional: list[Any] = field(default_factory=list)


class Script:
    """What a script defines and calls."""

    def __init__(self, text: str) -> None:
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            where = f"line {line}: " if line else ""
            message = getattr(error, "msg", None) or str(error)
            raise ImportRefused(f"{where}the script is no valid Python: {message}") from None
        self.text = text
        self.values: dict[str, Any] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.calls: list[Call] = []
        self.options: dict[str, Any] = {}
        """Defaults of the script's own command line, by name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _name(node.func) == "add_argument":
                self._option(node)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._assign(node)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self.calls.append(self._call(node))

    def _assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is None:
            return
        for target in targets:
            if isinstance(target, ast.Name):
                self.values[target.id] = self.value(node.value)

    def _option(self, node: ast.Call) -> None:
        """`parser.add_argument("--name", default=value)`."""
        names = [item.value for item in node.args if isinstance(item, ast.Constant)]
        default = next((word.value for word in node.keywords if word.arg == "default"), None)
        for name in names:
            if default is not None and str(name).startswith("--"):
                self.options[str(name)[2:].replace("-", "_")] = self.value(default)

    def _call(self, node: ast.Call) -> Call:
        call = Call(name=_name(node.func), line=node.lineno)
        call.positional = [self.value(item) for item in node.args]
        for keyword in node.keywords:
            if keyword.arg is not None:
                call.keywords[keyword.arg] = (self.value(keyword.value), keyword.value.lineno)
            elif isinstance(keyword.value, ast.Call) and _name(keyword.value.func) == "dict":
                call.keywords |= self._call(keyword.value).keywords
        return call

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, or `Computed`."""
        try:
            return self._value(node, 0)
        except (ValueError, TypeError, ZeroDivisionError, OverflowError, RecursionError):
            return Computed(ast.unparse(node)[:200])

    def _value(self, node: ast.expr, depth: int) -> Any:
        if depth > MOST_OF_A_POWER:
            raise ValueError
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.values:
                found = self.values[name]
                if isinstance(found, Computed):
                    raise ValueError
                return found
            case ast.Attribute(value=ast.Name(), attr=name) if name in self.options:
                if isinstance(self.options[name], Computed):
                    raise ValueError
                return self.options[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand, depth + 1)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                both = self._value(left, depth + 1), self._value(right, depth + 1)
                if not all(isinstance(item, int | float) for item in both):
                    raise ValueError
                return _OPERATORS[type(op)](*both)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._element(item, depth) for item in items]
            case ast.Dict(keys=keys, values=values):
                return {
                    self._value(key, depth + 1): self._value(value, depth + 1)
                    for key, value in zip(keys, values, strict=True)
                    if key is not None
                }
            case ast.JoinedStr(values=parts):
                return "".join(str(self._part(part, depth)) for part in parts)
        raise ValueError

    def _element(self, node: ast.expr, depth: int) -> Any:
        """An element of a list; the name of a function stands for itself."""
        if isinstance(node, ast.Name) and node.id in self.functions:
            return Computed(node.id)
        return self._value(node, depth + 1)

    def _part(self, node: ast.expr, depth: int) -> Any:
        return self._value(node.value if isinstance(node, ast.FormattedValue) else node, depth + 1)

    def find(self, name: str) -> Call | None:
        """The first call of a name."""
        return next((call for call in self.calls if call.name == name), None)

    def imports(self) -> str:
        """Imports of the standard library at the top of the script."""
        kept = []
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                names = [alias for alias in node.names if is_standard(alias.name)]
                if names:
                    kept.append(ast.unparse(ast.Import(names=names)))
            elif isinstance(node, ast.ImportFrom) and is_standard(node.module or ""):
                kept.append(ast.unparse(node))
        return "\n".join(kept)

    def function(self, name: str) -> str:
        """The text of a function, with the functions and constants of the script that it uses."""
        parts: dict[str, str] = {}
        self._collect(name, parts)
        return "\n\n\n".join(part for part in (self.imports(), *parts.values()) if part)

    def _collect(self, name: str, parts: dict[str, str]) -> None:
        node = self.functions[name]
        parts[name] = ""
        used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        before = {}
        for item in sorted(used - {name} - parts.keys()):
            if item in self.functions:
                self._collect(item, parts)
            elif item in self.values and not isinstance(self.values[item], Computed):
                before[item] = f"{item} = {self.values[item]!r}"
        del parts[name]
        parts |= before
        parts[name] = ast.get_source_segment(self.text, node) or ast.unparse(node)


def is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names and module != "__future__"


def _name(func: ast.expr) -> str:
    """The last name of what is called."""
    match func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
    return ""


def known(values: Mapping[str, tuple[Any, int]], name: str, default: Any = None) -> Any:
    """The value of a keyword, or a default where it is absent or computed."""
    value = values.get(name, (default, 0))[0]
    return default if isinstance(value, Computed) else value
