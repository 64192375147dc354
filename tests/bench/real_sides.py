"""Two pools that write and learn for real, each pinned to a core of its own.

What tells of a crowded machine: stages and steps are timed in the same run, and beside them stands
the share of the time in which the pools' processes had the core that they wanted (`schedstat` of
Linux: time at work, time in the queue).
"""

import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.run_files.events import RunStateName
from coloop.runtime.start import run
from coloop.spec.io import parse

LOOP = """
coloop: 1
name: sides
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 24}
  actor:
    kind: actor
    pool: train
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {pool: write, completions_per_prompt: 8, max_new_tokens: 24}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-4}}
  short: {kind: reward, source: {type: builtin, name: length, max: 24}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> short.rollouts
  - short.scores -> actor.rewards
schedule: {steps: STEPS, max_staleness: STALENESS}
hardware: {preset: cpu, pools: {train: {workers: 1}, write: {workers: 1}}}
"""
STEPS, WARM = 40, 10
POOLS = ("train", "write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What a run took, in seconds; medians of its steps once warm."""

    generate: float
    learn: float
    step: float
    had_core: float
    """Of the time in which the pools' processes wanted their cores, 0 to 1."""

    @property
    def longer(self) -> float:
        return max(self.generate, self.learn)


def measure(staleness: int) -> Sides:
    """Run the loop on a Ray of its own, each pool on a core."""
    text = LOOP.replace("STEPS", str(STEPS)).replace("STALENESS", str(staleness))
    spec = parse(text).spec
    assert spec is not None
    watch = Watch(f"sides-{staleness}-{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="coloop-bench-sides-") as place:
        result = run(
            RunRequest(
                spec=spec,
                text=text,
                root=Path(place),
                runs_dir=Path(place),
                run_id=watch.run_id,
                cluster="ray",
                threads=len(POOLS),
                sinks=[watch],
            )
        )
    assert result.state is RunStateName.FINISHED, result.error
    return watch.sides()


class Watch:
    """Hears the events of a run; pins its pools and times what they do."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._pids: list[int] = []
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._ended: list[float] = []
        self._shares: list[tuple[int, int]] = []

    def __call__(self, what: str, text: str) -> None:
        event = json.loads(text) if what == "event" else {"type": what}
        if event["type"] == "stage.started" and not self._pids:
            self._pin()
        if event["type"] != "stage.finished" or event["step"] < WARM:
            return
        verb = event["stage"].partition(".")[2]
        if verb == "sync":
            self._ended.append(time.monotonic())
            if event["step"] in (WARM, STEPS):
                self._shares.append(self._scheduled())
        elif event["step"] > WARM:
            self._seconds[verb].append(event["seconds"])

    def sides(self) -> Sides:
        (worked, waited), (at_last, waited_last) = self._shares
        work, wait = at_last - worked, waited_last - waited
        steps = [after - before for before, after in pairwise(self._ended)]
        return Sides(
            generate=statistics.median(self._seconds["generate"]),
            learn=statistics.median(self._seconds["learn"]),
            step=statistics.median(steps),
            had_core=work / (work + wait),
        )

    def _pin(self) -> None:
        """Every thread of a pool's process works on the pool's core from here on."""
        import ray

        cores = sorted(os.sched_getaffinity(0))
        for pool, core in zip(POOLS, cores, strict=False):
            host = ray.get_actor(f"coloop-{self.run_id}-{pool}")
            asked = host.__ray_call__.remote(lambda _: os.getpid())
            self._pids.append(ray.get(asked, timeout=60))
            for thread in Path(f"/proc/{self._pids[-1]}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {core})

    def _scheduled(self) -> tuple[int, int]:
        """Nanoseconds at work and in the queue, of all threads of the pools."""
        found = [
            thread.joinpath("schedstat").read_text(encoding="ascii").split()
            for pid in self._pids
            for thread in Path(f"/proc/{pid}/task").iterdir()
        ]
        return sum(int(one[0]) for one in found), sum(int(one[1]) for one in found)
