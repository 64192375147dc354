"""What is known of a model before it is loaded."""

import pytest

from coloop.plan.settings.architecture import UnknownArchitecture
from coloop.plan.settings.facts import architecture_of
from coloop.spec.model import RunModel, ScratchModel


def test_the_model_of_a_preset_s_run_is_that_which_the_preset_trains() -> None:
    earlier = RunModel(type="run", run="reward-model-sums", node="rm")

    assert architecture_of(earlier) == architecture_of(
        ScratchModel(type="scratch", architecture="tiny-qwen3")
    )


@pytest.mark.parametrize(("run", "node"), [("mine", "rm"), ("reward-model-sums", "nobody")])
def test_of_other_runs_nothing_is_known_here(run: str, node: str) -> None:
    with pytest.raises(UnknownArchitecture, match=f"the run '{run}'"):
        architecture_of(RunModel(type="run", run=run, node=node))
