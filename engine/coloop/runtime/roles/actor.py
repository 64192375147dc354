"""An actor: generates completions of its prompts."""

import math
from collections.abc import Sequence

from coloop.data.tables import Row, concat_rows
from coloop.runtime.roles.generation.conversations import with_openings
from coloop.runtime.roles.generation.writer import RowPrompt, Texts, Writer
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.texts import FittingRole, prompt_of
from coloop.spec.nodes import ActorNode

ROUNDING = 1e-9
"""Against rounding errors: a share of 0.29 of 100 prompts is 29."""


class ActorRole(FittingRole[ActorNode]):
    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        self.writer = Writer(node)
        self._fits = self.writer.fits

    def run(self, call: Call) -> Outcome:
        return self.writer.run(self._row_prompts(concat_rows(call.tables("prompts")), call), call)

    def begin(self, call: Call) -> list[Texts]:
        """Generate for the first prompts; `run` generates for the others."""
        rows = concat_rows(call.tables("prompts"))
        first = rows[: math.floor(call.share * len(rows) + ROUNDING)]
        return self.writer.write(self._row_prompts(first, call), call)

    def _row_prompts(self, rows: Sequence[Row], call: Call) -> list[RowPrompt]:
        opened = with_openings(rows, self._node, call)
        return [RowPrompt(row=row, prompt=prompt_of(row, self._node)) for row in opened]
