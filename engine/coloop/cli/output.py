"""Output of commands: exact JSON, tables, colours only on a terminal."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import typer
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from coloop.spec.diagnostics import Diagnostic, Severity

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.HINT: "cyan"}
WIDTH_WITHOUT_TERMINAL = 120


def console(*, stderr: bool = False) -> Console:
    """A console on standard output (or error); plain text if that is not a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH_WITHOUT_TERMINAL
    return Console(file=stream, width=width, highlight=False, soft_wrap=True)


def table_of(*columns: str, right: Iterable[str] = ()) -> Table:
    """A table without lines; the first column is not wrapped, those in `right` are aligned so."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if column in right else "left"
        table.add_column(column, justify=justify, no_wrap=index == 0)
    return table


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def complain(message: str) -> None:
    """Print an error as one line to standard error."""
    line = " ".join(message.split())
    console(stderr=True).print(f"[bold red]error[/]: {escape(line)}")


def fail(message: str, exit_code: int) -> NoReturn:
    """Print an error as one line to standard error, and end the program."""
    complain(message)
    raise typer.Exit(exit_code)


def print_diagnostics(diagnostics: Iterable[Diagnostic], *, stderr: bool = False) -> None:
    """Print each finding: severity, message, code, location, hint."""
    out = console(stderr=stderr)
    for finding in diagnostics:
        style = STYLES[finding.severity]
        line = f"line {finding.line}, column {finding.column}" if finding.line is not None else ""
        where = escape(" · ".join(part for part in (finding.path, line) if part))
        out.print(
            f"[{style}]{finding.severity.value}[/] {escape(finding.message)}  "
            f"[dim]\\[{finding.code}][/]"
        )
        if where:
            out.print(f"    [dim]at {where}[/]")
        if finding.hint:
            out.print(f"    [dim]{escape(finding.hint)}[/]")


def print_refusal(message: str, findings: Sequence[object], *, as_json: bool) -> int:
    """Print why a loop is refused, with the diagnostics that an exception carries; returns 1."""
    diagnostics = [finding for finding in findings if isinstance(finding, Diagnostic)]
    if as_json:
        dumped = [finding.model_dump(mode="json") for finding in diagnostics]
        print_json({"ok": False, "message": message, "diagnostics": dumped})
    else:
        if message not in [finding.describe() for finding in diagnostics]:
            complain(message)
        print_diagnostics(diagnostics, stderr=True)
    return 1
