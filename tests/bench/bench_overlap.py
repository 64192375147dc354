"""How long a step is where one pool writes while another learns.

Of stages that only sleep the scheduler alone is measured: a step cannot be shorter than its longer
side, and one that takes its sides in turn is as long as both. Of real stages, each pool on a core
of its own, everything that lies between them counts.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.bench import real_sides
from tests.bench.results import Goal, Result, Table

from coloop.plan.compile import compile_plan
from coloop.plan.stages import Step
from coloop.runtime.roles.protocol import Call, Context, Outcome, Role
from coloop.runtime.schedule.calls import Calls, StepContext
from coloop.runtime.schedule.in_flight import StepInFlight, Work
from coloop.runtime.schedule.scheduler import Lanes, Scheduler
from coloop.runtime.schedule.window import Window
from coloop.spec.io import parse
from coloop.spec.lineage import Lineages

LOOP = """
coloop: 1
name: sides
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 2}
  actor:
    kind: actor
    pool: train
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {pool: write}
    algorithm: {name: grpo}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 9}
hardware: {preset: cpu, pools: {train: {workers: 1}, write: {workers: 1}}}
"""
RATIOS = ((0.20, 0.20), (0.30, 0.10), (0.10, 0.30), (0.24, 0.16))
"""Seconds of generate and of learn."""
SCORE, SYNC = 0.004, 0.004
STEPS, WARM = 14, 4
MOST, MOST_REAL = 1.10, 1.25


class Sleeper(Role):
    """A node or a weights group that takes its time and does nothing."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    def run(self, call: Call) -> Outcome:
        time.sleep(self._seconds.get(call.verb, 0.0))
        return Outcome()


class Quiet:
    """Watches the scheduler and tells nobody."""

    stop_is_wanted = False

    def stage_started(self, work: Work) -> None: ...

    def stage_finished(self, work: Work, outcome: Outcome) -> None: ...

    def failure_of(self, work: Work, error: BaseException) -> Exception:
        raise error

    def ticked(self, at_work: Sequence[Work]) -> None: ...

    def delivered(self, edge: str, rows: int) -> None: ...

    def noticed(self, flight: StepInFlight, node: str, code: str, message: str) -> None: ...


class NoHosts:
    """Nothing here has weights."""

    def with_tick(self, tick: Callable[..., bool]) -> "NoHosts":
        del tick
        return self


def run() -> Result:
    rows, worst = [], 0.0
    for generate, learn in RATIOS:
        longer = max(generate, learn)
        ahead, in_turn = (_step(generate, learn, staleness) for staleness in (1, 0))
        worst = max(worst, ahead / longer)
        rows.append(
            (
                f"{generate:.2f} s",
                f"{learn:.2f} s",
                f"{in_turn:.3f} s",
                f"{ahead:.3f} s",
                f"{ahead / longer:.3f}",
            )
        )
    in_turn, ahead_of = real_sides.measure(0), real_sides.measure(1)
    real = [
        (
            words,
            f"{one.generate:.3f} s",
            f"{one.learn:.3f} s",
            f"{one.step:.3f} s",
            f"{one.step / one.longer:.3f}",
            f"{one.had_core:.0%}",
        )
        for words, one in (("in turn", in_turn), ("one step ahead", ahead_of))
    ]
    return Result(
        title="Steps that overlap",
        tables=(
            Table(
                title=f"Mean of {STEPS - WARM} steps; scoring and sync take 4 ms each.",
                head=(
                    *("generate", "learn", "in turn", "one step ahead"),
                    "relative to the longer side",
                ),
                rows=tuple(rows),
            ),
            Table(
                title=(
                    "Real stages on Ray, each pool pinned to a core; medians of "
                    f"{real_sides.STEPS - real_sides.WARM} steps."
                ),
                head=(
                    *("", "generate", "learn", "a step", "relative to the longer side"),
                    "had its core",
                ),
                rows=tuple(real),
            ),
        ),
        goals=(
            Goal(
                wanted=f"one step ahead at most {MOST:.2f} of the longer side",
                found=f"{worst:.3f}",
                is_reached=worst <= MOST,
            ),
            Goal(
                wanted=f"real stages: one step ahead at most {MOST_REAL:.2f} of the longer side",
                found=f"{ahead_of.step / ahead_of.longer:.3f}",
                is_reached=ahead_of.step <= MOST_REAL * ahead_of.longer,
            ),
        ),
    )


def _step(generate: float, learn: float, staleness: int) -> float:
    """Seconds of a step once warm."""
    spec = parse(LOOP).spec
    assert spec is not None
    seconds = {"generate": generate, "learn": learn, "score": SCORE, "sync": SYNC}
    context = Context(
        spec=spec,
        lineage=Lineages(spec).at({}),
        groups={"actor": "actor"},
        hosts=NoHosts(),  # type: ignore[arg-type]
        root=Path(),
        seed=0,
    )
    roles = {node: Sleeper(seconds) for node in spec.nodes}
    groups = {"actor": Sleeper(seconds)}
    watcher: Any = Quiet()
    lanes = Lanes()
    window = Window(staleness=staleness, groups=context.groups, changing=frozenset({"actor"}))
    calls = Calls({edge.key: edge for edge in spec.edges}, roles, groups, watcher.delivered)
    scheduler = Scheduler(calls, lanes, watcher, window)
    stages = compile_plan(spec).phases[0].stages
    ahead = iter(range(1, STEPS + 1))
    done: list[float] = []

    def begin() -> StepInFlight | None:
        step = next(ahead, None)
        if step is None:
            return None
        return scheduler.flight(
            Step(stages=stages), StepContext(step=step, phase="main", context=context)
        )

    try:
        scheduler.run_steps(begin, lambda flight: done.append(time.monotonic()))
    finally:
        lanes.close()
    return (done[-1] - done[WARM - 1]) / (STEPS - WARM)
