"""The other presets, one run each: does the curve of each rise, and how soon?"""

from dataclasses import dataclass

from tests.bench.results import Goal, Result, Table
from tests.bench.runs import Run, train

SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One preset and what it is watched by."""

    loop: str
    phase: str | None
    """The phase whose rise is shown; None where there is only one."""
    node: str
    metric: str = "accuracy"
    start: float | None = None
    """Where the phase begins by definition; None: the reading before it."""


CASES = (
    Case(loop="sft-arithmetic", phase=None, node="probe"),
    # The reference becomes the policy as the phase begins: no margin, half of it above zero.
    Case(loop="dpo-from-file", phase="prefer", node="fit", metric="pair_accuracy", start=0.5),
    Case(loop="dpo-from-file", phase="prefer", node="probe"),
    Case(loop="grpo-from-file", phase="rl", node="progress"),
    Case(loop="grpo-two-rewards", phase="rl", node="probe"),
    Case(loop="rloo-countdown", phase="rl", node="probe"),
)


def run() -> Result:
    runs = {
        loop: train(loop, settings={"run.seed": SEED})
        for loop in dict.fromkeys(case.loop for case in CASES)
    }
    spans = [(case, _start(case, runs[case.loop]), _end(case, runs[case.loop])) for case in CASES]
    return Result(
        title="Other presets",
        tables=(
            Table(
                title=f"Seed {SEED}; the start is the reading before the phase.",
                head=("preset", "phase", "metric", "start", "end", "seconds", "CPU seconds"),
                rows=tuple(
                    (
                        case.loop,
                        case.phase or "whole run",
                        f"{case.node}.{case.metric}",
                        f"{start:.3f}",
                        f"{end:.3f}",
                        f"{runs[case.loop].seconds:.0f}",
                        f"{runs[case.loop].processor_seconds:.0f}",
                    )
                    for case, start, end in spans
                ),
            ),
        ),
        goals=tuple(
            Goal(
                wanted=f"{case.loop}: {case.node}.{case.metric} rises",
                found=f"{end - start:+.3f}",
                is_reached=end > start,
            )
            for case, start, end in spans
        ),
        data={
            f"{case.loop} {case.node}.{case.metric}": [
                (point.step, point.value) for point in runs[case.loop].curve(case.node, case.metric)
            ]
            for case in CASES
        },
    )


def _start(case: Case, found: Run) -> float:
    if case.start is not None:
        return case.start
    if case.phase is None:
        return found.curve(case.node, case.metric)[0].value
    return found.at_start_of(case.phase, case.node, case.metric)


def _end(case: Case, found: Run) -> float:
    return found.last(case.node, case.metric)
