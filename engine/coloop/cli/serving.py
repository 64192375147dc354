"""`coloop serve`: start the server package."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from coloop.cli.output import complain
from coloop.errors import SettingInvalid
from coloop.workers import collecting

MISSING = 1


def serve_command(
    *, host: str, port: int, open_browser: bool, data: Path | None, allow_remote_code: bool
) -> int:
    """Start the composer and return when it ends."""
    for module in ("fastapi", "uvicorn", "sqlalchemy", "coloop_server"):
        if find_spec(module) is None:
            complain(f"the server needs `{module}`: pip install 'coloop[server]'")
            return MISSING

    with collecting.not_while_loading():
        from coloop_server.cli import serve

    take_secrets()
    serve(
        host=host,
        port=port,
        open_browser=open_browser,
        data_dir=data,
        allow_remote_code=allow_remote_code or None,
    )
    return 0


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
