"""Hands on the first rows."""

from coloop.data.tables import Table
from coloop.runtime.roles.protocol import Call, Context, Outcome, Stateless
from coloop.runtime.roles.rows.inputs import joined_rows
from coloop.spec.nodes import TakeNode


class TakeRole(Stateless):
    """The first rows that come in."""

    def __init__(self, node: str, context: Context) -> None:
        self._node = node

    def run(self, call: Call) -> Outcome:
        section = call.context.spec.nodes[self._node]
        assert isinstance(section, TakeNode)
        rows = joined_rows(self._node, call.context, call, ("rows",))[: section.most]
        return Outcome(outputs={"rows": Table(rows=tuple(rows))}, samples=len(rows))
