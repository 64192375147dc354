"""Notices that a run turns without learning: steps in a row in which no goal came any nearer.

A goal is a learn stage or the write of a buffer. A step without any (every learner pauses) says
nothing. The alerts of the last step tell why.
"""

from collections.abc import Sequence

from coloop.errors import NothingLearned

LONGEST_IDLE_STEPS = 20


class Idleness:
    """How many steps went by without a goal that came nearer."""

    def __init__(self) -> None:
        self.steps = 0
        """In a row up to now; a run that ended for them and goes on has as many again."""

    def step_finished(
        self, step: int, phase: str, goals: Sequence[tuple[str, bool]], alerts: Sequence[str]
    ) -> None:
        """Count the step; raises `NothingLearned` after too many idle ones.

        Args:
            goals: the learn and write stages of the step, and whether each was idle.
            alerts: what the step told: perhaps the reason.
        """
        if not goals:
            return
        if not all(is_idle for _, is_idle in goals):
            self.steps = 0
            return
        self.steps += 1
        if self.steps >= LONGEST_IDLE_STEPS:
            self.steps = 0
            stages = ", ".join(stage for stage, _ in goals)
            reasons = "; ".join(dict.fromkeys(alerts))
            raise NothingLearned(
                f"{stages} had no effect in {LONGEST_IDLE_STEPS} steps in a row, up to step {step} "
                f"of phase {phase}" + (f": {reasons}" if reasons else "")
            )
