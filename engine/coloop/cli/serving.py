"""`coloop serve`, `coloop backup` and `coloop restore`: commands of the server package."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coloop.cli.output import complain, console, fail
from coloop.errors import SettingInvalid
from coloop.workers import collecting

if TYPE_CHECKING:
    from coloop_server.settings import Settings

FAILED = 1


def serve_command(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8321,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder for the database and runs.")
    ] = None,
    allow_remote_code: Annotated[
        bool,
        typer.Option(
            "--allow-remote-code",
            help="Let loops run Python from model folders, after confirmation.",
        ),
    ] = False,
) -> None:
    _need("the server", "fastapi", "uvicorn", "sqlalchemy", "coloop_server")
    with collecting.not_while_loading():
        from coloop_server.cli import serve

    take_secrets()
    serve(
        host=host,
        port=port,
        open_browser=not no_browser,
        data_dir=data,
        allow_remote_code=allow_remote_code or None,
    )


def _need(what: str, *modules: str) -> None:
    for module in modules:
        if find_spec(module) is None:
            fail(f"{what} needs `{module}`: pip install 'coloop[server]'", FAILED)


# Secret settings from files: `coloop_token` in COLOOP_SECRETS_DIR sets COLOOP_TOKEN.
#
# Other processes of the same user can read a process's environment, and child processes inherit
# it; neither is true of files. The secrets are set in this process only, after it has started:
# the system still shows the initial environment, and the server passes no secret to its child
# processes.

SETTING: Final = "COLOOP_SECRETS_DIR"
PREFIX: Final = "coloop_"


def take_secrets() -> None:
    """Set variables from files named `coloop_*`; variables that are already set win."""
    named = os.environ.get(SETTING, "").strip()
    if not named:
        return
    file = Path(named)
    try:
        for file in sorted(Path(named).iterdir()):
            if file.name.startswith(PREFIX):
                os.environ.setdefault(file.name.upper(), _text_of(file))
    except OSError as error:
        raise SettingInvalid(f"{SETTING}={named!r} cannot be read: {error}") from error
    except ValueError:  # its message would contain the secret
        raise SettingInvalid(f"{SETTING}={named!r}: {file.name} is not plain text") from None


def _text_of(file: Path) -> str:
    text = file.read_text(encoding="utf-8").strip()
    if not text.isprintable():
        raise ValueError
    return text


# `coloop backup` and `coloop restore`: loops and run records of a server, as one file.

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
    with _server_settings(data) as settings:
        from coloop_server.backups import make_backup

        rows = make_backup(settings, file).rows
        _say(f"written: {file} ({rows.get('loops', 0)} loops, {rows.get('runs', 0)} runs)")


def restore_command(
    file: Annotated[Path, typer.Argument(help="A file written by `coloop backup`.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing loops and run records.")
    ] = False,
    data: Data = None,
) -> None:
    """Restore the loops and run records of a backup. Stop the server first."""
    with _server_settings(data) as settings:
        from coloop_server.backups import restore_backup

        done = restore_backup(settings, file, force=force)
        rows = done.manifest.rows
        kept = f"; the previous data is kept in {done.kept}" if done.kept else ""
        _say(
            f"restored: {rows.get('loops', 0)} loops, {rows.get('runs', 0)} runs from "
            f"{done.manifest.made_at}{kept}"
        )


@contextmanager
def _server_settings(data: Path | None) -> "Iterator[Settings]":
    _need("this command", "fastapi", "sqlalchemy", "coloop_server")
    from coloop_server.cli import read_settings
    from coloop_server.errors import ServerError

    take_secrets()
    try:
        yield read_settings(data_dir=data)
    except ServerError as error:
        complain(str(error))
        raise typer.Exit(FAILED) from None


def _say(line: str) -> None:
    console().print(line, markup=False, soft_wrap=True)
