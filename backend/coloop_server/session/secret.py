"""The server's token: the one that was set, or one of its own, made at the first start.

On a machine with several users an open port on the loopback address is open to all of them, and the
API runs code. So there is always a token; its file can be read by the user alone.
"""

import secrets
from pathlib import Path

from coloop_server.errors import Unavailable
from coloop_server.private import read_or_write
from coloop_server.settings import MIN_TOKEN, Settings

TOKEN_FILE = "token"
TOKEN_BYTES = 24


def token_file(data_dir: Path) -> Path:
    return data_dir / TOKEN_FILE


def own_secret(settings: Settings) -> str:
    """COLOOP_TOKEN, or what the data folder keeps."""
    if settings.secret is not None:
        return settings.secret
    file = token_file(settings.data_dir)
    secret = read_or_write(file, secrets.token_urlsafe(TOKEN_BYTES))
    if len(secret) < MIN_TOKEN:
        raise Unavailable(
            "session.short_token",
            f"the token in {file} has {len(secret)} characters, at least {MIN_TOKEN} are needed; "
            "remove the file, and the server makes a new one",
        )
    return secret
