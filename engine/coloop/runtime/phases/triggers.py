"""Triggers: readings of metrics that set something off.

A trigger fires once when its condition becomes true (`for` readings in a row) and is armed again
when it is false. The watch keeps what it has seen and says which actions are due; it carries none
of them out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coloop.spec.base import as_tuple
from coloop.spec.schedule import Trigger

EVENT_NAMES = {"clip_share": "clip_fraction"}
"""Words of the language for metrics that events call otherwise."""


@dataclass(slots=True, kw_only=True)
class _Memory:
    lowest: float | None = None
    best: float | None = None
    in_a_row: int = 0
    has_fired: bool = False


@dataclass(slots=True, kw_only=True)
class TriggerWatch:
    """Readings so far, by trigger."""

    triggers: Sequence[Trigger]
    _memories: list[_Memory] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._memories = [_Memory() for _ in self.triggers]

    def read(self, metric: str, value: float, phase: str) -> list[Trigger]:
        """Triggers that this reading sets off, in the order of the spec."""
        fired = []
        for trigger, memory in zip(self.triggers, self._memories, strict=True):
            if _event_name(trigger.when.metric) != metric:
                continue
            holds = _holds(trigger, memory, value)
            memory.best = value if memory.best is None else max(memory.best, value)
            memory.lowest = value if memory.lowest is None else min(memory.lowest, value)
            if trigger.in_ and phase not in as_tuple(trigger.in_):
                continue
            if not holds:
                memory.in_a_row, memory.has_fired = 0, False
                continue
            memory.in_a_row += 1
            if memory.in_a_row >= trigger.when.for_ and not memory.has_fired:
                memory.has_fired = True
                fired.append(trigger)
        return fired

    def state(self) -> list[dict[str, Any]]:
        return [
            {name: getattr(memory, name) for name in ("lowest", "best", "in_a_row", "has_fired")}
            for memory in self._memories
        ]

    def load_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        self._memories = [_Memory(**memory) for memory in state]


def _event_name(metric: str) -> str:
    node, _, name = metric.partition(".")
    return f"{node}.{EVENT_NAMES.get(name, name)}"


def _holds(trigger: Trigger, memory: _Memory, value: float) -> bool:
    when = trigger.when
    if when.above is not None and not value > when.above:
        return False
    if when.below is not None and not value < when.below:
        return False
    if when.falls_by is not None and not (
        memory.best is not None and value <= memory.best - when.falls_by
    ):
        return False
    return when.rises_by is None or (
        memory.lowest is not None and value >= memory.lowest + when.rises_by
    )
