"""Judges in words: it writes a verdict about each row, and its `read` makes numbers of it.

    rows ── template ──> prompts ── writer ──> verdicts ── read ──> scores, step scores
                            └── without `rollout`: how likely its first label comes next

Scores belong to the verdicts, which are children of what they judge; without `rollout` nothing is
written and they belong to the rows that are judged. Step scores keep the positions of the text that
is judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from coloop.data.patterns import PatternTimeout
from coloop.data.verdicts import numbers_in, words_in
from coloop.errors import DataError
from coloop.hosts.messages import TooLong
from coloop.roles.fits import rows_of
from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.scored import scored_outcome
from coloop.roles.steps import at_ends, listed, step_ends, steps_of
from coloop.roles.verifiers import choosing
from coloop.roles.verifiers.judge import judged_rows, section_of, wants_steps
from coloop.roles.verifiers.questions import Questions
from coloop.roles.verifiers.reading import finished, reduced
from coloop.roles.verifiers.turning import (
    ORDERS,
    SWAPPED,
    consistency,
    opposite,
    read_range,
    score_range,
)
from coloop.roles.writer import Ask, Writer
from coloop.tables import Row, Score

UNREAD = "parse/none"
CONSISTENT = "swap/consistent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a text says: a number of the whole, and numbers of steps from 0."""

    whole: float | None = None
    steps: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        """Whether anything was found in it."""
        return self.whole is not None or bool(self.steps)


class GenerativeVerifier(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node
        self._questions = Questions(node)
        self._writer = Writer(node)
        self._fits = rows_of(node)

    def run(self, call: Call) -> Outcome:
        rows, incoming = judged_rows(self._node, call)
        compares = bool(call.inputs.get("comparisons"))
        asks = self._questions.about(rows, incoming, call, compares=compares)
        if section_of(self._node, call.context).rollout is None:
            return self._by_labels(rows, asks, call)
        return self._by_words(rows, asks, call)

    # --- verdicts that are written

    def _by_words(self, rows: Sequence[Row], asks: Sequence[Ask], call: Call) -> Outcome:
        written, context = self._writer.run(asks, call), call.context
        verdicts = written.outputs["rollouts"].rows
        judged = {row.id: row for row in rows}
        steps = {name: self._steps(row, context) for name, row in judged.items()}
        said = self._read(verdicts, steps, context)
        known = {
            row.id: self._score(row, one, context) for row, one in zip(verdicts, said, strict=True)
        }
        places = self._placed(verdicts, said, judged, context)
        read = section_of(self._node, context).read
        outcome = scored_outcome(
            self._node,
            verdicts,
            list(known.values()),
            step_scores=places,
            score_range=score_range(read, by_label=read.score == "probability"),
        )
        unread = frozenset(
            row.id for row, one in zip(verdicts, said, strict=True) if not one.is_read
        )
        tables = {name: replace(one, unturned=unread) for name, one in outcome.outputs.items()}
        if places is not None:
            parents = {row.id: row.parents[0] for row in verdicts}
            steps_table = replace(tables["step_scores"], judged=parents, reduce=read.reduce)
            tables["step_scores"] = steps_table
        tables["rollouts"] = replace(written.outputs["rollouts"], rows=tables["scores"].rows)
        found = {UNREAD: len(unread) / len(verdicts)} if verdicts else {}
        found |= self._consistent(verdicts, known, context)
        metrics = {**written.metrics, **outcome.metrics, **found}
        return replace(written, outputs=tables, metrics=metrics)

    def _read(
        self, verdicts: Sequence[Row], steps: Mapping[str, int | None], context: Context
    ) -> list[Verdict]:
        """What the texts say.

        Args:
            steps: of each text that was judged, by its row's id.
        """
        counts = [steps[row.parents[0]] for row in verdicts]
        if section_of(self._node, context).read.score == "probability":
            return self._weighed(verdicts, counts, context)
        return [
            self._numbers(str(row.columns["completion"]), count, context)
            for row, count in zip(verdicts, counts, strict=True)
        ]

    def _numbers(self, text: str, steps: int | None, context: Context) -> Verdict:
        read = section_of(self._node, context).read
        try:
            said = numbers_in(text, read, steps)
        except PatternTimeout as late:
            raise self._late(late) from None
        return Verdict(whole=said.whole, steps=said.steps)

    def _weighed(
        self, verdicts: Sequence[Row], counts: Sequence[int | None], context: Context
    ) -> list[Verdict]:
        """Chances of the first label in place of the words that were written."""
        read = section_of(self._node, context).read
        asked: list[tuple[int, int | None, int]] = []  # verdict, step or None, place in its text
        for number, (row, steps) in enumerate(zip(verdicts, counts, strict=True)):
            try:
                words = words_in(str(row.columns["completion"]), read, steps)
            except PatternTimeout as late:
                raise self._late(late) from None
            if words.whole is not None:
                asked.append((number, None, words.whole.start))
            asked += [(number, step, part.start) for step, part in sorted(words.steps.items())]
        places = [(verdicts[number], start) for number, _, start in asked]
        chances = choosing.at_places(self._node, places, context)
        wholes: dict[int, float] = {}
        by_step: dict[int, dict[int, float]] = {}
        for (number, step, _), chance in zip(asked, chances, strict=True):
            if isinstance(chance, TooLong):
                continue
            if step is None:
                wholes[number] = chance
            else:
                by_step.setdefault(number, {})[step] = chance
        return [
            Verdict(whole=wholes.get(number), steps=by_step.get(number, {}))
            for number in range(len(verdicts))
        ]

    def _score(self, row: Row, said: Verdict, context: Context) -> float | None:
        """The score of a verdict; that of one about a pair turned back to `chosen`."""
        read = section_of(self._node, context).read
        number = said.whole
        if read.verdict is None and read.number is None and number is None:
            number = reduced(said.steps.values(), read)
        if number is None:
            return read.on_no_match
        if row.columns.get(SWAPPED):
            bounds = read_range(read, by_label=read.score == "probability")
            number = opposite(number, bounds)
        score = finished(number, read)
        assert isinstance(score, float)
        return score

    def _steps(self, row: Row, context: Context) -> int | None:
        """Steps of a text that is judged; None where the row has no text."""
        text, read = row.columns.get("completion"), section_of(self._node, context).read
        if read.step_verdicts is None or not isinstance(text, str):
            return None
        return len(steps_of(text, read.step_separator))

    def _placed(
        self,
        verdicts: Sequence[Row],
        said: Sequence[Verdict],
        judged: Mapping[str, Row],
        context: Context,
    ) -> list[Score] | None:
        """Numbers of steps at the tokens in which the steps of the judged texts end; None where
        nobody reads them."""
        if not wants_steps(self._node, context):
            return None
        read = section_of(self._node, context).read
        ends = step_ends([*judged.values()], self._node, context, read.step_separator)
        placed: list[Score] = []
        for row, one in zip(verdicts, said, strict=True):
            own = ends.get(row.parents[0])
            score: Score = dict(one.steps) or None
            if own is not None and one.steps:
                score = at_ends(listed(one.steps, len(own)), own)
            placed.append(finished(score, read))
        return placed

    def _consistent(
        self, verdicts: Sequence[Row], scores: Mapping[str, float | None], context: Context
    ) -> dict[str, float]:
        """How often pairs shown in both orders are judged the same way."""
        by_pair: dict[str, list[tuple[bool, float]]] = {}
        for row in verdicts:
            score = scores[row.id]
            if score is not None and SWAPPED in row.columns:
                by_pair.setdefault(row.parents[0], []).append((row.columns[SWAPPED], score))
        return self._share(by_pair, context)

    def _share(
        self, by_pair: Mapping[str, Sequence[tuple[bool, float]]], context: Context
    ) -> dict[str, float]:
        section = section_of(self._node, context)
        by_label = section.rollout is None or section.read.score == "probability"
        bounds = score_range(section.read, by_label=by_label)
        found = consistency(by_pair, 0.0 if bounds is None else sum(bounds) / 2)
        return {} if found is None else {CONSISTENT: found}

    # --- labels that are weighed

    def _by_labels(self, rows: Sequence[Row], asks: Sequence[Ask], call: Call) -> Outcome:
        read = section_of(self._node, call.context).read
        bounds = read_range(read, by_label=True)
        chances = choosing.asked(self._node, asks, call.context)
        refused = [one for one in chances if isinstance(one, TooLong)]
        metrics, alerts = self._fits.count(refused, len(asks), is_probe=call.is_probe)
        said: dict[str, list[tuple[bool, float]]] = {row.id: [] for row in rows}
        for ask, chance in zip(asks, chances, strict=True):
            if not isinstance(chance, TooLong):
                swapped = bool(ask.columns.get(SWAPPED))
                turned = opposite(chance, bounds) if swapped else chance
                said[ask.row.id].append((swapped, turned))
        means = [fmean(n for _, n in said[row.id]) if said[row.id] else None for row in rows]
        outcome = scored_outcome(
            self._node,
            [self._with_orders(row, said[row.id]) for row in rows],
            [finished(mean, read) for mean in means],
            score_range=score_range(read, by_label=True),
            metrics={**metrics, **self._share(said, call.context)},
            alerts=alerts,
        )
        return outcome

    def _with_orders(self, row: Row, said: Sequence[tuple[bool, float]]) -> Row:
        """A pair that was judged in both orders, with what was said in each."""
        if len({swapped for swapped, _ in said}) < len((False, True)):
            return row
        return row.with_columns(self._node, {ORDERS: [number for _, number in sorted(said)]})

    def _late(self, late: PatternTimeout) -> DataError:
        return DataError(f"{self._node}: read: {late}", self._node, "read")

    def state(self) -> dict[str, Any]:
        return {"writer": self._writer.state(), "rows": self._fits.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._writer.load_state(state["writer"])
        self._fits.load_state(state["rows"])
