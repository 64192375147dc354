"""What a trained model more in a pool costs beyond its own stages; the rest of a step.

The same loop with two, four, six and eight trained models that share one process. A step takes the
stages of all of them in turn, so its time should grow by the time of the stages that were added.
"""

import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

from tests.bench.results import Goal, Result, Table
from tests.engine.many_models import loop_of

from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.run_files.event_file import read_events
from coloop.runtime.start import run as run_loop
from coloop.spec.io import parse, require

MODELS = (2, 4, 6, 8)
STEPS, WARM = 24, 4
MOST_OF_ITS_STAGES, MOST_OF_A_STEP = 1.15, 0.03


def run() -> Result:
    measured = {models: _measure(models) for models in MODELS}
    rows = []
    for models, (step, stages) in measured.items():
        rows.append(
            (
                str(models),
                f"{1000 * step:.0f} ms",
                f"{1000 * stages:.0f} ms",
                f"{100 * (step - stages) / step:.1f} %",
            )
        )
    (few, few_stages), (many, many_stages) = measured[MODELS[0]], measured[MODELS[-1]]
    more = (many - few) / (many_stages - few_stages)
    driver = max((step - stages) / step for step, stages in measured.values())
    return Result(
        title="Models in one pool",
        tables=(
            Table(
                title=f"Medians of {STEPS - WARM} steps, 16 rows of 4 texts for each model.",
                head=("models", "step", "with a stage running", "rest of the step"),
                rows=tuple(rows),
            ),
        ),
        goals=(
            Goal(
                wanted=f"a model more costs at most {MOST_OF_ITS_STAGES} of its stages",
                found=f"{more:.3f}",
                is_reached=more <= MOST_OF_ITS_STAGES,
            ),
            Goal(
                wanted=f"outside of stages at most {100 * MOST_OF_A_STEP:.0f} % of a step",
                found=f"{100 * driver:.1f} %",
                is_reached=driver <= MOST_OF_A_STEP,
            ),
        ),
    )


def _measure(models: int) -> tuple[float, float]:
    """Median seconds of a step, and of its part in which a stage ran."""
    text = loop_of(models, steps=STEPS, rows=16)
    with tempfile.TemporaryDirectory(prefix="coloop-bench-models-") as place:
        folder = Path(place)
        result = run_loop(
            RunRequest(
                spec=require(parse(text)),
                text=text,
                root=folder,
                runs_dir=folder,
                cluster="local",
                threads=1,
            )
        )
        assert result.error is None, result.error
        events = read_events(result.folder / "events.jsonl")
    steps: dict[int, float] = {}
    spans: dict[int, list[tuple[float, float]]] = {}
    for event in events:
        step = event.get("step")
        if event["type"] == "metrics" and "step/seconds" in event["metrics"]:
            steps[step] = event["metrics"]["step/seconds"]
        elif event["type"] == "stage.finished":
            end = datetime.fromisoformat(event["at"]).timestamp()
            spans.setdefault(step, []).append((end - event["seconds"], end))
    warm = [step for step in steps if step > WARM]
    return median(steps[step] for step in warm), median(_covered(spans[step]) for step in warm)


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Seconds in which at least one stage ran."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
