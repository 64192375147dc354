"""`report.json`: what was predicted against what was measured, and the last metrics."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from coloop.estimate import estimate
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
        },
        "measured": {
            "step_seconds": session.pace.step_seconds,
            "bottleneck": session.pace.bottleneck(),
            "stages": session.pace.seconds_of_stages(),
        },
        "metrics": session.readings,
        "alerts": [asdict(finding) for finding in session.unresolved],
    }
    text = json.dumps(report, indent=1)
    write_whole(folder / REPORT_FILE, text)
    return text
