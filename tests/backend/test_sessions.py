"""Signing out, guessing, and files of the server that other users cannot read."""

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.backend.postgres import ON_POSTGRES
from tests.backend.servers import LAST_RESORT_SECONDS
from tests.backend.signed_in import ADDRESS, signed_in, ticket_of
from tests.forked import run

from coloop_server.app import create_app
from coloop_server.cli import read_settings
from coloop_server.private import read_or_write
from coloop_server.runs.stream import SIGNED_OUT
from coloop_server.session import throttle
from coloop_server.session.tickets import TicketOffice, own_secret
from coloop_server.session.visitors import PROTOCOL
from coloop_server.settings import Settings

RunUntil = Callable[..., dict[str, Any]]


@pytest.fixture
def guarded(settings: Settings) -> Iterator[TestClient]:
    """A browser that is not signed in."""
    with TestClient(create_app(settings), base_url=ADDRESS, follow_redirects=False) as browser:
        yield browser


# Signing out


def test_a_ticket_is_void_when_its_browser_has_signed_out(
    guarded: TestClient, settings: Settings
) -> None:
    ticket_of(guarded, own_secret(settings))
    assert guarded.get("/api/loops").status_code == 200

    guarded.delete("/api/session")

    assert guarded.get("/api/loops").status_code == 401


def test_a_ticket_stays_void_after_a_restart_and_others_stay_good(settings: Settings) -> None:
    with signed_in(settings):
        pass
    file = settings.data_dir / "signed-out"
    office = TicketOffice("secret of the server", file)
    left, kept = office.issue(), office.issue()

    office.revoke(left)
    office.revoke("9999999999.forged.ticket")

    again = TicketOffice("secret of the server", file)
    assert (again.is_valid(left), again.is_valid(kept)) == (False, True)
    assert len(file.read_text().splitlines()) == 1
    assert not TicketOffice("another secret", file).is_valid(kept)


def test_a_live_stream_ends_when_its_browser_signs_out(
    guarded: TestClient,
    settings: Settings,
    loop_that: Callable[[str], str],
    eventually: Callable[..., Any],
) -> None:
    ticket = ticket_of(guarded, own_secret(settings))
    answer = guarded.post("/api/runs", json={"yaml": loop_that("steps=1 hold=60")})
    run_id = answer.json()["id"]
    eventually(lambda: guarded.get(f"/api/runs/{run_id}").json()["state"] == "running")

    bearer = {"Authorization": guarded.headers.pop("Authorization")}
    address = f"{ADDRESS.replace('http', 'ws')}/api/runs/{run_id}/stream"
    offered = [PROTOCOL, f"ticket.{ticket}"]
    with guarded.websocket_connect(address, subprotocols=offered) as stream:
        assert stream.accepted_subprotocol == PROTOCOL
        assert stream.receive_json()["kind"] == "hello"
        guarded.delete("/api/session", headers=bearer)
        with pytest.raises(WebSocketDisconnect) as ended:
            read_to_the_end(stream)

    assert ended.value.code == SIGNED_OUT


def read_to_the_end(stream: Any) -> None:
    while True:
        stream.receive_json()


# Guessing


def test_wrong_tokens_are_slowed_and_the_owner_is_not(
    guarded: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "WAIT_SECONDS", 1.0)
    monkeypatch.setattr(throttle, "MAX_WAITING", 2)
    token = own_secret(settings)
    bearer = {"Authorization": "Bearer wrong"}

    def guess(number: int) -> int:
        if number % 2:
            return guarded.post("/api/session", json={"token": f"guess {number}"}).status_code
        return guarded.get("/api/loops", headers=bearer).status_code

    assert [guess(number) for number in range(throttle.FREE)] == [401] * throttle.FREE
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(guess, range(12)))
    by_header = guarded.get("/api/loops", headers={"Authorization": f"Bearer {token}"})
    signed = guarded.post("/api/session", json={"token": token})

    assert set(answers) == {401, 429}
    assert answers.count(401) <= 4
    assert (by_header.status_code, signed.status_code) == (200, 200)
    by_ticket = {"Authorization": f"Bearer {signed.json()['ticket']}"}
    assert guarded.get("/api/session", headers=by_ticket).json()["signed_in"] is True


def test_guesses_of_one_address_do_not_slow_another() -> None:
    found = throttle.Throttle()

    for _ in range(throttle.FREE + 1):
        is_over = found.is_over("10.0.0.1", now=1.0)

    assert is_over
    assert not found.is_over("10.0.0.2", now=1.0)
    assert not found.is_over("10.0.0.1", now=1000.0)
    for number in range(3 * throttle.MAX_ADDRESSES):
        is_over = found.is_over(str(number), now=1000.0)
    assert is_over
    assert len(found.addresses) <= throttle.MAX_ADDRESSES


@pytest.mark.parametrize("token", ["x", "fifteen letters", " short "])
def test_a_short_token_is_refused(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("COLOOP_TOKEN", token)

    with pytest.raises(SystemExit, match=r"COLOOP_TOKEN: .*at least 16"):
        read_settings()


def test_a_short_token_is_refused_at_the_start(server_environment: dict[str, str]) -> None:
    command = ("-m", "coloop_server", "--no-browser", "--port", "0")

    short = {**server_environment, "COLOOP_TOKEN": "fifteen letters"}
    ended = run(*command, env=short, timeout=LAST_RESORT_SECONDS)

    assert ended.returncode != 0
    assert "COLOOP_TOKEN" in ended.stderr
    assert "at least 16" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_empty_token_file_lets_nobody_in(settings: Settings) -> None:
    settings.data_dir.mkdir(parents=True)
    (settings.data_dir / "token").write_text("")

    with TestClient(create_app(settings), base_url=ADDRESS) as browser:
        assert browser.post("/api/session", json={"token": ""}).status_code == 401
        assert browser.get("/api/loops", headers={"Authorization": "Bearer "}).status_code == 401

    assert len(own_secret(settings)) >= 16
    assert read_or_write(settings.data_dir / "token", "other") == own_secret(settings)


# Files


@pytest.mark.slow
def test_no_other_user_reads_what_the_server_writes(
    start_server: Callable[..., Any],
    settings: Settings,
    loop: str,
    eventually: Callable[..., Any],
) -> None:
    before = os.umask(0o000)
    try:
        server = start_server()
    finally:
        os.umask(before)
    with server.http as http:
        run_id = http.post("/api/runs", json={"yaml": loop}).json()["id"]
        eventually(lambda: http.get(f"/api/runs/{run_id}").json()["state"] == "finished")

    written = [
        path
        for top in (settings.data_dir, settings.runs_dir)
        for path in (top, *top.rglob("*"))
        if not path.is_symlink()
    ]
    names = {path.name for path in written}
    database = () if ON_POSTGRES else ("coloop.db",)
    assert {"token", f"{run_id}.log", f"{run_id}.yaml", "events.jsonl", *database} <= names
    open_ones = [path for path in written if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert open_ones == []


# Python of a model's folder


@pytest.fixture
def foreign(loop: str) -> str:
    model = "{type: pretrained, path: some/model, trust_remote_code: true}"
    return loop.replace("{type: scratch, architecture: tiny-qwen3}", model)


def test_a_models_own_python_is_refused_over_http(
    client: TestClient, settings: Settings, foreign: str, loop: str, run_until: RunUntil
) -> None:
    ended = client.post("/api/runs", json={"yaml": loop}).json()["id"]
    run_until(ended, "finished")
    model = {"type": "pretrained", "path": "some/model", "trust_remote_code": True}
    by_field = {"nodes.actor.model": model}
    later = loop.replace(
        "schedule: {steps: 3}",
        "schedule: {phases: [{name: a, steps: 3, set: {nodes.actor.model: "
        + json.dumps(model)
        + "}}]}",
    )

    answers = [
        client.post("/api/runs", json={"yaml": foreign, "force": True}),
        client.post("/api/runs", json={"yaml": foreign, "trust": True}),
        client.post("/api/runs", json={"yaml": loop, "set": by_field}),
        client.post(f"/api/runs/{ended}/fork", json={"yaml": foreign}),
        client.post(f"/api/runs/{ended}/fork", json={"set": by_field}),
    ]
    checked = client.post("/api/check", json={"yaml": foreign}).json()

    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign.not_allowed")
        assert answer.json()["detail"]["node"] == "actor"
        assert answer.json()["detail"]["field"] == "model.trust_remote_code"
        assert "COLOOP_ALLOW_REMOTE_CODE" in answer.json()["message"]
    assert client.post("/api/runs", json={"yaml": later}).status_code in (403, 422)
    found = [
        one for one in checked["report"]["diagnostics"] if one["code"] == "foreign.not_allowed"
    ]
    assert [(one["node"], one["field"]) for one in found] == [("actor", "model.trust_remote_code")]


def test_where_it_is_allowed_each_start_asks(settings: Settings, foreign: str) -> None:
    allowing = settings.model_copy(update={"allow_remote_code": True})
    with signed_in(allowing) as client:
        asked = client.post("/api/runs", json={"yaml": foreign, "force": True})
        yes = {"yaml": foreign, "force": True, "trust": True}
        started = client.post("/api/runs", json=yes)

    assert (asked.status_code, asked.json()["code"]) == (409, "foreign.not_confirmed")
    assert started.json().get("code") not in ("foreign.not_allowed", "foreign.not_confirmed")


@pytest.mark.parametrize(
    "given", ["", ".", "..", "1.2.3", "9" * 5000 + ".a.b", "-1.a.b", "1..", "ticket.", "a" * 300]
)
def test_tickets_of_odd_shapes_open_nothing(guarded: TestClient, given: str) -> None:
    address = f"{ADDRESS.replace('http', 'ws')}/api/runs/none/stream"
    headers = {"Authorization": f"Bearer {given}"}

    assert guarded.get("/api/loops", headers=headers).status_code == 401
    for offered in ([PROTOCOL, f"ticket.{given}"], [PROTOCOL], [f"ticket.{given}"], ["ticket."]):
        with pytest.raises(WebSocketDisconnect), guarded.websocket_connect(address, offered):
            pass


def test_the_token_itself_is_no_protocol(guarded: TestClient, settings: Settings) -> None:
    """Names of protocols stand in logs of proxies; those of a page are void when it signs out."""
    address = f"{ADDRESS.replace('http', 'ws')}/api/runs/none/stream"
    offered = [PROTOCOL, f"ticket.{own_secret(settings)}"]

    with pytest.raises(WebSocketDisconnect), guarded.websocket_connect(address, offered):
        pass


def test_a_ticket_that_has_run_out_is_no_guess(guarded: TestClient, settings: Settings) -> None:
    ticket_of(guarded, own_secret(settings))
    guarded.delete("/api/session")

    answers = [guarded.get("/api/loops") for _ in range(throttle.FREE_OF_ALL + 2)]
    began = time.monotonic()
    last = guarded.get("/api/loops", headers={"Authorization": "Bearer guess"})

    assert {answer.status_code for answer in answers} == {401}
    assert last.status_code == 401
    assert time.monotonic() - began < throttle.WAIT_SECONDS


def test_the_token_is_never_left_half_written(tmp_path: Path) -> None:
    file = tmp_path / "token"

    first = read_or_write(file, "one")

    assert (first, read_or_write(file, "two")) == ("one", "one")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
