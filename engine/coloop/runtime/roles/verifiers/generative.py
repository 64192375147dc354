"""Judges in words: generates a verdict about each row, and parses numbers from it as `read` says.

    rows ── template ──> prompts ── writer ──> verdicts ── read ──> scores, step scores
                            ├── with `engine: chat`: a chat model by URL
                            └── without `rollout`: probability that its first label comes next

Scores belong to the verdicts, which are children of the judged rows. Without `rollout` nothing is
generated, and scores belong to the judged rows; so they do if another node calls by the handle
`check`. Step scores have the positions of the judged text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from coloop.data.metrics import Group, swap_consistency
from coloop.data.prompting import ParsedVerdict
from coloop.data.rewards.user_code import score_instead
from coloop.data.tables import Row, Score, Table
from coloop.data.tables.join import gathered_members
from coloop.data.tables.row import child_row
from coloop.runtime.roles.generation.asking import FAILED, ChatWriter
from coloop.runtime.roles.generation.writer import RowPrompt, Writer
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.inputs import ROW_PORTS, scored_rows, single_rows
from coloop.runtime.roles.rows.scored import at_ends, listed, scored_outcome, step_ends, steps_of
from coloop.runtime.roles.rows.texts import FittingRole
from coloop.runtime.roles.verifiers.judge import (
    ORDERS,
    SWAPPED,
    finished,
    judged_orders,
    opposite,
    read_range,
    score_range,
    wants_steps,
)
from coloop.runtime.roles.verifiers.taught import questions_about, things_of
from coloop.runtime.roles.verifiers.verdicts import (
    SOUGHT,
    UNREAD,
    criteria_apart,
    label_chances,
    measured_parts,
    parts_of,
    read_verdicts,
    score_of,
    weighs_labels,
    why_unread,
)
from coloop.spec.answers import answer_schema
from coloop.spec.groups import chat_service
from coloop.spec.nodes import VerifierNode
from coloop.workers.messages import TooLong

CONSISTENT = "swap/consistent"


class GenerativeVerifier(FittingRole[VerifierNode]):
    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        is_by_url = chat_service(context.spec.nodes[node]) is not None
        self._writer = ChatWriter(node) if is_by_url else Writer(node)

    def run(self, call: Call) -> Outcome:
        rows, incoming = scored_rows(self._node, call)
        section, compares = self._section(call.context), bool(call.inputs.get("comparisons"))
        prompts = {
            "" if criterion is None else criterion.name: questions_about(
                self._node, rows, incoming, call, compares=compares, criterion=criterion
            )
            for criterion in criteria_apart(section.read)
        }
        if isinstance(self._writer, ChatWriter):
            first = next(iter(prompts.values()))
            schemas = [self._schema(own.row, section) for own in first]
            written = self._writer.run_chat(prompts, schemas, section.on_error, call)
            return self._by_words(rows, written, call)
        row_prompts = prompts[""]
        if section.rollout is None:
            return self._by_labels(rows, row_prompts, call)
        return self._by_words(rows, self._writer.run(row_prompts, call), call)

    # --- verdicts that are written

    def _schema(self, row: Row, section: VerifierNode) -> Mapping[str, Any] | None:
        """The JSON Schema that the answers of a chat model have; None: any text."""
        service = chat_service(section)
        if service is not None and service.answer_schema is not None:
            return service.answer_schema
        return answer_schema(section.read, things_of(row, section.per))

    def _by_words(self, rows: Sequence[Row], written: Outcome, call: Call) -> Outcome:
        context = call.context
        section = self._section(context)
        verdicts = written.outputs["rollouts"].rows
        judged = {row.id: row for row in rows}
        steps = {row.id: self._steps(row, context) for row in rows}
        things = {row.id: things_of(row, section.per) for row in rows}
        said = read_verdicts(
            self._node,
            verdicts,
            [steps[row.parents[0]] for row in verdicts],
            [things[row.parents[0]] for row in verdicts],
            context,
        )
        scores = [score_of(row, one, section) for row, one in zip(verdicts, said, strict=True)]
        places = self._placed(verdicts, said, rows, context)
        outcome = scored_outcome(
            self._node,
            verdicts,
            scores,
            step_scores=places,
            score_range=score_range(section.read, by_label=weighs_labels(section)),
        )
        unread = [
            row
            for row, one in zip(verdicts, said, strict=True)
            if not one.is_read and FAILED not in row.columns
        ]
        tables = dict(outcome.outputs)
        tables["rollouts"] = Table(rows=tables["scores"].rows)
        parts = parts_of([row.id for row in verdicts], said)
        tables["scores"] = replace(
            tables["scores"], unturned=frozenset(row.id for row in unread), parts=parts
        )
        if places is not None:
            parents = {row.id: row.parents[0] for row in verdicts}
            tables["step_scores"] = replace(
                tables["step_scores"], judged=parents, reduce=section.read.reduce
            )
        if section.per == "row":
            tables["scores"] = self._of_things(verdicts, said, judged, call)
        if call.asked is not None:
            tables["scores"] = _of_asked(self._node, call.asked, verdicts, scores)
        is_read = any(getattr(section.read, name) is not None for name in SOUGHT)
        found = {UNREAD: len(unread) / len(verdicts)} if verdicts and is_read else {}
        found |= _consistent(outcome.outputs["scores"])
        metrics = {**written.metrics, **outcome.metrics, **found, **measured_parts(parts)}
        reasons = why_unread(section.read, unread[0].columns["completion"]) if unread else {}
        return replace(written, outputs=tables, metrics=metrics, reasons=reasons)

    def _steps(self, row: Row, context: Context) -> int | None:
        """Number of steps of a judged text; None without step verdicts or without a text."""
        text, read = row.columns.get("completion"), self._section(context).read
        if read.step_verdicts is None or not isinstance(text, str):
            return None
        return len(steps_of(text, read.step_separator))

    def _placed(
        self,
        verdicts: Sequence[Row],
        said: Sequence[ParsedVerdict],
        judged: Sequence[Row],
        context: Context,
    ) -> list[Score] | None:
        """Step scores by the tokens that end the steps; None if `step_scores` is not connected."""
        if not wants_steps(self._node, context):
            return None
        read = self._section(context).read
        ends = step_ends(judged, self._node, context, read.step_separator)
        placed: list[Score] = []
        for row, one in zip(verdicts, said, strict=True):
            own = ends.get(row.parents[0])
            score: Score = dict(one.steps) or None
            if own is not None and one.steps:
                score = at_ends(listed(one.steps, len(own)), own)
            placed.append(finished(score, read))
        return placed

    def _of_things(
        self,
        verdicts: Sequence[Row],
        said: Sequence[ParsedVerdict],
        judged: Mapping[str, Row],
        call: Call,
    ) -> Table:
        """Scores of the single rows of gathered ones, from each verdict about them."""
        section = self._section(call.context)
        read, instead = section.read, score_instead(section.on_error)
        inputs = call.delivered(*ROW_PORTS)
        singles = {row.id: row for row in single_rows(self._node, call.context, inputs)}
        rows: list[Row] = []
        scores: list[Score] = []
        for verdict, one in zip(verdicts, said, strict=True):
            columns = {"completion": verdict.columns["completion"]}
            for place, name in enumerate(gathered_members(judged[verdict.parents[0]])):
                rows.append(child_row(self._node, singles[name], verdict.k, columns))
                number = one.things.get(place)
                missing = instead if FAILED in verdict.columns else read.on_no_match
                scores.append(missing if number is None else finished(number, read))
        return scored_outcome(self._node, rows, scores).outputs["scores"]

    # --- labels that are weighed

    def _by_labels(
        self, rows: Sequence[Row], row_prompts: Sequence[RowPrompt], call: Call
    ) -> Outcome:
        read = self._section(call.context).read
        bounds = read_range(read, by_label=True)
        chances = label_chances(self._node, row_prompts, call.context)
        metrics, alerts = self._fits.count(chances, is_probe=call.is_probe)
        said: dict[str, list[tuple[bool, float]]] = {row.id: [] for row in rows}
        for row_prompt, chance in zip(row_prompts, chances, strict=True):
            if not isinstance(chance, TooLong):
                swapped = bool(row_prompt.columns.get(SWAPPED))
                turned = opposite(chance, bounds) if swapped else chance
                said[row_prompt.row.id].append((swapped, turned))
        means = [fmean(n for _, n in said[row.id]) if said[row.id] else None for row in rows]
        outcome = scored_outcome(
            self._node,
            [self._with_orders(row, said[row.id]) for row in rows],
            [finished(mean, read) for mean in means],
            score_range=score_range(read, by_label=True),
            alerts=alerts,
        )
        found = _consistent(outcome.outputs["scores"])
        return replace(outcome, metrics={**outcome.metrics, **metrics, **found})

    def _with_orders(self, row: Row, said: Sequence[tuple[bool, float]]) -> Row:
        if len({swapped for swapped, _ in said}) < len((False, True)):
            return row
        return row.with_columns(self._node, {ORDERS: [number for _, number in sorted(said)]})

    def close(self) -> None:
        super().close()
        self._writer.close()

    def state(self) -> dict[str, Any]:
        return {"writer": self._writer.fits.state(), "rows": super().state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._writer.fits.load_state(state["writer"])
        super().load_state(state["rows"])


def _of_asked(
    node: str, asked: Sequence[Row], verdicts: Sequence[Row], scores: Sequence[float | None]
) -> Table:
    """The mean score of the verdicts about each row, for a node that calls by a handle."""
    said: dict[str, list[float]] = {row.id: [] for row in asked}
    for verdict, score in zip(verdicts, scores, strict=True):
        if score is not None:
            said[verdict.parents[0]].append(score)
    means = [fmean(said[row.id]) if said[row.id] else None for row in asked]
    return scored_outcome(node, asked, means).outputs["scores"]


def _consistent(table: Table) -> dict[str, float]:
    """Metric: how often pairs shown in both orders are judged the same way."""
    orders = judged_orders(table.rows, table.scores or {}, table)
    found = swap_consistency([Group(orders=orders)])
    return {} if found is None else {CONSISTENT: found}
