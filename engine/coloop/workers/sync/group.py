"""Weights from one process to several at once: over gloo between CPUs, over nccl between GPUs.

    who sends (number 0)                        who takes (1, 2, ...)
      send ──> transfer: where they meet ──(driver)──> receive
      deliver ── what is in a bucket (store), its bytes (broadcast) ──> bucket by bucket

The driver asks for `deliver` and each `receive` at once, and says `give_up` where one cannot come.
No bucket goes before all are there, and who breaks off says so first; the next transfer then meets
anew. Words about buckets are signed with a secret of the transfer, as any process can reach the
store.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from math import prod
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._C._distributed_c10d import BroadcastOptions, PrefixStore, TCPStore

from coloop.errors import WeightsNotUpdated
from coloop.plan.weight_buckets import weight_bucket_bytes
from coloop.workers.sync.protocol import Opened, Weights, WeightTransfer, bytes_of, in_buckets

T = TypeVar("T")
ALIGNMENT = 16
"""Bytes at whose multiples weights begin in a bucket, whatever their type."""
WAIT_SECONDS = 300.0  # longest wait for another end
LEAST_PAUSE, MOST_PAUSE = 0.0002, 0.02  # seconds between two looks
LONGER = 2
"""Times `WAIT_SECONDS` until torch ends a process whose broadcast hangs: after we give it up."""
SEAL_CHARACTERS = 64  # of SHA-256 in hexadecimal
END = "end"
BROKEN = "broken"  # key under which an end says why nothing more comes


class Meeting:
    """What the ends at a place tell one another, key by key."""

    def __init__(self, store: TCPStore, receivers: int, secret: str) -> None:
        self.store = store
        self.receivers = receivers
        self._secret = secret.encode()

    def tell(self, key: str, text: str) -> None:
        """Who sends says something once, for all receivers."""
        self.store.set(key, self._seal(key, text) + text)

    def hear(self, key: str) -> str:
        """What the sender has told under a key; raises `WeightsNotUpdated` as `wait` does."""
        sealed = self.wait(key)
        text = sealed[SEAL_CHARACTERS:]
        if not hmac.compare_digest(
            sealed[:SEAL_CHARACTERS].encode(), self._seal(key, text).encode()
        ):
            raise WeightsNotUpdated("another process wrote to the rendezvous of this run")
        return text

    def _seal(self, key: str, text: str) -> str:
        return hmac.new(self._secret, f"{key} {text}".encode(), "sha256").hexdigest()

    def wait(self, key: str) -> str:
        """What stands under a key; raises `WeightsNotUpdated` where an end is missing."""
        self.wait_until(lambda: self.store.check([key]), "the other end did not connect")
        return self.store.get(key).decode()

    def wait_until(self, is_done: Callable[[], bool], otherwise: str) -> None:
        """Raises `WeightsNotUpdated` where an end has broken off, or it takes too long."""
        began, pause = time.monotonic(), LEAST_PAUSE
        while not is_done():
            if self.store.check([BROKEN]):
                raise WeightsNotUpdated(f"another end broke off: {self.store.get(BROKEN).decode()}")
            if time.monotonic() - began > WAIT_SECONDS:
                raise WeightsNotUpdated(f"{otherwise} within {WAIT_SECONDS:g} s")
            time.sleep(pause)
            pause = min(1.5 * pause, MOST_PAUSE)

    def wait_for(self, make: Callable[[], T]) -> T:
        """A collective's result, in its own thread, which an end's failure interrupts."""
        made: Future[T] = Future()

        def run() -> None:
            try:
                made.set_result(make())
            except Exception as error:
                made.set_exception(error)

        threading.Thread(target=run, name="meeting", daemon=True).start()
        self.wait_until(made.done, "the other end did not connect")
        return made.result()

    def break_off(self, reason: object) -> str:
        """Others wait no more; what is told first is what they hear, and what is returned."""
        words = "it was cancelled" if isinstance(reason, GeneratorExit) else str(reason)
        with suppress(RuntimeError):  # where the place itself is gone, all others know it
            if self.store.check([BROKEN]):
                return self.store.get(BROKEN).decode()
            self.store.set(BROKEN, words)
        return words

    def come(self, key: str) -> int:
        """A receiver says that it is there; which one it is, from 1."""
        number = self.store.add(f"{key}/come", 1)
        if number == self.receivers:
            self.store.set(f"{key}/all", "yes")
        return number

    def wait_for_all(self, key: str) -> None:
        self.wait(f"{key}/all")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the ends of a transfer meet; picklable."""

    ends: str
    round: int
    """Grows when these ends must meet anew: one of them is another process."""
    host: str
    port: int
    receivers: int
    secret: str = field(repr=False)  # only these ends know it


class Broadcast:
    """How the bytes of a bucket go from one end to all others: through a process group."""

    def __init__(self, kind: str, meeting: Meeting, number: int, device: str) -> None:
        self._meeting, self._device = meeting, device
        self._group: Any = meeting.wait_for(lambda: _group_of(kind, meeting, number))

    def give(self, key: str, bucket: Tensor) -> None:
        """Called by who sends when others know of it; returns when the bucket may be changed."""
        self._meeting.wait_for_all(key)
        self._broadcast(bucket)

    def take(self, key: str, size: int) -> Tensor:
        """The bytes of a bucket in memory of one's own, (size,) uint8."""
        bucket = torch.empty(size, dtype=torch.uint8, device=self._device)
        self._meeting.come(key)
        self._broadcast(bucket)
        return bucket

    def _broadcast(self, bucket: Tensor) -> None:
        options = BroadcastOptions()
        options.rootRank, options.rootTensor = 0, 0
        work = self._group.broadcast([bucket], options)
        try:
            self._meeting.wait_until(work.is_completed, "a bucket did not reach all")
        except WeightsNotUpdated:
            # Between GPUs a broadcast waits for an end that is gone: nothing else frees this one.
            self._group.abort()
            raise
        work.wait()
        if bucket.is_cuda:
            torch.cuda.current_stream(bucket.device).synchronize()


def _group_of(kind: str, meeting: Meeting, number: int) -> Any:
    # a connection of its own: one that waits is closed to all else.
    own: Any = meeting.store.clone()  # type: ignore[attr-defined]
    inner, size = PrefixStore("group", own), meeting.receivers + 1
    timeout = timedelta(seconds=LONGER * WAIT_SECONDS)
    if kind == "gloo":
        from torch._C._distributed_c10d import ProcessGroupGloo

        return ProcessGroupGloo(inner, number, size, timeout)
    from torch._C._distributed_c10d import ProcessGroupNCCL

    options = ProcessGroupNCCL.Options()
    options._timeout = timeout
    return ProcessGroupNCCL(inner, number, size, options)


@dataclass(slots=True)
class _End:
    place: Place
    meeting: Meeting
    is_sender: bool
    turn: int = 0  # transfers that were begun
    _number: int | None = None  # of this end among all; None until they have met
    _transport: Broadcast | None = None

    def meet(self) -> int:
        """The number of this end among all, once all are there."""
        if self._number is None:
            number = 0 if self.is_sender else self.meeting.come("here")
            self.meeting.wait_for_all("here")
            self._number = number
        return self._number

    def transport(self, kind: str, device: str) -> Broadcast:
        """Made together with all others, once there is something to take."""
        if self._transport is None:
            self._transport = Broadcast(kind, self.meeting, self.meet(), device)
        return self._transport


class GroupChannel:
    """A `WeightChannel` whose ends work at the same time: `send` says where they meet, `deliver`
    transfers. It lives as long as its process; its ends stay connected between transfers."""

    def __init__(
        self, kind: str = "gloo", *, device: str | None = None, bucket_bytes: int | None = None
    ) -> None:
        """`kind`: `gloo` or `nccl`. `device`: of buckets; None: the one that the kind is meant for.
        `bucket_bytes`: most bytes of one; None: the device's portion."""
        self._kind = kind
        self._device = device or ("cpu" if kind == "gloo" else "cuda")
        self._bucket_bytes = bucket_bytes or weight_bucket_bytes(torch.device(self._device).type)
        self._ends: dict[str, _End] = {}
        self._sending: dict[int, tuple[Weights, torch.dtype | None]] = {}
        self._invited: tuple[str, int, int] = ("", 0, 1)

    def invite(self, ends: str, round: int, receivers: int) -> None:
        """Who the next `send` is for: `ends` with this one; `round` grows with a new process."""
        self._invited = ends, round, receivers

    def send(
        self,
        weights: Weights,
        *,
        version: int,
        dtype: torch.dtype | None = None,
        size_bytes: int | None = None,
    ) -> WeightTransfer:
        del size_bytes
        ends, round, receivers = self._invited
        end = self._ends.get(ends)
        if end is None or end.place.round != round:
            self._leave(ends)
            end = self._ends[ends] = _opened(ends, round, receivers)
        self._sending[version] = (weights, dtype)
        return WeightTransfer(channel=self._kind, version=version, place=end.place, size_bytes=0)

    def deliver(self, transfer: WeightTransfer) -> None:
        """Give the weights to all receivers; raises `WeightsNotUpdated` where one lacks them."""
        weights, dtype = self._sending.pop(transfer.version)
        end = self._ends[transfer.place.ends]
        with self._whole_or_left(end, transfer):
            self._deliver(end, weights, dtype)

    def receive(self, transfer: WeightTransfer) -> Opened:
        end = self._end_at(transfer.place)
        with self._whole_or_left(end, transfer):
            yield from self._received(end)

    @contextmanager
    def _whole_or_left(self, end: _End, transfer: WeightTransfer) -> Iterator[None]:
        """Around a transfer: where it breaks off, this end says so and leaves."""
        try:
            yield
        except BaseException as error:
            reason = end.meeting.break_off(error)
            self._leave(end.place.ends)
            if isinstance(error, RuntimeError) and not isinstance(error, WeightsNotUpdated):
                raise WeightsNotUpdated(
                    f"the transfer of version {transfer.version} of the weights over {self._kind} "
                    f"failed: {reason}"
                ) from error
            raise

    def forget(self, transfer: WeightTransfer) -> None:
        self._sending.pop(transfer.version, None)

    @staticmethod
    def give_up(transfer: WeightTransfer, reason: str) -> None:
        """Tells all ends from outside that one of them will not come; anywhere."""
        place: Place = transfer.place
        with suppress(RuntimeError):  # who sends is gone as well
            Meeting(_reached(place), place.receivers, place.secret).break_off(reason)

    def close(self) -> None:
        for ends in list(self._ends):
            self._leave(ends)

    def _deliver(self, end: _End, weights: Weights, dtype: torch.dtype | None) -> None:
        end.meet()
        meeting = end.meeting
        end.turn += 1
        bucket = 0
        for bucket, part in enumerate(in_buckets(weights, self._bucket_bytes, dtype), start=1):
            key = f"{end.turn}/{bucket}"
            flat, rows = _packed(part, dtype, self._device)
            meeting.tell(key, json.dumps({"size": flat.numel(), "weights": rows}))
            end.transport(self._kind, self._device).give(key, flat)
        meeting.tell(f"{end.turn}/{bucket + 1}", END)

    def _received(self, end: _End) -> Iterator[tuple[str, Tensor]]:
        end.meet()
        end.turn += 1
        bucket = 1
        while (text := end.meeting.hear(key := f"{end.turn}/{bucket}")) != END:
            told = json.loads(text)
            flat = end.transport(self._kind, self._device).take(key, told["size"])
            for name, kind, shape, start in told["weights"]:
                yield name, _view(flat, kind, shape, start)
            bucket += 1

    def _end_at(self, place: Place) -> _End:
        end = self._ends.get(place.ends)
        if end is None or end.place != place:
            self._leave(place.ends)
            try:
                meeting = Meeting(_reached(place), place.receivers, place.secret)
            except RuntimeError as error:
                raise WeightsNotUpdated(
                    f"who sends weights is not to be reached at {place.host}:{place.port}: {error}"
                ) from error
            end = self._ends[place.ends] = _End(place, meeting, is_sender=False)
        return end

    def _leave(self, ends: str) -> None:
        if (end := self._ends.pop(ends, None)) is not None:
            end._transport = None


def _opened(ends: str, round: int, receivers: int) -> _End:
    timeout = timedelta(seconds=WAIT_SECONDS)
    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=timeout, wait_for_workers=False)
    secret = secrets.token_hex(16)
    place = Place(ends, round, _own_address(), store.port, receivers, secret)
    return _End(place, Meeting(store, receivers, secret), is_sender=True)


def _reached(place: Place) -> TCPStore:
    timeout = timedelta(seconds=WAIT_SECONDS)
    return TCPStore(place.host, place.port, is_master=False, timeout=timeout)


def _own_address() -> str:
    """Of this machine, as others reach it; nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address that is nobody's (RFC 5737)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _packed(
    part: Sequence[tuple[str, Tensor]], dtype: torch.dtype | None, device: str
) -> tuple[Tensor, list[list[Any]]]:
    rows: list[list[Any]] = []
    size = 0
    for name, weight in part:
        kind = dtype or weight.dtype
        rows.append([name, str(kind).removeprefix("torch."), list(weight.shape), size])
        size += -(-bytes_of(weight, kind) // ALIGNMENT) * ALIGNMENT
    flat = torch.zeros(size, dtype=torch.uint8, device=device)
    for (_, weight), (_, kind, shape, start) in zip(part, rows, strict=True):
        _view(flat, kind, shape, start).copy_(weight.detach())
    return flat, rows


def _view(flat: Tensor, kind: str, shape: Sequence[int], start: int) -> Tensor:
    dtype: torch.dtype = getattr(torch, kind)
    return flat[start : start + prod(shape) * dtype.itemsize].view(dtype).view(shape)
