"""Where paths in a spec may point when the spec comes over HTTP: inside the allowed roots.

A spec names files (data, reward code, model folders). Over HTTP it need not be the person at this
machine who names them, so every such field is held against the roots, after links are followed; of
a folder that is read also what it holds. Which fields are paths is said by the spec itself
(`x-widget: path`). The server's own data (database, tokens) is in no root, even where it lies below
one; a root may lie in its folder.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from coloop.errors import SpecProblem
from coloop.spec.graph import LoopSpec
from coloop.spec.paths import apply_overrides
from coloop_server.errors import NotAllowed

URL_MARK = "://"
REMOTE = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hdfs", "oss", "hf"})
"""Protocols of remote storage. Others (`local:`, chains such as `zip::`) may lead to local files.
"""
MOST_ENTRIES = 200_000
"""Limit for a folder and everything below it."""
WRITTEN = frozenset({"run.storage"})
"""Folders that a run writes to; their content is read by its manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Folders that specs may use."""

    allowed: tuple[Path, ...]
    """Relative paths are resolved in the first one, unless they exist in another."""
    runs: Path
    private: Path

    def admits(self, path: Path) -> bool:
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
        if resolved.is_relative_to(self.runs):
            return True
        is_private = resolved.is_relative_to(self.private)
        return any(
            resolved.is_relative_to(root) and (not is_private or self.private in root.parents)
            for root in self.allowed
        )

    def check(self, text: str, what: str) -> Path:
        """The path that a client sent, if it is inside the roots."""
        local = text.removeprefix("file://")
        self._require(URL_MARK not in local and self._admits_all(local), text, what)
        return (self.allowed[0] / os.path.expanduser(local)).resolve()

    def check_field(self, field: str, text: str) -> None:
        """Refuse a path in a spec that leads outside, or a folder that contains one."""
        scheme, mark, _ = text.partition(URL_MARK)
        if not (mark and scheme in REMOTE):
            self.check(text, field)
        # Who takes no address for one reads a file of that name.
        self._require(self._admits_all(text), text, field)
        if field not in WRITTEN:
            for path in self._places(text):
                if is_there(path, Path.is_dir):
                    self._check_folder(path, field, text)

    def _require(self, is_inside: bool, text: str, what: str) -> None:
        if not is_inside:
            below = "" if os.path.isabs(os.path.expanduser(text)) else f" in {self.allowed[0]}"
            raise self._outside(text, f"{what}: {text!r}{below} lies")

    def _check_folder(self, folder: Path, field: str, text: str) -> None:
        try:
            entry = entry_outside(folder, self.admits)
        except TooManyEntries as problem:
            told = f"{field}: {text!r} holds {problem}, some of which may lead"
            raise self._outside(text, told) from None
        if entry is not None:
            shown = entry.relative_to(folder)
            raise self._outside(text, f"{field}: {text!r} holds {shown}, which leads")

    def _outside(self, text: str, told: str) -> NotAllowed:
        allowed = ", ".join(map(str, self.allowed))
        return NotAllowed(
            "path.outside",
            f"{told} outside of the folders that this server may use ({allowed}); "
            "COLOOP_ALLOWED_ROOTS adds one",
            {"path": text},
        )

    def _admits_all(self, text: str) -> bool:
        return "\0" not in text and all(map(self.admits, self._places(text)))

    def _places(self, text: str) -> list[Path]:
        """Where a path may be: a relative one in the first root, or in any root that has it."""
        named = os.path.expanduser(text)
        first, *others = dict.fromkeys(root / named for root in self.allowed)
        return [first, *filter(is_there, others)]

    def check_spec(self, spec: LoopSpec) -> None:
        """Refuse a spec with a path that leads outside."""
        for _, refusal in self.outside(spec):
            raise refusal

    def outside(self, spec: LoopSpec) -> Iterator[tuple[str, NotAllowed]]:
        """Every (field, refusal) of a path that leads outside, in the spec or in what its phases
        and triggers set."""
        told = set()
        for changed in (spec, *overridden(spec)):
            for refused in self.outside_of(changed):
                if (refused[0], str(refused[1])) not in told:
                    told.add((refused[0], str(refused[1])))
                    yield refused

    def outside_of(self, spec: LoopSpec) -> Iterator[tuple[str, NotAllowed]]:
        """Every (field, refusal) of a path that leads outside, in the spec itself."""
        for field, text in spec_paths(spec):
            try:
                self.check_field(field, text)
            except NotAllowed as refusal:
                yield field, refusal

    def base_for(self, spec: LoopSpec) -> Path:
        """The root with most of the spec's relative paths."""
        named = [text for _, text in spec_paths(spec) if URL_MARK not in text]

        def count(root: Path) -> int:
            return sum(is_there(root / text) for text in named)

        return max(self.allowed, key=count) if named else self.allowed[0]


def is_there(path: Path, ask: Callable[[Path], bool] = Path.exists) -> bool:
    """Whether the file exists; False for names that no file system allows."""
    try:
        return ask(path)
    except (OSError, ValueError):
        return False


def overridden(spec: LoopSpec) -> Iterator[LoopSpec]:
    """The spec with each set of overrides in its schedule."""
    for _, _, value in fields_of(spec.schedule):
        own = getattr(value, "set", None) if isinstance(value, BaseModel) else None
        if isinstance(own, dict) and own:
            with suppress(SpecProblem):
                yield apply_overrides(spec, own)


def spec_paths(spec: BaseModel) -> Iterator[tuple[str, str]]:
    for field, info, value in fields_of(spec):
        extra = info.json_schema_extra if info is not None else None
        if isinstance(value, str) and isinstance(extra, dict) and extra.get("x-widget") == "path":
            yield field, value


def fields_of(value: Any, at: str = "") -> Iterator[tuple[str, FieldInfo | None, Any]]:
    """Every (field, its definition, value) below a value, in order. Items of lists and mappings are
    named by index or key and have no definition."""
    items: Iterable[tuple[Any, FieldInfo | None, Any]] = ()
    match value:
        case BaseModel():
            known = type(value).model_fields.items()
            items = ((info.alias or name, info, getattr(value, name)) for name, info in known)
        case dict():
            items = ((key, None, item) for key, item in value.items())
        case tuple() | list():
            items = ((index, None, item) for index, item in enumerate(value))
    for name, info, item in items:
        field = f"{at}.{name}".lstrip(".")
        yield field, info, item
        yield from fields_of(item, field)


class TooManyEntries(ValueError):
    """A folder has more entries than are checked."""


def entry_outside(folder: Path, admits: Callable[[Path], bool]) -> Path | None:
    """The first link or folder below a folder that leads to where it may not; None: there is none.
    What a link leads to is looked through as well; what cannot be listed holds nothing.

    Args:
        admits: whether a path, followed to its end, lies where it may.

    Raises:
        TooManyEntries: not all of them were seen, and those that were may be there.
    """
    waiting, seen, count = [folder], set[Path](), 0
    while waiting:
        shown = waiting.pop()
        listed = shown.resolve()
        if listed in seen:
            continue
        seen.add(listed)
        for entry in _entries(listed):
            count += 1
            if count > MOST_ENTRIES:
                raise TooManyEntries(f"more than {MOST_ENTRIES:,} entries")
            if not (entry.is_symlink() or entry.is_dir(follow_symlinks=False)):
                continue
            if not admits(shown / entry.name):
                return shown / entry.name
            if _is_folder(entry):
                waiting.append(shown / entry.name)
    return None


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from entries


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """Whether it is a folder or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False
