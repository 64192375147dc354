"""`take`: the first rows of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from coloop.spec.base import Whole, setting
from coloop.spec.nodes.kind import (
    BaseNode,
    InPort,
    NodeKind,
    OutPort,
    PortType,
    Stage,
)
from coloop.spec.row_counts import Count, Counts

if TYPE_CHECKING:
    from coloop.spec.lineage.counts import RowCounts


class TakeNode(BaseNode):
    """The first rows of a table."""

    kind: Literal["take"]
    """The first rows of a table."""
    most: Whole = setting(ge=1, unit="rows")
    """Most rows that it hands on."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={"prepare": Stage(reads=("rows",), gives=("rows",))},
        inputs={"rows": InPort(PortType.ROWS, "generate", "Rows.", required=True)},
        outputs={"rows": OutPort(PortType.ROWS, "The first of them.")},
        rows=("rows",),
        title="Take",
        group="shaping",
        icon="scissors",
        help="Hands on the first rows that come in, at most so many.",
        template={"kind": "take", "most": 4},
        synonyms="head, limit, first",
        summary=(),
        shown={"most": ("most",)},
    )

    def counts_given(self, name: str, counts: RowCounts, rows: Counts) -> Counts:
        """At most so many."""
        return {level: self._first(count) for level, count in rows.items()}

    def _first(self, count: Count) -> Count:
        if count.rows is not None and count.rows <= self.most:
            return count
        least = min(count.least, self.most)
        breakdown = f"first {self.most}"
        mean = replace(count.mean, rows=min(count.mean.rows, float(self.most)))
        return replace(count, rows=self.most, least=least, greedy=0, breakdown=breakdown, mean=mean)
