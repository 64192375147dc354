"""What a judge, a scorer or a model tool reads: its `template` over plain rows.

Same rows and seeds, same prompts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from jinja2 import meta

from coloop.data.template import Drawn, TemplateRow
from coloop.data.templates.environment import environment
from coloop.data.templates.names import names_of
from coloop.data.templates.rendering import RenderProblem, compiled, render_text
from coloop.errors import UserCodeError
from coloop.spec.reading import PromptTemplate


@dataclass(frozen=True, kw_only=True)
class PromptProgram:
    """The template of a node, ready to work."""

    node: str
    template: PromptTemplate

    @classmethod
    def from_template(cls, template: PromptTemplate, *, node: str) -> Self:
        """Compile its texts; UserCodeError names the field that does not."""
        program = cls(node=node, template=template)
        for field_name, _, source in program._texts():
            try:
                compiled(source)
            except RenderProblem as problem:
                raise UserCodeError(f"{node}: {field_name}: {problem}", node) from None
        return program

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that its texts read."""
        trees = [environment().parse(source) for _, _, source in self._texts()]
        return frozenset().union(*map(meta.find_undeclared_variables, trees))

    def prompt(
        self,
        rows: Sequence[TemplateRow],
        place: int,
        *,
        library: Sequence[TemplateRow] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> str | list[dict[str, Any]]:
        """The text or chat about one of the rows.

        Args:
            library: rows that `others` draws from instead of the other rows.
            columns: what the row has besides, such as the sides of a pair.
        """
        row, drawn = rows[place], Drawn(place, rows, library)
        names = names_of({**row.columns, **(columns or {})}, row.scoped, row.scores)
        names["others"], names["past"] = drawn.others, drawn.past
        said: list[dict[str, Any]] = []
        for field_name, role, source in self._texts():
            try:
                said.append({"role": role, "content": render_text(source, names)})
            except RenderProblem as problem:
                message = f"{self.node}, row {place}: {field_name}: {problem}"
                raise UserCodeError(message, self.node, place) from None
        return said if self.template.text is None else str(said[0]["content"])

    def _texts(self) -> list[tuple[str, str, str]]:
        """Each text with its field, and who says it."""
        if self.template.text is not None:
            return [("template.text", "user", self.template.text)]
        return [
            (f"template.messages.{place}.content", message.role, message.content)
            for place, message in enumerate(self.template.messages or ())
        ]
