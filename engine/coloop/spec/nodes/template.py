"""`template`: turns texts of one node into prompts for the next."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from coloop.spec.base import PlainValue, Text, problem, setting
from coloop.spec.levels import LevelsByPort, children
from coloop.spec.names import NamesByPort, NamesOf, returned_keys
from coloop.spec.nodes.kind import BaseNode, InPort, NodeKind, OutPort, PortType, Stage
from coloop.spec.reading import Message
from coloop.spec.row_counts import Count, Counts, at_most
from coloop.spec.shaping import WRITE_SIGNATURE, Parse
from coloop.spec.table_sizes import TableSize, filled, has_completion

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


class TemplateNode(BaseNode):
    """Turns texts of one node into prompts for the next."""

    kind: Literal["template"]
    """Turns texts of one node into prompts for the next."""
    parse: dict[Text, Parse] = setting(default_factory=dict)
    """New columns extracted from the incoming text: regex, `{json: path}` or `{tag: name}`."""
    default: dict[Text, PlainValue] = setting(default_factory=dict, level="advanced")
    """Value of a column if nothing was found."""
    text: Text | None = setting(None, widget="text", reference="template")
    """The new prompt, in Jinja."""
    messages: tuple[Message, ...] | None = setting(None, level="advanced")
    """A chat as prompt instead of one text."""
    target: str | None = setting(None, widget="text", reference="template")
    """The text to train on, in Jinja."""
    columns: dict[Text, str] = setting(default_factory=dict, level="advanced", reference="template")
    """More columns, each in Jinja."""
    drop: tuple[Text, ...] = setting((), level="advanced", widget="column")
    """Columns to drop."""
    each: Text | None = setting(None, level="advanced", widget="column")
    """A list column: one row for each element."""
    code: Text | None = setting(None, widget="code", starter=WRITE_SIGNATURE)
    """Python instead of text: `def write(**columns) -> dict | None`, run in a sandboxed process."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={"prepare": Stage(reads=("rows", "scores", "library"), gives=("rows",))},
        inputs={
            "rows": InPort(
                PortType.ROWS, "generate", "Rows that fill the template.", required=True
            ),
            "scores": InPort(PortType.SCORES, "generate", "Scores that the template may refer to."),
            "library": InPort(PortType.ROWS, "generate", "Rows that `others()` draws from."),
        },
        outputs={"rows": OutPort(PortType.ROWS, "The same rows with new columns.")},
        rows=("rows",),
        scores=("scores",),
        metrics=("parse/none", "rows/none"),
        title="Template",
        group="shaping",
        icon="text-cursor-input",
        help="Turns texts of one node into prompts for the next: `parse` extracts columns from "
        "the text, `text` renders the new prompt with Jinja, `target` the text to train "
        "on. `each` makes a row of every element of a list.",
        template={"kind": "template", "text": "{{ prompt }}"},
        synonyms="prompt, jinja, format, parse, extract, chat, rewrite, regex",
        summary=("each",),
        shown={"text": ("text", "code"), "target": ("target",), "each": ("each",)},
    )

    @model_validator(mode="after")
    def _writes_one_way(self) -> Self:
        if self.text is not None and self.messages is not None:
            raise problem("conflict", "set either `text` or `messages`", field="messages")
        if self.code is not None:
            for name in ("text", "messages", "target"):
                if getattr(self, name) is not None:
                    raise problem("conflict", "does not go together with `code`", field=name)
        return self

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """The same rows, or a child for each element of a list."""
        rows = lineage.input_levels(name)
        yield "rows", rows if self.each is None else children(name, rows)

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        names = columns.inputs(name)
        written = self.written_columns()
        table: NamesOf = {}
        for level, part in names.items():
            target = level
            if self.each is not None:
                levels = columns.lineage.levels(name, "rows")
                target = next(child for child in levels if child.parents == (level,))
                part = part.below(1)
            own = part.dropped(self.drop).own(name, written or (), target)
            table[target] = own if written is not None else own.opened(name)
        yield "rows", table

    def written_columns(self) -> frozenset[str] | None:
        """Columns that it writes; None if its code decides them."""
        written = {*self.parse, *self.default, *self.columns}
        if self.text is not None or self.messages is not None:
            written.add("prompt")
        if self.target is not None:
            written.add("target")
        if self.each is not None:
            written.add(self.each)
        if self.code is not None:
            from_code = returned_keys(self.code)
            if from_code is None:
                return None
            written |= from_code
        return frozenset(written)

    @property
    def texts_of_row(self) -> int:
        """Texts that Jinja makes for a row."""
        single = sum(text is not None for text in (self.text, self.target))
        return single + len(self.messages or ()) + len(self.columns)

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        """As many rows, fewer if code decides; unknown for lists."""
        given = {level: self._written(count, counts.per_character) for level, count in rows.items()}
        if self.each is None:
            return given
        levels = counts.levels(name)
        return {
            level: Count(rows=None, mean=given[level.parents[0]].mean)
            for level in levels
            if level.parents[0] in given
        }

    def _written(self, count: Count, scale: float) -> Count:
        count = replace(count, mean=self._texts(count.mean, scale))
        return count if self.code is None else at_most(count)

    def _texts(self, rows: TableSize, scale: float) -> TableSize:
        texts = [self.text or "", *(m.content for m in self.messages or ())]
        prompt, longest = rows.prompt, rows.prompt_max
        if any(texts):
            prompt, longest = filled(rows, texts, scale)
        written, written_max = rows.written, rows.written_max
        if self.target is not None:
            answer = rows.written, rows.written_max
            written, written_max = filled(rows, [self.target], scale, unknown=answer)
        return replace(
            rows,
            prompt=prompt,
            prompt_max=longest,
            written=written,
            written_max=written_max,
            alike=1.0 if has_completion(texts) else rows.alike,
        )
