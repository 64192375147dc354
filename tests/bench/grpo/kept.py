"""What was measured at one state of engine and arms, kept so that it is not measured again."""

import json
import subprocess
from typing import Any

from tests.bench.grpo.folders import PLACE
from tests.bench.machine import ROOT

FIGURES = PLACE / "figures"


def keep(name: str, record: dict[str, Any]) -> None:
    """Keep a record of this state of engine and arms."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    path = FIGURES / f"{name}.json"
    path.write_text(json.dumps({"commit": _commit(), **record}, indent=1), encoding="utf-8")


def kept(name: str) -> dict[str, Any] | None:
    """What was measured at this state; None where nothing was."""
    path = FIGURES / f"{name}.json"
    if not path.exists():
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record if record["commit"] == _commit() else None


def _commit() -> str:
    told = subprocess.run(
        ["git", "rev-parse", "HEAD:engine", "HEAD:tests/bench/grpo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return told.stdout.strip()
