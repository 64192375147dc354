"""Runs whose processes are killed: a driver or ranks of its pool, again and again, to the end.

driver ── an event ── strikes? ──> a moment later SIGKILL ──> where was it? ──> resumed
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tests.bench.machine import ROOT
from tests.engine.rank_processes import ranks_of
from tests.engine.runs.conftest import LOOPS, TINY

from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.run_files.event_file import read_events
from coloop.spec.diagnostics import Change
from coloop.spec.io import patch

Event = dict[str, Any]
Strikes = Callable[[Event], bool]
"""Whether a process is killed at this event; asked of each in its order."""

MOST_EVENTS = 60
"""Between two kills, at least; more in a run that tells more."""
PAUSE = 0.25
"""Most seconds between an event and the kill, so that whatever takes time is hit in its middle."""
SHARE_IN_WRITING = 0.1
"""Of the kills of a driver, those that wait until it writes a checkpoint."""
PATIENCE = 20.0
"""Most seconds that such a kill waits."""
ASIDE = ".step-*.new"
"""Folders of checkpoints that are being written."""


@dataclass(slots=True, kw_only=True)
class Disturbed:
    """What a run that was killed again and again came to."""

    folder: Path
    kills: int = 0
    drivers: int = 0
    replaced: int = 0
    events: int = 0
    weights: str = ""
    seconds: float = 0.0
    places: Counter[str] = field(default_factory=Counter)
    """Where drivers were when they were killed: a stage, `probe`, `start`, `checkpoint`."""
    soon: int = 0
    """Drivers that were killed before they had done a step."""


def text_of(loop: str, workers: int, values: Mapping[str, Any]) -> str:
    """A tiny loop in a pool of so many processes, with a checkpoint of each step."""
    wanted = {**TINY.get(loop, {}), **values, "run.checkpoint_every": 1}
    if workers > 1:
        wanted["hardware.pools"] = {"main": {"workers": workers}}
    text = (LOOPS / f"{loop}.yaml").read_text(encoding="utf-8")
    return patch(text, [Change(op="set", path=path, value=v) for path, v in wanted.items()])


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

    def events(self) -> Iterator[Event]:
        """What it tells until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                event = json.loads(line)
                assert "type" in event, event
                yield event
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


def disturbed(
    folder: Path,
    text: str,
    victim: str,
    kills: int,
    chance: random.Random,
    places: Sequence[Strikes] = (),
    most: int = MOST_EVENTS,
) -> Disturbed:
    """Run a loop to its end, killing so many processes on the way.

    Args:
        places: where the first kills are; the others are after a random number of events.
        most: events between two kills.
    """
    folder.mkdir()
    (folder / "loop.yaml").write_text(text, encoding="utf-8")
    done, began, state = Disturbed(folder=folder), time.monotonic(), ""
    is_driver = victim == "driver"
    while state != "finished" and done.drivers <= 3 * kills + 3:
        driver = Driver(folder, goes_on=done.drivers > 0)
        done.drivers += 1
        strikes, is_killed = _next(done.kills, places, chance, most), False
        for event in driver.events():
            done.events += 1
            state = event["state"] if event["type"] == "run.state" else state
            done.replaced += event.get("code") == "cluster.pool_replaced"
            if is_killed or state == "finished" or done.kills == kills or not strikes(event):
                continue
            if done.kills >= len(places):
                _wait(folder, chance, may_write=is_driver)
            targets = [driver.process] if is_driver else driver.ranks()
            if targets:
                chance.choice(targets).kill()
                done.kills += 1
            strikes, is_killed = _next(done.kills, places, chance, most), is_driver
        if is_killed:
            _note_place(done)
    done.weights, done.seconds = weights_of(folder), time.monotonic() - began
    return done


def most_between(calm: Disturbed, kills: int) -> int:
    """Most events between two kills that are spread over a whole run, by the run in peace."""
    return max(MOST_EVENTS, calm.events // max(1, kills))


def _next(kills: int, places: Sequence[Strikes], chance: random.Random, most: int) -> Strikes:
    return places[kills] if kills < len(places) else _after(chance.randint(1, most))


def _after(events: int) -> Strikes:
    """At the last of so many events."""
    left = iter(range(events - 1, -1, -1))
    return lambda event: next(left, 0) == 0


def _wait(folder: Path, chance: random.Random, *, may_write: bool) -> None:
    """Let a moment pass, or wait until a checkpoint is being written."""
    if may_write and chance.random() < SHARE_IN_WRITING:
        until = time.monotonic() + PATIENCE
        while not _written(folder) and time.monotonic() < until:
            time.sleep(0.001)
    else:
        time.sleep(chance.uniform(0, PAUSE))


def _written(folder: Path) -> list[Path]:
    """Checkpoints that are being written."""
    return [*(folder / "run" / "checkpoints").glob(ASIDE)]


def _note_place(done: Disturbed) -> None:
    """Where the driver was that was killed last."""
    events = list(read_events(done.folder / "run" / "events.jsonl"))
    own = [event for event in events if event["attempt"] == events[-1]["attempt"]]
    done.soon += not any(event["type"] == "checkpoint" for event in own)
    done.places["checkpoint" if _written(done.folder) else _place_in(own)] += 1


def _place_in(events: Sequence[Mapping[str, Any]]) -> str:
    """What was at work when these events end."""
    at_work: dict[tuple[Any, ...], str] = {}
    kinds = {event["type"] for event in events}
    for event in events:
        if event["type"] in ("stage.started", "stage.finished"):
            key = event["stage"], event.get("evaluation")
            at_work.pop(key, None)
            if event["type"] == "stage.started":
                at_work[key] = event["stage"] if key[1] is None else "probe"
    last = [*at_work.values()][-1:]
    return last[0] if last else "between stages" if "stage.started" in kinds else "start"
