"""Numbers for rows: built-in rewards and the user's Python. Scores come back with the rows they
were made for, and stand in those rows under the node's name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coloop.errors import DataError
from coloop.rewards.builtin import score_builtin
from coloop.rewards.sandbox import Sandbox
from coloop.rewards.scoring import ScoringRow
from coloop.rewards.user_code import reward_columns, score_rows
from coloop.roles.inputs import deliver, joined_rows, only_delivered
from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.seeds import derive_seed
from coloop.spec.nodes import RewardNode
from coloop.spec.reward import PythonSource
from coloop.tables import Row, Score, Table, join_rows

ROW_PORTS = ("rollouts", "rows", "comparisons")


class RewardRole(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        self._node = node
        self._context = context
        self._sandbox: Sandbox | None = None

    @property
    def _section(self) -> RewardNode:
        section = self._context.spec.nodes[self._node]
        assert isinstance(section, RewardNode)
        return section

    def run(self, call: Call) -> Outcome:
        rows, incoming = self._rows(call)
        alerts: list[tuple[str, str]] = []
        scores = self._score(rows, incoming, call, alerts) if rows else []
        scored = tuple(
            row.with_columns(self._node, {self._node: score})
            for row, score in zip(rows, scores, strict=True)
        )
        numbers = [score for score in scores if isinstance(score, float | int)]
        metrics = {"score/mean": sum(numbers) / len(numbers)} if numbers else {}
        if rows:
            metrics["score/none"] = sum(score is None for score in scores) / len(rows)
        table = Table(
            rows=scored,
            scores={row.id: score for row, score in zip(rows, scores, strict=True)},
            scorer=self._node,
        )
        return Outcome(outputs={"scores": table}, samples=len(rows), metrics=metrics, alerts=alerts)

    def _rows(self, call: Call) -> tuple[tuple[Row, ...], list[dict[str, Score]]]:
        """The rows to score, and for each the scores that came in, by scorer."""
        given = call.inputs.get("scores", ())
        if any(call.tables(port) for port in ROW_PORTS):
            rows = joined_rows(self._node, self._context, call, ROW_PORTS)
        else:
            level = [one.table for one in given if one.edge.aggregate is None]
            is_concat = self._section.join == "concat"
            rows = (
                joined_rows(self._node, self._context, call, ("scores",))
                if is_concat
                else join_rows(level)
            )
        deliveries = [deliver(self._context, rows, one) for one in given]
        if self._section.join != "concat":
            rows = only_delivered(rows, deliveries)
        incoming: list[dict[str, Score]] = [
            {
                one.edge.source.node: delivery.values[row.id]
                for one, delivery in zip(given, deliveries, strict=True)
                if row.id in delivery.values
            }
            for row in rows
        ]
        return rows, incoming

    def _score(
        self,
        rows: Sequence[Row],
        incoming: list[dict[str, Score]],
        call: Call,
        alerts: list[tuple[str, str]],
    ) -> list[Score]:
        source = self._section.source
        if not isinstance(source, PythonSource):
            seen = [_scoring_row(row, scores) for row, scores in zip(rows, incoming, strict=True)]
            return list(score_builtin(source, seen, node=self._node))  # type: ignore[arg-type]
        plain = [{**_plain(row), **scores} for row, scores in zip(rows, incoming, strict=True)]
        result = score_rows(
            self._child(source),
            reward_columns(plain),
            len(rows),
            on_error=self._section.on_error,
            seed=derive_seed(self._context.seed, self._node, call.step) % 2**31,
        )
        if result.failures:
            first = result.failures[0]
            alerts.append(
                (
                    "reward.rows_failed",
                    f"{len(result.failures)} of {len(rows)} rows failed; "
                    f"the first: {first.message}",
                )
            )
        return [self._positions(row, score) for row, score in zip(rows, result.scores, strict=True)]

    def _positions(self, row: Row, score: Any) -> Score:
        """A list is one number for each token of the completion."""
        if not isinstance(score, list):
            return None if score is None else float(score)
        length = len(row.tokens.token_ids) if row.tokens else 0
        if len(score) != length:
            raise DataError(
                f"{self._node}: row {row.id} got a list of {len(score)} numbers; a list wants one "
                f"for each of the completion's {length} tokens",
                self._node,
                "source",
            )
        return {place: float(value) for place, value in enumerate(score) if value is not None}

    def _child(self, source: PythonSource) -> Sandbox:
        if self._sandbox is None:
            code = source.code
            if code is None:
                assert source.file is not None
                code = self._read(source.file)
            self._sandbox = Sandbox(
                code,
                function="reward",
                node=self._node,
                timeout_seconds=source.timeout_seconds,
                memory_mib=source.memory_mib,
            )
        return self._sandbox

    def _read(self, file: str) -> str:
        path = self._context.root / Path(file)
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"{self._node}: source.file: {path} cannot be read: {error.strerror}",
                self._node,
                "source.file",
            ) from None

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
