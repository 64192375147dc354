"""Hands on the first rows."""

from coloop.data.tables import Table
from coloop.runtime.roles.protocol import Call, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import joined_rows
from coloop.spec.nodes import TakeNode


class TakeRole(NodeRole[TakeNode]):
    """The first rows that come in."""

    def run(self, call: Call) -> Outcome:
        most = self._section(call.context).most
        rows = joined_rows(self._node, call.context, call.delivered("rows"))[:most]
        return Outcome(outputs={"rows": Table(rows=tuple(rows))}, samples=len(rows))
