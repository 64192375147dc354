"""Hostile requests over all routes of a real server: none gives a 500, hangs, or goes without an
answer, and the server is as quick afterwards as before."""

import http.client
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.attack.fuzz import Fuzzer, Sent
from tests.backend.conftest import LOOP
from tests.backend.servers import Server, environment_of, servers, settings_in

pytestmark = pytest.mark.attack

HANG_SECONDS = 5.0
GIVEN_UP_SECONDS = 60.0
TRIES = 2
"""How often what took long is asked again."""
CLIENTS = 2
QUICK, WHOLE = 1_000, 10_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("fuzzed")
    (folder / "work").mkdir()
    with servers(environment_of(settings_in(folder))) as start:
        yield start(COLOOP_KEEP_RUNS="false")


@pytest.fixture(scope="module")
def fuzzer(server: Server) -> Fuzzer:
    """Knows a loop and a run that are there."""
    with server.http as http_client:
        api = http_client.get("/api/openapi.json").json()
        loop_id = http_client.post("/api/loops", json={"yaml": LOOP}).json()["id"]
        run_id = http_client.post("/api/runs", json={"yaml": LOOP}).json()["id"]
        while http_client.get(f"/api/runs/{run_id}").json()["state"] != "finished":
            time.sleep(0.05)
    known = {
        "loop_id": [loop_id],
        "run_id": [run_id],
        "version": ["1"],
        "name": ["grpo-arithmetic"],
    }
    host = server.url.removeprefix("http://")
    return Fuzzer(api, host=host, token=server.token, known=known, loop=LOOP)


class Client:
    """One connection, opened again where the server has closed it."""

    def __init__(self, host: str) -> None:
        self.address = (host.split(":")[0], int(host.split(":")[1]))
        self.socket: socket.socket | None = None

    def ask(self, sent: Sent) -> tuple[int, float]:
        """Status, 0 where no answer came, and seconds."""
        began = time.monotonic()
        status = self.try_once(sent) or self.try_once(sent)
        return status, time.monotonic() - began

    def try_once(self, sent: Sent) -> int:
        try:
            if self.socket is None:
                self.socket = socket.create_connection(self.address, timeout=GIVEN_UP_SECONDS)
            self.socket.sendall(sent.wire)
            answer = http.client.HTTPResponse(self.socket, method=sent.method)
            answer.begin()
            answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return 0
        if answer.will_close:
            self.close()
        return answer.status

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None


def attack(fuzzer: Fuzzer, numbers: Iterable[int]) -> dict[int, tuple[int, float]]:
    """Status and seconds of the requests that were not answered as they should be."""
    client = Client(fuzzer.host)
    asked = {number: client.ask(fuzzer.request(number)) for number in numbers}
    client.close()
    return {
        number: (status, seconds)
        for number, (status, seconds) in asked.items()
        if status in (0, 500) or seconds > HANG_SECONDS
    }


def fuzz(server: Server, fuzzer: Fuzzer, count: int) -> list[str]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        shares = [range(first, count, CLIENTS) for first in range(CLIENTS)]
        wrong = dict(
            found
            for share in pool.map(lambda one: attack(fuzzer, one), shares)
            for found in share.items()
        )
    for _ in range(TRIES):  # one by one: others, and other programs, may have had the machine
        slow = [number for number, (status, _) in wrong.items() if status not in (0, 500)]
        again = attack(fuzzer, slow)
        wrong = {n: again.get(n, told) for n, told in wrong.items() if n in again or n not in slow}
    assert server.process.poll() is None, "the server ended"
    with server.http as http_client:
        assert http_client.get("/api/health").status_code == 200
        assert http_client.get("/api/loops").status_code == 200
        assert http_client.get("/api/runs").status_code == 200
    return [
        f"{number}: {status} in {seconds:.1f} s: {fuzzer.request(number).shown}"
        for number, (status, seconds) in wrong.items()
    ]


@pytest.mark.slow
def test_a_thousand_hostile_requests_are_answered(
    server: Server, fuzzer: Fuzzer, record_property: Callable[[str, object], None]
) -> None:
    wrong = fuzz(server, fuzzer, QUICK)

    record_property("tried", QUICK)
    record_property("through", len(wrong))
    assert wrong == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_hostile_requests_are_answered(
    server: Server, fuzzer: Fuzzer, record_property: Callable[[str, object], None]
) -> None:
    wrong = fuzz(server, fuzzer, WHOLE)

    record_property("tried", WHOLE)
    record_property("through", len(wrong))
    assert wrong == []


def test_what_is_no_http_at_all_ends_in_a_closed_connection(server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    for raw in (
        b"\x16\x03\x01\x02\x00" * 50,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /api/loops HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /api/loops HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: " + b"b" * 200_000 + b"\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=GIVEN_UP_SECONDS) as raw_socket:
            answer = b""
            try:
                raw_socket.sendall(raw)
                raw_socket.shutdown(socket.SHUT_WR)
                answer = raw_socket.recv(65536)
            except TimeoutError:
                raise
            except OSError:
                pass  # what is too long is cut, before or after all of it is sent
        assert b" 500 " not in answer.split(b"\r\n")[0], raw
    assert httpx.get(f"{server.url}/api/health", trust_env=False).status_code == 200
