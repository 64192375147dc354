"""Every loop of the language and every preset rehearses on this machine, or is refused by name;
presets for a CPU in `tests/presets/test_loops.py`."""

import pytest
from tests.engine.rehearsal.loops import EXAMPLES, NAMES, PRESETS, told_of
from tests.presets.test_loops import ON_A_CPU

from coloop.errors import PlanRefused
from coloop.spec import presets

NOT_YET = {"medvlsynther"}
"""Examples that a run refuses, by the name of what it cannot do."""
QUICK = ("grpo-arithmetic", "one-step-off", "online-dpo", "reward-model-then-ppo", "spin", "vapo")
PLAIN = sorted({*NAMES} - NOT_YET)

needs_examples = pytest.mark.skipif(not NAMES, reason="shared/language/examples is not present")


def refusal_of(name: str) -> str | None:
    """Why an example is refused; None where it has run."""
    try:
        told_of(EXAMPLES / f"{name}.yaml")
    except PlanRefused as refused:
        return str(refused)
    return None


@pytest.mark.slow
@needs_examples
@pytest.mark.parametrize("name", QUICK)
def test_a_loop_of_the_language_rehearses(name: str) -> None:
    assert not told_of(EXAMPLES / f"{name}.yaml").failures


@needs_examples
def test_a_loop_that_no_run_carries_out_is_refused_by_name() -> None:
    with pytest.raises(PlanRefused, match="images"):
        told_of(EXAMPLES / "medvlsynther.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN or [pytest.param("none", marks=needs_examples)])
def test_every_loop_of_the_language_rehearses(name: str) -> None:
    assert not told_of(EXAMPLES / f"{name}.yaml").failures


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NOT_YET & {*NAMES}))
def test_a_loop_that_is_not_yet_runnable_is_refused_by_name(name: str) -> None:
    refusal = refusal_of(name)

    assert refusal is None or refusal.startswith("not yet runnable: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*presets.loop_names()} - {*ON_A_CPU}))
def test_every_preset_for_gpus_rehearses(name: str) -> None:
    assert not told_of(PRESETS / f"{name}.yaml").failures
