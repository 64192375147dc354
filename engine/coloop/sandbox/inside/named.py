"""Modules that a source names, imported before the door is shut: afterwards no file can be read."""

import ast
import importlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from coloop.sandbox.inside import awaiting

LATE: Final = (
    "_strptime",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.ascii",
    "encodings.utf_16",
    "concurrent.futures.thread",
)
"""Imported by functions of the standard library when they are first called."""


def names_of(source: str) -> list[str]:
    """Every module that an import statement anywhere in the source may mean, outermost first."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names |= dict.fromkeys(alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                names[module] = None
                names |= dict.fromkeys(f"{module}.{alias.name}" for alias in node.names)
    return list(names)


def import_named(sources: Mapping[str, str]) -> None:
    """Import what these modules name, where it can be; what cannot is told where they import it."""
    named = [name for source in sources.values() for name in names_of(source)]
    needed = awaiting.NEEDED if awaiting.has_coroutines(sources) else ()
    for name in (*LATE, *needed, *named):
        if name.rpartition(".")[2] == "__main__":
            continue
        with suppress(Exception, SystemExit):
            importlib.import_module(name)
