"""`coloop plan`: the compiled plan, explained or as JSON."""

from rich.markup import escape

from coloop.cli.check import checked_spec
from coloop.cli.output import console, print_diagnostics, print_json
from coloop.diagnostics import Diagnostic, Report
from coloop.errors import PlanRefused

REFUSED = 1


def plan_command(spec: str, *, as_json: bool) -> int:
    """Compiles SPEC and prints the plan."""
    from coloop.plan.compile import compile_plan

    checked, code = checked_spec(spec, as_json=as_json)
    if checked is None or checked.spec is None:
        return code
    try:
        plan = compile_plan(checked.spec)
    except PlanRefused as refused:
        found = tuple(one for one in refused.diagnostics if isinstance(one, Diagnostic))
        if as_json:
            print_json(Report(diagnostics=found).to_json())
        else:
            print_diagnostics(found, stderr=True)
        return REFUSED
    if as_json:
        print_json(plan.model_dump(mode="json"))
        return 0
    out = console()
    for line in plan.explain:
        out.print(escape(line))
    return 0
