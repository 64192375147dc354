"""Modules that lie beside the user's file: their sources come with the code, and are imported as
from a folder."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType


class Beside(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules among sources by their dotted name; `pkg.__init__` makes `pkg` a package, and
    so does a name that others begin with."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = dict(sources)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_package = any(name.startswith(f"{fullname}.") for name in self._sources)
        if not is_package and fullname not in self._sources:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, self, origin=file_of(fullname, self._sources), is_package=is_package
        )

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        source = self._sources.get(name, self._sources.get(f"{name}.__init__", ""))
        exec(compile(source, file_of(name, self._sources), "exec", dont_inherit=True), vars(module))


def file_of(name: str, sources: Mapping[str, str]) -> str:
    """The path of a module as an error names it, such as `<helpers/text.py>`."""
    inner = f"{name}.__init__"
    return f"<{(inner if inner in sources else name).replace('.', '/')}.py>"


def install(sources: Mapping[str, str]) -> None:
    """Before all else but the standard library, as the folder of a script."""
    if sources:
        sys.meta_path.insert(0, Beside(sources))
