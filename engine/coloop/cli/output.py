"""What commands print: JSON exactly, tables for people, colours only on a terminal."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape

from coloop.spec.diagnostics import Diagnostic, Severity

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.HINT: "cyan"}
WIDTH_WITHOUT_TERMINAL = 120


def console(*, stderr: bool = False) -> Console:
    """A console on standard output (or error); plain text where that is no terminal."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH_WITHOUT_TERMINAL
    return Console(file=stream, width=width, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def complain(message: str) -> None:
    """One line on standard error."""
    line = " ".join(message.split())
    console(stderr=True).print(f"[bold red]error[/]: {escape(line)}")


def print_diagnostics(diagnostics: Iterable[Diagnostic], *, stderr: bool = False) -> None:
    """One finding after the other: place, message, hint."""
    out = console(stderr=stderr)
    for found in diagnostics:
        style = STYLES[found.severity]
        place = f"line {found.line}, column {found.column}" if found.line is not None else ""
        where = escape(" · ".join(part for part in (found.path, place) if part))
        out.print(
            f"[{style}]{found.severity.value}[/] {escape(found.message)}  [dim]\\[{found.code}][/]"
        )
        if where:
            out.print(f"    [dim]at {where}[/]")
        if found.hint:
            out.print(f"    [dim]{escape(found.hint)}[/]")


def count(number: int, word: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def gib(size: float) -> str:
    """Bytes for people."""
    for unit, bytes_each in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= bytes_each:
            return f"{size / bytes_each:.1f} {unit}"
    return f"{size:.0f} B"


def seconds(value: float) -> str:
    """A duration for people."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    if value < 7200:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h"


def rate(value: float | None) -> str:
    """A rate for people; nothing where there is none."""
    if not value:
        return ""
    return f"{value / 1000:.1f}k" if value >= 10_000 else f"{value:.3g}"
