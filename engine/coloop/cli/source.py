"""SPEC on the command line: a file, standard input, or the name of a preset."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coloop.errors import PresetNotFound, SpecProblem, SpecUnreadable
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import Parsed, parse
from coloop.spec.paths import field_info
from coloop.spec.presets import patched
from coloop.spec.text.reader import Reading, read

MOST_BYTES = 8 * 2**20
UNREADABLE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A loop as text."""

    text: str
    name: str
    """Its name on the command line."""
    root: Path
    """Folder that its relative paths refer to."""


def read_source(spec: str) -> Source:
    """Read the text of SPEC; raises `SpecUnreadable` with a one-line reason."""
    if spec == "-":
        return Source(
            text=_decode(sys.stdin.buffer.read(MOST_BYTES + 1), "-"), name="-", root=Path.cwd()
        )
    path = Path(spec)
    if _is_file(path):
        return Source(text=_read(path), name=spec, root=path.resolve().parent)
    if path.is_dir():
        raise SpecUnreadable(f"{spec} is a folder, not a loop file")
    if presets.is_loop(spec):
        root = presets.presets_root() / "loops"
        return Source(text=presets.load_loop_text(spec), name=spec, root=root)
    if path.suffix in (".yaml", ".yml", ".json") or len(path.parts) > 1:
        raise SpecUnreadable(f"file {spec} not found")
    try:
        presets.load_loop_text(spec)
    except PresetNotFound as missing:
        raise SpecUnreadable(f"file {spec} not found, and {missing}") from missing
    raise SpecUnreadable(f"file {spec} not found")


def parse_source(source: Source) -> tuple[Parsed, bool]:
    """The loop, and whether its text is valid YAML."""
    parsed = parse(source.text)
    broken = any(finding.code.startswith("yaml.") for finding in parsed.diagnostics)
    return parsed, parsed.spec is not None or not broken


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _decode(file.read(MOST_BYTES + 1), str(path))
    except OSError as error:
        raise SpecUnreadable(f"{path} cannot be read: {error.strerror or error}") from error


def _decode(raw: bytes, name: str) -> str:
    if len(raw) > MOST_BYTES:
        raise SpecUnreadable(
            f"{name} is larger than {MOST_BYTES // 2**20} MiB, the limit for a loop"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecUnreadable(
            f"{name} is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from error


# `--set path=value`: overrides, written into the loop's text before it is parsed.


def with_settings(loop: Source, settings: Sequence[str]) -> Source:
    """The loop's text with `--set path=value` written into it; a value is YAML."""
    if not settings:
        return loop
    changes = []
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals or not path.strip():
            raise SpecProblem(f"--set needs path=value, got {setting!r}")
        changes.append(_change(loop, path.strip(), value))
    return replace(loop, text=patched(loop.text, changes))


def _change(loop: Source, path: str, text: str) -> Change:
    """The change for one override. A relative path refers to the working folder if the loop's
    folder has no such file."""
    reading = read(text) if text.strip() else Reading()
    if reading.diagnostics:
        reason = reading.diagnostics[0].message
        raise SpecProblem(f"--set {path}: {text!r} is not a YAML value: {reason}")
    value = reading.data
    spec = parse(loop.text).spec
    if isinstance(value, str) and spec is not None and _is_path(spec, path):
        here = Path(value).expanduser()
        if here.exists() and not (loop.root / here).exists():
            value = str(here.resolve())
    return Change(op="set", path=path, value=value)


def _is_path(spec: LoopSpec, path: str) -> bool:
    try:
        return field_info(path, spec).widget == "path"
    except SpecProblem:
        return False
