"""Numbers for rows: built-in rewards, the user's Python, models with a score head. Scores come back
with the rows they were made for, and stand in those rows under the node's name. A list is one
number a step; its numbers land on the tokens in which the steps end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from coloop.errors import DataError, UserCodeError
from coloop.hosts.messages import TooLong
from coloop.rewards.builtin import score_builtin
from coloop.rewards.scoring import ScoringRow
from coloop.rewards.user_code import RowFailure, reward_columns, score_rows
from coloop.roles.early import Begun, families
from coloop.roles.fits import rows_of
from coloop.roles.inputs import scored_rows
from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.scored import scored_outcome
from coloop.roles.steps import StepScores, at_ends, listed, step_ends
from coloop.roles.texts import as_read
from coloop.sandbox.process import Sandbox
from coloop.seeds import derive_seed
from coloop.spec.builtins import Column
from coloop.spec.nodes import RewardNode
from coloop.spec.reward import ModelSource, PythonSource, ScoreAs
from coloop.tables import Row, Score

ROW_PORTS = ("rollouts", "rows", "comparisons")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the user's code says of a row."""

    score: Score | StepScores
    failure: RowFailure | None = None
    """Its `row` is the place in the call."""


class RewardRole(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        self._node = node
        self._sandbox: Sandbox | None = None
        self._fits = rows_of(node)

    def _section(self, context: Context) -> RewardNode:
        section = context.spec.nodes[self._node]
        assert isinstance(section, RewardNode)
        return section

    def run(self, call: Call) -> Outcome:
        rows, incoming = scored_rows(self._node, call, ROW_PORTS)
        alerts: list[tuple[str, str]] = []
        scores = self._score(rows, incoming, call, alerts) if rows else []
        return scored_outcome(self._node, rows, scores, alerts=alerts)

    def _score(
        self,
        rows: Sequence[Row],
        incoming: list[dict[str, Score]],
        call: Call,
        alerts: list[tuple[str, str]],
    ) -> list[Score]:
        source = self._section(call.context).source
        if isinstance(source, ModelSource):
            return self._by_model(rows, call, alerts)
        if isinstance(source, PythonSource):
            said, failures = self._by_python(source, rows, incoming, call)
        else:
            said, failures = self._by_builtin(source, rows, incoming), []
        placed = self._placed(rows, said, failures, call.context)
        if failures:
            first = min(failures, key=lambda failure: failure.row)
            message = f"{len(failures)} of {len(rows)} rows failed; the first: {first.message}"
            alerts.append(("reward.rows_failed", message))
        return placed

    def _by_model(
        self, rows: Sequence[Row], call: Call, alerts: list[tuple[str, str]]
    ) -> list[Score]:
        """What the node's model says of each text; None of one that it cannot read."""
        group = call.context.groups[self._node]
        texts = [as_read(row) for row in rows]
        said = call.context.hosts.score(group, self._node, texts, 1.0, "scores")
        refused = [one for one in said if isinstance(one, TooLong)]
        alerts += self._fits.count(refused, len(rows), is_probe=call.is_probe)[1]
        return [None if isinstance(one, TooLong) else float(one[0]) for one in said]

    def _by_builtin(
        self, source: Any, rows: Sequence[Row], incoming: list[dict[str, Score]]
    ) -> list[Score | StepScores]:
        seen = [_scoring_row(row, scores) for row, scores in zip(rows, incoming, strict=True)]
        said: list[Score | StepScores] = [*score_builtin(source, seen, node=self._node)]
        if isinstance(source, Column):
            for place, row in enumerate(seen):
                given, score = row.columns.get(source.column), said[place]
                if isinstance(given, list | tuple) and isinstance(score, dict):
                    said[place] = listed(score, len(given))
        return said

    def can_begin(self, context: Context) -> bool:
        """Built-in rewards take no time that is worth it."""
        return isinstance(self._section(context).source, PythonSource)

    def begin(self, call: Call) -> dict[str, tuple[Row, Said]]:
        """What Python says of rows that are there before the others, by their ids."""
        rows, incoming = scored_rows(self._node, call, ROW_PORTS)
        source = self._section(call.context).source
        assert isinstance(source, PythonSource)
        found: dict[str, tuple[Row, Said]] = {}
        for places in families(rows):
            family = [rows[place] for place in places]
            said = self._ask(source, family, [incoming[place] for place in places], call)
            found |= {row.id: (row, one) for row, one in zip(family, said, strict=True)}
        return found

    def _by_python(
        self,
        source: PythonSource,
        rows: Sequence[Row],
        incoming: list[dict[str, Score]],
        call: Call,
    ) -> tuple[list[Score | StepScores], list[RowFailure]]:
        """One call of the user's code for all rows; with `stream` one for each family, whether its
        rows were there before the others or not."""
        is_streamed = call.context.spec.schedule.stream
        begun = Begun(call.begun)
        said: dict[int, Said] = {}
        for places in families(rows) if is_streamed else [[*range(len(rows))]]:
            part = [rows[place] for place in places]
            known = begun.of(part) if call.begun else None
            if known is None:
                scores = [incoming[place] for place in places]
                known = self._ask(source, part, scores, call)
            said |= dict(zip(places, known, strict=True))
        failures = [
            one.failure.at(place) for place, one in sorted(said.items()) if one.failure is not None
        ]
        return [said[place].score for place in range(len(rows))], failures

    def _ask(
        self,
        source: PythonSource,
        rows: Sequence[Row],
        incoming: Sequence[dict[str, Score]],
        call: Call,
    ) -> list[Said]:
        """One call of the user's code."""
        plain = [{**_plain(row), **scores} for row, scores in zip(rows, incoming, strict=True)]
        child = self._child(source, call.context)
        child.tick = partial(call.tick, 0, len(rows))
        which = [rows[0].id] if call.context.spec.schedule.stream else []
        seed = derive_seed(call.context.seed, self._node, call.salt, call.step, *which)
        try:
            result = score_rows(
                child,
                reward_columns(plain),
                len(rows),
                on_error=self._section(call.context).on_error,
                seed=seed % 2**31,
            )
        except UserCodeError as error:
            if not which or error.row is None:
                raise
            message = f"{error} (of {len(rows)} rows of one call; it is {rows[error.row].id})"
            raise UserCodeError(message, error.node, error.row, error.traceback) from None
        failures = {failure.row: failure for failure in result.failures}
        return [
            Said(
                score=score if score is None or isinstance(score, list) else float(score),
                failure=failures.get(place),
            )
            for place, score in enumerate(result.scores)
        ]

    def _placed(
        self,
        rows: Sequence[Row],
        said: Sequence[Score | StepScores],
        failures: list[RowFailure],
        context: Context,
    ) -> list[Score]:
        """Scores with lists laid on the tokens in which the steps end; a list that does not fit
        its text is a failure of that row."""
        of_steps = [row for row, score in zip(rows, said, strict=True) if isinstance(score, list)]
        ends = step_ends(of_steps, self._node, context) if of_steps else {}
        placed: list[Score] = []
        for place, (row, score) in enumerate(zip(rows, said, strict=True)):
            if not isinstance(score, list):
                placed.append(score)
                continue
            own = ends.get(row.id, range(len(score)))
            if len(own) == len(score):
                placed.append(at_ends(score, own))
            else:
                placed.append(self._misfit(place, row, (len(score), len(own)), failures, context))
        return placed

    def _misfit(
        self,
        place: int,
        row: Row,
        lengths: tuple[int, int],
        failures: list[RowFailure],
        context: Context,
    ) -> Score:
        """What a row gets whose list has another length than its text has steps."""
        numbers, steps = lengths
        section = self._section(context)
        message = (
            f"{self._node}, row {place} ({row.id}): a list of {numbers} numbers for a completion "
            f"of {steps} steps; a list is one number (or None) for each line that is not blank"
        )
        on_error = section.on_error
        if on_error == "stop":
            if isinstance(section.source, PythonSource):
                raise UserCodeError(message, self._node, place)
            raise DataError(message, self._node, "source.column")
        failures.append(RowFailure(row=place, message=message))
        return on_error.score if isinstance(on_error, ScoreAs) else None

    def _child(self, source: PythonSource, context: Context) -> Sandbox:
        if self._sandbox is None:
            code = source.code
            if code is None:
                assert source.file is not None
                code = self._read(source.file, context)
            self._sandbox = Sandbox(
                code,
                function="reward",
                node=self._node,
                timeout_seconds=source.timeout_seconds,
                memory_mib=source.memory_mib,
            )
        return self._sandbox

    def _read(self, file: str, context: Context) -> str:
        path = context.root / Path(file)
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"{self._node}: source.file: {path} cannot be read: {error.strerror}",
                self._node,
                "source.file",
            ) from None

    def state(self) -> dict[str, Any]:
        return self._fits.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._fits.load_state(state)

    def close(self) -> None:
        """End the process of the user's code."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


def _scoring_row(row: Row, scores: dict[str, Score]) -> ScoringRow:
    return ScoringRow(
        columns={**row.scoped, **row.columns},
        scores=scores,
        id=row.id,
        group=row.group,
        ancestors=tuple(a for a, way in row.trail.items() if way),
        writer=row.writer,
        round=row.round,
        conversation=next(iter(row.trail), row.id),
    )


def _plain(row: Row) -> dict[str, Any]:
    """Bare columns, and the nearest names that user code may want; tokens stay here."""
    return {name: value for name, value in row.columns.items() if not name.endswith("_tokens")}
