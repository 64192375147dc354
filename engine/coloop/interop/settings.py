"""Settings of other frameworks: what a file gives, and what becomes of each.

A framework is one table: the name of a setting, possibly with `*`, and a path of our language, or
the reason why it is not carried. Paths name the nodes of the loops that are built here: `prompts`,
`actor`, `reference`, `critic`, `reward`, `probe` and so on.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from coloop.interop.python import Computed
from coloop.spec.lean import record

UNSET: Final[Any] = object()
"""Stands for a value that is not there; null is a value."""
UNRESOLVED: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$\w+|^`[^`]+`$")
"""What a shell or Hydra would fill in."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A setting that is one value of a loop."""

    to: str
    default: Any = UNSET
    """What the framework uses where the setting is not given."""
    words: Mapping[Any, Any] = field(default_factory=dict)
    """Their values and ours, where these differ; the first of several counts for an export."""
    times: str | None = None
    """A path whose value multiplies theirs to ours."""
    is_list: bool = False
    """One value of theirs is a list with one element of ours."""


@dataclass(frozen=True, slots=True)
class Decides:
    """A setting that, with others, decides nodes or several values; `to` is what it is read for."""

    to: str
    default: Any = UNSET


@dataclass(frozen=True, slots=True)
class Left:
    """A setting that is not carried."""

    why: str


@dataclass(frozen=True, slots=True)
class Renamed:
    """A setting of another version."""

    to: str


Row = Carried | Decides | Left | Renamed
Table = Mapping[str, Row]


@record
class Given:
    """A setting as a file gives it."""

    name: str
    value: Any
    line: int | None = None


@record
class Fate:
    """What became of a setting."""

    name: str
    value: Any
    line: int | None
    kind: Literal["carried", "not_carried", "not_understood"]
    to: str = ""
    """The path that has its value now."""
    why: str = ""
    """The reason, and what to do, where it is not carried."""


def row_of(table: Table, name: str) -> tuple[str, Row] | None:
    """The name and row of a setting: its own, else the first pattern that matches."""
    if (row := table.get(name)) is not None:
        return name, row
    for pattern, row in table.items():
        if "*" in pattern and fnmatchcase(name, pattern):
            return pattern, row
    return None


@lru_cache
def known_names(framework: str) -> Mapping[str, str]:
    """Every setting of a framework, with the last version that had it; empty: the newest has it."""
    file = Path(__file__).with_name("names") / f"{framework}.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    return {name: version for name, _, version in (line.partition(" ") for line in lines)}


def is_known(name: str, names: Mapping[str, str]) -> bool:
    """Whether a framework has a setting, or one that holds it as a free mapping."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in names for end in range(len(parts), 1, -1)) or name in names


def near(name: str, names: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing."""
    known = [entry for entry in names if "*" not in entry]
    last = name.rpartition(".")[2]
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    found = found or [entry for entry in known if entry.rpartition(".")[2] == last][:1]
    return f"; did you mean `{found[0]}`?" if found else ""


class Settings:
    """The settings of one file, with the framework's defaults for those that it does not give."""

    def __init__(
        self, table: Table, given: Iterable[Given], *, title: str, names: Mapping[str, str]
    ) -> None:
        self.table = table
        self.fates: list[Fate] = []
        self._title = title
        self._names = names
        self._values: dict[str, Given] = {}
        for entry in given:
            self._take(entry, entry.name)

    def _take(self, entry: Given, written: str) -> None:
        found = row_of(self.table, entry.name)
        is_exact = found is not None and "*" not in found[0]
        if found is None or not (is_exact or is_known(written, self._names)):
            new = [name for name, last in self._names.items() if not last]
            why = f"{self._title} has no setting `{written}`{near(written, new)}"
            self._say(entry, "not_understood", why=why)
            return
        row = found[1]
        if isinstance(row, Renamed):
            self._take(Given(name=row.to, value=entry.value, line=entry.line), written)
            return
        if isinstance(row, Left):
            last = self._names.get(written, "")
            until = f" (a setting until {last})" if last else ""
            self._say(entry, "not_carried", why=row.why + until)
            return
        text = " ".join(map(str, entry.value)) if isinstance(entry.value, list) else entry.value
        if isinstance(text, str) and (hole := UNRESOLVED.search(text)):
            why = (
                f"`{hole[0]}` has no value in this text: write the value in its place; until then "
                "the framework's default counts"
            )
            self._say(entry, "not_understood", why=why)
            return
        if isinstance(entry.value, Computed):
            why = (
                f"`{entry.value.text}` is computed when the script runs: write the value in its "
                "place; until then the framework's default counts"
            )
            self._say(entry, "not_understood", why=why)
            return
        if entry.value == "":
            self._say(entry, "not_understood", why="is empty; the framework's default counts")
            return
        self._values[entry.name] = entry
        self._say(entry, "carried", to=row.to)

    def _say(
        self,
        entry: Given,
        kind: Literal["carried", "not_carried", "not_understood"],
        *,
        to: str = "",
        why: str = "",
    ) -> None:
        self.fates = [
            fate for fate in self.fates if (fate.name, fate.line) != (entry.name, entry.line)
        ]
        fate = Fate(name=entry.name, value=entry.value, line=entry.line, kind=kind, to=to, why=why)
        self.fates.append(fate)

    def __getitem__(self, name: str) -> Any:
        """The value that counts: given, else the framework's default, else None."""
        if name in self._values:
            return self._values[name].value
        row = self.table[name]
        assert isinstance(row, Carried | Decides)
        return None if row.default is UNSET else row.default

    def is_given(self, name: str) -> bool:
        return name in self._values

    def number(self, name: str) -> Any:
        """A number that counts, or None; what is neither is not understood, and the framework's
        default counts."""
        value = self[name]
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        self.miss(name, f"{value!r} is no number; the framework's default counts")
        del self._values[name]
        return self[name]

    def given_for(self, path: str) -> str | None:
        """The given setting that a path has its value from."""
        for fate in self.fates:
            if fate.to and (path.startswith(fate.to) or fate.to.startswith(path)):
                return fate.name
        return None

    def leave(self, name: str, why: str) -> None:
        """Say of a given setting that it is not carried after all."""
        if name in self._values:
            self._say(self._values[name], "not_carried", why=why)

    def miss(self, name: str, why: str) -> None:
        """Say of a given setting that its value is not understood."""
        if name in self._values:
            self._say(self._values[name], "not_understood", why=why)
        else:
            self._say(Given(name=name, value=self[name]), "not_understood", why=why)


def theirs(row: Carried, value: Any, scale: Any = 1) -> Any:
    """A value of ours as the framework writes it."""
    for word, ours in row.words.items():
        if ours == value and type(ours) is type(value):
            return word
    if row.is_list:
        value = value[0] if value else None
    if row.times is not None and isinstance(value, int | float) and scale:
        value = rounded(value / scale)
    return value


def ours(row: Carried, value: Any, scale: Any = 1) -> Any:
    """A value of the framework as a loop has it."""
    if isinstance(value, bool | int | float | str) or value is None:
        for word, mine in row.words.items():
            if word == value and isinstance(word, bool) is isinstance(value, bool):
                return mine
    if row.times is not None and isinstance(value, int | float) and scale is not None:
        value = rounded(value * scale)
    if row.is_list and value is not None and not isinstance(value, list | tuple):
        value = [value]
    return value


def rounded(value: float) -> float | int:
    """A product without the noise of binary fractions; whole numbers as integers."""
    if isinstance(value, int):
        return value
    if not math.isfinite(value):
        return value
    near_value = float(f"{value:.12g}")
    return int(near_value) if near_value.is_integer() and abs(near_value) >= 1 else near_value
