"""`report.json`: predicted and measured speed and memory, and the last metrics.

Times are those of the phase that took most of the run (`phase`). Measured times are means over its
steps in this attempt, without evaluations. Stages have the numbers that are known on both sides;
`measured_over_predicted` says how far the predictions were off, by phase and stage. Later
predictions on this machine are corrected by it.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from coloop.data.files.marks import write_whole
from coloop.plan.cost import Estimate
from coloop.plan.cost import explain as explain_estimate
from coloop.plan.unrolled import Unrolled
from coloop.runtime.reporting.accuracy import keep_measured
from coloop.runtime.run_files.events import RunStateName
from coloop.runtime.session import Session
from coloop.spec.graph import LoopSpec
from coloop.spec.io import to_dict

REPORT_FILE = "report.json"


def write_report(
    folder: Path, spec: LoopSpec, session: Session, state: RunStateName, root: Path
) -> str:
    unrolled = Unrolled(spec)
    explained = explain_estimate(spec, unrolled, root=root)
    keep_measured(unrolled.settings(root).survey, explained, session.event_reporter.pace)
    predicted = explained.estimate
    measured = session.event_reporter.pace.phases
    main = max(measured, key=lambda name: measured[name].window.seconds, default=None)
    expected = {phase.name: phase.step_seconds for phase in explained.phases}
    planned = {stage.stage: stage for stage in explained.stages_in.get(main or "", ())}
    stages = session.event_reporter.pace.stages_of(main or "")
    timed = [name for name, stage in planned.items() if stage.seconds and name in stages]
    written = [
        name
        for name in timed
        if planned[name].tokens_per_second and stages[name].tokens_per_second is not None
    ]
    memory, held = _memory_of(predicted), session.event_reporter.held_bytes
    seen = [name for name in memory if name in held]
    report: dict[str, Any] = {
        "run": folder.name,
        "state": state.value,
        "steps": session.timeline.step,
        "control": None if spec.run.control is None else to_dict(spec.run.control),
        "phase": main,
        "predicted": {
            "step_seconds": expected.get(main or "", predicted.step_seconds),
            "bottleneck": predicted.bottleneck,
            "phases": expected,
            "stages": {name: planned[name].seconds for name in timed},
            "tokens_per_second": {name: planned[name].tokens_per_second for name in written},
            "memory_bytes": {name: memory[name] for name in seen},
        },
        "measured": {
            "step_seconds": measured[main].step_seconds if main else None,
            "steps": measured[main].steps if main else 0,
            "bottleneck": measured[main].bottleneck if main else None,
            "phases": {name: times.step_seconds for name, times in measured.items()},
            "stages": {name: stages[name].seconds for name in timed},
            "tokens_per_second": {name: stages[name].tokens_per_second for name in written},
            "memory_bytes": {name: held[name] for name in seen},
        },
        "measured_over_predicted": {
            "phases": {
                name: round(times.step_seconds / seconds, 3)
                for name, times in measured.items()
                if (seconds := expected.get(name))
            },
            "stages": {
                name: round(stages[name].seconds / seconds, 3)
                for name in timed
                if (seconds := planned[name].seconds)
            },
            "memory": {name: round(held[name] / memory[name], 3) for name in seen if memory[name]},
        },
        "metrics": session.readings.latest,
        "alerts": [asdict(finding) for finding in session.readings.unresolved],
    }
    text = json.dumps(report, indent=1)
    write_whole(folder / REPORT_FILE, text)
    return text


def _memory_of(predicted: Estimate) -> dict[str, int]:
    memory: dict[str, int] = {}
    for gpu in predicted.gpus:
        for stage in dict.fromkeys(stage for part in gpu.parts for stage in part.stages):
            held = sum(part.bytes for part in gpu.parts if stage in part.stages)
            memory[stage] = max(memory.get(stage, 0), held)
    return memory
