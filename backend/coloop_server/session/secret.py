"""The server's token: the one that was set, or one of its own, made at the first start.

On a machine with several users an open port on the loopback address is open to all of them, and the
API runs code. So there is always a token; its file can be read by the user alone.
"""

import secrets
from pathlib import Path

from coloop_server.private import read_or_write
from coloop_server.settings import Settings

TOKEN_FILE = "token"
TOKEN_BYTES = 24


def token_file(data_dir: Path) -> Path:
    return data_dir / TOKEN_FILE


def own_secret(settings: Settings) -> str:
    """COLOOP_TOKEN, or what the data folder keeps."""
    if settings.secret is not None:
        return settings.secret
    return read_or_write(token_file(settings.data_dir), secrets.token_urlsafe(TOKEN_BYTES))
