"""Processes killed at random: whatever is killed, and however often, a run learns the same bits.

driver ── SIGKILL after a random number of events ──> resumed, until it has been killed N times
rank   ── SIGKILL after a random number of events ──> replaced by the driver, or the run ends
                                                      and is resumed
"""

import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.killing import disturbed, text_of
from tests.bench.results import Goal, Result, Table

KILLS = int(os.environ.get("COLOOP_CHAOS_KILLS", "20"))
"""Of each kind, for each loop."""
LONGER: dict[str, dict[str, Any]] = {
    "grpo-arithmetic": {"schedule.phases.1.steps": 40},
    "spin": {"schedule.phases.1.repeat": 6},
    "two-halves": {"schedule.phases.1.steps": 40},
}
"""So that there is something left to kill."""
VICTIMS = {"driver": 1, "rank": 2}
"""Who is killed, and how many processes the pool has."""


def run(kills: int = KILLS, say: Callable[[str], None] | None = None) -> Result:
    """Kill driver and ranks of three loops."""
    rows, goals = [], []
    for loop in LONGER:
        for victim, workers in VICTIMS.items():
            chance = random.Random(f"{loop} {victim}")
            text = text_of(loop, workers, LONGER[loop])
            with tempfile.TemporaryDirectory() as place:
                calm = disturbed(Path(place) / "calm", text, victim, 0, chance)
                wild = disturbed(Path(place) / "wild", text, victim, kills, chance)
            same = wild.weights == calm.weights
            row = (
                loop,
                victim,
                str(wild.kills),
                str(wild.replaced),
                str(wild.drivers),
                f"{calm.seconds:.0f}",
                f"{wild.seconds:.0f}",
                "same bits" if same else f"{wild.weights[:24]} for {calm.weights[:24]}",
            )
            rows.append(row)
            goals.append(
                Goal(
                    wanted=f"{loop}: {victim} killed {kills} times, the same SHA-256",
                    found=f"{wild.kills} kills, {row[-1]}",
                    is_reached=same and wild.kills == kills,
                )
            )
            if say is not None:
                say(" ".join(row))
    head = ("loop", "killed", "kills", "pools replaced", "drivers", "seconds calm", "killed")
    table = Table(
        title="A checkpoint of each step; SIGKILL after 1 to 60 events.",
        head=(*head, "all weights"),
        rows=tuple(rows),
    )
    return Result(title="Chaos", tables=(table,), goals=tuple(goals))
