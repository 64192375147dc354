"""A download with its progress on the terminal; Ctrl-C cancels it, and keeps what is there."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bar

from coloop.cli.output import console
from coloop.hub.about import HubRepo
from coloop.hub.download import Progress, download
from coloop.units import gib

LINE_SECONDS = 5.0
"""Between lines where there is no terminal."""
JSON_SECONDS = 0.3
CANCELLED = 130


def fetch(repo: HubRepo, *, as_json: bool = False) -> Path:
    """Download a repository, showing how far it is; as JSON, one line on standard output for each
    report."""
    out = console(stderr=True)
    kind = "models" if repo.kind == "model" else "datasets"
    try:
        if as_json:
            return _with_json(repo)
        return _with_bar(repo) if sys.stderr.isatty() else _with_lines(repo)
    except KeyboardInterrupt:
        out.print(
            f"cancelled; `coloop {kind} download {escape(repo.id)}` continues where it stopped"
        )
        raise typer.Exit(CANCELLED) from None


def _with_bar(repo: HubRepo) -> Path:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
    )
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(repo.id, total=repo.bytes)

        def report(progress: Progress) -> None:
            name = progress.file or repo.id
            bar.update(task, completed=progress.done, description=name)

        return download(repo, report)


def _with_json(repo: HubRepo) -> Path:
    last = [-JSON_SECONDS]

    def report(progress: Progress) -> None:
        if not progress.file or time.monotonic() - last[0] >= JSON_SECONDS:
            last[0] = time.monotonic()
            sys.stdout.write(json.dumps(asdict(progress)) + "\n")
            sys.stdout.flush()

    return download(repo, report)


def _with_lines(repo: HubRepo) -> Path:
    out, last = console(stderr=True), [-LINE_SECONDS]

    def report(progress: Progress) -> None:
        if progress.file and time.monotonic() - last[0] >= LINE_SECONDS:
            last[0] = time.monotonic()
            out.print(
                f"{escape(progress.file)}: {gib(progress.done)} of {gib(progress.total)} in all"
            )

    return download(repo, report)
