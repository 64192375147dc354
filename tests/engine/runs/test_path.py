"""A reader follows one step from the loop to the optimizer through the calls that the README of the
engine names, and no others."""

import re
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import coloop

ENGINE = Path(coloop.__file__).parent
README = ENGINE / "README.md"
MOST_CALLS = 12
WAITING = "runtime/schedule/scheduler.py::run_steps"
PATIENCE = 60
THREADS = ("MainThread", "lane-main", "pool-main")
"""In the order in which a reader meets them."""


def test_the_path_from_the_loop_to_the_optimizer_is_the_one_that_is_written_down(
    runner: Callable[..., Any], small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, list[str]] = {}
    step = torch.optim.AdamW.step

    def stepping(optimizer: torch.optim.AdamW, *arguments: Any) -> Any:
        if not seen:
            seen.update(stacks_at_rest())
        return step(optimizer, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", stepping)
    runner(small)

    main = seen["MainThread"]
    seen["MainThread"] = main[main.index("runtime/loop.py::run_loop") :]
    assert seen.keys() == {*THREADS}, "no other thread has a call of ours"
    written = re.findall(r"^ +\d+ `([\w./]+)::([\w.]+)`", README.read_text("utf-8"), re.MULTILINE)
    names = [f"{file}::{name.rpartition('.')[2]}" for file, name in written]
    assert names == [name for thread in THREADS for name in seen[thread]]
    assert len(names) <= MOST_CALLS


def stacks_at_rest() -> dict[str, list[str]]:
    """The stacks as soon as the driver waits for what it has started; it may be reporting still."""
    end = time.monotonic() + PATIENCE
    while (found := stacks())["MainThread"][-1] != WAITING and time.monotonic() < end:
        time.sleep(0.01)
    return found


def stacks() -> dict[str, list[str]]:
    """By thread, all calls of ours, the outermost first; threads without one are left out."""
    names = {thread.ident: thread.name.partition("_")[0] for thread in threading.enumerate()}
    found: dict[str, list[str]] = {}
    for ident, frame in sys._current_frames().items():
        for summary in traceback.extract_stack(frame):
            path = Path(summary.filename)
            if ENGINE in path.parents:
                called = f"{path.relative_to(ENGINE)}::{summary.name}"
                found.setdefault(names.get(ident, str(ident)), []).append(called)
    return found
