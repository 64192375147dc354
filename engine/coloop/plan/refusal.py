"""One finding about what this version can draw, check, plan and estimate, but not yet run."""

from coloop.spec.diagnostics import Diagnostic, Fix, Severity

CODE = "run.not_yet_runnable"
NOT_YET = "not yet runnable: "
UNREAD = "no effect: "
"""Of a setting that is read elsewhere, and by nothing beside the others here."""
LATER = "the loop can be drawn, validated and estimated, but this version cannot run this part"


def cause_of(message: str) -> str:
    """What is refused, without how the message begins."""
    return message.removeprefix(NOT_YET).removeprefix(UNREAD)


def refusal(
    what: str,
    *,
    node: str | None = None,
    field: str | None = None,
    hint: str = LATER,
    fixes: tuple[Fix, ...] = (),
    begins: str = NOT_YET,
) -> Diagnostic:
    """
    Args:
        what: is refused, in words.
        begins: whether a later version may run it, or nobody ever reads it.
    """
    return Diagnostic(
        code=CODE,
        severity=Severity.ERROR,
        message=f"{begins}{what}",
        hint=hint,
        node=node,
        field=field,
        fixes=fixes,
    )
