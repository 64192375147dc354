"""Processes killed at random: whatever is killed, and however often, a run learns the same bits.

driver ── SIGKILL after a random number of events ──> resumed, until it has been killed N times
rank   ── SIGKILL after a random number of events ──> replaced by the driver, or the run ends
                                                      and is resumed
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tests.bench.machine import ROOT
from tests.bench.results import Goal, Result, Table
from tests.engine.rank_processes import ranks_of
from tests.engine.runs.conftest import LOOPS, TINY

from coloop.diagnostics import Change
from coloop.runtime.checkpoint import list_checkpoints
from coloop.spec.io import patch

KILLS = int(os.environ.get("COLOOP_CHAOS_KILLS", "20"))
"""Of each kind, for each loop."""
MOST_EVENTS = 60
"""Between two kills."""
LONGER: dict[str, dict[str, Any]] = {
    "grpo-arithmetic": {"schedule.phases.1.steps": 40},
    "spin": {"schedule.phases.1.repeat": 6},
    "two-halves": {"schedule.phases.1.steps": 40},
}
"""So that there is something left to kill."""
VICTIMS = {"driver": 1, "rank": 2}
"""Who is killed, and how many processes the pool has."""


@dataclass(slots=True, kw_only=True)
class Disturbed:
    """What a run that was killed again and again came to."""

    kills: int = 0
    drivers: int = 0
    replaced: int = 0
    weights: str = ""
    seconds: float = 0.0


def text_of(loop: str, workers: int) -> str:
    """A tiny loop in a pool of so many processes, with a checkpoint of each step."""
    values = {**TINY[loop], **LONGER[loop], "run.checkpoint_every": 1}
    if workers > 1:
        values["hardware.pools"] = {"main": {"workers": workers}}
    text = (LOOPS / f"{loop}.yaml").read_text(encoding="utf-8")
    return patch(text, [Change(op="set", path=path, value=v) for path, v in values.items()])


class Driver:
    """`coloop run` as a process."""

    def __init__(self, folder: Path, *, goes_on: bool) -> None:
        runs = ["--runs-dir", str(folder), "--threads", "1"]
        what = ["--resume", "run"] if goes_on else [str(folder / "loop.yaml"), "--run-id", "run"]
        command = [sys.executable, "-m", "coloop", "run", "--local", "--json", *what, *runs]
        environment = {"PYTHONPATH": str(ROOT / "engine"), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def events(self) -> Iterator[dict[str, Any]]:
        """What it tells until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        self.process.wait()

    def ranks(self) -> list[psutil.Process]:
        """The processes of its pools."""
        return ranks_of(psutil.Process(self.process.pid))


def weights_of(folder: Path) -> str:
    """SHA-256 over all weights of the last checkpoint."""
    last = list_checkpoints(folder / "run" / "checkpoints")[-1]
    total = hashlib.sha256()
    for path in sorted(last.path.glob("*/model.safetensors")):
        total.update(path.parent.name.encode() + path.read_bytes())
    return f"step {last.step}: {total.hexdigest()}"


def disturbed(folder: Path, text: str, victim: str, kills: int, chance: random.Random) -> Disturbed:
    """Run a loop to its end, killing so many processes on the way."""
    folder.mkdir()
    (folder / "loop.yaml").write_text(text, encoding="utf-8")
    done, began, state = Disturbed(), time.monotonic(), ""
    while state != "finished":
        driver = Driver(folder, goes_on=done.drivers > 0)
        done.drivers += 1
        left = chance.randint(1, MOST_EVENTS)
        for event in driver.events():
            state = event["state"] if event["type"] == "run.state" else state
            done.replaced += event.get("code") == "cluster.pool_replaced"
            left -= 1
            if left > 0 or done.kills == kills:
                continue
            left = chance.randint(1, MOST_EVENTS)
            targets = [driver.process] if victim == "driver" else driver.ranks()
            if targets:
                chance.choice(targets).kill()
                done.kills += 1
        if done.drivers > 3 * kills + 3:
            break
    done.weights, done.seconds = weights_of(folder), time.monotonic() - began
    return done


def run(kills: int = KILLS, say: Callable[[str], None] | None = None) -> Result:
    """Kill driver and ranks of three loops."""
    rows, goals = [], []
    for loop in LONGER:
        for victim, workers in VICTIMS.items():
            chance = random.Random(f"{loop} {victim}")
            text = text_of(loop, workers)
            with tempfile.TemporaryDirectory() as place:
                calm = disturbed(Path(place) / "calm", text, victim, 0, chance)
                wild = disturbed(Path(place) / "wild", text, victim, kills, chance)
            same = wild.weights == calm.weights
            row = (
                loop,
                victim,
                str(wild.kills),
                str(wild.replaced),
                str(wild.drivers),
                f"{calm.seconds:.0f}",
                f"{wild.seconds:.0f}",
                "same bits" if same else f"{wild.weights[:24]} for {calm.weights[:24]}",
            )
            rows.append(row)
            goals.append(
                Goal(
                    wanted=f"{loop}: {victim} killed {kills} times, the same SHA-256",
                    found=f"{wild.kills} kills, {row[-1]}",
                    is_reached=same and wild.kills == kills,
                )
            )
            if say is not None:
                say(" ".join(row))
    head = ("loop", "killed", "kills", "pools replaced", "drivers", "seconds calm", "killed")
    table = Table(
        title="A checkpoint of each step; SIGKILL after 1 to 60 events.",
        head=(*head, "all weights"),
        rows=tuple(rows),
    )
    return Result(title="Chaos", tables=(table,), goals=tuple(goals))
