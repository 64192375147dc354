"""Scores of rows: built-in rewards, the user's Python, services, models with a score head. Scored
rows have the score as a column named after the node. A list has one number per step, which is
placed at the token that ends the step.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from coloop.data.rewards.builtin import judge_of, score_builtin
from coloop.data.rewards.judging import Judge
from coloop.data.rewards.remote import RemoteReward
from coloop.data.rewards.scoring import ScoringRow
from coloop.data.rewards.user_code import RowFailure, ScoredRows
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Score
from coloop.data.tables.join import gathered_members
from coloop.errors import DataError, ServiceFailed, UserCodeError
from coloop.runtime.roles.generation.asking import Asker
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.inputs import ROW_PORTS, scored_rows, single_rows
from coloop.runtime.roles.rows.outside import ask_code, sandbox_of, service_of
from coloop.runtime.roles.rows.scored import StepScores, at_ends, listed, scored_outcome, step_ends
from coloop.runtime.roles.rows.texts import FittingRole
from coloop.runtime.roles.verifiers.chat_reward import chat_scores
from coloop.runtime.roles.verifiers.discriminative import bounds_of, head_scores
from coloop.runtime.roles.verifiers.judge import finished
from coloop.sandbox.process import Scored
from coloop.spec.builtins import Column
from coloop.spec.nodes import RewardNode
from coloop.spec.plugins import Builtin
from coloop.spec.reward import ChatSource, ModelSource, PythonSource, RemoteSource, ScoreAs
from coloop.workers.messages import TooLong

Source = PythonSource | RemoteSource


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardResult:
    """The result of the user's code, or of a service, for a row."""

    score: Score | StepScores
    failure: RowFailure | None = None
    """Its `row` is the index in the call."""


class RewardRole(FittingRole[RewardNode]):
    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        self._service: RemoteReward | None = None
        self._lock = threading.Lock()
        """For what is started once: another node may call this one while its own stage runs."""
        self._judge: Judge | None = None
        self._asker = Asker(node, "source")

    def run(self, call: Call) -> Outcome:
        rows, incoming = scored_rows(self._node, call)
        section = self._section(call.context)
        scored: Sequence[Row] = rows
        scores: list[Score] = []
        alerts: list[tuple[str, str]] = []
        failures: list[RowFailure] = []
        if isinstance(section.source, ChatSource):
            return self._by_chat(rows, incoming, call)
        if isinstance(section.source, ModelSource):
            said = head_scores(self._node, rows, incoming, call, section.read)
            alerts = self._fits.count(said, is_probe=call.is_probe)[1]
            scores = [
                number if section.read is None else finished(number, section.read)
                for number in (None if isinstance(own, TooLong) else own for own in said)
            ]
        elif rows:
            ask = self._from_outside if isinstance(section.source, Source) else self._by_builtin
            given, failures = ask(rows, incoming, call)
            if section.per is None:
                scores = self._placed(rows, given, failures, call.context)
            else:
                scored, scores = taken_apart(self._node, call, rows, given)
        alerts += _told(failures, len(rows))
        bounds = bounds_of(section.read)
        outcome = scored_outcome(self._node, scored, scores, score_range=bounds, alerts=alerts)
        return replace(outcome, failures=failures, printed=self.take_printed())

    def _by_chat(
        self, rows: Sequence[Row], incoming: Sequence[Mapping[str, Score]], call: Call
    ) -> Outcome:
        if not rows:
            return scored_outcome(self._node, (), ())
        section = self._section(call.context)
        said = chat_scores(self._node, section, self._asker, rows, incoming, call)
        scored = list(rows)
        scores: list[Score] = [one for one in said.scores if not isinstance(one, list)]
        if section.per == "row":
            scored, scores = taken_apart(self._node, call, rows, said.scores)
        outcome = scored_outcome(
            self._node,
            scored,
            scores,
            score_range=said.score_range,
            metrics=said.metrics,
            alerts=[*said.alerts, *_told(said.failures, len(rows))],
        )
        table = replace(outcome.outputs["scores"], parts=said.parts)
        return replace(
            outcome, outputs={"scores": table}, failures=said.failures, reasons=said.reasons
        )

    def _by_builtin(
        self, rows: Sequence[Row], incoming: list[dict[str, Score]], call: Call
    ) -> tuple[list[Score | StepScores], list[RowFailure]]:
        source = self._section(call.context).source
        assert isinstance(source, Builtin)
        where = (self._node, call.salt, call.step)
        seen = [
            _scoring_row(row, scores, derive_seed(call.context.seed, *where, row.id))
            for row, scores in zip(rows, incoming, strict=True)
        ]
        with self._lock:
            if self._judge is None:
                self._judge = judge_of(source, self._node)
        scored = score_builtin(
            source,
            seen,
            node=self._node,
            on_error=self._section(call.context).on_error,
            judge=self._judge,
            tick=partial(call.tick, 0, len(rows)),
        )
        said: list[Score | StepScores] = [*scored.scores]
        if isinstance(source, Column):
            for index, row in enumerate(seen):
                given, score = row.columns.get(source.column), said[index]
                if isinstance(given, list | tuple) and isinstance(score, dict):
                    said[index] = listed(score, len(given))
        return said, [*scored.failures]

    def can_begin(self, context: Context) -> bool:
        """Only user code and services; built-in rewards take too little time."""
        return isinstance(self._section(context).source, Source)

    def begin(self, call: Call) -> dict[str, tuple[Row, RewardResult]]:
        """Results of user code or a service for the first rows, by row id."""
        rows, incoming = scored_rows(self._node, call)
        source = self._section(call.context).source
        assert isinstance(source, Source)
        results: dict[str, tuple[Row, RewardResult]] = {}
        for indices in self._shares(source, rows, is_streamed=True):
            part = [rows[index] for index in indices]
            scores = [incoming[index] for index in indices]
            answers = self._ask(source, part, scores, call)
            results |= {row.id: (row, result) for row, result in zip(part, answers, strict=True)}
        return results

    def _from_outside(
        self, rows: Sequence[Row], incoming: list[dict[str, Score]], call: Call
    ) -> tuple[list[Score | StepScores], list[RowFailure]]:
        """Results of user code or a service for all rows, including those of `begin`."""
        source = self._section(call.context).source
        assert isinstance(source, Source)
        seen: dict[str, tuple[Row, RewardResult]] = {}
        for begun in call.begun:
            seen |= begun
        said: dict[int, RewardResult] = {}
        for indices in self._shares(source, rows, is_streamed=call.context.spec.schedule.stream):
            part = [rows[index] for index in indices]
            known = [seen[row.id] for row in part if row.id in seen]
            is_same = (
                then.tokens is row.tokens for (then, _), row in zip(known, part, strict=False)
            )
            if len(known) == len(part) and all(is_same):
                answers = [answer for _, answer in known]
            else:  # one of them was not seen, or has been written again since
                answers = self._ask(source, part, [incoming[index] for index in indices], call)
            said |= dict(zip(indices, answers, strict=True))
        failures = [
            one.failure.at(index) for index, one in sorted(said.items()) if one.failure is not None
        ]
        return [said[index].score for index in range(len(rows))], failures

    def _shares(self, source: Source, rows: Sequence[Row], *, is_streamed: bool) -> list[list[int]]:
        """Row indices of each call. With streaming, user code, which may compare rows, is called
        for one family at a time; a service scores each row by itself."""
        if is_streamed and isinstance(source, PythonSource):
            return families(rows)
        return [[*range(len(rows))]]

    def _ask(
        self, source: Source, rows: Sequence[Row], incoming: Sequence[dict[str, Score]], call: Call
    ) -> list[RewardResult]:
        plain = [
            {name: value for name, value in row.columns.items() if not name.endswith("_tokens")}
            | scores
            for row, scores in zip(rows, incoming, strict=True)
        ]
        context, on_error = call.context, self._section(call.context).on_error
        result: ScoredRows[Scored] | ScoredRows[float | None]
        if isinstance(source, PythonSource):
            with self._lock:
                if not self._sandboxes:
                    self._sandboxes[0] = sandbox_of(self._node, source, context)
            result = ask_code(self._node, self._sandboxes[0], rows, plain, call, on_error)
        else:
            with self._lock:
                if self._service is None:
                    self._service = service_of(self._node, source, context)
            ids = [row.id for row in rows]
            result = self._service.score(plain, ids, on_error=on_error, tick=call.tick)
        failures = {failure.row: failure for failure in result.failures}
        return [
            RewardResult(
                score=score if score is None or isinstance(score, list) else float(score),
                failure=failures.get(index),
            )
            for index, score in enumerate(result.scores)
        ]

    def _placed(
        self,
        rows: Sequence[Row],
        said: Sequence[Score | StepScores],
        failures: list[RowFailure],
        context: Context,
    ) -> list[Score]:
        """The scores, with lists mapped to the tokens that end the steps. A list of the wrong
        length is a failure of its row."""
        section = self._section(context)
        of_steps = [row for row, score in zip(rows, said, strict=True) if isinstance(score, list)]
        ends = step_ends(of_steps, self._node, context) if of_steps else {}
        placed: list[Score] = []
        for index, (row, score) in enumerate(zip(rows, said, strict=True)):
            if not isinstance(score, list):
                placed.append(score)
                continue
            own = ends.get(row.id, range(len(score)))
            if len(own) == len(score):
                placed.append(at_ends(score, own))
                continue
            message = (
                f"{self._node}, row {index} ({row.id}): a list of {len(score)} numbers for a "
                f"completion of {len(own)} steps; return one number (or None) for each line that "
                "is not blank"
            )
            if section.on_error == "stop":
                match section.source:
                    case PythonSource():
                        raise UserCodeError(message, self._node, index)
                    case RemoteSource():
                        raise ServiceFailed(message, self._node, "source.url")
                raise DataError(message, self._node, "source.column")
            failures.append(RowFailure(row=index, message=message))
            placed.append(section.on_error.score if isinstance(section.on_error, ScoreAs) else None)
        return placed

    def close(self) -> None:
        super().close()
        if self._service is not None:
            self._service.close()
            self._service = None
        if self._judge is not None:
            self._judge.close()
        self._asker.close()


def _told(failures: Sequence[RowFailure], rows: int) -> list[tuple[str, str]]:
    """The alert about failed rows."""
    if not failures:
        return []
    first = min(failures, key=lambda failure: failure.row)
    message = f"{len(failures)} of {rows} rows failed; the first: {first.message}"
    return [("reward.rows_failed", message)]


def _scoring_row(row: Row, scores: dict[str, Score], seed: int) -> ScoringRow:
    return ScoringRow(
        columns={**row.scoped, **row.columns},
        scores=scores,
        id=row.id,
        group=row.group,
        ancestors=tuple(a for a, way in row.trail.items() if way),
        writer=row.writer,
        round=row.round,
        conversation=next(iter(row.trail), row.id),
        seed=seed,
    )


def families(rows: Sequence[Row]) -> list[list[int]]:
    """Indices of rows with the same parents, in order. A greedy extra row has a family of its own,
    as it is in no group."""
    by_parents: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
    for index, row in enumerate(rows):
        by_parents.setdefault((row.is_greedy, row.parents or (row.id,)), []).append(index)
    return list(by_parents.values())


# Scores of gathered rows, one for each of their members (`per: row`).


def taken_apart(
    node: str, call: Call, rows: Sequence[Row], said: Sequence[object]
) -> tuple[list[Row], list[Score]]:
    """The single rows of gathered ones, each with its score. `said`: for each gathered row a list
    in the order of its members, or one number or None for all. Raises `DataError` for a list of
    another length."""
    singles = single_rows(node, call.context, call.delivered(*ROW_PORTS))
    known = {row.id: row for row in singles}
    members: list[Row] = []
    scores: list[Score] = []
    for row, one in zip(rows, said, strict=True):
        own = gathered_members(row)
        members += [known[name] for name in own]
        scores += _each(node, row, one, len(own))
    return members, scores


def _each(node: str, row: Row, said: object, count: int) -> Sequence[float | None]:
    if said is None or isinstance(said, float | int):
        return [None if said is None else float(said)] * count
    found: StepScores = [] if not isinstance(said, list) else said
    if isinstance(said, Mapping) or len(found) != count:
        raise DataError(
            f"{node}: row {row.id} gathers {count} rows but got {len(found)} numbers; with `per: "
            "row` return one number (or None) for each gathered row, in their order",
            node,
            "per",
        )
    return found
