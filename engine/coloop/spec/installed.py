"""What installed packages add to the language: records found by entry points.

The groups are `coloop.rewards`, `coloop.tasks`, `coloop.algorithms` and `coloop.tools`; the name of
an entry point is the name in the language. Packages are looked for once, when the language is
imported. A record that cannot be used adds nothing: `coloop doctor` lists it, and the diagnostic of
a loop that names it says why. `COLOOP_PLUGINS=off` loads none.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from coloop.errors import BackendMissing
from coloop.spec.lean import record

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS: Final = ("coloop.rewards", "coloop.tasks", "coloop.algorithms", "coloop.tools")
NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
OFF: Final = "off"


class Record(Protocol):
    """What an entry point names."""

    @property
    def name(self) -> str: ...


RecordType = TypeVar("RecordType", bound=Record)
Value = TypeVar("Value")


@record
class Installed:
    """Something that a package adds, or would add."""

    group: str
    name: str
    package: str
    """Name and version of the distribution."""
    reason: str = ""
    """Why it cannot be used."""


LOADED: Final[list[Installed]] = []
"""Usable records, in the order of discovery."""
PROBLEMS: Final[list[Installed]] = []
"""Unusable records, each with its reason."""


def records(
    group: str,
    kind: type[RecordType],
    own_names: Collection[str],
    refusal: Callable[[RecordType], str | None] = lambda record: None,
) -> dict[str, RecordType]:
    """The records of one entry point group, by name.

    Args:
        own_names: reserved for coloop itself.
        refusal: why a record cannot be used, or None.
    """
    by_name: dict[str, RecordType] = {}
    for package, entries in _by_package(group).items():
        for entry in entries:
            reason = _clash(group, entry.name, package, own_names)
            record = None
            if reason is None:
                record, reason = _loaded(entry, kind)
            if reason is None and record is not None:
                reason = refusal(record)
            installed = Installed(group=group, name=entry.name, package=package)
            if reason is not None or record is None:
                PROBLEMS.append(replace(installed, reason=reason or "it is empty"))
            else:
                by_name[entry.name] = record
                LOADED.append(installed)
    return by_name


def problem_with(name: Any) -> str | None:
    """Why a name that an installed package adds cannot be used; None if that is not the reason."""
    for problem in PROBLEMS:
        if problem.name == name:
            return f"`{name}` of the package {problem.package} cannot be used: {problem.reason}"
    return None


class WithPlugins(Mapping[str, Value]):
    """A registry of coloop's own entries and of those of packages, imported on first use."""

    def __init__(
        self,
        own: Mapping[str, Value],
        places: Mapping[str, str],
        made: Callable[[str, Any], Value] = lambda name, found: found,
    ) -> None:
        """
        Args:
            places: `package.module:object` of each plugin, by name.
            made: makes the registry's entry from a name and the imported object.
        """
        self._own = dict(own)
        self._places = dict(places)
        self._made = made

    def __getitem__(self, name: str) -> Value:
        if name not in self._own:
            self._own[name] = self._made(name, load(self._places[name], name))
        return self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._own, *self._places]))

    def __len__(self) -> int:
        return len({*self._own, *self._places})


def load(place: str, name: str) -> Any:
    """An object of an installed package; raises `BackendMissing` if it cannot be imported."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        raise BackendMissing(f"`{name}` ({place}) cannot be imported: {_said(error)}") from error


def _loaded(entry: EntryPoint, kind: type[RecordType]) -> tuple[RecordType | None, str | None]:
    try:
        record = entry.load()
        if not isinstance(record, kind):
            return None, f"{entry.value} is not a {kind.__name__}"
        name = record.name
    except (Exception, SystemExit) as error:
        return None, f"{entry.value} cannot be imported: {_said(error)}"
    if name != entry.name:
        return None, f"the entry point is named `{entry.name}`, but its record `{name}`"
    return record, None


def _clash(group: str, name: str, package: str, own_names: Collection[str]) -> str | None:
    if NAME.fullmatch(name) is None:
        return "use lower-case letters, digits and `_`, starting with a letter"
    if name in own_names:
        return "coloop already uses this name; the package must choose another"
    others = [
        other
        for other, entries in _by_package(group).items()
        if other != package and any(entry.name == name for entry in entries)
    ]
    if others:
        return f"the package {others[0]} has the same name; uninstall one of them"
    return None


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _by_package(group: str) -> dict[str, list[EntryPoint]]:
    return {
        package: [entry for entry in entries if entry.group == group]
        for package, entries in _packages().items()
    }


@lru_cache(maxsize=1)
def _packages() -> dict[str, list[EntryPoint]]:
    """Packages that have entry points of coloop, sorted by name.

    The files are searched as text first, so that `importlib.metadata` is only imported if needed.
    """
    if os.environ.get("COLOOP_PLUGINS", "") == OFF:
        return {}
    folders = [folder for path in dict.fromkeys(sys.path) for folder in _folders(path)]
    if not folders:
        return {}
    from importlib.metadata import PathDistribution

    packages: dict[str, tuple[str, list[EntryPoint]]] = {}
    for folder in folders:
        distribution = PathDistribution(folder)
        name = str(distribution.metadata["Name"])
        entries = [entry for entry in distribution.entry_points if entry.group in GROUPS]
        packages.setdefault(name.lower(), (f"{name} {distribution.version}", entries))
    return dict(packages[name] for name in sorted(packages))


def _folders(path: str) -> list[Path]:
    try:
        names = [name for name in os.listdir(path or ".") if name.endswith(".dist-info")]
    except OSError:
        return []
    return [folder for name in names if _names_a_group(folder := Path(path, name))]


def _names_a_group(folder: Path) -> bool:
    try:
        return b"[coloop." in (folder / "entry_points.txt").read_bytes()
    except OSError:
        return False
