"""Python that a model's folder brings, in loops that come over HTTP: off, unless the server's owner
allows it, and then asked for with each run. It runs in the engine, outside the sandbox."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec
from coloop_server.errors import Conflict, NotAllowed
from coloop_server.paths import overridden

FIELD = "trust_remote_code"
NOT_ALLOWED = "foreign.not_allowed"
NOT_CONFIRMED = "foreign.not_confirmed"
HINT = (
    "set it to false, or start the server with --allow-remote-code "
    "(COLOOP_ALLOW_REMOTE_CODE=true) if you trust who made the model"
)


def remote_code(spec: LoopSpec) -> list[str]:
    """Fields that let a model's Python run, in the spec or in what its schedule will set."""
    return list(dict.fromkeys(path for one in (spec, *overridden(spec)) for path in trusting(one)))


def check_remote_code(spec: LoopSpec, *, is_allowed: bool, is_confirmed: bool) -> None:
    """Refuse such a loop where it is not allowed, or nobody said yes to this run."""
    found = remote_code(spec)
    if not found:
        return
    node, _, field = found[0].removeprefix("nodes.").partition(".")
    detail = {"node": node, "field": field, "paths": found}
    told = (
        f"{found[0]}: true runs Python code from the model's folder, with this user's permissions"
    )
    if not is_allowed:
        raise NotAllowed(NOT_ALLOWED, f"{told}, which this server does not allow; {HINT}", detail)
    if not is_confirmed:
        ask = "send `trust` to start it anyway"
        raise Conflict(NOT_CONFIRMED, f"{told}; {ask}", detail)


def not_allowed(spec: LoopSpec) -> list[Diagnostic]:
    """The same as findings, for a loop that is drawn."""
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


def trusting(value: Any, at: str = "") -> Iterator[str]:
    match value:
        case BaseModel():
            for name, info in type(value).model_fields.items():
                field = f"{at}.{info.alias or name}".lstrip(".")
                item = getattr(value, name)
                if name == FIELD and item is True:
                    yield field
                yield from trusting(item, field)
        case dict():
            for key, item in value.items():
                yield from trusting(item, f"{at}.{key}".lstrip("."))
        case tuple() | list():
            for index, item in enumerate(value):
                yield from trusting(item, f"{at}.{index}")
