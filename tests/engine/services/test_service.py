"""Requests to a service: limits, attempts, the circuit, and every kind of nonsense, over real
sockets."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.engine.web_service import Asked, WebService, whole

from coloop.data.services.service import Circuit, Service, collect
from coloop.errors import ServiceFailed, StopRequested

Served = Callable[..., WebService]
Called = Callable[..., Service]


def as_it_is(value: Any) -> Any:
    return value


def failure_of(service: Service, body: Any = "q") -> str:
    with pytest.raises(ServiceFailed) as failed:
        service.ask(body, as_it_is).result(20)
    assert (failed.value.node, failed.value.field) == ("judge", "source.url")
    return str(failed.value)


def test_a_body_goes_and_an_answer_comes(served: Served, called: Called) -> None:
    web = served(lambda asked: {"twice": [asked.body, asked.body]})

    assert called(web.url).ask({"a": 1}, as_it_is).result(20) == {"twice": [{"a": 1}, {"a": 1}]}

    assert web.asked[0].line == "POST /score HTTP/1.1"
    assert web.asked[0].headers["host"] == web.host
    assert web.asked[0].headers["content-type"] == "application/json"
    assert "authorization" not in web.asked[0].headers


def test_no_more_go_at_once_than_the_node_says(served: Served, called: Called) -> None:
    def slow(asked: Asked) -> list[Any]:
        time.sleep(0.02)
        return [asked.body]

    web = served(slow)
    service = called(web.url, concurrency=2)

    futures = [service.ask(number, as_it_is) for number in range(8)]
    collect(futures, lambda done: None)

    assert [one.result() for one in futures] == [[number] for number in range(8)]
    assert web.most_at_once == 2


def test_a_failed_request_is_sent_again(served: Served, called: Called) -> None:
    answers: Iterator[Any] = iter([(503, "later"), b"", whole((429, "x"), "Retry-After: 0"), [1.0]])
    web = served(lambda asked: next(answers))

    assert called(web.url, retries=3).ask("q", as_it_is).result(20) == [1.0]

    assert len(web.asked) == 4


def test_pauses_double_and_are_drawn_from_the_seed(called: Called, served: Served) -> None:
    web = served(lambda asked: [1.0])
    one, same, other = (called(web.url, seed=seed) for seed in (1, 1, 2))

    def pauses(service: Service) -> list[float]:
        return [service._pause(b"body", attempt, 0.0) for attempt in (1, 2, 3, 40)]

    assert pauses(one) == pauses(same) != pauses(other)
    for pause, longest in zip(pauses(one), (0.001, 0.002, 0.004, 30.0), strict=True):
        assert longest / 2 <= pause <= longest
    assert one._pause(b"body", 1, 7.0) == 7.0
    assert one._pause(b"body", 1, 99_999.0) == 120.0


def test_a_service_that_stays_busy_is_given_up(served: Served, called: Called) -> None:
    web = served(lambda asked: (500, "out of memory"))

    message = failure_of(called(web.url, retries=2))

    assert len(web.asked) == 3
    assert message.startswith(
        f"judge: source.url: {web.url} answered status 500: b'out of memory'"[:60]
    )
    assert "(at the last of 3 attempts); check that it runs" in message


def trickle(service: WebService, head: bytes = b"", drop: bytes = b"") -> Iterator[bytes]:
    yield head
    while not service.ended.wait(0.02):
        yield drop


NONSENSE = [
    (
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd",
        "answered something other than JSON: 'abcd'",
    ),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "answered nothing"),
    (whole((200, "[NaN]")), "answered `NaN`, which is not a number"),
    (whole((200, "[-Infinity]")), "answered `-Infinity`"),
    (whole((200, "[" * 10_000)), "answered something other than JSON"),
    (whole((200, "[" * 50 + "]" * 50)), "lists nested deeper than 20"),
    (whole((200, '"\\ud800"'), "Content-Encoding: gzip"), "encoding that was not requested: gzip"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe", "answered something other than JSON"),
    (whole((404, "no")), "answered status 404: 'no'; check that the address is the full path"),
    (whole((401, "no")), "answered status 401: 'no'; name its key in `secret`"),
    (whole((204, "")), "answered status 204"),
    (whole((418, "tea")), "answered status 418: 'tea'; check the log"),
]


@pytest.mark.parametrize(("reply", "what"), NONSENSE)
def test_nonsense_is_told_and_not_asked_again(
    reply: bytes, what: str, served: Served, called: Called
) -> None:
    web = served(lambda asked: reply)

    assert what in failure_of(called(web.url, retries=3)).replace("b'", "'")

    assert len(web.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, served: Served, called: Called) -> None:
    target = served(lambda asked: [1.0])
    web = served(lambda asked: whole((status, ""), f"Location: {target.url}?token=tell-nobody"))

    message = failure_of(called(web.url))

    assert f"answered status {status}, a redirect, which is not followed: `127.0.0.1`" in message
    assert "tell-nobody" not in message
    assert target.asked == []


BROKEN = [
    (b"", "does not speak valid HTTP"),
    (b"HTTP/9 what\r\n\r\n", "does not speak valid HTTP"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "does not speak valid HTTP"),
    (b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200_000, "does not speak valid HTTP"),
]


@pytest.mark.parametrize(("reply", "what"), BROKEN)
def test_a_broken_reply_is_told(reply: bytes, what: str, served: Served, called: Called) -> None:
    web = served(lambda asked: reply)

    assert what in failure_of(called(web.url))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


GO_ON = b"HTTP/1.1 100 Go on\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "drop"),
    [(b"", b""), (b"HTTP/1.1 200 OK\r\nX:", b" "), (HEAD, b" "), (GO_ON, GO_ON)],
)
def test_a_reply_that_trickles_ends_at_the_timeout(
    head: bytes, drop: bytes, served: Served, called: Called
) -> None:
    web = served(lambda asked: trickle(web, head, drop))
    began = time.monotonic()

    message = failure_of(called(web.url, timeout_seconds=0.3))

    assert "did not complete its answer within 0.3 seconds (at the only attempt)" in message
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n"]
)
def test_a_reply_without_end_is_cut(head: bytes, served: Served, called: Called) -> None:
    part = b"fff\r\n" + b"a" * 4095 + b"\r\n" if b"chunked" in head else b"a" * 4096
    web = served(lambda asked: itertools.chain([head], itertools.repeat(part)))

    message = failure_of(called(web.url, largest_reply=100_000))

    assert "answered more than the limit of 100,000 bytes" in message


def test_a_service_that_is_not_there_is_told(served: Served, called: Called) -> None:
    web = served(lambda asked: [])
    url = web.url
    web.close()

    assert "cannot be reached" in failure_of(called(url))


def test_a_stop_is_obeyed_while_a_call_hangs(served: Served, called: Called) -> None:
    web = served(lambda asked: trickle(web))
    service = called(web.url, timeout_seconds=600)
    futures = [service.ask("q", as_it_is)]
    began = time.monotonic()

    def stop(done: int) -> None:
        assert done == 0
        raise StopRequested("stop")

    with pytest.raises(StopRequested):
        collect(futures, stop)
    service.close()

    assert futures[0].cancelled()
    assert time.monotonic() - began < 60


def test_a_failure_takes_back_what_is_unfinished(served: Served, called: Called) -> None:
    web = served(lambda asked: [1.0] if asked.body == 0 else (404, "no"))
    service = called(web.url, concurrency=1, timeout_seconds=600)
    futures = [service.ask(number, as_it_is) for number in (0, 1)]
    hanging = served(lambda asked: trickle(hanging))
    futures.append(called(hanging.url, timeout_seconds=600).ask("q", as_it_is))

    collect(futures, lambda done: None)

    assert futures[0].result() == [1.0]
    assert isinstance(futures[1].exception(), ServiceFailed)
    assert futures[2].cancelled()


def test_a_circuit_opens_after_three_and_closes_with_an_answer() -> None:
    circuit = Circuit()
    for number in range(3):
        assert circuit.admit(float(number))
        circuit.given_up(float(number), "cannot be reached")

    assert circuit.is_open
    assert not circuit.admit(6.9)
    assert circuit.admit(7.0)  # 2 s, when it opened, and the first pause of 5 s
    assert not circuit.admit(7.0)  # one at a time
    circuit.given_up(7.5, "cannot be reached")
    assert not circuit.admit(17.4)
    assert circuit.admit(17.5)  # 10 s later
    circuit.left()
    assert circuit.admit(18.0)
    circuit.answered()

    assert not circuit.is_open
    assert circuit.admit(18.0)
    assert circuit.pause_seconds == 5.0


def test_an_outage_that_retries_outlast_opens_nothing() -> None:
    circuit = Circuit()
    for _ in range(2):
        circuit.given_up(0.0, "cannot be reached")
    circuit.answered()
    circuit.given_up(1.0, "cannot be reached")

    assert not circuit.is_open


def test_an_open_circuit_asks_nobody(served: Served, called: Called) -> None:
    web = served(lambda asked: (500, "no"))
    service = called(web.url, concurrency=1)

    messages = [failure_of(service) for _ in range(5)]

    assert len(web.asked) == 3
    assert "is not called for a while, because 3 requests in a row failed" in messages[4]
    assert "the last time it answered status 500" in messages[4]
