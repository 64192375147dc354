"""Scores that come from outside of the engine: the user's Python in its sandbox, or a service. A
node may be asked by its own stage and, by its handle, by others at the same time.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from coloop.errors import DataError, UserCodeError
from coloop.rewards.remote import RemoteReward
from coloop.rewards.user_code import OnError, RowFailure, ScoredRows, reward_columns, score_rows
from coloop.roles.protocol import Call, Context
from coloop.roles.steps import StepScores
from coloop.sandbox.process import Sandbox
from coloop.seeds import derive_seed
from coloop.services.endpoint import Endpoint
from coloop.spec.reward import PythonSource, RemoteSource
from coloop.tables import Row, Score

Source = PythonSource | RemoteSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
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
        self.printed = ""
        """By the user's code, when it was asked last."""

    def ask(
        self,
        source: Source,
        rows: Sequence[Row],
        plain: Sequence[dict[str, Any]],
        call: Call,
        on_error: OnError,
    ) -> list[Said]:
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
            Said(
                score=score if score is None or isinstance(score, list) else float(score),
                failure=failures.get(place),
            )
            for place, score in enumerate(result.scores)
        ]

    def _ask_code(
        self,
        source: PythonSource,
        rows: Sequence[Row],
        plain: Sequence[dict[str, Any]],
        call: Call,
        on_error: OnError,
    ) -> ScoredRows:
        with self._lock:
            child = self._child(source, call.context)
        which = [rows[0].id] if call.context.spec.schedule.stream else []
        seed = derive_seed(call.context.seed, self._node, call.salt, call.step, *which)
        try:
            with child.held(partial(call.tick, 0, len(rows))):
                scored = score_rows(
                    child,
                    reward_columns(plain),
                    len(rows),
                    on_error=on_error,
                    seed=seed % 2**31,
                )
                self.printed = scored.printed
                return scored
        except UserCodeError as error:
            if not which or error.row is None:
                raise
            message = f"{error} (of {len(rows)} rows of one call; it is {rows[error.row].id})"
            raise UserCodeError(message, error.node, error.row, error.traceback) from None

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

    def close(self) -> None:
        """End the process of the user's code, and the connections to a service."""
        if self._remote is not None:
            self._remote.close()
            self._remote = None
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
