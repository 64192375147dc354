"""Imports in the sandbox, where files may not be readable: modules beside the user's file, modules
imported in advance, and asyncio without sockets."""

import ast
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

from coloop.sandbox.inside.parsing import parse_code

LATE: Final = (
    "_strptime",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.ascii",
    "encodings.utf_16",
    "concurrent.futures.thread",
)
"""Modules that functions of the standard library import when they are first called."""
FOR_COROUTINES: Final = ("asyncio", "concurrent.futures.thread")


def tree_of(source: str) -> ast.Module | None:
    try:
        return parse_code(source)
    except SyntaxError:
        return None


def imports_of(source: str) -> list[str]:
    """All modules that the import statements of a source may refer to, relative ones with dots;
    empty for invalid Python."""
    names: list[str] = []
    for node in ast.walk(tree) if (tree := tree_of(source)) is not None else ():
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            dot = "" if start.endswith(".") or not start else "."
            names += [start, *(f"{start}{dot}{alias.name}" for alias in node.names)]
    return names


def import_named(sources: Mapping[str, str]) -> None:
    """Import what these sources import; what fails here will fail when the code imports it."""
    named = [name for source in sources.values() for name in imports_of(source)]
    needed = FOR_COROUTINES if has_coroutines(sources) else ()
    for name in dict.fromkeys((*LATE, *needed, *named)):
        if name.startswith(".") or name.rpartition(".")[2] == "__main__":
            continue
        with suppress(Exception, SystemExit):
            importlib.import_module(name)


class Beside(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules from sources by dotted name. `pkg` is a package if there is `pkg.__init__` or
    any `pkg.` name."""

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
    """File name of a module in tracebacks, such as `<helpers/text.py>`."""
    inner = f"{name}.__init__"
    return f"<{(inner if inner in sources else name).replace('.', '/')}.py>"


def install_beside(sources: Mapping[str, str]) -> None:
    """Make modules importable from these sources, before any that are installed."""
    if sources:
        sys.meta_path.insert(0, Beside(sources))


def has_coroutines(sources: Mapping[str, str]) -> bool:
    return any("async" in source for source in sources.values())


def install_loop() -> None:
    """Make `asyncio.run` use event loops without a socket pair, woken by timers and threads only.
    asyncio is imported here and not above, so that code without coroutines starts faster."""
    import asyncio
    import selectors
    import threading

    class Waiting(selectors.BaseSelector):
        """A selector without files: `select` waits for `wake` or a timeout."""

        def __init__(self) -> None:
            self._woken = threading.Event()

        def wake(self) -> None:
            self._woken.set()

        def select(self, timeout: float | None = None) -> list[Any]:
            self._woken.wait(timeout)
            self._woken.clear()
            return []

        def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            raise PermissionError("this code runs in a limited process with no network")

        def unregister(self, fileobj: Any) -> selectors.SelectorKey:
            raise KeyError(fileobj)

        def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
            return {}

    class ClosedLoop(asyncio.SelectorEventLoop):
        """An event loop for tasks, timers and threads, without sockets or subprocesses."""

        def __init__(self) -> None:
            self._waiting = Waiting()
            super().__init__(self._waiting)

        def _make_self_pipe(self) -> None:
            pass

        def _close_self_pipe(self) -> None:
            pass

        def _write_to_self(self) -> None:
            self._waiting.wake()

    vars(asyncio.events)["new_event_loop"] = ClosedLoop
    vars(asyncio)["new_event_loop"] = ClosedLoop


def settled(value: Any) -> Any:
    import asyncio

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())
