"""Scores from outside of the engine: the user's Python in its sandbox, or a service."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from coloop.data.rewards.remote import RemoteReward
from coloop.data.rewards.user_code import OnError, ScoredRows, reward_columns, score_rows
from coloop.data.seeds import derive_seed
from coloop.data.services.endpoint import Endpoint
from coloop.data.tables import Row
from coloop.errors import DataError, UserCodeError
from coloop.runtime.roles.protocol import Call, Context
from coloop.sandbox.code_files import CodeFile, read_code
from coloop.sandbox.process import Sandbox, Scored
from coloop.spec.nodes import ToolNode
from coloop.spec.reward import PythonSource, RemoteSource

TOKEN_IDS = "completion_ids"
"""The parameter of a reward by which it gets the token ids of each completion, as TRL names it."""


def ask_code(
    node: str,
    child: Sandbox,
    rows: Sequence[Row],
    plain: Sequence[dict[str, Any]],
    call: Call,
    on_error: OnError,
) -> ScoredRows[Scored]:
    """One call of the user's code about these rows.

    Args:
        plain: the rows' columns, and the scores that came in.
    """
    which = [rows[0].id] if call.context.spec.schedule.stream else []
    seed = derive_seed(call.context.seed, node, call.salt, call.step, *which)
    try:
        with child.held(partial(call.tick, 0, len(rows))):
            columns = reward_columns(plain)
            if TOKEN_IDS in child.source and TOKEN_IDS not in columns:
                columns[TOKEN_IDS] = [
                    None if row.tokens is None else row.tokens.token_ids.tolist() for row in rows
                ]
            return score_rows(child, columns, len(rows), on_error=on_error, seed=seed % 2**31)
    except UserCodeError as error:
        if not which or error.row is None:
            raise
        message = f"{error} (of {len(rows)} rows of one call; it is {rows[error.row].id})"
        raise UserCodeError(message, error.node, error.row, error.traceback) from None


def sandbox_of(node: str, source: PythonSource, context: Context) -> Sandbox:
    """The process in which the code of a reward runs."""
    read = code_of(node, source, "source.file", context)
    return Sandbox(
        read.source,
        modules=read.modules,
        function="reward",
        node=node,
        timeout_seconds=source.timeout_seconds,
        memory_mib=source.memory_mib,
    )


def service_of(node: str, source: RemoteSource, context: Context) -> RemoteReward:
    endpoint = Endpoint(
        node=node,
        field="source.url",
        url=source.url,
        secret=source.secret,
        timeout_seconds=source.timeout_seconds,
        retries=source.retries,
        concurrency=source.concurrency,
        seed=derive_seed(context.seed, node),
    )
    return RemoteReward(endpoint, batch=source.batch)


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
