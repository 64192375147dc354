"""Modules for code in a process that can read no files and open no sockets: those beside its file,
those imported before the sandbox is shut, and asyncio."""

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
"""Modules that functions of the standard library import on their first call."""
FOR_COROUTINES: Final = ("asyncio", "concurrent.futures.thread")


def tree_of(source: str) -> ast.Module | None:
    try:
        return parse_code(source)
    except SyntaxError:
        return None


def imports_of(source: str) -> list[str]:
    """All modules that import statements in the source may mean; relative names keep their dots."""
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
    """Import what these modules name, if possible; failures are reported where the code imports
    them."""
    named = [name for source in sources.values() for name in imports_of(source)]
    needed = FOR_COROUTINES if has_coroutines(sources) else ()
    for name in dict.fromkeys((*LATE, *needed, *named)):
        if name.startswith(".") or name.rpartition(".")[2] == "__main__":
            continue
        with suppress(Exception, SystemExit):
            importlib.import_module(name)


class Beside(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules among sources by dotted name. `pkg.__init__` makes `pkg` a package, and so does
    a name that others start with."""

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
    """Path of a module in error messages, such as `<helpers/text.py>`."""
    inner = f"{name}.__init__"
    return f"<{(inner if inner in sources else name).replace('.', '/')}.py>"


def install_beside(sources: Mapping[str, str]) -> None:
    """Make these modules importable, after the standard library but before all others, like a
    script's folder."""
    if sources:
        sys.meta_path.insert(0, Beside(sources))


def has_coroutines(sources: Mapping[str, str]) -> bool:
    return any("async" in source for source in sources.values())


def install_loop() -> None:
    """Let `asyncio.run` create event loops that need no socket pair: only timers and threads of
    this process wake them. asyncio is imported only for code with coroutines, so that other code
    starts sooner."""
    import asyncio
    import selectors
    import threading

    class Waiting(selectors.BaseSelector):
        """Waits for `wake` or a timeout."""

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
