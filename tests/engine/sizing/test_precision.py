"""In what a CPU computes where a loop leaves it open."""

from typing import Any

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.settings.processor import Begun, Conditions, Processor
from coloop.plan.settings.throughput import Clock
from coloop.plan.types import Plan
from coloop.plan.unrolled import Unrolled
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict

FAST = Processor(cores=1, has_bf16=True, reason="it can")
SLOW = Processor(cores=1, has_bf16=False, reason="it cannot")


def loop(architecture: str = "tiny-qwen3-wide", **actor: Any) -> LoopSpec:
    """GRPO against its start; fields of the actor by their names."""
    model = {"type": "scratch", "architecture": architecture}
    nodes = {
        "sums": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
        "actor": {
            "kind": "actor",
            "model": model,
            "algorithm": {"name": "grpo", "kl": {"coefficient": 0.1}},
            **actor,
        },
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> start.rollouts",
        "start.log_probs -> actor.reference",
        "exact.scores -> actor.rewards",
    ]
    document = {"coloop": 1, "name": "small", "nodes": nodes, "edges": edges}
    parsed = from_dict({**document, "schedule": {"steps": 10}})
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    return parsed.spec


def planned(spec: LoopSpec, processor: Processor, begun: Begun | None = None) -> Plan:
    return compile_plan(spec, conditions=Conditions(processor=processor, begun=begun))


def computed(plan: Plan) -> dict[str, str]:
    return {one.name: one.dtypes.compute for one in plan.weights}


def told(plan: Plan) -> tuple[Any, str]:
    """What was decided of the actor, and why."""
    [found] = [one for one in plan.decisions if one.path == "nodes.actor.training.dtype"]
    return found.value, found.reason


@pytest.mark.parametrize(
    ("spec", "processor", "value", "reason"),
    [
        (loop(), FAST, "bfloat16", "bfloat16: it can; float32 master weights"),
        (loop(), SLOW, "float32", "float32: it cannot"),
        (loop("tiny-qwen3"), FAST, "float32", "a model of 0.18M parameters gains little"),
        (
            loop(model={"type": "pretrained", "path": "nowhere/at-all"}),
            FAST,
            "float32",
            "the size of the model is not known here",
        ),
        (loop(rollout={"engine": "vllm"}), FAST, "float32", "log-probs of vLLM in bfloat16"),
        (
            loop(model={"type": "pretrained", "path": "Qwen/Qwen2.5-0.5B", "lora": {"rank": 4}}),
            FAST,
            "bfloat16",
            "the adapter's own in float32",
        ),
    ],
)
def test_a_cpu_computes_in_bfloat16_where_that_pays(
    spec: LoopSpec, processor: Processor, value: str, reason: str
) -> None:
    plan = planned(spec, processor)

    assert told(plan)[0] == value
    assert reason in told(plan)[1]
    assert computed(plan) == {"actor": value, "start": value}
    assert any(reason in line for line in plan.explain)


@pytest.mark.parametrize("said", ["float32", "bfloat16"])
def test_what_is_said_holds_on_every_processor(said: str) -> None:
    plans = [planned(loop(training={"dtype": said}), one) for one in (FAST, SLOW)]

    assert [computed(plan) for plan in plans] == [{"actor": said, "start": said}] * 2
    assert not [one for plan in plans for one in plan.decisions if one.path.endswith("g.dtype")]


@pytest.mark.parametrize("began", ["float32", "bfloat16"])
def test_a_run_goes_on_in_what_it_began_with(began: Any) -> None:
    begun = Begun(dtypes=(("actor", began), ("start", began)))

    for processor in (FAST, SLOW):
        plan = planned(loop(), processor, begun)
        assert computed(plan) == {"actor": began, "start": began}
        assert told(plan)[1].startswith("as at the start of the run")


def test_the_estimate_prices_what_was_decided() -> None:
    unrolled = Unrolled(loop())
    learning, resting = [], []
    for processor in (FAST, SLOW):
        settings = unrolled.settings(conditions=Conditions(processor=processor))
        clock = Clock(settings.survey, settings.memory)
        learning.append(clock.time("actor.learn").seconds)
        [pool] = settings.memory.pools
        weights = [one.bytes for one in pool.claims if one.part == "weights"]
        resting.append(sum(weights))

    assert learning[0] < 0.8 * learning[1]
    assert resting[0] < resting[1]
