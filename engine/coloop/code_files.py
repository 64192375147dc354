"""A file of the user's Python, with the modules beside it that it imports.

Nothing is run here: imports are found in the syntax tree. What lies beside the file goes before the
libraries and behind the standard library; what cannot be parsed is left to be told where it is
imported.
"""

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_FILES: Final = 200
MOST_BYTES: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class CodeFile:
    """What a limited process needs to run the file."""

    source: str
    modules: Mapping[str, str]
    """By dotted name; a package as `name.__init__`."""


def read_code(path: Path) -> CodeFile:
    """Read a file and what it imports from its folder.

    Links that lead out of the folder are not followed.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no UTF-8, or what it imports is more than 200 files or 4 MiB.
    """
    source = path.read_text(encoding="utf-8")
    folder = path.parent.resolve()
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
            for found, text in _read(folder, part):
                modules[found] = text
                size += len(text)
                if len(modules) > MOST_FILES or size > MOST_BYTES:
                    raise ValueError(
                        f"it imports more than {MOST_FILES} files or {MOST_BYTES // 2**20} MiB "
                        "from its folder: install them as a package"
                    )
                inner = part if found.endswith(".__init__") else part.rpartition(".")[0]
                left += [(one, inner) for one in imports_of(text)]
    return CodeFile(source, modules)


def imports_of(source: str) -> list[str]:
    """Every module that an import statement anywhere in the source may mean; relative ones begin
    with their dots."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            dot = "" if start.endswith(".") or not start else "."
            names += [start, *(f"{start}{dot}{alias.name}" for alias in node.names)]
    return names


def _absolute(name: str, package: str) -> str:
    """A relative name as seen from a package."""
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
    """The module of this name, if it lies in the folder."""
    place = folder.joinpath(*name.split("."))
    for path, found in (
        (place / "__init__.py", f"{name}.__init__"),
        (place.with_suffix(".py"), name),
    ):
        try:
            inside = path.resolve().is_relative_to(folder)
            if inside and os.path.isfile(path):
                yield found, path.read_text(encoding="utf-8")
                return
        except (OSError, ValueError):
            continue
