"""A run as a process of its own: killed in the middle, interrupted by a signal."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.smallest import AHEAD
from tests.forked import begin

from coloop.plan.cost.bands import MEMORY as MEMORY_BAND
from coloop.plan.settings.training import CPU_PROCESS_BYTES
from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.run_files.event_file import read_events
from coloop.runtime.run_files.events import RunStateName
from coloop.runtime.run_files.run_lock import is_held

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 600
STOP_SECONDS = 20


class Driver:
    """`coloop run` in a process; its events come as lines of its standard output."""

    def __init__(self, loop: Path, runs_dir: Path, *, goes_on: bool = False) -> None:
        self.folder = runs_dir / "run"
        which = ["--resume", "run"] if goes_on else [str(loop), "--run-id", "run"]
        options = ["--local", "--json", "--runs-dir", str(runs_dir), "--threads", "1"]
        command = ("-m", "coloop", "run", *which, *options)
        self.process = begin(*command, stderr=subprocess.STDOUT)
        self._late = threading.Timer(START_SECONDS, self.process.kill)
        self._late.start()

    def wait_for(self, is_here: Callable[[dict[str, Any]], bool]) -> None:
        """Read events until the wanted one comes."""
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if line.startswith("{") and is_here(json.loads(line)):
                return
        pytest.fail(f"the event never came:\n{''.join(seen[-20:])}")

    def end(self) -> int:
        """Read what is left, and the exit code."""
        self.process.stdout.read()
        return self.process.wait(STOP_SECONDS)

    def close(self) -> None:
        self._late.cancel()
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdout.close()
        self.process.wait()


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Callable[[str], Driver]]:
    """Starts a loop as a process, which is ended with the test."""
    drivers: list[Driver] = []

    def start(text: str, *, goes_on: bool = False) -> Driver:
        loop = tmp_path / "loop.yaml"
        loop.write_text(text, encoding="utf-8")
        drivers.append(Driver(loop, tmp_path, goes_on=goes_on))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.close()


def metrics_of(step: int) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event["type"] == "metrics" and event["step"] == step


def resumed(runner: Callable[..., Any], text: str, folder: Path) -> Any:
    """Go on with a run in this process."""

    class Before:
        pass

    before = Before()
    before.folder = folder  # type: ignore[attr-defined]
    return runner(text, resume=before)


def test_a_killed_run_goes_on_from_its_last_checkpoint(
    drive: Callable[..., Driver],
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
) -> None:
    text = tiny("spin", {"run.checkpoint_every": 3})
    driver = drive(text)
    driver.wait_for(metrics_of(8))

    driver.process.send_signal(signal.SIGKILL)
    assert driver.end() == -signal.SIGKILL
    assert [c.step for c in list_checkpoints(driver.folder / "checkpoints")][-1] >= 6
    ended = resumed(runner, text, driver.folder)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.weights(), whole(text).weights())
    events = ended.events
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["attempt"] == 1
    assert events[-1]["attempt"] == 2


LONG = AHEAD.replace("steps: 10", "steps: 120").replace("keep: 2", "checkpoint_every: 2")
KILLS = 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("staleness", [0, 1])
def test_nothing_is_lost_or_learned_twice_over_twenty_kills(
    staleness: int,
    drive: Callable[..., Driver],
    runner: Callable[..., Any],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
) -> None:
    text = LONG.replace("max_staleness: 1", f"max_staleness: {staleness}")
    chance = random.Random(staleness)
    driver = drive(text)
    for kill in range(KILLS):
        left = iter(range(chance.randint(4, 40), -1, -1))
        driver.wait_for(lambda event, left=left: next(left) == 0)
        driver.process.send_signal(signal.SIGKILL)
        driver.end()
        if kill + 1 < KILLS:
            driver = drive(text, goes_on=True)
    ended = resumed(runner, text, driver.folder)

    assert ended.state is RunStateName.FINISHED, ended.error
    checkpoint = list_checkpoints(ended.folder / "checkpoints")[-1]
    assert checkpoint.step == 120
    assert checkpoint.manifest()["roles"]["problems"]["drawn"] == 240
    trainer = torch.load(checkpoint.path / "actor" / "trainer.pt", weights_only=True)
    assert trainer["version"] == 120
    if staleness == 0:
        assert equal(ended.weights(), whole(text).weights())
    else:
        assert max(ended.metrics("actor", "staleness/max")) <= 1


@pytest.mark.slow
def test_an_interrupted_run_stops_with_a_checkpoint_and_its_own_exit_code(
    drive: Callable[..., Driver],
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
) -> None:
    text = tiny("two-halves", {"schedule.phases.1.steps": 20})
    driver = drive(text)
    driver.wait_for(metrics_of(4))

    driver.process.send_signal(signal.SIGINT)

    assert driver.end() == 130
    [checkpoint] = list_checkpoints(driver.folder / "checkpoints")
    assert 3 <= checkpoint.step < 22
    ended = resumed(runner, text, driver.folder)
    assert equal(ended.weights(), whole(text).weights())


def test_who_interrupts_twice_reads_that_the_run_was_stopped(
    drive: Callable[..., Driver], tiny: Callable[..., str]
) -> None:
    driver = drive(tiny("two-halves", {"schedule.phases.1.steps": 20}))
    driver.wait_for(metrics_of(4))

    driver.process.send_signal(signal.SIGINT)
    while driver.process.poll() is None:
        driver.process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            driver.process.wait(0.02)
    told = driver.process.stdout.read()

    assert driver.process.wait(STOP_SECONDS) == 130
    assert "Traceback" not in told
    last = read_events(driver.folder / "events.jsonl")[-1]
    assert (last["type"], last["state"]) == ("run.state", "stopped")
    assert not is_held(driver.folder)


def test_a_disk_that_fills_up_ends_the_run_in_one_line(tmp_path: Path) -> None:
    """Files of the run may not grow any more, as on a full disk, from its first step on."""
    (tmp_path / "loop.yaml").write_text(LONG, encoding="utf-8")
    options = ["--local", "--runs-dir", str(tmp_path), "--threads", "1", "--run-id", "run"]
    process = begin("-c", FILLED, str(tmp_path / "loop.yaml"), *options, stderr=subprocess.STDOUT)

    told, _ = process.communicate(timeout=START_SECONDS)

    assert process.returncode == 3, told
    assert "Traceback" not in told
    assert "could not be written to" in told
    assert "free some space and resume the run" in told


FILLED = """
import resource, signal, sys
from coloop.cli.app import main
from coloop.runtime.run_files.recorder import JsonlFiles

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
write = JsonlFiles.event

def event(self, line):
    if '"step":2' in line:
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
    write(self, line)

JsonlFiles.event = event
sys.argv = ["coloop", "run", *sys.argv[1:]]
main()
"""


LONG_TEXTS = """
coloop: 1
name: long-texts
nodes:
  texts:
    kind: dataset
    source: {type: file, path: texts.jsonl}
    columns: {target: answer}
    rows_per_step: 40
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: sft}
    training: {micro_batch: 40, gradient_checkpointing: false, packing: false}
edges:
  - texts.rows -> actor.demonstrations
schedule: {steps: 2}
hardware: {preset: cpu}
"""
"""What its update keeps for the backward pass weighs as much as the process itself."""


@pytest.mark.slow
def test_a_process_holds_what_was_foretold_of_it(tmp_path: Path) -> None:
    """In an interpreter of its own: a copy also holds what the tests have loaded."""
    row = json.dumps({"prompt": "say:", "answer": "abcde" * 50})
    (tmp_path / "texts.jsonl").write_text(f"{row}\n" * 40, encoding="utf-8")
    (tmp_path / "loop.yaml").write_text(LONG_TEXTS, encoding="utf-8")
    command = [sys.executable, "-m", "coloop", "run", str(tmp_path / "loop.yaml"), "--local"]
    options = ["--run-id", "run", "--runs-dir", str(tmp_path), "--threads", "1"]
    environment = {"PYTHONPATH": str(ROOT / "engine"), "OMP_NUM_THREADS": "1"}

    subprocess.run([*command, *options], env={**os.environ, **environment}, check=True)

    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    told, held = (report[side]["memory_bytes"] for side in ("predicted", "measured"))
    assert told["actor.learn"] > 1.5 * CPU_PROCESS_BYTES, "else it shows nothing"
    low, high = MEMORY_BAND
    assert low * told["actor.learn"] <= held["actor.learn"] <= high * told["actor.learn"]
