"""A reader follows one step from the loop to the optimizer through the calls that the README of the
engine names, and no others."""

import re
import sys
import threading
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
OVER = ("runtime/schedule/scheduler.py::_start", "runtime/schedule/scheduler.py::_take_outcomes")
"""What has sent the stage to its lane, and what waits for it: no part of the way while it works."""
WAITING = ("runtime/schedule/lanes.py", "workers/cluster/local.py", "workers/cluster/processes.py")
"""How a lane waits for its work, and a caller for a pool."""


def test_the_path_from_the_loop_to_the_optimizer_is_the_one_that_is_written_down(
    runner: Callable[..., Any], small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    step = torch.optim.AdamW.step

    def stepping(optimizer: torch.optim.AdamW, *arguments: Any) -> Any:
        if not seen:
            seen.extend(stack())
        return step(optimizer, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", stepping)
    runner(small)

    written = re.findall(r"^ +\d+ `([\w./]+)::([\w.]+)`", README.read_text("utf-8"), re.MULTILINE)
    names = [f"{file}::{name.rpartition('.')[2]}" for file, name in written]
    assert seen[0] == "runtime/loop.py::run_loop"
    assert [name for name in names if name not in OVER] == seen[1:]
    assert len(names) + len(["optimizer.step"]) <= MOST_CALLS


def stack() -> list[str]:
    """Our own calls from the loop down, over the threads of driver, lane and host."""
    by_thread = {thread.name.partition("_")[0]: thread for thread in threading.enumerate()}
    frames = sys._current_frames()
    found = []
    for name in ("MainThread", "lane-main", "pool-main"):
        for frame in traceback.extract_stack(frames[by_thread[name].ident or 0]):
            path = Path(frame.filename)
            if ENGINE in path.parents and str(path.relative_to(ENGINE)) not in WAITING:
                found.append(f"{path.relative_to(ENGINE)}::{frame.name}")
    return [
        one
        for one in found[found.index("runtime/loop.py::run_loop") :]
        if "_take_" not in one or "step" in one
    ]
