"""Settings that are secrets, read from files: `coloop_token` in COLOOP_SECRETS_DIR is COLOOP_TOKEN.

A process's environment is shown to every other process of its user, and is handed on; files are
neither. What is read here is set in this process alone, after it has begun: the system still shows
the environment that it began with, and the server hands no secret on to what it starts.
"""

import os
from pathlib import Path
from typing import Final

from coloop.errors import SettingInvalid

SETTING: Final = "COLOOP_SECRETS_DIR"
PREFIX: Final = "coloop_"


def take_secrets() -> None:
    """Set what stands in files named `coloop_*`; what the environment says itself goes first."""
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
    except ValueError:  # it would tell what stands there
        raise SettingInvalid(f"{SETTING}={named!r}: {file.name} is no plain text") from None


def _text_of(file: Path) -> str:
    text = file.read_text(encoding="utf-8").strip()
    if not text.isprintable():
        raise ValueError
    return text
