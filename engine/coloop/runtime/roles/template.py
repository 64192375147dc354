"""Makes new rows from joined ones: applies the template's program, and with `each` makes a child
for every element.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from coloop.algorithms.batch import Prompt
from coloop.data.prompting import PromptProgram
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Score, Table
from coloop.data.tables.row import child_row, joined_row
from coloop.data.template import TemplateProgram, TemplateRow, Written, read_text
from coloop.runtime.roles.protocol import Call, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import by_scorer, deliveries, joined_rows, only_delivered
from coloop.spec.nodes import TemplateNode
from coloop.spec.reading import PromptTemplate


class TemplateRole(NodeRole[TemplateNode]):
    def run(self, call: Call) -> Outcome:
        section = self._section(call.context)
        rows = joined_rows(self._node, call.context, call.delivered("rows"))
        delivered = deliveries(call, "scores", rows)
        rows = only_delivered(rows, delivered)
        incoming = by_scorer(call, "scores", delivered, rows)
        runner = None
        if section.code is not None:
            runner = self._sandbox_at(0, section.code, "write", partial(call.tick, 0, len(rows)))
        written = TemplateProgram.from_section(section, node=self._node).apply(
            template_rows(self._node, rows, incoming, call),
            library=library_of(self._node, call),
            runner=runner,
        )
        out: list[Row] = []
        for row, new in zip(rows, written, strict=True):
            if new is not None:
                out.extend(self._rows_of(row, new))
        return Outcome(
            outputs={"rows": Table(rows=tuple(out))},
            samples=len(out),
            metrics={**_empty(section, written), **_unparsed(section, written)},
            reasons=_why_unparsed(section, rows, written),
            printed=self.take_printed(),
        )

    def _rows_of(self, row: Row, new: Written) -> list[Row]:
        """Output rows, without tokens, since these are of the generated text and not of the new
        one."""
        own = replace(row, tokens=None)
        own = own.with_columns(self._node, new.columns).without_columns(sorted(new.absent))
        if new.elements is None:
            return [own]
        return [
            child_row(self._node, own, k, element.columns).without_columns(sorted(element.absent))
            for k, element in enumerate(new.elements)
        ]


def template_rows(
    node: str, rows: Sequence[Row], incoming: Sequence[Mapping[str, Score]], call: Call
) -> list[TemplateRow]:
    """Rows as the template of a node sees them. `incoming`: scores of each row, by scorer."""
    return [
        TemplateRow(
            columns=row.columns,
            scoped=row.scoped,
            scores=scores,
            earlier=_Earlier(row, call.past),
            seed=derive_seed(call.context.seed, node, call.salt, call.step, row.id) % 2**31,
        )
        for row, scores in zip(rows, incoming, strict=True)
    ]


def library_of(node: str, call: Call) -> list[TemplateRow] | None:
    """The rows at `library`; None if it is not connected."""
    tables = call.tables("library")
    rows = [row for table in tables for row in table.rows]
    return template_rows(node, rows, [{} for _ in rows], call) if tables else None


class _Earlier:
    """A row's conversation at the end of each earlier round, oldest first; computed on demand."""

    def __init__(self, row: Row, past: Sequence[Mapping[str, Row]]) -> None:
        self._row = row
        self._past = past

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for went_on in self._past:
            above = [went_on[name] for name in self._row.trail if name in went_on]
            if above:
                one = above[0] if len(above) == 1 else joined_row(above)
                yield {**one.scoped, **one.columns}


def _empty(section: TemplateNode, written: Sequence[Written | None]) -> dict[str, float]:
    """Metric: the share of rows without output: code returned None, or the list of `each` is
    empty."""
    if not written or (section.code is None and section.each is None):
        return {}
    gone = sum(texts is None or texts.elements == () for texts in written)
    return {"rows/none": gone / len(written)}


def _unparsed(section: TemplateNode, written: Sequence[Written | None]) -> dict[str, float]:
    """Metric: the share of rows in which no pattern of `parse` matched, without a default."""
    looked_for = set(section.parse) - set(section.drop)
    there = [texts.absent for texts in written if texts is not None]
    if not looked_for or not there:
        return {}
    return {"parse/none": sum(looked_for <= absent for absent in there) / len(there)}


def _why_unparsed(
    section: TemplateNode, rows: Sequence[Row], written: Sequence[Written | None]
) -> dict[str, str]:
    """The reason for `parse/none`: what is looked for, and a text in which it is not found."""
    looked_for = [name for name in section.parse if name not in section.drop]
    for row, texts in zip(rows, written, strict=True):
        if looked_for and texts is not None and texts.absent.issuperset(looked_for):
            found = read_text(row.columns)
            names = ", ".join(f"`parse.{name}`" for name in looked_for)
            return {"parse/none": f"{names} found nothing in {repr(found)[:80]}"}
    return {}


# Prompts from rows, by a node's `template`.


class Prompts(Protocol):
    """The prompt of the row at an index, with further columns."""

    def __call__(self, index: int, *, columns: Mapping[str, Any] | None = None) -> Prompt: ...


def prompts_over(
    node: str,
    template: PromptTemplate,
    rows: Sequence[Row],
    incoming: Sequence[Mapping[str, Score]],
    call: Call,
) -> Prompts:
    """A node's template applied to the rows of a call. `incoming`: scores of each row, by
    scorer."""
    program = PromptProgram.from_template(template, node=node)
    own = template_rows(node, rows, incoming, call)
    return partial(program.prompt, own, library=library_of(node, call))
