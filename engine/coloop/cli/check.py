"""SPEC on the command line, `coloop validate`, and the validation that other commands run first.

SPEC is a file, standard input, or the name of a preset; `--set path=value` writes overrides into
its text before it is parsed.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from coloop.cli.app import Json, Settings, Spec
from coloop.cli.output import console, fail, print_diagnostics, print_json, print_refusal
from coloop.errors import PresetNotFound, SpecProblem, SpecUnreadable
from coloop.plan.cost import Explanation, explain
from coloop.plan.run_check import RunCheck, check_run
from coloop.plan.unrolled import Unrolled
from coloop.spec import presets
from coloop.spec.diagnostics import Change, Report
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.paths import find
from coloop.spec.text.reader import Reading, read
from coloop.units import count
from coloop.validate import validate

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
        text = _decode(sys.stdin.buffer.read(MOST_BYTES + 1), "-")
        return Source(text=text, name="-", root=Path.cwd())
    path = Path(spec)
    if os.path.isfile(spec):
        return Source(text=_read(path), name=spec, root=path.resolve().parent)
    if os.path.isdir(spec):
        raise SpecUnreadable(f"{spec} is a folder, not a loop file")
    try:
        text = presets.load_loop_text(spec)
    except PresetNotFound as missing:
        is_file_name = path.suffix in (".yaml", ".yml", ".json") or len(path.parts) > 1
        why = "" if is_file_name else f", and {missing}"
        raise SpecUnreadable(f"file {spec} not found{why}") from missing
    return Source(text=text, name=spec, root=presets.presets_root() / "loops")


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
    return replace(loop, text=presets.patched(loop.text, changes))


def _change(loop: Source, path: str, text: str) -> Change:
    """The change for one override. A relative path refers to the working folder if the loop's
    folder has no such file."""
    reading = read(text) if text.strip() else Reading()
    if reading.diagnostics:
        reason = reading.diagnostics[0].message
        raise SpecProblem(f"--set {path}: {text!r} is not a YAML value: {reason}")
    value = reading.data
    spec = parse(loop.text).spec
    with suppress(SpecProblem):
        if isinstance(value, str) and spec and find(spec, path).facts.get("x-widget") == "path":
            here = Path(value).expanduser()
            if here.exists() and not (loop.root / here).exists():
                value = str(here.resolve())
    return Change(op="set", path=path, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A loop and its findings."""

    source: Source
    spec: LoopSpec | None
    report: Report
    is_readable: bool
    explanation: Explanation | None = None
    """The estimate behind the memory check."""
    unrolled: Unrolled | None = None

    @property
    def exit_code(self) -> int:
        """0 without errors, 1 with errors, 2 if the text cannot be parsed."""
        if not self.is_readable:
            return UNREADABLE
        return 0 if self.report.ok and self.spec is not None else 1


def check(spec: str, settings: Sequence[str] = (), *, strict: bool = False) -> Checked:
    """Reads and validates SPEC.

    Args:
        settings: overrides, each `path=value`.

    Raises:
        SpecUnreadable: SPEC cannot be read.
        SpecProblem: an override does not fit the loop.
    """
    return check_source(with_settings(read_source(spec), settings), strict=strict)


def check_source(source: Source, *, strict: bool = False) -> Checked:
    """Validates the text of a loop."""
    parsed = parse(source.text)
    if parsed.spec is None:
        is_yaml = not any(found.code.startswith("yaml.") for found in parsed.diagnostics)
        return Checked(source=source, spec=None, report=parsed.report, is_readable=is_yaml)
    unrolled = Unrolled(parsed.spec)
    explanation = explain(parsed.spec, unrolled, root=source.root)
    report = validate(
        parsed.spec,
        strict=strict,
        root=source.root,
        estimate=explanation.estimate,
        unrolled=unrolled,
    )
    return Checked(
        source=source,
        spec=parsed.spec,
        report=Report(diagnostics=tuple(map(parsed.locate, report.diagnostics))),
        is_readable=True,
        explanation=explanation,
        unrolled=unrolled,
    )


def checked_spec(
    spec: str, settings: Sequence[str] | None, *, as_json: bool
) -> tuple[Checked, LoopSpec]:
    """A loop without errors; else prints the findings and ends the program."""
    checked = _checked(spec, settings, as_json=as_json)
    if checked.spec is None or checked.exit_code:
        if as_json:
            print_json(checked.report.to_json())
        else:
            print_diagnostics(checked.report.errors, stderr=True)
        raise typer.Exit(checked.exit_code)
    return checked, checked.spec


def _checked(
    spec: str, settings: Sequence[str] | None, *, as_json: bool, strict: bool = False
) -> Checked:
    try:
        return check(spec, settings or (), strict=strict)
    except SpecUnreadable as unreadable:
        fail(str(unreadable), UNREADABLE)
    except SpecProblem as problem:
        code = print_refusal(str(problem), problem.diagnostics, as_json=as_json)
        raise typer.Exit(code) from None


def validate_command(
    spec: Spec,
    settings: Settings = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    as_json: Json = False,
) -> int:
    checked = _checked(spec, settings, as_json=as_json, strict=strict)
    report = checked.report
    fails = strict and bool(report.warnings)
    run_check = (
        check_run(checked.spec, checked.unrolled, root=checked.source.root)
        if checked.spec is not None and report.ok
        else None
    )
    if as_json:
        runs = {"runs": False, "refusals": []} if run_check is None else run_check.to_json()
        print_json(report.to_json() | {"ok": report.ok and not fails} | runs)
    else:
        print_diagnostics(report.diagnostics)
        _print_verdict(checked, run_check)
    return checked.exit_code or (1 if fails else 0)


def print_run_check(run_check: RunCheck) -> None:
    """Print one line if a run would refuse the loop."""
    if run_check.sentence is not None:
        console().print(f"[yellow]{escape(run_check.sentence)}[/]")


def _print_verdict(checked: Checked, run_check: RunCheck | None) -> None:
    errors, warnings = len(checked.report.errors), len(checked.report.warnings)
    out = console()
    if errors or checked.spec is None:
        out.print(f"[bold red]{count(errors, 'error')}[/], {count(warnings, 'warning')}")
        return
    spec = checked.spec
    size = f"{count(len(spec.nodes), 'node')}, {count(len(spec.edges), 'edge')}"
    also = f", {count(warnings, 'warning')}" if warnings else ""
    if run_check is not None and run_check.sentence is not None:
        out.print(f"[yellow]{escape(spec.name)}: {escape(run_check.sentence)}[/] ({size}{also})")
        return
    out.print(f"[green]ok[/] {spec.name}: {size}{also}")
