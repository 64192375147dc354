"""How many processes and threads a loop gets on a CPU where it says nothing of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.run_check import check_machine
from coloop.plan.settings.processor import Begun, Conditions, Processor
from coloop.plan.types import Plan
from coloop.plan.unrolled import Unrolled
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict, parse
from coloop.spec.paths import apply_overrides

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = (ROOT.parent / "shared" / "language" / "examples").glob("*.yaml")
LOOPS = [*sorted((ROOT / "presets" / "loops").glob("*.yaml")), *sorted(EXAMPLES)]

NODES: dict[str, Any] = {
    "sums": {
        "kind": "dataset",
        "source": {"type": "task", "task": "arithmetic"},
        "rows_per_step": 16,
    },
    "actor": {
        "kind": "actor",
        "model": {"type": "pretrained", "path": "middling"},
        "rollout": {"completions_per_prompt": 8, "max_new_tokens": 32},
        "algorithm": {"name": "grpo"},
    },
    "judge": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
}
EDGES = [
    "sums.rows -> actor.prompts",
    "actor.rollouts -> judge.rollouts",
    "judge.scores -> actor.rewards",
]
FACTS = {
    "model_type": "qwen3",
    "vocab_size": 128,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 5,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "tie_word_embeddings": True,
    "max_position_embeddings": 512,
}
"""A model of 20M parameters."""
NARROW = {"hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4}
"""And one of 5M."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with these models."""
    for name, facts in {"middling": FACTS, "narrow": {**FACTS, **NARROW}}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(facts), encoding="utf-8")
    return tmp_path


def loop(steps: int = 1000, **values: Any) -> LoopSpec:
    """GRPO with values at these paths, `__` for a dot."""
    document = {"coloop": 1, "name": "some", "nodes": NODES, "edges": EDGES}
    spec = from_dict({**document, "schedule": {"steps": steps}}).spec
    assert spec is not None
    changed = {path.replace("__", "."): value for path, value in values.items()}
    return apply_overrides(spec, changed) if changed else spec


def on(cores: int, *, has_bf16: bool = False, **more: Any) -> Conditions:
    processor = Processor(cores=cores, has_bf16=has_bf16, reason="so it is")
    return Conditions(processor=processor, **more)


def sizes(plan: Plan) -> dict[str, tuple[int, int]]:
    """Processes of each pool, and the threads of each."""
    return {one.name: (one.workers, one.threads_per_worker) for one in plan.pools}


def reason(plan: Plan, path: str) -> str:
    [found] = [one for one in plan.decisions if one.path == path]
    return found.reason


ONE = {"nodes__actor__training__backend": "single"}
TINY = {"nodes__actor__model": {"type": "scratch", "architecture": "tiny-qwen3"}}


@pytest.mark.parametrize(
    ("spec", "conditions", "size", "why"),
    [
        (loop(), on(1), (1, 1), "it has one core"),
        (loop(), on(2), (2, 1), "a step is predicted to take"),
        (loop(), on(4), (4, 1), "s in 4"),
        (loop(), on(5), (4, 1), "s in 4"),
        (loop(), on(64), (8, 2), "s in 8"),
        (loop(nodes__actor__rollout__max_new_tokens=4), on(2), (1, 2), "too little for 2 times"),
        (loop(nodes__sums__rows_per_step=1), on(8), (1, 2), "one prompt"),
        (loop(nodes__actor__training__mini_batch=64), on(8), (4, 1), "s in 4"),
        (loop(**TINY, nodes__actor__training__mini_batch=2), on(2), (1, 1), "s in it and "),
        (loop(2, **TINY), on(2), (1, 1), "starting takes about 6 s"),
        (loop(**ONE), on(2), (1, 2), "the number of processes is not"),
        (
            loop(**ONE, nodes__actor__model__path="narrow"),
            on(2),
            (1, 1),
            "the number of processes is not",
        ),
        (
            loop(nodes__actor__training__backend="fsdp2"),
            on(2),
            (1, 2),
            "the number of processes is not",
        ),
        (loop(nodes__actor__model__lora={"rank": 4}), on(2), (1, 2), "frozen weights"),
        (loop(nodes__actor__rollout__engine="vllm"), on(2), (1, 2), "vLLM"),
        (loop(nodes__actor__model__path="Qwen/Qwen2.5-0.5B"), on(2), (1, 2), "fit into memory"),
        (loop(nodes__actor__model__path="nobody/knows"), on(2), (1, 2), "is not known here"),
        (loop(), on(8, threads=3), (1, 3), "as many threads as were requested"),
        (loop(), on(8, begun=Begun(dtypes=(), workers=1)), (1, 2), "as at the start of the run"),
        (loop(), on(1, begun=Begun(dtypes=(), workers=2)), (2, 1), "as at the start of the run"),
    ],
)
def test_processes_are_those_that_finish_soonest(
    spec: LoopSpec, conditions: Conditions, size: tuple[int, int], why: str, root: Path
) -> None:
    plan = compile_plan(spec, root=root, conditions=conditions)

    assert sizes(plan) == {"main": size}
    assert why in reason(plan, "hardware.pools")
    assert any(why in line for line in plan.explain)
    assert not check_machine(spec, plan) or "vllm" in why.lower()


def test_pools_that_are_named_keep_their_processes_and_share_the_cores(root: Path) -> None:
    pools = {"learn": {"workers": 1}, "write": {"workers": 2}}
    spec = loop(
        hardware__pools=pools, nodes__actor__pool="learn", nodes__actor__rollout__pool="write"
    )
    tiny = apply_overrides(spec, {path.replace("__", "."): value for path, value in TINY.items()})

    def of(spec: LoopSpec, cores: int) -> dict[str, tuple[int, int]]:
        return sizes(compile_plan(spec, root=root, conditions=on(cores)))

    found = {cores: of(spec, cores) for cores in (1, 2, 8)}

    assert found[1] == found[2] == {"learn": (1, 1), "write": (2, 1)}
    assert found[8] == {"learn": (1, 2), "write": (2, 1)}
    assert of(tiny, 8) == {"learn": (1, 1), "write": (2, 1)}
    assert of(loop(hardware__pools={"main": {"workers": 1}}), 2) == {"main": (1, 2)}


@pytest.mark.sample(31)
@pytest.mark.parametrize("path", LOOPS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_loop_has_a_plan_on_every_machine(path: Path) -> None:
    spec = parse(path.read_text(encoding="utf-8")).spec
    assert spec is not None
    unrolled = Unrolled(spec)
    usual = {one.path for one in compile_plan(spec, unrolled, conditions=on(1)).decisions}

    for cores, has_bf16 in ((1, True), (2, True), (4, False), (64, True)):
        conditions = on(cores, has_bf16=has_bf16)
        plan = compile_plan(spec, unrolled, conditions=conditions)
        settings = unrolled.settings(conditions=conditions)

        machine = settings.survey.machine
        assert sizes(plan) == {n: (one.workers, one.threads) for n, one in machine.pools.items()}
        assert {one.name: one.dtypes for one in plan.weights} == settings.survey.dtypes
        assert usual <= {one.path for one in plan.decisions}
        if machine.is_cpu:
            busy = sum(one.workers * one.threads for one in machine.pools.values())
            assert busy <= max(cores, sum(one.workers for one in machine.pools.values()))
        if not spec.hardware.pools and machine.is_cpu:
            [pool] = plan.pools
            backends = {one.update.backend for one in plan.weights if one.update is not None}
            assert pool.workers == 1 or "single" not in backends
