"""Weights from one process to several at once: over gloo between CPUs, over nccl between GPUs.

    sender (rank 0)                             receivers (ranks 1, 2, ...)
      send ──> transfer: where they meet ──(driver)──> receive
      deliver ── header of a bucket (store), its bytes (broadcast) ──> bucket by bucket

The driver calls `deliver` and each `receive` at the same time, and `give_up` if one of them cannot
take part. No bucket is sent before all have connected. An end that fails tells the others; the next
transfer then connects anew. Headers are signed with a secret of these ends, as any process can
reach the store.
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
"""Each weight in a bucket starts at a multiple of this many bytes."""
WAIT_SECONDS = 300.0  # longest wait for another end
MIN_PAUSE, MAX_PAUSE = 0.0002, 0.02  # seconds between two checks
TIMEOUT_FACTOR = 2
"""Torch's timeout of a broadcast in multiples of `WAIT_SECONDS`; it ends the process."""
SIGNATURE_CHARACTERS = 64  # of SHA-256 in hexadecimal
END = "end"
BROKEN = "broken"  # key for the reason why an end has failed


class Meeting:
    """Messages between the ends of a transfer, by key in a `TCPStore`."""

    def __init__(self, store: TCPStore, receivers: int, secret: str) -> None:
        self.store = store
        self.receivers = receivers
        self._secret = secret.encode()

    def tell(self, key: str, text: str) -> None:
        """Publish a signed message of the sender for all receivers."""
        self.store.set(key, self._signature(key, text) + text)

    def hear(self, key: str) -> str:
        """Wait for the sender's message; raises `WeightsNotUpdated` as `wait` does, or for a wrong
        signature."""
        message = self.wait(key)
        text = message[SIGNATURE_CHARACTERS:]
        if not hmac.compare_digest(
            message[:SIGNATURE_CHARACTERS].encode(), self._signature(key, text).encode()
        ):
            raise WeightsNotUpdated("another process wrote to the rendezvous of this run")
        return text

    def _signature(self, key: str, text: str) -> str:
        return hmac.new(self._secret, f"{key} {text}".encode(), "sha256").hexdigest()

    def wait(self, key: str) -> str:
        """Wait for the value of a key; raises `WeightsNotUpdated` as `wait_until` does."""
        self.wait_until(lambda: self.store.check([key]), "the other end did not connect")
        return self.store.get(key).decode()

    def wait_until(self, is_done: Callable[[], bool], otherwise: str) -> None:
        """Raises `WeightsNotUpdated` if an end has failed or, with the text `otherwise`, on a
        timeout."""
        began, pause = time.monotonic(), MIN_PAUSE
        while not is_done():
            if self.store.check([BROKEN]):
                raise WeightsNotUpdated(f"another end broke off: {self.store.get(BROKEN).decode()}")
            if time.monotonic() - began > WAIT_SECONDS:
                raise WeightsNotUpdated(f"{otherwise} within {WAIT_SECONDS:g} s")
            time.sleep(pause)
            pause = min(1.5 * pause, MAX_PAUSE)

    def wait_for(self, collective: Callable[[], T]) -> T:
        """The result of a collective, run in a thread so that the wait ends if an end fails."""
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(collective())
            except Exception as error:
                result.set_exception(error)

        threading.Thread(target=run, name="meeting", daemon=True).start()
        self.wait_until(result.done, "the other end did not connect")
        return result.result()

    def break_off(self, reason: object) -> str:
        """Tell all ends that this one fails. The first reason counts; it is returned."""
        text = "it was cancelled" if isinstance(reason, GeneratorExit) else str(reason)
        with suppress(RuntimeError):  # if the store is gone, all ends notice it
            if self.store.check([BROKEN]):
                return self.store.get(BROKEN).decode()
            self.store.set(BROKEN, text)
        return text

    def come(self, key: str) -> int:
        """Announce that a receiver is ready; returns its rank, from 1 in the order of arrival."""
        rank = self.store.add(f"{key}/come", 1)
        if rank == self.receivers:
            self.store.set(f"{key}/all", "yes")
        return rank

    def wait_for_all(self, key: str) -> None:
        self.wait(f"{key}/all")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the ends of a transfer meet; picklable."""

    ends: str
    round: int
    """Increased when one of the ends is a new process, so that they must connect anew."""
    host: str
    port: int
    receivers: int
    secret: str = field(repr=False)  # only these ends know it


class Broadcast:
    """Sends the bytes of buckets from the sender to all receivers, over a process group."""

    def __init__(self, kind: str, meeting: Meeting, rank: int, device: str) -> None:
        self._meeting, self._device = meeting, device
        self._group: Any = meeting.wait_for(lambda: _group_of(kind, meeting, rank))

    def give(self, key: str, bucket: Tensor) -> None:
        """Send a bucket that was announced; when it returns, the bucket may be changed."""
        self._meeting.wait_for_all(key)
        self._broadcast(bucket)

    def take(self, key: str, size: int) -> Tensor:
        """Receive the bytes of a bucket in new memory, (size,) uint8."""
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
            # An NCCL broadcast goes on waiting for an end that is gone; only `abort` stops it.
            self._group.abort()
            raise
        work.wait()
        if bucket.is_cuda:
            torch.cuda.current_stream(bucket.device).synchronize()


def _group_of(kind: str, meeting: Meeting, rank: int) -> Any:
    # A separate connection, as one that waits is blocked for everything else.
    store: Any = meeting.store.clone()  # type: ignore[attr-defined]
    inner, size = PrefixStore("group", store), meeting.receivers + 1
    timeout = timedelta(seconds=TIMEOUT_FACTOR * WAIT_SECONDS)
    if kind == "gloo":
        from torch._C._distributed_c10d import ProcessGroupGloo

        return ProcessGroupGloo(inner, rank, size, timeout)
    from torch._C._distributed_c10d import ProcessGroupNCCL

    options = ProcessGroupNCCL.Options()
    options._timeout = timeout
    return ProcessGroupNCCL(inner, rank, size, options)


@dataclass(slots=True)
class _End:
    place: Place
    meeting: Meeting
    is_sender: bool
    turn: int = 0  # transfers so far
    _rank: int | None = None  # None: the ends have not met yet
    _transport: Broadcast | None = None

    def meet(self) -> int:
        """Wait until all ends have connected; returns the rank of this one."""
        if self._rank is None:
            rank = 0 if self.is_sender else self.meeting.come("here")
            self.meeting.wait_for_all("here")
            self._rank = rank
        return self._rank

    def transport(self, kind: str, device: str) -> Broadcast:
        """The process group, created by all ends together with the first bucket."""
        if self._transport is None:
            self._transport = Broadcast(kind, self.meeting, self.meet(), device)
        return self._transport


class GroupChannel:
    """A `WeightChannel` whose ends run at the same time: `send` says where they meet, `deliver`
    transfers the weights. Ends stay connected between transfers."""

    def __init__(
        self, kind: str = "gloo", *, device: str | None = None, bucket_bytes: int | None = None
    ) -> None:
        """`kind`: `gloo` or `nccl`. `device`: of buckets; None: CPU for gloo, CUDA for nccl.
        `bucket_bytes`: maximum size; None: the default of the device."""
        self._kind = kind
        self._device = device or ("cpu" if kind == "gloo" else "cuda")
        self._bucket_bytes = bucket_bytes or weight_bucket_bytes(torch.device(self._device).type)
        self._ends: dict[str, _End] = {}
        self._sending: dict[int, tuple[Weights, torch.dtype | None]] = {}
        self._invited: tuple[str, int, int] = ("", 0, 1)

    def invite(self, ends: str, round: int, receivers: int) -> None:
        """Set the receivers of the next `send`. `ends`: name of all participants; `round`: see
        `Place`."""
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
            end = self._ends[ends] = _open_sender(ends, round, receivers)
        self._sending[version] = (weights, dtype)
        return WeightTransfer(channel=self._kind, version=version, place=end.place, size_bytes=0)

    def deliver(self, transfer: WeightTransfer) -> None:
        """Send the weights to all receivers; raises `WeightsNotUpdated` if one cannot get them."""
        weights, dtype = self._sending.pop(transfer.version)
        end = self._ends[transfer.place.ends]
        with self._leave_on_failure(end, transfer):
            self._deliver(end, weights, dtype)

    def receive(self, transfer: WeightTransfer) -> Opened:
        end = self._end_at(transfer.place)
        with self._leave_on_failure(end, transfer):
            yield from self._received(end)

    @contextmanager
    def _leave_on_failure(self, end: _End, transfer: WeightTransfer) -> Iterator[None]:
        """If the transfer in the body fails, tell the other ends and disconnect."""
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
        """Tell all ends of a transfer, from any process, that one of them cannot take part."""
        place: Place = transfer.place
        with suppress(RuntimeError):  # the sender is gone as well
            Meeting(_connect(place), place.receivers, place.secret).break_off(reason)

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
            header = json.loads(text)
            flat = end.transport(self._kind, self._device).take(key, header["size"])
            for name, kind, shape, start in header["weights"]:
                yield name, _view(flat, kind, shape, start)
            bucket += 1

    def _end_at(self, place: Place) -> _End:
        end = self._ends.get(place.ends)
        if end is None or end.place != place:
            self._leave(place.ends)
            try:
                meeting = Meeting(_connect(place), place.receivers, place.secret)
            except RuntimeError as error:
                raise WeightsNotUpdated(
                    f"who sends weights is not to be reached at {place.host}:{place.port}: {error}"
                ) from error
            end = self._ends[place.ends] = _End(place, meeting, is_sender=False)
        return end

    def _leave(self, ends: str) -> None:
        if (end := self._ends.pop(ends, None)) is not None:
            end._transport = None


def _open_sender(ends: str, round: int, receivers: int) -> _End:
    timeout = timedelta(seconds=WAIT_SECONDS)
    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=timeout, wait_for_workers=False)
    secret = secrets.token_hex(16)
    place = Place(ends, round, _own_address(), store.port, receivers, secret)
    return _End(place, Meeting(store, receivers, secret), is_sender=True)


def _connect(place: Place) -> TCPStore:
    timeout = timedelta(seconds=WAIT_SECONDS)
    return TCPStore(place.host, place.port, is_master=False, timeout=timeout)


def _own_address() -> str:
    """Address of this machine for other machines; finding it sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation (RFC 5737)
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
