"""Which stages this step has: the phase's, less the learners that pause in it (`learn.X.every`,
`.after`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coloop.plan.compile import Compiler
from coloop.plan.types import Refill, Stage
from coloop.runtime.timeline import Moment
from coloop.spec.graph import LoopSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The stages of one step."""

    stages: tuple[Stage, ...]
    refills: tuple[Refill, ...]
    live: frozenset[tuple[str, str]]


class PhaseStages:
    """Counts each learner's live steps; the same live ports give the same stages."""

    def __init__(self, spec: LoopSpec, compiler: Compiler) -> None:
        self._spec = spec
        self._compiler = compiler
        self._live_steps: dict[str, int] = {}
        self._known: dict[tuple[int, frozenset[tuple[str, str]]], Due] = {}

    def due(self, moment: Moment) -> Due:
        """What this step runs."""
        phase = moment.phase
        ports = [tuple(name.split(".")) for name in phase.learn]
        live = frozenset((node, port) for node, port in ports if self._is_due(node))
        key = (phase.index, live)
        if key not in self._known:
            if len(live) == len(ports):
                self._known[key] = Due(stages=phase.stages, refills=phase.refills, live=live)
            else:
                stages, refills = self._compiler.unroll(live, phase.fill, phase.overrides)
                self._known[key] = Due(stages=stages, refills=refills, live=live)
        return self._known[key]

    def done(self, moment: Moment) -> None:
        """Count the step for every learner that was live in it."""
        for node in {name.partition(".")[0] for name in moment.phase.learn}:
            self._live_steps[node] = self._live_steps.get(node, 0) + 1

    def _is_due(self, node: str) -> bool:
        rule = self._spec.schedule.learn.get(node)
        if rule is None:
            return True
        steps = self._live_steps.get(node, 0)
        return steps >= rule.after and (steps - rule.after) % rule.every == 0

    def state(self) -> dict[str, Any]:
        return {"live_steps": self._live_steps}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._live_steps = dict(state["live_steps"])
