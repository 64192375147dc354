"""Which Ray a run joins, and how long it waits for one that does not answer."""

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from coloop.errors import ClusterNotReached
from coloop.workers.ray import ray_joining
from coloop.workers.ray.ray_joining import REACH_SECONDS, kept_signals, named_ray, reach

SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How a gRPC server begins (RFC 9113, 6.5); here an empty one."""


@contextmanager
def listening(answer: Callable[[socket.socket], None] = lambda _: None) -> Iterator[str]:
    """Somebody who takes connections; his address."""
    kept = []

    def take() -> None:
        while True:
            try:
                connection = server.accept()[0]
            except OSError:
                return
            kept.append(connection)
            answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=take, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
    for one in kept:
        one.close()


@pytest.fixture(autouse=True)
def nobody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray_joining, "read_ray_address", lambda _: None)


def test_auto_is_the_ray_that_the_environment_names_or_the_last_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ClusterNotReached, match="no Ray runs on this machine"):
        named_ray("auto")
    monkeypatch.setattr(ray_joining, "read_ray_address", lambda _: "10.0.0.1:6379")
    assert named_ray("auto") == "10.0.0.1:6379"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.2:6379")
    assert named_ray("auto") == "10.0.0.2:6379"
    assert named_ray("10.0.0.3:6379") == "10.0.0.3:6379"


def test_an_address_at_which_nobody_is_gives_one_sentence() -> None:
    with listening() as address:
        pass

    with pytest.raises(
        ClusterNotReached, match=re.escape(f"no Ray answers at {address}: ")
    ) as told:
        reach(address)
    assert "\n" not in str(told.value)
    assert "omit `--address`" in str(told.value)


def test_one_that_takes_connections_and_says_nothing_is_waited_for_once() -> None:
    with listening() as address:
        began = time.monotonic()
        with pytest.raises(ClusterNotReached, match=r"no answer within 0\.2 s"):
            reach(address, 0.2)
        assert time.monotonic() - began < 10
        with pytest.raises(ClusterNotReached, match=r"no answer within 0\.2 s"):
            reach(f"ray://{address}", 0.2)


@contextmanager
def serving_grpc() -> Iterator[str]:
    """A gRPC server that knows none of Ray's methods; its address."""
    import grpc

    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(None).wait()


def one_sentence(address: str, capfd: pytest.CaptureFixture[str]) -> str:
    """How it is refused: in time, in one line, and with nothing else on the screen."""
    began = time.monotonic()
    with pytest.raises(ClusterNotReached, match=f"no Ray answers at {address}: ") as told:
        reach(address)
    assert time.monotonic() - began < REACH_SECONDS + 5
    assert "\n" not in str(told.value)
    assert "omit `--address`" in str(told.value)
    assert capfd.readouterr() == ("", "")
    return str(told.value)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 400 Bad request syntax\r\n\r\n", id="a web server"),
        pytest.param(b"!", id="a single byte"),
        pytest.param(bytes((0, 0, 8, 7, 0, 0, 0, 0, 0)), id="another frame of HTTP/2"),
    ],
)
def test_who_speaks_another_language_is_no_ray(
    answer: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    def say(connection: socket.socket) -> None:
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)

    with listening(say) as address:
        assert "it does not speak gRPC" in one_sentence(address, capfd)
        one_sentence(f"ray://{address}", capfd)


def test_a_grpc_server_that_is_no_ray_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with serving_grpc() as address:
        assert "it speaks gRPC, but " in one_sentence(address, capfd)
        assert "it speaks gRPC, but " in one_sentence(f"ray://{address}", capfd)


def test_one_that_begins_as_ray_does_and_falls_silent_is_waited_for_once() -> None:
    with listening(lambda connection: connection.sendall(SETTINGS)) as address:
        began = time.monotonic()
        with pytest.raises(ClusterNotReached, match="no answer within 2 s"):
            reach(address, 2)
        assert time.monotonic() - began < 10


def test_a_stop_while_ray_connects_is_heard_by_the_run_alone() -> None:
    from ray._private import utils

    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    takes = utils.set_sigterm_handler
    try:
        with kept_signals():
            utils.set_sigterm_handler(lambda number, _: sys.exit(number))  # as Ray does
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert heard == [signal.SIGTERM]
    assert utils.set_sigterm_handler is takes


def test_one_that_hangs_up_is_no_ray() -> None:
    with (
        listening(lambda connection: connection.close()) as address,
        pytest.raises(ClusterNotReached, match="no Ray answers"),
    ):
        reach(address)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:port", "[::1]:"])
def test_what_is_no_address_says_so(address: str) -> None:
    with pytest.raises(ClusterNotReached, match="no Ray answers at"):
        reach(address)


@pytest.mark.slow
@pytest.mark.ray
def test_a_ray_that_runs_answers(local_ray: None) -> None:
    import ray

    reach(ray.get_runtime_context().gcs_address)
    assert os.environ.get("RAY_ADDRESS") is None
