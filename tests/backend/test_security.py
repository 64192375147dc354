"""Who may talk to the server."""

import hashlib
import hmac
import http.client
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient
from tests.backend.postgres import ON_POSTGRES
from tests.backend.servers import LAST_RESORT_SECONDS
from tests.backend.signed_in import ADDRESS, signed_in, ticket_of
from tests.forked import run

from coloop_server.app import create_app
from coloop_server.session.tickets import LIFETIME_SECONDS, TicketOffice
from coloop_server.settings import Settings

TOKEN = "a long secret of ours"


@pytest.fixture
def guarded(settings: Settings) -> Iterator[TestClient]:
    """A server with a token."""
    settings = settings.model_copy(update={"token": SecretStr(TOKEN)})
    with TestClient(create_app(settings), base_url=ADDRESS, follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", "", "[::1", "10.0.0.1"]
)
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/health", headers={"Host": host})

    assert answer.status_code == 403
    assert answer.json()["code"] == "host.not_allowed"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8321", "LOCALHOST:80", "[::1]:8321"])
def test_names_of_this_machine_are_hosts(client: TestClient, host: str) -> None:
    assert client.get("/api/health", headers={"Host": host}).status_code == 200


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "null", "http://127.0.0.1:9999"),
        *("http://127.0.0.1:8321.evil.example", "http://[", "http://a[b]c", "//[", "", "http://"),
        *("http://127.0.0.1:a", "http://127.0.0.1:99999", "http://evil.example@127.0.0.1:8321"),
    ],
)
def test_a_foreign_origin_changes_nothing(client: TestClient, loop: str, origin: str) -> None:
    answer = client.post("/api/loops", json={"yaml": loop}, headers={"Origin": origin})

    assert answer.status_code == 403
    assert answer.json()["code"] == "origin.not_allowed"
    assert client.get("/api/loops").json() == []


def test_the_own_page_and_programs_without_an_origin_may_act(client: TestClient, loop: str) -> None:
    own = client.post("/api/loops", json={"yaml": loop}, headers={"Origin": ADDRESS})
    program = client.post("/api/loops", json={"yaml": loop})
    hidden = client.post(
        "/api/loops", json={"yaml": loop}, headers={"Sec-Fetch-Site": "cross-site"}
    )

    assert (own.status_code, program.status_code, hidden.status_code) == (201, 201, 403)


def test_a_named_origin_may_act(settings: Settings, loop: str) -> None:
    settings = settings.model_copy(update={"allowed_origins": ("http://localhost:5173",)})
    with signed_in(settings) as client:
        answer = client.post(
            "/api/loops", json={"yaml": loop}, headers={"Origin": "http://localhost:5173"}
        )

    assert answer.status_code == 201
    assert "access-control-allow-origin" not in answer.headers


def test_with_a_token_the_api_is_closed_and_the_page_is_open(guarded: TestClient) -> None:
    assert guarded.get("/api/loops").status_code == 401
    assert guarded.get("/api/loops").json()["code"] == "session.token_needed"
    assert guarded.get("/api/openapi.json").status_code == 401
    assert guarded.get("/api/docs/").status_code == 401
    assert guarded.get("/api/docs").status_code == 200
    assert guarded.get("/api/health").status_code == 200
    assert guarded.get("/").status_code in (200, 503)


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer   {TOKEN}"])
def test_a_program_sends_the_token_as_a_header(guarded: TestClient, header: str) -> None:
    assert guarded.get("/api/loops", headers={"Authorization": header}).status_code == 200


@pytest.mark.sample(1)
@pytest.mark.parametrize("header", ["Bearer wrong", TOKEN, "Bearer ", "Basic abc", "Bearer é"])
def test_another_token_is_refused(guarded: TestClient, header: str) -> None:
    raw = header.encode("latin-1")

    assert guarded.get("/api/loops", headers={"Authorization": raw}).status_code == 401


def test_signing_in_gives_a_ticket_that_is_not_the_token(guarded: TestClient) -> None:
    wrong = guarded.post("/api/session", json={"token": "guess"})
    right = guarded.post("/api/session", json={"token": TOKEN})

    assert wrong.status_code == 401
    assert wrong.json()["code"] == "session.wrong_token"
    assert right.status_code == 200
    assert TOKEN not in right.text
    bearer = {"Authorization": f"Bearer {right.json()['ticket']}"}
    assert guarded.get("/api/loops").status_code == 401
    assert guarded.get("/api/loops", headers=bearer).status_code == 200
    state = guarded.get("/api/session", headers=bearer).json()
    assert state == {"token_needed": True, "signed_in": True}
    guarded.delete("/api/session", headers=bearer)
    assert guarded.get("/api/loops", headers=bearer).status_code == 401


@pytest.mark.parametrize("path", ["/", "/api/session", "/api/loops", f"/?token={TOKEN}"])
def test_no_answer_sets_a_cookie_and_no_cookie_signs_in(guarded: TestClient, path: str) -> None:
    ticket = ticket_of(guarded, TOKEN)
    signed_in = guarded.get(path)
    del guarded.headers["Authorization"]
    names = ("coloop_session", "coloop_session_8321", "ticket", "Authorization")
    cookie = "; ".join(f"{name}={value}" for name in names for value in (ticket, TOKEN))

    assert "set-cookie" not in signed_in.headers
    answer = guarded.get("/api/loops", headers={"Cookie": cookie})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_the_value_of_a_cookie_that_was_signed_earlier_is_no_ticket(guarded: TestClient) -> None:
    text = f"{int(time.time()) + 1000}.{'0' * 32}"
    message = f"coloop ticket {text}".encode()
    signature = hmac.new(TOKEN.encode(), message, hashlib.sha256).hexdigest()
    bearer = {"Authorization": f"Bearer {text}.{signature}"}

    assert guarded.get("/api/loops", headers=bearer).status_code == 401


def test_a_token_in_the_query_becomes_a_pass_behind_the_hash(guarded: TestClient) -> None:
    answer = guarded.get(f"/runs/7?tab=log&token={TOKEN}")
    place, _, given = answer.headers["location"].partition("#token=")

    assert answer.status_code == 303
    assert place == "/runs/7?tab=log"
    assert TOKEN not in str(answer.headers)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert guarded.get("/api/loops").status_code == 401
    assert guarded.post("/api/session", json={"token": given}).status_code == 200
    assert guarded.post("/api/session", json={"token": given}).status_code == 401


def test_a_wrong_token_in_the_address_signs_nobody_in(guarded: TestClient) -> None:
    answer = guarded.get(f"{ADDRESS}//evil.example/?token=guess")

    assert answer.headers["location"] == "/evil.example/"
    assert guarded.get("/api/loops").status_code == 401


NO_PAGE = (
    *("/api/runs/..%2f..", "/api/runs/%2e%2e/%2e%2e", "/api/..", "/api/%2e%2e%2f", "/api/."),
    *("/api//runs", "/api/runs//", "/api/none", "/api/runs/..%5c..", "/api%2f..%2f..", "/api/"),
    *("/api/../api/none", "/.%2fapi/none", "/loops%2f..%2fapi/none", "/%2e%2e/api/runs", "/api"),
    *("/%2e%2e%2f..%2fapi", "/loops/%2e%2e/", "/%5capi%5cnone", "/x%2f..%2f..%2f..", "/api%5cx"),
    *("/api/%00", "/loops/%00", "/../../etc/passwd", "//api/runs", "///api//none"),
)


@pytest.mark.attack
def test_addresses_that_are_no_page_are_not_answered_by_it(
    start_server: Callable[..., Any],
) -> None:
    server = start_server()
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    found = {}
    for path in NO_PAGE:
        connection.request("GET", path, headers=server.headers)
        answer = connection.getresponse()
        code = json.loads(answer.read())["code"]
        found[path] = (answer.status, answer.headers["content-type"], code.endswith(".not_found"))
    connection.close()

    assert found == dict.fromkeys(NO_PAGE, (404, "application/json", True))


@pytest.mark.parametrize("path", ["/", "/loops", "/runs/a.b", "/loops/x%20y", "/apiary"])
def test_addresses_of_the_page_are_answered_by_it(client: TestClient, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code in (200, 503)
    assert answer.headers["content-type"].startswith("text/html")


def test_tickets_run_out_and_cannot_be_made_up() -> None:
    office = TicketOffice(TOKEN)
    ticket = office.issue(now=1000)

    assert office.is_valid(ticket, now=1000 + LIFETIME_SECONDS - 1)
    assert not office.is_valid(ticket, now=1000 + LIFETIME_SECONDS)
    expires, _, signature = ticket.partition(".")
    assert not office.is_valid(f"{int(expires) + 1}.{signature}", now=1000)
    assert not TicketOffice("another").is_valid(ticket, now=1000)
    for made_up in ("", ".", "abc", "9" * 40 + ".", f"{expires}.é"):
        assert not office.is_valid(made_up, now=1000)


def test_answers_hold_the_browser_to_our_own_files(client: TestClient) -> None:
    headers = client.get("/").headers

    assert "default-src 'self'" in headers["content-security-policy"]
    assert "script-src 'self';" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert client.get("/api/health").headers["cache-control"] == "no-store"
    assert "content-security-policy" in client.get("/api/none").headers


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../../secret.jsonl", "~/secret.jsonl", "link/secret.jsonl"]
)
def test_a_spec_over_http_names_files_inside_the_roots_only(
    client: TestClient, settings: Settings, loop: str, path: str, tmp_path: Path
) -> None:
    root = settings.allowed_roots[0]
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    source = f"{{type: file, path: {path}, format: jsonl}}"
    yaml = loop.replace("{type: task, task: arithmetic, split: train}", source)

    answer = client.post("/api/runs", json={"yaml": yaml})

    assert answer.status_code in (403, 422)
    assert client.get("/api/runs").json() == []


def test_other_addresses_are_refused_without_a_token(server_environment: dict[str, str]) -> None:
    command = ("-m", "coloop_server", "--no-browser", "--port", "0", "--host", "0.0.0.0")

    ended = run(*command, env=server_environment, timeout=LAST_RESORT_SECONDS)

    assert ended.returncode != 0
    assert "COLOOP_TOKEN" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.mark.slow
def test_other_addresses_are_served_with_a_token(start_server: Callable[..., Any]) -> None:
    server = start_server("--host", "0.0.0.0", COLOOP_TOKEN=TOKEN)

    with httpx.Client(base_url=server.url, trust_env=False) as http:
        assert http.get("/api/runs").status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert http.get("/api/runs", headers=headers).json() == []
        assert http.get("/api/health", headers={"Host": "evil.example"}).status_code == 403


def test_secrets_do_not_reach_the_drivers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from coloop_server.processes import child_environment

    monkeypatch.setenv("COLOOP_TOKEN", TOKEN)
    monkeypatch.setenv("COLOOP_DATABASE_URL", "postgresql://u:p@h/d")

    assert TOKEN not in child_environment().values()
    assert not {"COLOOP_TOKEN", "COLOOP_DATABASE_URL"} & set(child_environment())
    assert TOKEN not in repr(Settings(token=SecretStr(TOKEN)))


def test_a_server_without_a_set_token_makes_one_that_only_its_user_reads(
    settings: Settings,
) -> None:
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        refused = client.post("/api/previews/scores", json={})
        opened = client.get("/api/session").json()
    token = (settings.data_dir / "token").read_text()
    with TestClient(create_app(settings), base_url=ADDRESS) as again:
        signed_in = again.get("/api/loops", headers={"Authorization": f"Bearer {token}"})

    assert refused.status_code == 401
    assert opened == {"token_needed": True, "signed_in": False}
    assert len(token) >= 32
    assert signed_in.status_code == 200


def test_the_data_folder_is_closed_to_other_users(settings: Settings) -> None:
    settings.data_dir.mkdir(mode=0o755)
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        client.get("/api/health")
        modes = {path.name: path.stat().st_mode & 0o777 for path in settings.data_dir.iterdir()}
        folder = settings.data_dir.stat().st_mode & 0o777

    assert folder == 0o700
    database = () if ON_POSTGRES else ("coloop.db", "coloop.db-wal")
    assert {"token", "server.lock", *database} <= set(modes)
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}


def test_the_printed_address_has_the_token_behind_the_hash(
    start_server: Callable[..., Any],
) -> None:
    server = start_server()
    with httpx.Client(base_url=server.url, trust_env=False) as browser:
        assert browser.get("/api/loops").status_code == 401
        given = browser.post("/api/session", json={"token": server.token}).json()["ticket"]
        headers = {"Authorization": f"Bearer {given}"}

        assert browser.get("/api/loops", headers=headers).status_code == 200
        assert list(browser.cookies) == []


def test_a_pass_is_good_for_one_look() -> None:
    office = TicketOffice(TOKEN)
    made = office.new_pass()

    assert not office.is_token(made)
    assert not office.take("guess")
    assert office.take(made)
    assert not office.take(made)
    assert office.take(TOKEN)
    assert office.take(TOKEN)
