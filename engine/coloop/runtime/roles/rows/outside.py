"""What comes from outside of the engine: the user's Python in its sandbox, environments,
services."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from coloop.data.rewards.remote import RemoteReward
from coloop.data.rewards.user_code import OnError, ScoredRows, reward_columns, score_rows
from coloop.data.seeds import derive_seed
from coloop.data.services.chat import Chat
from coloop.data.services.endpoint import Endpoint
from coloop.data.tables import Row
from coloop.data.tools import bridges
from coloop.data.tools.instances import UserEnvironment
from coloop.errors import DataError, UserCodeError
from coloop.runtime.roles.protocol import Call, Context
from coloop.sandbox.code_files import CodeFile, read_code
from coloop.sandbox.process import Sandbox, Scored
from coloop.spec.environment import (
    EntryEnvironment,
    EnvironmentSource,
    PythonEnvironment,
    TextArenaEnvironment,
)
from coloop.spec.nodes import ToolNode
from coloop.spec.reward import PythonSource, RemoteSource
from coloop.spec.services import ChatService, Service

ANSWERS = "answers"
"""Folder in that of the run with the answers of chat models, a file for each node."""
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
    endpoint = _endpoint(node, "source", source, source.url, context)
    return RemoteReward(endpoint, batch=source.batch)


def chat_of(node: str, section: str, service: ChatService, context: Context) -> Chat:
    """The chat model by URL that a node asks. `section`: path of its settings in the node."""
    url = f"{service.url.rstrip('/')}/chat/completions"
    log = None if context.folder is None else context.folder / ANSWERS / f"{node}.jsonl"
    return Chat(_endpoint(node, section, service, url, context), service, log)


def _endpoint(node: str, section: str, service: Service, url: str, context: Context) -> Endpoint:
    return Endpoint(
        node=node,
        field=f"{section}.url",
        url=url,
        secret=service.secret,
        timeout_seconds=service.timeout_seconds,
        retries=service.retries,
        concurrency=service.concurrency,
        seed=derive_seed(context.seed, node),
    )


def environment_of(
    node: str, source: EnvironmentSource, players: int, context: Context
) -> UserEnvironment:
    """The environment of a node, for this number of players. Raises `DataError` if it is not
    there."""
    match source:
        case PythonEnvironment():
            code = code_of(node, source, "source.file", context)
        case EntryEnvironment():
            code = bridges.entry_code(node, source, context.root)
        case TextArenaEnvironment():
            code = bridges.arena_code(node, source, players)
    return UserEnvironment(
        node,
        bridges.instances(code),
        source.timeout_seconds,
        memory_mib=source.memory_mib,
        processes=source.processes,
    )


def code_of(
    node: str, section: PythonSource | PythonEnvironment | ToolNode, field: str, context: Context
) -> CodeFile:
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
