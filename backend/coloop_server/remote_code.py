"""Python code in model folders, for loops from HTTP: off unless the server's owner allows it, and
then confirmed for each run. It runs in the engine, outside the sandbox."""

from itertools import chain

from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec
from coloop_server.errors import Conflict, NotAllowed
from coloop_server.paths import fields_of, overridden

FIELD = "trust_remote_code"
NOT_ALLOWED = "foreign.not_allowed"
NOT_CONFIRMED = "foreign.not_confirmed"
HINT = (
    "set it to false, or start the server with --allow-remote-code "
    "(COLOOP_ALLOW_REMOTE_CODE=true) if you trust who made the model"
)


def remote_code(spec: LoopSpec) -> list[str]:
    """Fields that let a model's Python run, in the spec or in overrides of its schedule."""
    fields = chain.from_iterable(map(fields_of, (spec, *overridden(spec))))
    allowing = (
        field
        for field, info, value in fields
        if info is not None and field.rpartition(".")[2] == FIELD and value is True
    )
    return list(dict.fromkeys(allowing))


def check_remote_code(spec: LoopSpec, *, is_allowed: bool, is_confirmed: bool) -> None:
    """Refuse such a loop if it is not allowed, or not confirmed for this run."""
    fields = remote_code(spec)
    if not fields:
        return
    node, _, field = fields[0].removeprefix("nodes.").partition(".")
    detail = {"node": node, "field": field, "paths": fields}
    told = (
        f"{fields[0]}: true runs Python code from the model's folder, with this user's permissions"
    )
    if not is_allowed:
        raise NotAllowed(NOT_ALLOWED, f"{told}, which this server does not allow; {HINT}", detail)
    if not is_confirmed:
        ask = "send `trust` to start it anyway"
        raise Conflict(NOT_CONFIRMED, f"{told}; {ask}", detail)


def not_allowed(spec: LoopSpec) -> list[Diagnostic]:
    """The same as findings, for drafts."""
    return [
        Diagnostic(
            code=NOT_ALLOWED,
            message="this server does not run Python code from a model's folder",
            hint=HINT,
            node=path.removeprefix("nodes.").partition(".")[0],
            field=path.removeprefix("nodes.").partition(".")[2],
        )
        for path in remote_code(spec)
    ]
