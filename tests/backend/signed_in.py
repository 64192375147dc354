"""Clients of the application in this process: programs bring the server's token, pages a ticket."""

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


def ticket_of(browser: TestClient, token: str) -> str:
    """The ticket that a page is given for the token; it is sent with every further request."""
    answer = browser.post("/api/session", json={"token": token})
    ticket: str = answer.raise_for_status().json()["ticket"]
    browser.headers["Authorization"] = f"Bearer {ticket}"
    return ticket
