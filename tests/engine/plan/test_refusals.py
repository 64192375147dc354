"""What is drawn of scorers, searches and tools and not carried out is refused by name, with a way
out."""

import pytest
from tests.engine.plan.refusals import MORE, refused_loop

from coloop.plan.compile import compile_plan
from coloop.plan.runnable import check_runs


@pytest.mark.parametrize("what", MORE)
def test_what_no_run_carries_out_is_refused_by_name(what: str) -> None:
    spec = refused_loop(what)

    compile_plan(spec)
    found = {one.message: one for one in check_runs(spec)}

    refusal = found[f"not yet runnable: {what}"]
    assert refusal.code == "run.not_yet_runnable"
    assert refusal.node is not None
    assert refusal.hint
