"""What learning does and does not touch: dead edges, frozen weights, snapshots, copies, shared
weights, seeds."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, near, rounding
from tests.matrix import also

Run = Callable[..., Any]
Text = Callable[..., str]
Equal = Callable[..., bool]

EVERY_STEP = {"run.checkpoint_every": 1, "run.keep": 50, "nodes.probe.every": 100}
DIGIT = {"type": "builtin", "name": "regex", "pattern": "([0-9])", "scale": [0, 9]}
BRIEF = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 3}}


def with_edges(
    tiny: Text, name: str, edges: list[Any], values: dict[str, Any] | None = None
) -> str:
    """A tiny loop with more edges."""
    text = tiny(name, values)
    lines = "".join(f"  - {edge}\n" for edge in edges)
    return text.replace("\nschedule:", f"{lines}\nschedule:", 1)


def steps_of(trainer: Any) -> set[float]:
    """Optimizer steps that a checkpoint's trainer state has seen."""
    found: set[float] = set()

    def look(value: Any, key: str = "") -> None:
        if key == "step":
            found.add(float(value))
        elif isinstance(value, dict):
            for name, item in value.items():
                look(item, str(name))
        elif isinstance(value, list | tuple):
            for item in value:
                look(item)

    look(trainer)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("moved", [False, True])
def test_an_edge_of_weight_zero_changes_nothing_bit_for_bit(
    moved: bool, runner: Run, tiny: Text, whole: Run, equal: Equal
) -> None:
    edge = "{from: brief.scores, to: actor.rewards, id: brevity, weight: 0}"
    values: dict[str, Any] = {"nodes.brief": BRIEF}
    if moved:
        when = {"metric": "probe.score", "above": 99.0}
        do = {"set": {"edges.brevity.weight": 1.0}}
        values["schedule.triggers"] = [{"when": when, "do": do}]
    edges = ["actor.rollouts -> brief.rollouts", edge]

    ended = runner(with_edges(tiny, "grpo-arithmetic", edges, values))

    assert equal(ended.weights(), whole(tiny("grpo-arithmetic")).weights())
    assert bool(ended.of("stage.finished", stage="brief.score")) is moved


@pytest.mark.slow
def test_a_reference_is_the_policy_as_it_was_when_the_phase_began(
    runner: Run, tiny: Text, equal: Equal
) -> None:
    values = {**EVERY_STEP, "nodes.actor.training.mini_batch": None}

    ended = runner(tiny("grpo-arithmetic", values))

    assert equal(ended.group("start", 7), ended.group("actor", 3))
    assert not equal(ended.group("actor", 7), ended.group("actor", 3))
    kl = ended.metrics("actor", "kl")
    assert kl[0] == near(0.0, terms=8)
    assert all(value > rounding(8) for value in kl[1:])


def test_the_first_loss_of_each_iteration_of_spin_is_ln_2(runner: Run, tiny: Text) -> None:
    ended = runner(tiny("spin"))

    begins = [e["step"] + 1 for e in ended.of("phase", phase="train", state="started")]
    losses = {
        event["step"]: event["metrics"]["loss"]
        for event in ended.of("metrics", node="policy")
        if "loss" in event["metrics"]
    }
    assert len(begins) == 2
    assert [losses[step] for step in begins] == near([math.log(2)] * 2, terms=3000)
    assert all(losses[step + 1] != losses[step] for step in begins)


@pytest.mark.slow
def test_the_opponent_follows_at_each_iteration_and_rests_between(
    runner: Run, tiny: Text, equal: Equal
) -> None:
    ended = runner(tiny("spin", EVERY_STEP))

    first, second = (e["step"] for e in ended.of("phase", phase="collect", state="started"))
    last = ended.of("checkpoint")[-1]["step"]
    assert equal(ended.group("opponent", second), ended.group("policy", first))
    assert equal(ended.group("opponent", last), ended.group("policy", second))
    assert not equal(ended.group("policy", last), ended.group("policy", second))


def frozen(tiny: Text, learn: list[str], steps: int = 1) -> str:
    phases = [{"name": "together", "steps": steps, "learn": learn}]
    return tiny("two-halves", {"schedule.phases": phases, **EVERY_STEP})


def test_an_agents_update_does_not_depend_on_whether_the_other_learns(
    runner: Run, tiny: Text, equal: Equal
) -> None:
    both = runner(frozen(tiny, ["tens.rewards", "units.rewards"]))
    alone = runner(frozen(tiny, ["tens.rewards"]))

    assert equal(both.group("tens"), alone.group("tens"))
    assert not equal(both.group("units"), alone.group("units"))


@pytest.mark.slow
def test_an_agent_that_is_not_live_stays_as_it_is(runner: Run, tiny: Text, equal: Equal) -> None:
    ended = runner(frozen(tiny, ["tens.rewards"], steps=3))

    assert equal(ended.group("units", 3), ended.group("units", 1))
    assert not equal(ended.group("tens", 3), ended.group("tens", 1))
    assert not ended.of("stage.finished", stage="units.learn")
    assert ended.of("stage.finished", stage="units.generate")


TWIN = {
    "nodes.twin": {
        "kind": "actor",
        "model": {"type": "shared", "with": "actor"},
        "rollout": {"completions_per_prompt": 4, "max_new_tokens": 6},
        "algorithm": {"name": "grpo"},
    },
    "nodes.mark": {"kind": "reward", "source": DIGIT},
    "nodes.actor.training.mini_batch": None,
    "schedule.phases": [{"name": "rl", "steps": 2, "learn": ["actor.rewards", "twin.rewards"]}],
}
TWIN_EDGES = [
    "problems.rows -> twin.prompts",
    "twin.rollouts -> mark.rollouts",
    "mark.scores -> twin.rewards",
]


@pytest.mark.slow
def test_roles_that_share_weights_are_one_group_and_one_update(runner: Run, tiny: Text) -> None:
    ended = runner(with_edges(tiny, "grpo-arithmetic", TWIN_EDGES, TWIN))

    assert {name.partition("/")[0] for name in ended.weights()} == {"actor", "start"}
    learns = ended.of("stage.finished", stage="actor.learn")
    assert [event["samples"] for event in learns] == [24, 24]
    details = [e["detail"] for e in ended.of("log") if e["message"].startswith("actor.learn")]
    assert [detail["version"] for detail in details] == [1, 2]
    assert ended.metrics("actor", "loss/rewards")
    assert ended.metrics("twin", "loss/rewards")
    assert steps_of(_trainer(ended, "actor")) == {2.0}


@pytest.mark.slow
def test_an_order_applies_the_roles_one_after_another(
    runner: Run, tiny: Text, equal: Equal
) -> None:
    joint = runner(with_edges(tiny, "grpo-arithmetic", TWIN_EDGES, TWIN))
    orders = [
        runner(with_edges(tiny, "grpo-arithmetic", TWIN_EDGES, {**TWIN, "schedule.order": order}))
        for order in (["actor", "twin"], ["twin", "actor"])
    ]

    assert not equal(orders[0].group("actor"), orders[1].group("actor"))
    assert not equal(orders[0].group("actor"), joint.group("actor"))
    assert steps_of(_trainer(orders[0], "actor")) == {4.0}
    details = [e["detail"] for e in orders[0].of("log") if e["message"].startswith("actor.learn")]
    assert [detail["version"] for detail in details] == [1, 2]


def _trainer(ended: Any, group: str, step: int | None = None) -> Any:
    found = sorted((ended.folder / "checkpoints").glob("step-*"), key=lambda p: int(p.name[5:]))
    folder = found[-1] if step is None else ended.folder / "checkpoints" / f"step-{step}"
    return torch.load(folder / group / "trainer.pt", weights_only=True)


@pytest.mark.slow
def test_an_optimizer_that_is_reset_forgets_its_steps(runner: Run, tiny: Text) -> None:
    values = {**EVERY_STEP, "nodes.actor.training.mini_batch": None}

    ended = runner(tiny("grpo-arithmetic", values))

    assert steps_of(_trainer(ended, "actor", 3)) == {3.0}
    assert steps_of(_trainer(ended, "actor", 4)) == {1.0}


SECOND = {
    "nodes.second": {
        "kind": "actor",
        "model": {"type": "copy", "of": "actor", "at": "rl"},
        "rollout": {"completions_per_prompt": 4, "max_new_tokens": 6},
        "algorithm": {"name": "grpo"},
        "training": {"optimizer": {"name": "adamw", "lr": 1.0e-3}},
    },
    "nodes.mark": {"kind": "reward", "source": DIGIT},
    "schedule.phases": [
        {"name": "warm-up", "steps": 2, "learn": ["actor.demonstrations"]},
        {"name": "rl", "steps": 2, "learn": ["second.rewards"]},
        {"name": "more", "steps": 1, "learn": ["actor.demonstrations"]},
        {"name": "rl-again", "steps": 1, "learn": ["second.rewards"]},
    ],
}
SECOND_EDGES = [
    "problems.rows -> second.prompts",
    "second.rollouts -> mark.rollouts",
    "mark.scores -> second.rewards",
]


@pytest.mark.slow
def test_a_copy_starts_as_its_source_is_and_goes_its_own_way(
    runner: Run, tiny: Text, equal: Equal
) -> None:
    values = {**SECOND, **EVERY_STEP, "nodes.second.training.optimizer.lr": 0.0}

    still = runner(with_edges(tiny, "grpo-arithmetic", SECOND_EDGES, values))
    values["nodes.second.training.optimizer.lr"] = 1.0e-3
    moving = runner(with_edges(tiny, "grpo-arithmetic", SECOND_EDGES, values))

    assert equal(still.group("second", 4), still.group("actor", 2))
    assert equal(still.group("second", 6), still.group("actor", 2))  # copied once, not again
    assert not equal(moving.group("second", 4), moving.group("actor", 2))
    assert equal(moving.group("actor", 4), still.group("actor", 4))


@pytest.mark.slow
def test_before_its_phase_a_copy_is_its_source(runner: Run, tiny: Text, equal: Equal) -> None:
    watch = {"kind": "evaluate", "instead_of": "problems", "every": 1, "greedy": True}
    values = {**SECOND, **EVERY_STEP, "nodes.watch": {**watch, "metrics": ["score"]}}
    edges = [*SECOND_EDGES, "held_out.rows -> watch.rows", "mark.scores -> watch.scores"]

    ended = runner(with_edges(tiny, "grpo-arithmetic", edges, values))

    assert equal(ended.group("second", 1), ended.group("actor", 1))
    assert equal(ended.group("second", 2), ended.group("actor", 2))
    assert not equal(ended.group("second", 3), ended.group("actor", 3))


def following(tiny: Text, every: int, ema: float) -> str:
    model = {"type": "snapshot", "of": "actor", "refresh": {"every": every}, "ema": ema}
    phases = [{"name": "warm-up", "steps": 5, "learn": ["actor.demonstrations"]}]
    values = {"nodes.start.model": model, "schedule.phases": phases, **EVERY_STEP}
    return tiny("grpo-arithmetic", values)


@pytest.mark.slow
def test_a_snapshot_follows_every_n_updates(runner: Run, tiny: Text, equal: Equal) -> None:
    ended = runner(following(tiny, every=2, ema=0.0))

    assert equal(ended.group("start", 2), ended.group("actor", 2))
    assert equal(ended.group("start", 3), ended.group("actor", 2))
    assert equal(ended.group("start", 5), ended.group("actor", 4))
    assert not equal(ended.group("start", 1), ended.group("actor", 1))


@pytest.mark.slow
def test_a_snapshot_may_follow_slowly(runner: Run, tiny: Text) -> None:
    ended = runner(following(tiny, every=1, ema=0.75))

    for step in (2, 3):
        old, new = ended.group("start", step - 1), ended.group("start", step)
        current = ended.group("actor", step)
        for name, tensor in new.items():
            expected = 0.75 * old[name] + 0.25 * current[name]
            assert_near(tensor, expected, terms=4)


@pytest.mark.slow
def test_a_snapshot_that_follows_resumes_exactly(
    runner: Run, tiny: Text, whole: Run, equal: Equal
) -> None:
    text = following(tiny, every=2, ema=0.5)

    stopped = runner(text, stop_at=lambda e: e["type"] == "metrics" and e["step"] == 4)
    resumed = runner(text, resume=stopped)

    assert equal(resumed.weights(), whole(text).weights())


@pytest.mark.parametrize("name", [also("grpo-arithmetic"), also("spin"), "two-halves"])
def test_the_seed_decides_everything(
    name: str, runner: Run, tiny: Text, whole: Run, equal: Equal
) -> None:
    first, again = whole(tiny(name)), runner(tiny(name))
    other = runner(tiny(name, {"run.seed": 1}))

    assert equal(again.weights(), first.weights())
    assert again.readings() == first.readings()
    assert not equal(other.weights(), first.weights())


@pytest.mark.slow
def test_the_order_of_generation_does_not_matter(runner: Run, tiny: Text, whole: Run) -> None:
    rollout = {"completions_per_prompt": 4, "max_new_tokens": 6}
    rate = 0.1
    plain = {
        "nodes.actor.rollout": rollout,
        "nodes.actor.training": {"optimizer": {"name": "sgd", "lr": rate}, "mini_batch": 6},
    }

    few = runner(tiny("grpo-arithmetic", {**plain, "nodes.actor.rollout.max_num_seqs": 3}))

    many = runner(tiny("grpo-arithmetic", plain))
    found, expected = few.weights(), many.weights()
    assert few.metrics("actor", "reward/mean") == many.metrics("actor", "reward/mean")
    # 11 steps, each of the rate times a gradient of norm 1 at most.
    for name, tensor in expected.items():
        assert_near(found[name], tensor, terms=10_000, scale=11 * rate)
    start = many.group("start")
    moved = max((many.group("actor")[name] - start[name]).abs().max() for name in start)
    assert moved > rounding(10_000, scale=11 * rate)


@pytest.mark.slow
def test_rows_say_which_weights_wrote_them(runner: Run, tiny: Text) -> None:
    ended = runner(tiny("grpo-arithmetic"))

    details = [e for e in ended.of("log") if e["message"].startswith("actor.credit")]
    assert [(e["step"], e["detail"]["versions"]) for e in details] == [
        (4, [3]),
        (5, [4]),
        (6, [5]),
        (7, [6]),
    ]
    for sample in ended.of("sample"):
        assert {row["version"] for row in sample["rows"]} == {sample["step"] - 1}


def test_engine_and_trainer_agree_at_every_step(runner: Run, tiny: Text) -> None:
    for name, node in (("grpo-arithmetic", "actor"), ("two-halves", "tens")):
        ended = runner(tiny(name))

        mismatch = ended.metrics(node, "mismatch_kl")
        assert len(mismatch) == 4
        assert all(value == near(0.0, terms=8) for value in mismatch)
        # Logits of up to 10 that go through more than a thousand roundings on each side.
        same = rounding(3000, scale=10.0)
        assert all(value < same for value in ended.metrics(node, "mismatch/max"))
