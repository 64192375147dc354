"""The bench's side of its arms: starts them, has them take turns, gathers what they tell.

Arms of a row are processes that stand ready at once, so that whatever else the machine does meets
all of them alike: each takes a few steps while the others wait. After the timed turns each takes a
few more in which its memory is watched.
"""

import json
import math
import os
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.grpo.arm import MARK
from tests.bench.grpo.memory import WATCHED_SECONDS, Held, watched
from tests.bench.grpo.work import Work
from tests.bench.machine import ROOT
from tests.bench.results import STORE

START_SECONDS, STEP_SECONDS = 300.0, 600.0
OTHER_VENV = ROOT / ".venv-bench" / "bin" / "python"
"""The environment that has TRL, made by `make bench-venv`."""


def ensure_venv() -> None:
    """The environment with TRL, made where it is missing."""
    if not OTHER_VENV.exists():
        subprocess.run(["make", "bench-venv"], cwd=ROOT, check=True)


class ArmFailed(Exception):
    """An arm ended by itself; holds its last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to do the work."""

    name: str
    module: str
    work: Work

    @property
    def python(self) -> Path:
        return OTHER_VENV if self.module == "trl_arm" else Path(sys.executable)


@dataclass(slots=True, kw_only=True)
class Figures:
    """What an arm took, warm-up excluded."""

    seconds: list[float] = field(default_factory=list)
    """Of each step."""
    processor: float = 0.0
    """Seconds of the processor, all steps together."""
    tokens: int = 0
    writing: float = 0.0
    learning: float = 0.0
    peak_bytes: int = 0
    """Resident memory: the peaks of its processes, summed, so shared pages count in each."""
    peak_once_bytes: int = 0
    """The peak of all its processes together, each page counted once (`memory`)."""
    warm_up: float = 0.0
    """Seconds of the steps before; compilation is in them."""

    @property
    def step(self) -> float:
        """Seconds of a step, median."""
        return statistics.median(self.seconds)

    @property
    def processor_step(self) -> float:
        return self.processor / len(self.seconds)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.writing if self.writing else 0.0

    def take(self, told: Mapping[str, Any]) -> None:
        self.seconds += told["seconds"]
        self.processor += told["processor"]
        self.tokens += told["tokens"]
        self.writing += told["writing"]
        self.learning += told["learning"]
        self.peak_bytes = max(self.peak_bytes, told["peak_bytes"])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Process:
    """An arm at work."""

    def __init__(self, arm: Arm) -> None:
        self.name = arm.name
        self.held = Held()
        if not arm.python.exists():
            raise ArmFailed(f"{arm.name}: {arm.python} is missing; run `make bench-venv`")
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed by `kill`
        self._process = subprocess.Popen(
            [str(arm.python), "-m", f"tests.bench.grpo.{arm.module}", arm.work.to_json()],
            cwd=ROOT,
            env=environment_of(arm.work),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self._told: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait_ready(self) -> None:
        self._next(START_SECONDS)

    def go(self, steps: int) -> dict[str, Any]:
        self.order(steps)
        return self._next(STEP_SECONDS)

    def watched(self) -> AbstractContextManager[None]:
        """While its memory is watched."""
        return watched(self.held, self._process.pid)

    def order(self, steps: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"go {steps}\n")
        self._process.stdin.flush()

    def finish(self, seconds: float = 120.0) -> None:
        """Let it end and wait."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("end\n")
            self._process.stdin.close()
            code = self._process.wait(seconds)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()
            return
        if code:
            raise ArmFailed(self._last_words())

    def kill(self) -> None:
        """End it and what it has started, whatever it does."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(MARK):
                self._told.put(json.loads(line.removeprefix(MARK)))
        self._told.put(None)

    def _next(self, seconds: float) -> dict[str, Any]:
        try:
            told = self._told.get(timeout=seconds)
        except queue.Empty:
            raise ArmFailed(f"{self.name} said nothing for {seconds:.0f} s") from None
        if told is None:
            self._process.wait()
            raise ArmFailed(self._last_words())
        return told

    def _last_words(self) -> str:
        self._log.seek(0)
        return f"{self.name} ended:\n{self._log.read()[-3000:]}"


def environment_of(work: Work) -> dict[str, str]:
    """What an arm is started with."""
    paths = [str(ROOT), str(ROOT / "engine"), str(ROOT / "backend")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": str(work.threads),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
        "TORCHINDUCTOR_CACHE_DIR": str(STORE / "inductor"),
    }


def take_turns(
    arms: list[Arm], *, warm_up: int, turns: int, steps: int
) -> tuple[dict[str, Figures], dict[str, str]]:
    """Figures of each arm, and why others have none."""
    figures: dict[str, Figures] = {}
    failed: dict[str, str] = {}
    ready: list[Process] = []
    try:
        for arm in arms:
            process = None
            try:
                process = Process(arm)
                with process.watched():
                    process.wait_ready()
                    warm = process.go(warm_up)
            except (ArmFailed, OSError) as error:
                failed[arm.name] = str(error)
                if process is not None:
                    process.kill()
                continue
            figures[arm.name] = Figures(warm_up=sum(warm["seconds"]))
            ready.append(process)
        for _ in range(turns):
            for process in ready:
                if process.name in failed:
                    continue
                try:
                    figures[process.name].take(process.go(steps))
                except (ArmFailed, OSError) as error:
                    failed[process.name] = str(error)
        for process in ready:
            if process.name in failed:
                continue
            own = figures[process.name]
            try:
                with process.watched():
                    process.go(math.ceil(WATCHED_SECONDS / own.step))
                own.peak_once_bytes = process.held.bytes
            except (ArmFailed, OSError) as error:
                failed[process.name] = str(error)
    finally:
        for process in ready:
            process.kill()
    return {name: one for name, one in figures.items() if name not in failed}, failed


def train(arm: Arm, steps: int) -> dict[str, Any]:
    """Let an arm take all its steps alone and save its model; what they took."""
    process = Process(arm)
    try:
        process.wait_ready()
        told = process.go(steps)
        process.finish()
    finally:
        process.kill()
    return told
