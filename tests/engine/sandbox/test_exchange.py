"""Replies of a hostile process: read within their bounds or refused, and never longer than said."""

import itertools
import os
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from coloop.sandbox import exchange
from coloop.sandbox.exchange import Ended, Forged, Late, Pipes, Ticked, TooLong
from coloop.sandbox.inside.values import is_written


@pytest.fixture
def ends() -> Iterator[tuple[Pipes, int]]:
    """Our side, and the descriptor that the other one writes to."""
    unread, to_child = os.pipe()
    from_child, replies = os.pipe()
    pipes = Pipes(to_child, from_child)
    pipes.begin(None, 30)
    yield pipes, replies
    pipes.close()
    os.close(unread)


def answered(
    ends: tuple[Pipes, int], payload: bytes, length: int | None = None
) -> dict[str, object]:
    pipes, replies = ends
    header = (len(payload) if length is None else length).to_bytes(8, "big")

    def write() -> None:
        with os.fdopen(replies, "wb") as pipe:
            try:
                pipe.write(header + payload)
                pipe.flush()
            except BrokenPipeError:
                pass

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    return pipes.receive()


def test_an_honest_reply_is_read(ends: tuple[Pipes, int]) -> None:
    assert answered(ends, b'{"ok": true, "value": [1.0]}') == {"ok": True, "value": [1.0]}


def test_many_honest_numbers_are_read(ends: tuple[Pipes, int]) -> None:
    reply = answered(ends, b'{"value": [' + b"0.123456, " * 1_500_000 + b"1.0]}")

    assert len(reply["value"]) == 1_500_001  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"[" * 9_000_000, TooLong),
        (b"[" + b"[]," * 4_000_000 + b"1]", TooLong),
        (b"[" + b'{"":0},' * 2_000_000 + b"1]", TooLong),
        (b"[" * 5000 + b"]" * 5000, Forged),
        (b'{"id": ' + b"9" * 5000 + b"}", Forged),
        (b'{"id": NaN}', Forged),
        (b"{}".decode().encode("utf-16"), Forged),
        (b"{}".decode().encode("utf-32-be"), Forged),
        ('{"a": "é"}'.encode(), Forged),
        (b"\xff\xfe", Forged),
        (b"[]", Forged),
        (b"", Forged),
    ],
)
def test_what_the_harness_does_not_write_is_refused(
    ends: tuple[Pipes, int], payload: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        answered(ends, payload)


def test_a_length_beyond_all_bounds_is_not_believed(ends: tuple[Pipes, int]) -> None:
    with pytest.raises(TooLong):
        answered(ends, b"", 2**63)


def test_a_reply_that_breaks_off_is_an_end(ends: tuple[Pipes, int]) -> None:
    with pytest.raises(Ended):
        answered(ends, b"{}", 9)


def test_silence_is_late_and_a_tick_that_raises_is_told_as_such(ends: tuple[Pipes, int]) -> None:
    pipes, _ = ends
    pipes.begin(None, 0.05)
    with pytest.raises(Late):
        pipes.receive()

    def tick() -> None:
        raise OSError("a full disk")

    pipes.begin(tick, 60)
    with pytest.raises(Ticked) as caught:
        pipes.receive()
    assert str(caught.value.error) == "a full disk"


def test_a_pause_of_the_machine_is_no_silence(
    ends: tuple[Pipes, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an hour a fifth of a second counts; the answer comes after it."""
    pauses = itertools.chain([0.0, 3600.0], itertools.count(3600.0, 0.01))
    monkeypatch.setattr(exchange, "time", SimpleNamespace(monotonic=lambda: next(pauses)))
    ends[0].begin(None, 0.5)

    assert answered(ends, b'{"ok": true}') == {"ok": True}


@pytest.mark.parametrize(
    "columns",
    [
        {"a": "\ud800"},
        {"a": [{"b": "\udfff"}]},
        {"a": {"\ud800": 1}},
        {"\ud800": 1},
        {"": 1},
        {"judge.score": 1},
        {"a\nb": 1},
        {"a" * 300: 1},
        {1: 1},
        {"a": 10**4000},
        {"a": -(2**1024)},
        {"a": [float("inf")]},
        {"a": {1: 1}},
        {"a": object()},
        {"a": b"x"},
        {"a": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]},
        [],
    ],
)
def test_columns_that_no_file_could_hold_are_refused(columns: object) -> None:
    assert not is_written(columns)


def test_columns_of_all_kinds_are_taken() -> None:
    columns = {"späte Frage": ["é😀", 1.5, -(10**300), None, True, {"a": [()]}], "__proto__": ""}

    assert is_written(columns)
