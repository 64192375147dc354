"""Every algorithm of a policy takes three steps in a whole run: weights move by finite numbers."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.algorithm_loops import ALIKE, LOOPS, PARITY, algorithm_loop
from tests.engine.runs.conftest import same


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", [*LOOPS, *PARITY])
def test_three_steps_move_the_weights(name: str, runner: Callable[..., Any]) -> None:
    ended = runner(algorithm_loop(name))

    assert ended.error is None, ended.error
    assert ended.state == "finished"
    steps = ended.metrics("actor", "grad_norm")
    # where all texts of a step are worth the same, it teaches nothing
    assert len(steps) >= 2
    assert all(map(math.isfinite, steps))
    assert max(steps) > 0


KL = {"coefficient": 0.1, "into": "reward", "target": 0.5, "horizon": 8}
MUCH = json.loads(algorithm_loop("grpo", steps=4, fields={"kl": KL}))
"""A loop whose credit remembers from step to step, by three algorithms on as many rows of each
class."""
MUCH["nodes"]["actor"]["algorithm"] = {
    "rewards": [
        {"name": "reinforce_pp", "kl": KL},
        {"name": "rloo", "weight": 0.5},
        {"name": "rae", "weight": 0.5, "baseline_decay": 0.7},
    ]
}
MUCH["nodes"]["actor"]["credit"] = {
    "class_weights": {"by": "exact", "ema": 0.5},
    "balance": {"per": "prompt", "to": 3},
}


@pytest.mark.slow
def test_what_credit_remembers_goes_on_after_a_stop(runner: Callable[..., Any]) -> None:
    text = json.dumps(MUCH)

    whole = runner(text)
    part = runner(text, stop_at=lambda event: is_told(event, 2))
    resumed = runner(text, resume=part)

    assert part.state == "stopped"
    assert resumed.state == "finished"
    assert whole.readings() == resumed.readings()
    assert same(whole.weights(), resumed.weights())
    coefficients = whole.metrics("actor", "kl/coefficient")
    assert len(set(coefficients)) == 4
    assert any(name.startswith("class/") for (_, node, name) in whole.readings() if node == "actor")


def test_a_curriculum_draws_by_what_was_scored_and_goes_on_after_a_stop(
    runner: Callable[..., Any],
) -> None:
    loop = json.loads(algorithm_loop("grpo", steps=3, rows=3))
    loop["nodes"]["problems"]["source"] |= {"size": 12}
    bands = [{"up_to": 0.1, "weight": 0}, {"up_to": 1.0}]
    loop["nodes"]["problems"]["curriculum"] = {"by": "exact", "bands": bands, "ema": 0.5}
    text = json.dumps(loop)

    whole = runner(text)
    part = runner(text, stop_at=lambda event: is_told(event, 2))
    resumed = runner(text, resume=part)

    assert (whole.error, part.state, resumed.state) == (None, "stopped", "finished")
    assert whole.readings() == resumed.readings()
    assert same(whole.weights(), resumed.weights())
    unmeasured = whole.metrics("problems", "band/unmeasured")
    assert unmeasured[:2] == [1.0, 0.75]
    shares = [whole.metrics("problems", f"band/{name}") for name in ("0.1", "1", "unmeasured")]
    assert all(abs(sum(step) - 1) < 1e-9 for step in zip(*shares, strict=True))


def is_told(event: dict[str, Any], step: int) -> bool:
    return event["type"] == "metrics" and event.get("step") == step and event.get("node") == "actor"


def test_a_moving_baseline_goes_on_after_a_stop_to_the_bit(runner: Callable[..., Any]) -> None:
    text = algorithm_loop("rae", steps=3, fields={"baseline_decay": 0.7})

    whole = runner(text)
    part = runner(text, stop_at=lambda event: is_told(event, 2))
    resumed = runner(text, resume=part)

    assert (part.state, resumed.state) == ("stopped", "finished")
    assert whole.readings() == resumed.readings()
    assert same(whole.weights(), resumed.weights())
    assert len(set(whole.metrics("actor", "baseline/mean"))) == 3


@pytest.mark.slow
def test_what_credit_remembers_does_not_depend_on_steps_ahead(runner: Callable[..., Any]) -> None:
    """A step of texts is written ahead; credit takes its steps in turn."""
    ahead = json.loads(json.dumps(MUCH))
    ahead["nodes"]["actor"] |= {"pool": "train"}
    ahead["nodes"]["actor"]["rollout"] |= {"pool": "write"}
    ahead["nodes"]["start"] |= {"pool": "train"}
    ahead["schedule"] |= {"max_staleness": 1}
    pools = {"train": {"workers": 1}, "write": {"workers": 1}}
    ahead["hardware"] |= {"pools": pools}

    found = [runner(json.dumps(ahead)) for _ in range(2)]

    assert [one.state for one in found] == ["finished"] * 2
    assert found[0].readings() == found[1].readings()


OTHERS: dict[str, Any] = {
    "ask": {"kind": "template", "text": "{{ completion }}="},
    "refiner": {
        "kind": "actor",
        "model": {"type": "shared", "with": "actor"},
        "rollout": {"completions_per_prompt": 1, "max_new_tokens": 8},
    },
    "again": {"kind": "reward", "source": ALIKE},
    "best": {"kind": "filter", "per_group": {"by": "problems", "max": 1, "pick": "best"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["own", "as_written"])
def test_rows_of_another_role_are_learned_as_own_answers(
    prompt: str, runner: Callable[..., Any]
) -> None:
    off_policy = {"shaping": 0.1, "prompt": prompt}
    loop = json.loads(algorithm_loop("dr_grpo", fields={"off_policy": off_policy}))
    loop["nodes"] |= OTHERS
    loop["nodes"]["actor"]["credit"] = {"group_by": ["problems"]}
    loop["edges"] += [
        "actor.rollouts -> ask.rows",
        "ask.rows -> refiner.prompts",
        "refiner.rollouts -> again.rollouts",
        "again.scores -> best.scores",
        "best.scores -> actor.rewards",
    ]

    ended = runner(json.dumps(loop))

    assert ended.error is None, ended.error
    norms = ended.metrics("actor", "grad_norm")
    assert len(norms) >= 2
    assert all(map(math.isfinite, norms))
    # 2 prompts: 4 own rows and the best rewrite of each
    learned = [event["samples"] for event in ended.of("stage.finished", stage="actor.learn")]
    assert learned == [10] * 3
