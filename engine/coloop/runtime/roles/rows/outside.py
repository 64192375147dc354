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
"""Parameter of a reward function for the token ids of each completion, as in TRL."""


def ask_code(
    node: str,
    child: Sandbox,
    rows: Sequence[Row],
    plain: Sequence[dict[str, Any]],
    call: Call,
    on_error: OnError,
) -> ScoredRows[Scored]:
    """Call the user's code for these rows. `plain`: their columns and incoming scores."""
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
    """The sandbox for the code of a reward."""
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
    """The Python of a node, from its section or its file. Raises `DataError` if the file cannot be
    read."""
    if section.code is not None:
        return CodeFile(section.code, {})
    assert section.file is not None
    path = context.root / section.file
    try:
        return read_code(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"{node}: {field}: {path} cannot be read: {reason}", node, field) from None
