"""Each kind of node and each option whose engine comes later is refused by its own name."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.refusals import cause_of
from coloop.plan.run_check import check_drawn
from coloop.spec.algorithm import REWARDS_NAMES
from coloop.spec.graph import LoopSpec

Loop = Callable[..., LoopSpec]

MODEL = {"type": "scratch", "architecture": "tiny-qwen3"}
GRPO = [
    "problems.rows -> actor.prompts",
    "actor.rollouts -> exact.rollouts",
    "exact.scores -> actor.rewards",
]

CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "several values of `gae_lambda` for one critic (node `critic`)": (
        ["actor.rollouts -> critic.rollouts", "actor.returns -> critic.returns"],
        {
            "critic": {
                "kind": "critic",
                "model": MODEL,
                "algorithm": {
                    "returns": [
                        {"name": "value", "gae_lambda": 0.5},
                        {"name": "value", "gae_lambda": 1.0},
                    ]
                },
            }
        },
    ),
    "`of: [critic.returns]` without `instead_of` (node `probe`)": (
        [
            "actor.rollouts -> critic.rollouts",
            "actor.returns -> critic.returns",
            "actor.rollouts -> probe.rollouts",
        ],
        {
            "critic": {"kind": "critic", "model": MODEL, "algorithm": {"name": "value"}},
            "probe": {"kind": "evaluate", "of": ["critic.returns"], "metrics": ["loss"]},
        },
    ),
    "documents that `kept` produces during the run": (
        [
            "problems.rows -> kept.rows",
            "kept.rows -> find.documents",
            "find.tool -> actor.tools",
        ],
        {
            "kept": {"kind": "filter", "keep": []},
            "find": {"kind": "tool", "type": "search", "column": "prompt"},
        },
    ),
    "several environments for one policy (node `actor`)": (
        ["one.tool -> actor.tools", "two.tool -> actor.tools"],
        {name: {"kind": "tool", "type": "environment", "name": "proof"} for name in ("one", "two")},
    ),
    "a search by puct without `budget.searches_per_row`": (
        ["problems.rows -> tree.rows", "actor.policy -> tree.policy"],
        {"tree": {"kind": "search", "method": "puct", "budget": {"tokens": 10}}},
    ),
    "`read.beta`, which a reward model does not use (node `taste`)": (
        ["actor.rollouts -> taste.rollouts", "taste.scores -> actor.rewards"],
        {
            "taste": {
                "kind": "reward",
                "source": {"type": "model"},
                "model": MODEL,
                "read": {"beta": 0.5},
            }
        },
    ),
    "comparing pairs with a verifier of method rule (node `taste`)": (
        ["actor.rollouts -> two.rollouts", "two.pairs -> taste.comparisons"],
        {
            "two": {"kind": "pairs", "method": "all"},
            "taste": {"kind": "verifier", "method": "rule"},
        },
    ),
    "a rule that grades tokens (node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "judge.scores -> actor.rewards"],
        {"judge": {"kind": "verifier", "method": "rule", "read": {"granularity": "token"}}},
    ),
    "a template of an implicit PRM, which scores the tokens of the completion itself "
    "(node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "judge.scores -> actor.rewards"],
        {
            "judge": {
                "kind": "verifier",
                "method": "implicit_prm",
                "model": MODEL,
                "template": {"text": "{{ completion }}"},
            }
        },
    ),
    "scores of steps with a template or `read.labels`, where the tokens of each step are not known "
    "(node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "judge.scores -> actor.rewards"],
        {
            "judge": {
                "kind": "verifier",
                "method": "discriminative",
                "model": MODEL,
                "read": {"granularity": "step"},
                "template": {"text": "{{ completion }}"},
            }
        },
    ),
    "`read.labels` without a template that asks for them (node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "judge.scores -> actor.rewards"],
        {
            "judge": {
                "kind": "verifier",
                "method": "discriminative",
                "model": MODEL,
                "read": {"labels": ["yes", "no"]},
            }
        },
    ),
    "`label_ce` at `labels` with no labels (node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "exact.scores -> judge.labels"],
        {
            "judge": {
                "kind": "reward",
                "source": {"type": "model"},
                "model": MODEL,
                "algorithm": {"labels": {"name": "label_ce"}},
            }
        },
    ),
    "`per` of a scorer that reads one text at a time (node `each`)": (
        ["actor.rollouts -> each.rows", "each.scores -> actor.rewards"],
        {
            "each": {
                "kind": "reward",
                "source": {"type": "builtin", "name": "length", "max": 4},
                "join": {"gather": "problems"},
                "per": "row",
            }
        },
    ),
    "`model.quantization`": ([], {"actor": {"model": {"quantization": "nf4"}}}),
    "`training.implementation: verl` (node `actor`): it describes another trainer": (
        [],
        {"actor": {"training": {"implementation": "verl"}}},
    ),
    "`rollout.images`": ([], {"actor": {"rollout": {"images": True}}}),
}
PRETRAINED = {"type": "pretrained", "path": "somewhere"}


ADAPTED = {**PRETRAINED, "lora": {"rank": 4}}
ON_IT = {"type": "shared", "with": "actor", "lora": {"rank": 2}}


def test_adapters_run_alone_on_the_base_of_another_and_with_every_backend(loop: Loop) -> None:
    judged = ["actor.rollouts -> judge.rollouts", "judge.log_probs -> actor.reference"]
    taught = ["actor.rollouts -> critic.rollouts", "actor.returns -> critic.returns"]
    actor = {"model": ADAPTED, "algorithm": {"name": "grpo"}}
    critic = {"kind": "critic", "model": ON_IT}
    slow = {**actor, "training": {"backend": "deepspeed"}}

    assert check_drawn(loop(GRPO, actor=actor)) == []
    assert check_drawn(loop(GRPO, actor=slow)) == []
    judge = {"kind": "reference", "model": ON_IT}
    assert check_drawn(loop([*GRPO, *judged], actor=actor, judge=judge)) == []
    assert check_drawn(loop([*GRPO, *taught], actor=actor, critic=critic)) == []


@pytest.mark.parametrize("what", CASES)
def test_what_comes_later_is_refused_by_name(what: str, loop: Loop) -> None:
    edges, nodes = CASES[what]
    model = nodes.get("actor", {}).get("model")
    if model is not None:
        extra = {k: v for k, v in model.items() if k == "quantization"}
        nodes = {"actor": {"model": {**PRETRAINED, **extra}}}
    actor = {"algorithm": {"name": "grpo"}, **nodes.get("actor", {})}

    found = check_drawn(loop([*GRPO, *edges], **{**nodes, "actor": actor}))

    assert what in [cause_of(one.message) for one in found]
    assert all(one.code == "run.not_yet_runnable" for one in found)


@pytest.mark.parametrize("name", REWARDS_NAMES)
def test_every_algorithm_of_rewards_runs(name: str, loop: Loop) -> None:
    assert check_drawn(loop(GRPO, actor={"algorithm": {"name": name}})) == []
