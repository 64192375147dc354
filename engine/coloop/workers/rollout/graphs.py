"""CUDA graphs of decode steps: a step's hundreds of kernels are launched as one.

    first use of a size ──► run as it is, as a warm-up
    second              ──► recorded, then replayed
    later ones          ──► replayed

A recording holds addresses, so who moves or frees a tensor of a step says `forget`. Rows and
lengths are rounded up to few sizes, each with its recording.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import torch

LEAST_LENGTH = 128  # tokens looked at in the shortest recording
MOST_GRAPHS = 128
"""Recordings held at once; each takes some memory of the driver beside the pool that they share."""

Work = Callable[[], None]
Size = tuple[int, int]  # (rows, tokens looked at)

_log = logging.getLogger(__name__)


class Recorder(Protocol):
    def warm_up(self, work: Work) -> None:
        """Does work of a size that is to be recorded."""

    def record(self, work: Work) -> Work:
        """Record work without doing it; what does it. Raises `RuntimeError` where it cannot."""

    def let_go(self) -> None:
        """Recordings are dropped right after this."""


class CudaRecorder:
    """Implements `Recorder` with CUDA graphs that share one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool: Any = None

    def warm_up(self, work: Work) -> None:
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        try:
            with torch.cuda.stream(self._stream):
                work()
        finally:
            current.wait_stream(self._stream)

    def record(self, work: Work) -> Work:
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        current = torch.cuda.current_stream(self._device)
        try:
            # Another thread may ask for the memory that is free meanwhile, which only this mode
            # allows.
            with torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            ):
                work()
        finally:
            torch.cuda.set_stream(current)  # a capture that fails stays on its own stream
        return graph.replay

    def let_go(self) -> None:
        """Waits for replays; the pool goes with the last of its graphs, and its handle with it."""
        torch.cuda.current_stream(self._device).synchronize()
        self._pool = None


def recorder_of(device: torch.device) -> Recorder | None:
    """None where steps are not recorded."""
    is_there = device.type == "cuda" and torch.version.cuda is not None
    return CudaRecorder(device) if is_there else None


class StepGraphs:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder: Recorder | None = recorder
        self._graphs: dict[Size, Work] = {}
        self._warm: set[Size] = set()  # sizes that were run; those of recordings are among them

    def run(self, size: Size, work: Work) -> None:
        """Do the work, which of one size is always the same in the same memory, and never waits."""
        if self._recorder is None:
            work()
        elif size in self._graphs:
            self._graphs[size]()
        elif size not in self._warm:
            self._recorder.warm_up(work)
            self._warm.add(size)
        else:
            self._record(self._recorder, size, work)

    def forget(self) -> None:
        """Drops all recordings: memory that they know moves or goes."""
        if self._recorder is not None and self._warm:
            self._recorder.let_go()
        self._warm.clear()
        self._graphs.clear()

    def _record(self, recorder: Recorder, size: Size, work: Work) -> None:
        if len(self._graphs) == MOST_GRAPHS:
            self.forget()
            self._warm.add(size)
        try:
            graph = recorder.record(work)
        except torch.OutOfMemoryError:
            self.forget()
            raise
        except RuntimeError as error:
            _log.warning("this engine generates without CUDA graphs, which is slower: %s", error)
            self.forget()
            self._recorder = None
            work()
            return
        self._graphs[size] = graph
        graph()


def step_size(rows: int, length: int, *, most_rows: int, most_length: int) -> Size:
    """The recording's size for so many rows and tokens: at most a quarter above both."""
    return (min(_rounded(rows), most_rows), min(_rounded(max(length, LEAST_LENGTH)), most_length))


def _rounded(size: int) -> int:
    """The next of 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ..: four to each power of two."""
    unit = 1 << max((size - 1).bit_length() - 3, 0)
    return -(-size // unit) * unit
