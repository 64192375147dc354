"""Notices that a run turns without learning: steps in a row in which no goal came any nearer.

A goal is a learn stage or the write of a buffer. A step without any (every learner pauses) says
nothing. The alerts of the last step tell why.
"""

from coloop.errors import NothingLearned

LONGEST_IDLE_STEPS = 20


class Idleness:
    """Goals of the step at hand, and how many steps went by without one."""

    def __init__(self) -> None:
        self._steps = 0
        self._goals: list[tuple[str, bool]] = []
        self._alerts: list[str] = []

    def step_begins(self) -> None:
        self._goals, self._alerts = [], []

    def goal_finished(self, stage: str, *, is_idle: bool) -> None:
        """A learn or write stage is over."""
        self._goals.append((stage, is_idle))

    def noticed(self, message: str) -> None:
        """An alert of the step: perhaps the reason."""
        self._alerts.append(message)

    def step_finished(self, step: int, phase: str) -> None:
        """Count the step; raises `NothingLearned` after too many idle ones."""
        if not self._goals:
            return
        if not all(is_idle for _, is_idle in self._goals):
            self._steps = 0
            return
        self._steps += 1
        if self._steps >= LONGEST_IDLE_STEPS:
            stages = ", ".join(stage for stage, _ in self._goals)
            reasons = "; ".join(dict.fromkeys(self._alerts))
            raise NothingLearned(
                f"nothing came of {stages} in {self._steps} steps in a row, up to step {step} of "
                f"phase {phase}" + (f": {reasons}" if reasons else "")
            )
