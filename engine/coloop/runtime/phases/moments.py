"""The loop as it is at a moment: the spec with the values that hold there, and the lineage of the
edges that live there."""

from dataclasses import replace

from coloop.runtime.phases.fields import Fields
from coloop.runtime.phases.timeline import StepPosition
from coloop.runtime.roles.protocol import Context
from coloop.spec.lineage import Lineages


class Moments:
    """Makes the context of each moment; `now` is the one at which the run stands."""

    def __init__(self, start: Context, lineages: Lineages, fields: Fields) -> None:
        """
        Args:
            start: the loop as it was given.
        """
        self._start = start
        self._lineages = lineages
        self._fields = fields
        self.now = start

    def stand_at(self, position: StepPosition | None) -> Context:
        """The run stands at this moment now."""
        self.now = replace(
            self._start,
            spec=self._fields.at(position),
            lineage=self._lineages.at(position.phase.overrides if position else {}),
            overrides=self._fields.overrides(position),
        )
        return self.now
