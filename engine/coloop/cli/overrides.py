"""`--set path=value`: overrides, written into the loop's text before it is parsed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from coloop.cli.source import Source
from coloop.errors import SpecProblem
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.paths import field_info
from coloop.spec.presets import patched
from coloop.spec.text.reader import Reading, read


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
