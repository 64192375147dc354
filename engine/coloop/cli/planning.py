"""`coloop plan`: the compiled plan, explained or as JSON."""

from collections.abc import Sequence

from rich.markup import escape

from coloop.cli.check import checked_spec, print_outlook
from coloop.cli.output import console, print_json


def plan_command(spec: str, settings: Sequence[str] = (), *, as_json: bool) -> int:
    """Compile SPEC and print the plan."""
    from coloop.plan.refused import outlook_of

    checked, code = checked_spec(spec, settings, as_json=as_json)
    if checked is None or checked.spec is None:
        return code
    outlook = outlook_of(checked.spec, checked.unrolled, root=checked.source.root)
    if as_json:
        print_json(outlook.plan.model_dump(mode="json") | outlook.to_json())
        return 0
    out = console()
    for line in outlook.plan.explain:
        out.print(escape(line))
    print_outlook(outlook)
    return 0
