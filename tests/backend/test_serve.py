"""Starting the server: ports, folders, the page, and what is said when something is wrong."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.backend.servers import LAST_RESORT_SECONDS
from tests.backend.signed_in import signed_in
from tests.forked import run

from coloop_server.cli import read_settings
from coloop_server.settings import Settings

StartServer = Callable[..., Any]


def serve_and_fail(environment: dict[str, str], *options: str) -> str:
    command = ("-m", "coloop_server", "--no-browser", *options)
    ended = run(*command, env=environment, timeout=LAST_RESORT_SECONDS)
    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_a_port_in_use_is_named_together_with_a_free_one(
    server_environment: dict[str, str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        said = serve_and_fail(server_environment, "--port", str(port))

    assert f"port {port}" in said
    assert "in use" in said
    free = int(said.rsplit("--port", 1)[1])
    with socket.create_server(("127.0.0.1", free)):
        pass


@pytest.mark.slow
def test_two_servers_do_not_share_a_data_folder(
    start_server: StartServer, server_environment: dict[str, str], settings: Settings
) -> None:
    start_server()

    said = serve_and_fail(server_environment, "--port", "0")

    assert "another coloop server" in said
    assert str(settings.data_dir) in said


def test_a_database_that_cannot_be_opened_is_said_in_one_line(
    server_environment: dict[str, str],
) -> None:
    environment = {**server_environment, "COLOOP_DATABASE_URL": "sqlite:////nowhere/at/all.db"}

    said = serve_and_fail(environment, "--port", "0")

    assert "/nowhere/at/all.db" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [("COLOOP_PORT", "high"), ("COLOOP_LAUNCHER", "rocket"), ("COLOOP_MAX_RUNNING", "0")],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(SystemExit, match=f"^error: {name}: "):
        read_settings()


def test_a_wrong_setting_ends_the_start(server_environment: dict[str, str]) -> None:
    said = serve_and_fail({**server_environment, "COLOOP_PORT": "high"})

    assert said.startswith("error: COLOOP_PORT: ")


def test_the_address_is_printed_and_the_server_ends_in_good_order(
    start_server: StartServer,
) -> None:
    server = start_server()
    with server.http as http:
        assert http.get("/api/health").json()["ok"] is True

    assert server.stop() == 0


def test_folders_follow_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    default, moved = Settings(), Settings(data_dir=tmp_path / "elsewhere")

    assert default.data_dir == tmp_path / ".coloop"
    assert default.runs_dir == tmp_path / "runs"
    assert moved.runs_dir == tmp_path / "elsewhere" / "runs"
    assert default.allowed_roots[0] == tmp_path
    assert moved.allowed_roots[0] == tmp_path / "elsewhere" / "files"
    assert default.database == f"sqlite:///{tmp_path}/.coloop/coloop.db"

    monkeypatch.chdir("/")
    named = Settings(data_dir=default.data_dir)
    assert (named.data_dir, named.allowed_roots[0]) == (default.data_dir, tmp_path)
    assert named.runs_dir == default.runs_dir


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A built page: one HTML, one hashed script, one picture."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>coloop</title>" + "x" * 2000)
    (folder / "assets" / "index-4f2a.js").write_text("export {}")
    (folder / "favicon.svg").write_text("<svg/>")
    return folder


def test_the_page_is_served_with_a_fallback_and_caching(settings: Settings, page: Path) -> None:
    settings = settings.model_copy(update={"static_dir": page})
    with signed_in(settings) as client:
        root, deep = client.get("/"), client.get("/runs/some-run")
        dotted = [client.get(f"/runs/{name}") for name in ("a.b", "2026-01-02.svg", "assets")]
        script, icon = client.get("/assets/index-4f2a.js"), client.get("/favicon.svg")
        missing = client.get("/assets/none.js")
        known = client.get("/", headers={"If-None-Match": root.headers["etag"]})

    assert root.text == deep.text
    assert [(answer.status_code, answer.text) for answer in dotted] == [(200, root.text)] * 3
    assert "coloop" in root.text
    assert root.headers["content-encoding"] == "gzip"
    assert root.headers["cache-control"] == "no-cache"
    assert "immutable" in script.headers["cache-control"]
    assert icon.headers["cache-control"] == "no-cache"
    assert missing.status_code == 404
    assert known.status_code == 304


@pytest.mark.parametrize("path", ["/../conftest.py", "/%2e%2e/secret.txt", "/..%2fsecret.txt"])
def test_no_path_leads_out_of_the_page(settings: Settings, page: Path, path: str) -> None:
    (page.parent / "secret.txt").write_text("secret")
    settings = settings.model_copy(update={"static_dir": page})
    with signed_in(settings) as client:
        answer = client.get(path)

    assert "secret" not in answer.text


def test_a_page_that_is_not_built_says_how_to_build_it(settings: Settings, tmp_path: Path) -> None:
    settings = settings.model_copy(update={"static_dir": tmp_path / "none"})
    with signed_in(settings) as client:
        answer = client.get("/")
        unknown = client.get("/api/nothing")
        wrong = client.post("/api/health")

    assert answer.status_code == 503
    assert "make run" in answer.text
    assert unknown.json() == {
        "code": "http.not_found",
        "message": "there is no such route",
        "detail": None,
    }
    assert wrong.json()["code"] == "http.method_not_allowed"
