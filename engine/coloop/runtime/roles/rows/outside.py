"""Scores that come from outside of the engine: the user's Python in its sandbox, or a service. A
node may be asked by its own stage and, by its handle, by others at the same time.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coloop.data.rewards.remote import RemoteReward
from coloop.data.rewards.user_code import (
    OnError,
    RowFailure,
    ScoredRows,
    reward_columns,
    score_rows,
)
from coloop.data.seeds import derive_seed
from coloop.data.services.endpoint import Endpoint
from coloop.data.tables import Row, Score
from coloop.errors import DataError, UserCodeError
from coloop.runtime.roles.protocol import Call, Context
from coloop.runtime.roles.rows.scored import StepScores
from coloop.sandbox.code_files import CodeFile, read_code
from coloop.sandbox.process import Sandbox, Scored
from coloop.spec.nodes import ToolNode
from coloop.spec.reward import PythonSource, RemoteSource

Source = PythonSource | RemoteSource


TOKEN_IDS = "completion_ids"
"""The parameter of a reward by which it gets the token ids of each completion, as TRL names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardResult:
    """What the user's code, or a service, says of a row."""

    score: Score | StepScores
    failure: RowFailure | None = None
    """Its `row` is the place in the call."""


class Outside:
    """What one node asks outside; started when it is first asked."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._lock = threading.Lock()
        """Of what is started once."""
        self._sandbox: Sandbox | None = None
        self._remote: RemoteReward | None = None

    def ask(
        self,
        source: Source,
        rows: Sequence[Row],
        plain: Sequence[dict[str, Any]],
        call: Call,
        on_error: OnError,
    ) -> list[RewardResult]:
        """One call of the user's code, or what a service says of each row.

        Args:
            plain: the rows' columns, and the scores that came in.
        """
        if isinstance(source, PythonSource):
            result = self._ask_code(source, rows, plain, call, on_error)
        else:
            with self._lock:
                service = self._service(source, call.context)
            result = service.score(
                plain,
                [row.id for row in rows],
                on_error=on_error,
                tick=call.tick,
            )
        failures = {failure.row: failure for failure in result.failures}
        return [
            RewardResult(
                score=score if score is None or isinstance(score, list) else float(score),
                failure=failures.get(index),
            )
            for index, score in enumerate(result.scores)
        ]

    def _ask_code(
        self,
        source: PythonSource,
        rows: Sequence[Row],
        plain: Sequence[dict[str, Any]],
        call: Call,
        on_error: OnError,
    ) -> ScoredRows[Scored]:
        with self._lock:
            child = self._child(source, call.context)
        which = [rows[0].id] if call.context.spec.schedule.stream else []
        seed = derive_seed(call.context.seed, self._node, call.salt, call.step, *which)
        try:
            with child.held(partial(call.tick, 0, len(rows))):
                columns = reward_columns(plain)
                if TOKEN_IDS in child.source and TOKEN_IDS not in columns:
                    columns[TOKEN_IDS] = [
                        None if row.tokens is None else row.tokens.token_ids.tolist()
                        for row in rows
                    ]
                return score_rows(
                    child,
                    columns,
                    len(rows),
                    on_error=on_error,
                    seed=seed % 2**31,
                )
        except UserCodeError as error:
            if not which or error.row is None:
                raise
            message = f"{error} (of {len(rows)} rows of one call; it is {rows[error.row].id})"
            raise UserCodeError(message, error.node, error.row, error.traceback) from None

    def take_printed(self) -> str:
        return self._sandbox.take_printed() if self._sandbox is not None else ""

    def _child(self, source: PythonSource, context: Context) -> Sandbox:
        if self._sandbox is None:
            read = code_of(self._node, source, "source.file", context)
            self._sandbox = Sandbox(
                read.source,
                modules=read.modules,
                function="reward",
                node=self._node,
                timeout_seconds=source.timeout_seconds,
                memory_mib=source.memory_mib,
            )
        return self._sandbox

    def _service(self, source: RemoteSource, context: Context) -> RemoteReward:
        if self._remote is None:
            endpoint = Endpoint(
                node=self._node,
                field="source.url",
                url=source.url,
                secret=source.secret,
                timeout_seconds=source.timeout_seconds,
                retries=source.retries,
                concurrency=source.concurrency,
                seed=derive_seed(context.seed, self._node),
            )
            self._remote = RemoteReward(endpoint, batch=source.batch)
        return self._remote

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()
            self._remote = None
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


def code_of(node: str, section: PythonSource | ToolNode, field: str, context: Context) -> CodeFile:
    """The Python of a node: as its section has it, or in the file that a field names.

    Raises:
        DataError: the file cannot be read.
    """
    if section.code is not None:
        return CodeFile(section.code, {})
    assert section.file is not None
    path = context.root / section.file
    try:
        return read_code(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"{node}: {field}: {path} cannot be read: {reason}", node, field) from None
