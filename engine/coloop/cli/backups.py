"""`coloop backup` and `coloop restore`: loops and run records of a server, as one file."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coloop.cli.output import complain, console

if TYPE_CHECKING:
    from coloop_server.settings import Settings

FAILED = 1

Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data folder of the server; defaults to COLOOP_DATA_DIR."),
]


def backup_command(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    data: Data = None,
) -> None:
    """Back up loops, their history and the run records to a file; the server may keep running.
    Run folders are not part of the backup."""

    def work(settings: "Settings") -> None:
        from coloop_server.backups.service import make_backup

        rows = make_backup(settings, file).rows
        console().print(
            f"written: {file} ({rows.get('loops', 0)} loops, {rows.get('runs', 0)} runs)",
            markup=False,
            soft_wrap=True,
        )

    _with_server(data, work)


def restore_command(
    file: Annotated[Path, typer.Argument(help="A file written by `coloop backup`.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing loops and run records.")
    ] = False,
    data: Data = None,
) -> None:
    """Restore the loops and run records of a backup. Stop the server first."""

    def work(settings: "Settings") -> None:
        from coloop_server.backups.service import restore_backup

        done = restore_backup(settings, file, force=force)
        rows = done.manifest.rows
        kept = f"; the previous data is kept in {done.kept}" if done.kept else ""
        console().print(
            f"restored: {rows.get('loops', 0)} loops, {rows.get('runs', 0)} runs from "
            f"{done.manifest.made_at}{kept}",
            markup=False,
            soft_wrap=True,
        )

    _with_server(data, work)


def _with_server(data: Path | None, work: Callable[["Settings"], None]) -> None:
    for module in ("fastapi", "sqlalchemy", "coloop_server"):
        if find_spec(module) is None:
            complain(f"this command needs `{module}`: pip install 'coloop[server]'")
            raise typer.Exit(FAILED)
    from coloop.cli.serving import take_secrets
    from coloop_server.cli import read_settings
    from coloop_server.errors import ServerError

    take_secrets()
    try:
        work(read_settings(data_dir=data))
    except ServerError as error:
        complain(str(error))
        raise typer.Exit(FAILED) from None
