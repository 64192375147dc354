"""The example of docs/from-other-frameworks.md is what it says."""

import re
from pathlib import Path

from tests.engine.interop.loops import algorithm_of, fates, spec_of, values

from coloop.interop.bring import import_text
from coloop.interop.take import export_loop

PAGE = Path(__file__).resolve().parents[3] / "docs" / "from-other-frameworks.md"


def test_the_example_of_the_page() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (command,) = (block for block in blocks if "main_ppo" in block)
    imported = import_text(command)
    spec = spec_of(imported)
    expected = {
        "nodes.actor.training.mini_batch": 1280,
        "nodes.actor.training.optimizer.weight_decay": 0.01,
        "nodes.prompts.columns.answer": "reward_model.ground_truth",
    }

    assert values(spec, expected) == expected
    full = algorithm_of(spec)
    assert (full.name, full.dual_clip) == ("verl-grpo", 3.0)
    found = fates(imported)
    assert found["actor_rollout_ref.actor.clip_ratio"][0] == "not_carried"
    assert found["actor_rollout_ref.rollout.temprature"][0] == "not_understood"
    assert "actor_rollout_ref.rollout.n=5" in export_loop(spec, "verl").text
