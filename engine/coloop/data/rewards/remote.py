"""Rewards from a service over HTTP; `README.md` in this folder describes the requests and replies.

    rows -> without known and equal ones -> batches -> service -> scores in the order of the rows

A row's score must depend on its content alone, so it is requested once and cached. If a batch
fails, its rows are requested one by one, unless the first failure stops the run.
"""

import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, Final

from coloop.data.rewards.user_code import (
    OnError,
    RowFailure,
    ScoredRows,
    reward_columns,
    score_instead,
)
from coloop.data.services.endpoint import Endpoint
from coloop.data.services.replies import Nonsense, shown
from coloop.data.services.service import Service, collect
from coloop.errors import DataError, ServiceFailed
from coloop.sandbox.inside.values import why_no_score
from coloop.sandbox.process import Scored

WIRE_VERSION: Final = 1
KEPT: Final = 65_536
HINT: Final = "it should answer a list with a number, null or a list of numbers for each row"

Row = Mapping[str, Any]
Tick = Callable[[int, int], None]
"""Called with the number of finished rows and their total."""


class RemoteReward:
    def __init__(self, endpoint: Endpoint, *, batch: int) -> None:
        self._endpoint = endpoint
        self._batch = batch
        self._service = Service(endpoint)
        self._kept: OrderedDict[bytes, Scored] = OrderedDict()
        self._lock = Lock()

    def score(
        self, rows: Sequence[Row], ids: Sequence[str], *, on_error: OnError, tick: Tick
    ) -> ScoredRows[Scored]:
        """Scores in the order of the rows.

        Args:
            rows: columns by name, with `prompt` and `completion`; the values must be JSON.
            ids: of the rows, which the service may log.
            on_error: `stop` raises the `ServiceFailed` of the first failure; else a failed row gets
                None or its fixed score.
            tick: called with the progress; what it raises ends the call.
        """
        keys = [self._key(row) for row in rows]
        first = {key: index for index, key in reversed([*enumerate(keys)])}
        known = self._take(first)
        asked = sorted(index for key, index in first.items() if key not in known)
        wanted = [
            [(keys[index], ids[index], rows[index]) for index in asked[at : at + self._batch]]
            for at in range(0, len(asked), self._batch)
        ]
        is_strict = on_error == "stop"
        failed = self._ask(wanted, known, until_failure=is_strict, tick=tick)
        if failed and is_strict:
            raise next(iter(failed.values()))
        alone = [[row] for batch in wanted if len(batch) > 1 for row in batch if row[0] in failed]
        if alone:
            failed |= self._ask(alone, known, until_failure=False, tick=tick)
        self._keep({key: known[key] for key in first if key in known})
        return self._told(keys, known, failed, on_error)

    def close(self) -> None:
        self._service.close()

    def _ask(
        self,
        batches: Sequence[Sequence[tuple[bytes, str, Row]]],
        known: dict[bytes, Scored],
        *,
        until_failure: bool,
        tick: Tick,
    ) -> dict[bytes, ServiceFailed]:
        """Request scores of batches and add them to `known`; returns the failures by row key."""
        bodies = [self._body(batch) for batch in batches]
        futures = [
            self._service.ask(body, partial(read_scores, count=len(batch)))
            for body, batch in zip(bodies, batches, strict=True)
        ]
        rows = sum(map(len, batches))

        def heard(done: int) -> None:
            tick(rows * done // max(1, len(batches)), rows)

        collect(futures, heard, until_failure=until_failure)
        failed: dict[bytes, ServiceFailed] = {}
        for batch, future in zip(batches, futures, strict=True):
            if future.cancelled():
                continue
            error = future.exception()
            if error is None:
                known |= {row[0]: score for row, score in zip(batch, future.result(), strict=True)}
            elif isinstance(error, ServiceFailed):
                failed |= {row[0]: error for row in batch}
            else:
                raise error
        return failed

    def _told(
        self,
        keys: Sequence[bytes],
        known: Mapping[bytes, Scored],
        failed: Mapping[bytes, ServiceFailed],
        on_error: OnError,
    ) -> ScoredRows[Scored]:
        node = self._endpoint.node
        failures = [
            RowFailure(
                row=index,
                message=f"{node}, row {index}: {str(failed[key]).removeprefix(f'{node}: ')}",
            )
            for index, key in enumerate(keys)
            if key not in known
        ]
        return ScoredRows(
            scores=[known.get(key, score_instead(on_error)) for key in keys],
            failures=tuple(failures),
        )

    def _body(self, batch: Sequence[tuple[bytes, str, Row]]) -> dict[str, Any]:
        columns = reward_columns([row for _, _, row in batch])
        return {
            "coloop": WIRE_VERSION,
            "node": self._endpoint.node,
            "ids": [name for _, name, _ in batch],
            "prompts": columns.pop("prompts"),
            "completions": columns.pop("completions"),
            "columns": columns,
        }

    def _key(self, row: Row) -> bytes:
        """Hash of a row's content; raises DataError for a column that JSON cannot hold."""
        try:
            text = json.dumps(row, allow_nan=False, sort_keys=True)
        except (TypeError, ValueError) as error:
            names = [name for name, value in row.items() if not _is_plain(value)]
            raise DataError(
                f"{self._endpoint.node}: source.url: column `{', '.join(names)}` cannot be sent as "
                f"JSON ({error}); drop it with a template before the reward",
                self._endpoint.node,
                self._endpoint.field,
            ) from None
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def _take(self, keys: Mapping[bytes, int]) -> dict[bytes, Scored]:
        with self._lock:
            scores = {key: self._kept[key] for key in keys if key in self._kept}
            for key in scores:
                self._kept.move_to_end(key)
        return scores

    def _keep(self, scores: Mapping[bytes, Scored]) -> None:
        with self._lock:
            self._kept |= scores
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)


def read_scores(answer: Any, *, count: int) -> list[Scored]:
    """Scores of `count` rows; raises `Nonsense` for an invalid answer."""
    if not isinstance(answer, list):
        raise Nonsense(f"answered {_kind(answer)}, expected a list", HINT, shown(answer))
    if len(answer) != count:
        raise Nonsense(f"answered {len(answer)} scores for {count} rows", HINT)
    return [_score(value, index) for index, value in enumerate(answer)]


def _score(value: Any, index: int) -> Scored:
    if isinstance(value, list):
        return [None if step is None else _number(step, index) for step in value]
    return None if value is None else _number(value, index)


def _number(value: Any, index: int) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        wrong = why_no_score(number)
        if wrong is None:
            return number
        raise Nonsense(f"answered {number:g} at position {index}, and {wrong}", HINT)
    raise Nonsense(f"answered {_kind(value)} as the score at position {index}", HINT, shown(value))


def _kind(value: Any) -> str:
    names: dict[type, str] = {
        str: "a text",
        bool: "true or false",
        dict: "an object",
        list: "a list",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
