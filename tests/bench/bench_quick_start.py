"""The quick start as a new user meets it: does it rise, how far, how soon, and only by its rewards?

Three seeds and one that nobody looked at while the preset was tuned; then the same loop with the
scores of each step's rows shuffled among them, which must not rise. The last run is started as the
page starts it: on a Ray of its own, with all cores.
"""

from tests.bench.results import Goal, Result, Table
from tests.bench.runs import Run, train
from tests.engine.shuffles import shuffled

LOOP = "grpo-arithmetic"
SEEDS = (1, 2, 3)
UNSEEN_SEED = 11
CONTROL_SEED = 1
MOST_SECONDS = 300


def run() -> Result:
    tuned = {f"seed {seed}": train(LOOP, settings={"run.seed": seed}) for seed in SEEDS}
    unseen = train(LOOP, settings={"run.seed": UNSEEN_SEED})
    control = train(LOOP, settings={"run.seed": CONTROL_SEED}, changes=shuffled())
    on_ray = train(LOOP, settings={"run.seed": SEEDS[0]}, cluster="ray", threads=None)
    arms = {
        **tuned,
        f"seed {UNSEEN_SEED}, not tuned on": unseen,
        f"seed {CONTROL_SEED}, rewards shuffled": control,
        f"seed {SEEDS[0]}, Ray and all cores": on_ray,
    }
    learners = [run for name, run in arms.items() if run is not control]
    return Result(
        title="Quick start (grpo-arithmetic)",
        tables=(_figures(arms), _curves(arms)),
        goals=(
            _goal("after the warm-up below 0.5", [_start(run) for run in learners], below=0.5),
            _goal("rise by RL of 0.3 or more", [_rise(run) for run in learners], above=0.3),
            _goal("end above 0.75 (aim 0.85)", [_end(run) for run in learners], above=0.75),
            _goal("rise with shuffled rewards below 0.1", [_rise(control)], below=0.1),
            _goal(
                "seconds from Run to finished below 300",
                [run.seconds for run in learners],
                below=MOST_SECONDS,
            ),
        ),
        data={name: _points(run) for name, run in arms.items()},
    )


def _start(run: Run) -> float:
    return run.at_start_of("rl", "probe", "accuracy")


def _end(run: Run) -> float:
    return run.last("probe", "accuracy")


def _rise(run: Run) -> float:
    return _end(run) - _start(run)


def _points(run: Run) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in run.curve("probe", "accuracy")]


def _goal(
    wanted: str, found: list[float], *, above: float | None = None, below: float | None = None
) -> Goal:
    reached = all(
        (above is None or value >= above) and (below is None or value < below) for value in found
    )
    shown = ", ".join(f"{value:.0f}" if value > 2 else f"{value:.2f}" for value in found)
    return Goal(wanted=wanted, found=shown, is_reached=reached)


def _figures(arms: dict[str, Run]) -> Table:
    return Table(
        title="Greedy accuracy on 256 held-out sums; seconds from the command to its end.",
        head=("arm", "warm-up steps", "after warm-up", "end", "rise", "seconds", "CPU seconds"),
        rows=tuple(
            (
                name,
                str(run.steps("warm-up")),
                f"{_start(run):.3f}",
                f"{_end(run):.3f}",
                f"{_rise(run):+.3f}",
                f"{run.seconds:.0f}",
                f"{run.processor_seconds:.0f}",
            )
            for name, run in arms.items()
        ),
    )


def _curves(arms: dict[str, Run]) -> Table:
    """The probe at tenths of the `rl` phase."""
    tenths = range(0, 11)
    rows = []
    for name, run in arms.items():
        curve = [
            _start(run),
            *(point.value for point in run.curve("probe", "accuracy", phase="rl")),
        ]
        places = [round(tenth * (len(curve) - 1) / 10) for tenth in tenths]
        rows.append((name, *(f"{curve[place]:.2f}" for place in places)))
    return Table(
        title="The curve of the probe over the `rl` phase, in tenths of its steps.",
        head=("arm", *(f"{10 * tenth} %" for tenth in tenths)),
        rows=tuple(rows),
    )
