"""A node's `template` at work: rows become the prompts that its model reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coloop.algorithms.batch import Prompt
from coloop.data.prompting import PromptProgram
from coloop.data.tables import Row, Score
from coloop.data.template import TemplateRow
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.template import template_row
from coloop.spec.reading import PromptTemplate


@dataclass(eq=False)
class Prompts:
    """Prompts about the rows of one call."""

    program: PromptProgram
    rows: Sequence[TemplateRow]
    library: Sequence[TemplateRow] | None

    def about(self, place: int, columns: Mapping[str, Any] | None = None) -> Prompt:
        """The prompt about one of the rows.

        Args:
            columns: what it has besides.
        """
        return self.program.prompt(self.rows, place, library=self.library, columns=columns)


class Prompting:
    """The template of a node, compiled once."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._program: PromptProgram | None = None

    def over(
        self,
        template: PromptTemplate,
        rows: Sequence[Row],
        incoming: Sequence[Mapping[str, Score]],
        call: Call,
    ) -> Prompts:
        """The template over the rows of a call.

        Args:
            incoming: the scores that came in with each row, by scorer.
        """
        if self._program is None or self._program.template is not template:
            self._program = PromptProgram.from_template(template, node=self._node)
        library = [
            template_row(self._node, row, {}, call)
            for table in call.tables("library")
            for row in table.rows
        ]
        own = [
            template_row(self._node, row, scores, call)
            for row, scores in zip(rows, incoming, strict=True)
        ]
        return Prompts(self._program, own, library if call.tables("library") else None)
