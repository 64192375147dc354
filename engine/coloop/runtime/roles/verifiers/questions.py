"""What a judge is asked about the rows that it judges: a prompt by its template, and about a pair
one for each order in which its sides are shown."""

from collections.abc import Sequence
from typing import Any

from coloop.data.seeds import derive_seed
from coloop.data.tables import Row
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.verifiers.judge import Incoming, section_of
from coloop.runtime.roles.verifiers.turning import SWAPPED, is_pair, orders_of, shown
from coloop.runtime.roles.writing.prompting import Prompting
from coloop.runtime.roles.writing.writer import RowPrompt


class Questions:
    """Asks the questions of one judge."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._prompting = Prompting(node)

    def about(
        self, rows: Sequence[Row], incoming: Sequence[Incoming], call: Call, *, compares: bool
    ) -> list[RowPrompt]:
        """Questions about these rows, in their order.

        Args:
            incoming: the scores that came in with each.
            compares: rows with two sides are shown as pairs.
        """
        section = section_of(self._node, call.context)
        assert section.template is not None
        prompts = self._prompting.over(section.template, rows, incoming, call)
        found: list[RowPrompt] = []
        for place, row in enumerate(rows):
            shows = self._shows(row, call) if compares and is_pair(row) else [({}, {})]
            for number, (sides, known) in enumerate(shows):
                prompt = prompts.about(place, sides)
                columns = {"prompt": prompt, **known}
                found.append(
                    RowPrompt(
                        row=row, prompt=prompt, number=number, prompts=len(shows), columns=columns
                    )
                )
        return found

    def _shows(self, row: Row, call: Call) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The sides of a pair each time that it is shown, and what is known of that."""
        read = section_of(self._node, call.context).read
        seed = derive_seed(call.context.seed, self._node, call.salt, call.step)
        orders = orders_of(row, read, seed)
        return [(shown(row, is_swapped=swapped), {SWAPPED: swapped}) for swapped in orders]
