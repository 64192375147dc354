"""One finding about what this version can draw, check, plan and estimate, but not yet run."""

from coloop.diagnostics import Diagnostic, Fix, Severity

CODE = "run.not_yet_runnable"
LATER = "the loop can be drawn, checked and estimated; this part of the engine comes later"


def refusal(
    what: str,
    *,
    node: str | None = None,
    field: str | None = None,
    hint: str = LATER,
    fixes: tuple[Fix, ...] = (),
) -> Diagnostic:
    """
    Args:
        what: is refused, in words.
    """
    return Diagnostic(
        code=CODE,
        severity=Severity.ERROR,
        message=f"not yet runnable: {what}",
        hint=hint,
        node=node,
        field=field,
        fixes=fixes,
    )
