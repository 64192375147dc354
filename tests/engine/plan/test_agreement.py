"""The estimate prices the stages and settings that the plan has: of every preset, of every written
loop, and of loops in the making."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import PlanInconsistent
from coloop.plan.compile import compile_plan
from coloop.plan.cost import explain
from coloop.plan.unrolled import Unrolled
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import training_of
from coloop.spec.io import from_dict, parse
from coloop.validate import validate

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT.parent / "shared" / "language" / "examples").glob("*.yaml"))
LOOPS = [*sorted((ROOT / "presets" / "loops").glob("*.yaml")), *EXAMPLES]
TEXT = {"kind": "template", "text": "{{ prompt }}"}


@pytest.mark.skipif(not EXAMPLES, reason="the written loops of the language are not beside it")
def test_the_written_loops_are_there() -> None:
    assert len(EXAMPLES) > 40


@pytest.mark.sample(18)
@pytest.mark.parametrize("path", LOOPS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_plan_and_estimate_agree_on_the_stages(path: Path) -> None:
    spec = parse(path.read_text(encoding="utf-8")).spec
    assert spec is not None

    plan, found = compile_plan(spec), explain(spec)

    planned = [(phase.name, tuple(one.name for one in phase.stages)) for phase in plan.phases]
    assert [(phase.name, phase.stages) for phase in found.phases] == planned
    priced = {one.stage for one in found.estimate.stages}
    assert priced == {
        *(name for _, names in planned for name in names),
        *(f"{probe.node}.evaluate" for probe in plan.probes),
    }
    told = [(one.path, one.value, one.reason) for one in plan.decisions]
    assert [(one.path, one.value, one.reason) for one in found.decisions] == told
    assert len(told) == len({path for path, _, _ in told})


@pytest.mark.sample(88)
@pytest.mark.parametrize("path", LOOPS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_plan_leaves_no_setting_open(path: Path) -> None:
    spec = parse(path.read_text(encoding="utf-8")).spec
    assert spec is not None

    plan = compile_plan(spec)

    pools = {pool.name for pool in plan.pools}
    told = {one.path for one in plan.decisions}
    for weights in plan.weights:
        written = training_of(spec, weights.name)
        for field in ("micro_batch", "gradient_checkpointing", "backend"):
            is_open = weights.trains and getattr(written, field) is None
            assert (f"nodes.{weights.name}.training.{field}" in told) is is_open
        if weights.update is not None:
            is_sharded = weights.update.backend == "fsdp2" and weights.update.states == "spread"
            is_open = is_sharded and written.reshard_after_forward is None
            assert (f"nodes.{weights.name}.training.reshard_after_forward" in told) is is_open
            assert weights.update.fill(written).offload == (written.offload or "none")
        assert (weights.update is not None) is weights.trains
        assert weights.pool in pools
        for home in weights.engines:
            assert home.pool in pools
            assert home.max_num_seqs > 0
            is_vllm = home.engine == "vllm" and weights.name in sizes_known(spec)
            assert not is_vllm or home.gpu_memory_utilization is not None


def sizes_known(spec: LoopSpec) -> set[str]:
    """Weights whose size is known here."""
    return set(Unrolled(spec).settings().survey.weights)


@pytest.mark.sample(42)
@pytest.mark.parametrize("path", LOOPS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_stage_stands_without_what_it_works_on(path: Path) -> None:
    spec = parse(path.read_text(encoding="utf-8")).spec
    assert spec is not None

    for phase in compile_plan(spec).phases:
        for stage in phase.stages:
            if stage.verb in ("generate", "score", "prepare", "credit"):
                assert stage.edges, stage.name


def test_a_circle_is_priced_and_told(loop: Callable[..., LoopSpec]) -> None:
    spec = loop(
        [
            "one.rows -> two.rows",
            "two.rows -> one.rows",
            "two.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> actor.rewards",
        ],
        one=TEXT,
        two=TEXT,
    )
    unrolled = Unrolled(spec)

    [phase] = explain(spec, unrolled).phases

    assert {"one.prepare", "two.prepare", "actor.learn"} <= set(phase.stages)
    circle = "stages depend on each other: two.prepare → one.prepare → two.prepare"
    assert unrolled.problems[0] == circle
    with pytest.raises(PlanInconsistent, match=circle):
        compile_plan(spec)


@pytest.mark.slow
def test_a_chain_of_a_thousand_nodes_is_checked_priced_and_planned() -> None:
    names = [f"t{number}" for number in range(1000)]
    nodes: dict[str, Any] = {
        "problems": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
        "actor": {
            "kind": "actor",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "algorithm": {"name": "sft"},
        },
        **dict.fromkeys(names, TEXT),
    }
    links = zip(["problems", *names], [*names, None], strict=True)
    edges = [f"{a}.rows -> {f'{b}.rows' if b else 'actor.demonstrations'}" for a, b in links]
    document = {"coloop": 1, "name": "chain", "nodes": nodes, "edges": edges}
    spec = from_dict({**document, "schedule": {"steps": 1}}).spec
    assert spec is not None

    unrolled = Unrolled(spec)
    found = explain(spec, unrolled)
    report = validate(spec, estimate=found.estimate, unrolled=unrolled)
    [phase] = compile_plan(spec, unrolled).phases

    assert report.ok
    assert found.phases[0].stages == tuple(stage.name for stage in phase.stages)
    assert len(phase.stages) == 1003
