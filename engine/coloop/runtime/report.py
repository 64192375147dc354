"""`report.json`: what was predicted against what was measured, and the last metrics."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from coloop.estimate import Estimate, estimate
from coloop.events import RunStateName
from coloop.marks import write_whole
from coloop.runtime.session import Session
from coloop.spec.graph import LoopSpec

REPORT_FILE = "report.json"


def write_report(
    folder: Path, spec: LoopSpec, session: Session, state: RunStateName, root: Path
) -> str:
    """Write the report of a run that ended; its text.

    Args:
        root: folder from which the loop's relative paths are read.
    """
    predicted = estimate(spec, root=root)
    report: dict[str, Any] = {
        "run": folder.name,
        "state": state.value,
        "steps": session.timeline.step,
        "predicted": {
            "step_seconds": predicted.step_seconds,
            "bottleneck": predicted.bottleneck,
            "stages": {stage.stage: stage.seconds for stage in predicted.stages},
            "tokens_per_second": {
                stage.stage: stage.tokens_per_second
                for stage in predicted.stages
                if stage.tokens_per_second
            },
            "memory_bytes": _memory_of(predicted),
        },
        "measured": {
            "step_seconds": session.pace.step_seconds,
            "bottleneck": session.pace.bottleneck(),
            "stages": session.pace.seconds_of_stages(),
            "tokens_per_second": session.pace.token_rates(),
            "memory_bytes": session.held_bytes,
        },
        "metrics": session.readings,
        "alerts": [asdict(finding) for finding in session.unresolved],
    }
    text = json.dumps(report, indent=1)
    write_whole(folder / REPORT_FILE, text)
    return text


def _memory_of(predicted: Estimate) -> dict[str, int]:
    """By stage, the most that one GPU, or one process without a GPU, holds in it."""
    found: dict[str, int] = {}
    for gpu in predicted.gpus:
        for stage in dict.fromkeys(stage for part in gpu.parts for stage in part.stages):
            held = sum(part.bytes for part in gpu.parts if stage in part.stages)
            found[stage] = max(found.get(stage, 0), held)
    return found
