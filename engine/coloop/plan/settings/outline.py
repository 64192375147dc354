"""A loop on its machine: what every decision about it looks at, and what was decided so far.

Knows no sizes. Values that the loop leaves open are noted with their reasons by who decides them.
"""

from pathlib import Path
from typing import TypeVar

from coloop.plan.settings.conditions import Conditions
from coloop.plan.settings.facts import Note
from coloop.plan.settings.machine import PoolShare, lay_out
from coloop.plan.settings.settings import Decision
from coloop.plan.settings.threads import with_threads
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import WeightsGroup, owner_of, weights_groups
from coloop.spec.homes import holding_pool

Value = TypeVar("Value")


class Outline:
    """Spec, machine and weights groups of a loop."""

    def __init__(
        self, spec: LoopSpec, root: Path | None, conditions: Conditions, workers: int
    ) -> None:
        """
        Args:
            root: folder for relative model paths; without it no file is opened.
            workers: processes on a CPU where the loop names no pools.
        """
        self.spec, self.root, self.conditions = spec, root, conditions
        bare, notes = lay_out(spec, conditions.processor, workers)
        self.machine, threads = with_threads(spec, bare, conditions, root)
        self.notes: list[Note] = list(notes)
        self.decisions: dict[str, Decision] = {one.path: one for one in threads}
        owned = {node: owner_of(spec, node) for node in spec.nodes}
        self.owners = {node: owner for node, owner in owned.items() if owner is not None}
        """Node to the owner of its weights."""
        self.groups: dict[str, WeightsGroup] = weights_groups(spec)

    def home_of(self, group: str) -> PoolShare:
        """The pool in which the weights of a group are held."""
        return self.machine.pool(holding_pool(self.spec, self.groups[group]))

    def decide(self, path: str, value: Value, reason: str) -> Value:
        """Notes a value that the loop left open, and gives it back."""
        self.decisions.setdefault(path, Decision(path=path, value=value, reason=reason))
        return value
