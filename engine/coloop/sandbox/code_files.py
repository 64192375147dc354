"""Reads a user's Python file together with the modules that it imports from its folder.

Nothing is run: imports are found in the syntax tree. Modules of the folder take precedence over
libraries, but not over the standard library. A module with a syntax error is read all the same; the
error appears when it is imported.
"""

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coloop.sandbox.inside.modules import imports_of, tree_of

MOST_FILES: Final = 200
MOST_BYTES: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A Python file and the modules that it imports from its folder."""

    source: str
    modules: Mapping[str, str]
    """Source by dotted name; a package is `name.__init__`."""


@dataclass(frozen=True, slots=True)
class Import:
    name: str
    """Dotted and absolute, also for a relative import."""
    line: int


def read_code(path: Path) -> CodeFile:
    """Read a file and what it imports from its folder.

    Links that lead out of the folder are not followed.

    Raises:
        OSError: the file cannot be read.
        ValueError: a file cannot be decoded, or there are more than 200 files or 4 MiB.
    """
    source = text_of(path, path.name)
    return CodeFile(source, modules_beside(source, path.parent.resolve()))


def modules_beside(source: str, folder: Path) -> dict[str, str]:
    """By dotted name, the modules of a folder that a source imports, directly or indirectly. Raises
    what `read_code` raises."""
    modules: dict[str, str] = {}
    left = [(name, "") for name in imports_of(source)]
    seen: set[str] = set()
    size = len(source)
    while left:
        name, package = left.pop()
        for part in _outermost_first(_absolute(name, package)):
            if part in seen:
                continue
            seen.add(part)
            for module, text in _read(folder, part):
                modules[module] = text
                size += len(text)
                if len(modules) > MOST_FILES or size > MOST_BYTES:
                    raise ValueError(
                        f"it imports more than {MOST_FILES} files or {MOST_BYTES // 2**20} MiB "
                        "from its folder: install them as a package"
                    )
                inner = part if module.endswith(".__init__") else part.rpartition(".")[0]
                left += [(imported, inner) for imported in imports_of(text)]
    return modules


def text_of(path: Path, name: str) -> str:
    """Text of a Python file in UTF-8 or in the encoding that its first lines declare. Raises
    OSError if it cannot be read, and ValueError, with `name`, if it cannot be decoded."""
    data = path.read_bytes()
    try:
        return importlib.util.decode_source(data)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ValueError(f"`{name}` {_why_not_decoded(data, error)}") from None


def file_of(name: str) -> str:
    return f"{name.replace('.', '/')}.py"


def needed_by(source: str, package: str = "") -> list[Import]:
    """Modules that a source in `package` cannot do without: no imports in a `try` with handlers, or
    under `if TYPE_CHECKING`. Empty for invalid Python."""
    needed: list[Import] = []
    left: list[ast.AST] = [tree] if (tree := tree_of(source)) is not None else []
    while left:
        node = left.pop(0)
        match node:
            case ast.Import(names=names):
                needed += [Import(alias.name, node.lineno) for alias in names]
            case ast.ImportFrom(module=module, level=level):
                name = _absolute("." * level + (module or ""), package)
                needed += [Import(name, node.lineno)] if name else []
            case ast.Try(handlers=[_, *_]):
                left += [*node.handlers, *node.orelse, *node.finalbody]
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                left += node.orelse
            case _:
                left += ast.iter_child_nodes(node)
    return needed


def _why_not_decoded(data: bytes, error: SyntaxError | UnicodeDecodeError) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as first:
        line = data.count(b"\n", 0, first.start) + 1
        return (
            f"is not encoded as UTF-8 (line {line}): save it as UTF-8, or declare its encoding in "
            "its first line (`# coding: latin-1`)"
        )
    return f"declares an encoding in its first lines with which it cannot be decoded: {error}"


def _absolute(name: str, package: str) -> str:
    level = len(name) - len(name.lstrip("."))
    if level == 0:
        return name
    above = package.split(".")[: len(package.split(".")) - (level - 1)]
    return ".".join(part for part in (*above, name[level:]) if part)


def _outermost_first(name: str) -> list[str]:
    parts = name.split(".")
    if not parts[0].isidentifier() or parts[0] in sys.stdlib_module_names:
        return []
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _read(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    beside = folder.joinpath(*name.split("."))
    for path, module in (
        (beside / "__init__.py", f"{name}.__init__"),
        (beside.with_suffix(".py"), name),
    ):
        try:
            is_there = path.resolve().is_relative_to(folder) and os.path.isfile(path)
        except (OSError, ValueError):
            continue
        if is_there:
            with suppress(OSError):
                yield module, text_of(path, file_of(module))
                return
