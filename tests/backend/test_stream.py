"""The live stream over real sockets: replay, live events, gauges, the end, slow clients."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.backend.servers import Server, environment_of, servers, settings_in
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

LoopThat = Callable[[str], str]
StartServer = Callable[..., Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests that want nothing special of it."""
    with servers(environment_of(settings_in(tmp_path_factory.mktemp("server")))) as start:
        yield start()


def open_stream(server: Any, run_id: str, after: int = 0, **options: Any) -> ClientConnection:
    address = f"{server.url.replace('http', 'ws')}/api/runs/{run_id}/stream?after={after}"
    options.setdefault("additional_headers", server.headers)
    return connect(address, proxy=None, **options)


def messages(stream: ClientConnection) -> Iterator[dict[str, Any]]:
    """Everything until the server closes."""
    try:
        while True:
            yield json.loads(stream.recv(timeout=60))
    except ConnectionClosed:
        return


def seqs(received: list[dict[str, Any]]) -> list[int]:
    return [
        event["seq"]
        for message in received
        if message["kind"] == "events"
        for event in message["events"]
    ]


def new_run(server: Any, yaml: str) -> str:
    with server.http as http:
        answer = http.post("/api/runs", json={"yaml": yaml})
        assert answer.status_code == 201, answer.text
        run_id: str = answer.json()["id"]
        return run_id


@pytest.mark.slow
def test_a_client_gets_hello_all_events_gauges_and_the_end(
    server: Server, loop_that: LoopThat
) -> None:
    run_id = new_run(server, loop_that("steps=4 seconds=0.1"))

    with open_stream(server, run_id) as stream:
        received = list(messages(stream))

    kinds = [message["kind"] for message in received]
    assert kinds[0] == "hello"
    assert kinds[-1] == "end"
    assert received[-1]["run"]["state"] == "finished"
    assert seqs(received) == list(range(1, len(seqs(received)) + 1))
    gauges = [message["gauges"] for message in received if message["kind"] == "gauges"]
    assert gauges[-1]["state"] == "finished"
    assert gauges[-1]["step"] == 4
    assert stream.close_code == 1000


@pytest.mark.slow
def test_a_client_is_told_what_a_run_waits_for(server: Server, loop_that: LoopThat) -> None:
    first = new_run(server, loop_that("steps=1 hold=1"))
    second = new_run(server, loop_that("steps=1"))

    with open_stream(server, second) as stream:
        received = list(messages(stream))
    with server.http as http:
        assert http.get(f"/api/runs/{first}").json()["state"] == "finished"

    told = [m["run"] for m in received if m["kind"] == "hello"]
    assert told[0]["state"] == "queued"
    assert any(run["message"] == "its process is loading the engine" for run in told)
    assert received[-1]["run"]["message"] is None


def test_a_client_that_comes_back_gets_what_it_missed_and_nothing_twice(
    server: Server, loop_that: LoopThat
) -> None:
    run_id = new_run(server, loop_that("steps=6 seconds=0.1"))
    seen: list[int] = []
    with open_stream(server, run_id) as stream:
        for message in messages(stream):
            seen += seqs([message])
            if len(seen) >= 5:
                break

    with open_stream(server, run_id, after=seen[-1]) as stream:
        rest = seqs(list(messages(stream)))

    assert rest[0] == seen[-1] + 1
    assert seen + rest == list(range(1, rest[-1] + 1))


def test_the_stream_of_an_ended_run_is_its_replay(server: Server, loop_that: LoopThat) -> None:
    run_id = new_run(server, loop_that("steps=2 flood=800"))
    with open_stream(server, run_id) as stream:
        live = seqs(list(messages(stream)))

    with open_stream(server, run_id) as stream:
        replayed = seqs(list(messages(stream)))
    with open_stream(server, run_id, after=live[-1]) as stream:
        nothing = list(messages(stream))

    assert replayed == live
    assert len(live) > 1600
    assert [message["kind"] for message in nothing] == ["hello", "gauges", "end"]


def test_gauges_are_sent_at_most_four_times_a_second(server: Server, loop_that: LoopThat) -> None:
    run_id = new_run(server, loop_that("steps=1 hold=2"))

    began = time.monotonic()
    with open_stream(server, run_id) as stream:
        count = sum(message["kind"] == "gauges" for message in messages(stream))

    assert 2 <= count <= 4 * (time.monotonic() - began) + 2


def wait_for_line(server: Any, words: str) -> None:
    while (line := server.lines.get(timeout=60)) and words not in line:
        pass
    assert words in line


@pytest.mark.slow
def test_a_slow_client_is_cut_off_and_others_are_not_held_up(
    start_server: StartServer, loop_that: LoopThat
) -> None:
    server = start_server(COLOOP_SEND_SECONDS="2")
    run_id = new_run(server, loop_that("steps=3 seconds=0.2 flood=6000"))
    slow_socket = socket.socket()
    slow_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = server.url.removeprefix("http://").split(":")
    slow_socket.connect((host, int(port)))
    with open_stream(server, run_id, sock=slow_socket, max_queue=1, ping_interval=None) as slow:
        slow.recv(timeout=60)  # hello; nothing is taken after that
        with open_stream(server, run_id) as quick:
            received = list(messages(quick))
        everything = seqs(received)
        assert received[-1]["kind"] == "end"
        assert len(everything) > 18000, received[-1]
        wait_for_line(server, "took nothing")
        late = seqs(list(messages(slow)))

        assert slow.close_code == 4008
    with open_stream(server, run_id, after=late[-1] if late else 0) as again:
        assert late + seqs(list(messages(again))) == everything


def test_a_foreign_page_cannot_open_the_stream(server: Server, loop_that: LoopThat) -> None:
    run_id = new_run(server, loop_that("steps=1"))

    with pytest.raises(InvalidStatus) as refused:
        open_stream(server, run_id, origin="http://evil.example")

    assert refused.value.response.status_code == 403
    with open_stream(server, run_id, origin=server.url) as stream:
        assert json.loads(stream.recv(timeout=30))["kind"] == "hello"


@pytest.mark.slow
def test_the_stream_asks_for_the_token(start_server: StartServer, loop_that: LoopThat) -> None:
    server = start_server(COLOOP_TOKEN="a long secret of ours")
    bearer = {"Authorization": "Bearer a long secret of ours"}
    with server.http as http:
        answer = http.post("/api/runs", json={"yaml": loop_that("steps=1")}, headers=bearer)
    run_id = answer.json()["id"]

    with pytest.raises(InvalidStatus):
        open_stream(server, run_id, additional_headers={})
    with open_stream(server, run_id, additional_headers=bearer) as stream:
        assert json.loads(stream.recv(timeout=30))["kind"] == "hello"


def test_a_run_that_does_not_exist_closes_with_its_own_code(server: Server) -> None:
    with open_stream(server, "none") as stream:
        assert list(messages(stream)) == []

    assert stream.close_code == 4404
