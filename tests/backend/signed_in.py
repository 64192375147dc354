"""A client of the application in this process that brings the server's token, as a program does."""

from starlette.testclient import TestClient

from coloop_server.app import create_app
from coloop_server.private import ensure_private_folder
from coloop_server.session.secret import own_secret
from coloop_server.settings import Settings

ADDRESS = "http://127.0.0.1:8321"


def bearer(settings: Settings) -> dict[str, str]:
    """The header of a program that knows the token."""
    ensure_private_folder(settings.data_dir)
    return {"Authorization": f"Bearer {own_secret(settings)}"}


def signed_in(settings: Settings) -> TestClient:
    return TestClient(create_app(settings), base_url=ADDRESS, headers=bearer(settings))
