"""What one request or one client may cost the server."""

import select
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

HUGE = 10**30
STALLED_REQUESTS = 400


def patched(client: TestClient, loop: str, changes: list[dict[str, Any]]) -> Any:
    return client.post("/api/spec/patch", json={"yaml": loop, "changes": changes})


@pytest.mark.parametrize("path", ["schedule.steps", "run.seed", "nodes.problems.rows_per_step"])
def test_an_integer_beyond_all_and_a_second_change_are_no_failure_of_the_server(
    client: TestClient, loop: str, path: str
) -> None:
    changes = [
        {"op": "set", "path": path, "value": HUGE},
        {"op": "set", "path": "description", "value": "changed after it"},
    ]

    answer = patched(client, loop, changes)

    assert answer.status_code in (200, 422), answer.text


@pytest.mark.slow
def test_many_changes_cost_no_more_each_than_a_few(client: TestClient, loop: str) -> None:
    def cost(count: int) -> float:
        changes = [
            {"op": "set", "path": f"notes.of_{number}", "value": "a note"}
            for number in range(count)
        ]
        began = time.process_time()
        assert patched(client, loop, changes).status_code in (200, 422)
        return time.process_time() - began

    cost(10)
    few, many = min(cost(100) for _ in range(3)), min(cost(1000) for _ in range(2))

    assert many < 40 * few, (few, many)


@pytest.mark.slow
def test_a_client_that_reads_nothing_of_its_answers_is_cut(
    start_server: Callable[..., Any],
) -> None:
    server = start_server(COLOOP_SEND_SECONDS="0.3")
    host, port = urlsplit(server.url).netloc.split(":")
    request = (
        f"GET /api/openapi.json HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    ).encode()
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.connect((host, int(port)))
        stalled.settimeout(60)
        poll = select.poll()
        poll.register(stalled, 0)
        is_cut = False
        try:
            stalled.sendall(request * STALLED_REQUESTS)
        except ConnectionError:
            is_cut = True

        assert is_cut or poll.poll(60_000)
        with server.http as http:
            assert http.get("/api/health").status_code == 200
