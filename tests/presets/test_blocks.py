"""Every building block is a file that validates and runs once its open ports are joined."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.presets.test_loops import readings

from coloop.explain.rehearsal import rehearsed
from coloop.plan.run_check import check_runs
from coloop.spec import blocks
from coloop.spec.blocks import CO_TRAINING, Block
from coloop.spec.graph import LoopSpec
from coloop.spec.io import dump, from_dict
from coloop.spec.modes import MODES
from coloop.validate import validate

BLOCKS = blocks.list_blocks()
SUMS = {"type": "task", "task": "arithmetic", "split": "train"}
PREFERENCES = {"type": "task", "task": "preference", "split": "train"}
TINY = {"type": "scratch", "architecture": "tiny-qwen3"}
STEPS = 2


def named(block: Block) -> str:
    return block.name


def loop_around(block: Block, *, is_joined: bool = True) -> dict[str, Any]:
    """An empty loop into which the block was inserted; joined with a dataset, and with a policy and
    a check of its answers where something else is expected than rows or pairs."""
    nodes: dict[str, Any] = {}
    edges: list[Any] = []
    if is_joined:
        has_pairs = any(port.endswith(".pairs") for port in block.open)
        source = PREFERENCES if has_pairs else SUMS
        nodes["dataset"] = {"kind": "dataset", "source": source, "rows_per_step": 4}
    for end in block.open if is_joined else ():
        port = end.split(".")[1]
        if port == "scores":
            rollout = {"completions_per_prompt": 2, "max_new_tokens": 4}
            learns = {"rewards": {"name": "grpo"}}
            actor = {"kind": "actor", "model": TINY, "rollout": rollout, "algorithm": learns}
            check = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}
            nodes |= {"actor": actor, "reward": check}
            edges += ["dataset.rows -> actor.prompts", "actor.rollouts -> reward.rollouts"]
            edges += ["reward.scores -> actor.rewards", f"reward.scores -> {end}"]
        else:
            edges.append(f"dataset.{'pairs' if port == 'pairs' else 'rows'} -> {end}")
    return {
        "coloop": 1,
        "name": block.name,
        "mode": next(tag for tag in block.tags if tag in MODES),
        "nodes": nodes | copy.deepcopy(dict(block.nodes)),
        "edges": [*edges, *block.edges],
        "schedule": {"steps": STEPS},
        "hardware": {"preset": "cpu"},
        "run": {"seed": 0},
    }


def spec_of(document: dict[str, Any]) -> LoopSpec:
    parsed = from_dict(document)
    assert parsed.spec is not None, [found.describe() for found in parsed.diagnostics]
    assert not parsed.diagnostics
    return parsed.spec


@pytest.mark.parametrize("block", BLOCKS, ids=named)
def test_a_block_validates_once_it_is_joined(block: Block) -> None:
    spec = spec_of(loop_around(block))

    assert [found.describe() for found in validate(spec).diagnostics if found.is_error] == []
    assert not check_runs(spec)


@pytest.mark.parametrize("block", BLOCKS, ids=named)
def test_a_block_lacks_nothing_but_what_it_leaves_open(block: Block) -> None:
    found = validate(spec_of(loop_around(block, is_joined=False))).diagnostics

    ends = {".".join(one.path.split(".")[1:3]) for one in found if one.code.endswith("edge")}
    nodes = {end.split(".")[0] for end in block.open}
    assert ends
    assert {end.split(".")[0] for end in ends} <= nodes
    assert all(end.split(".")[0] in block.nodes for end in block.open)


def test_blocks_are_told_apart_and_say_where_they_belong() -> None:
    assert len({block.title for block in BLOCKS}) == len(BLOCKS)
    for block in BLOCKS:
        assert block.title, block.name
        assert block.description.endswith("."), block.name
        assert {*block.tags} <= {*MODES, CO_TRAINING}, block.name
        assert any(tag in MODES for tag in block.tags), block.name


def test_a_file_with_something_else_in_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "title: A\ndescription: B.\ntags: [online]\nnodes: {a: {kind: dataset}}\nopens: {}\n"
    monkeypatch.setattr(blocks, "load_block_text", lambda name: text)

    with pytest.raises(ValueError, match=r"block 'odd': \['opens'\]; a block has title"):
        blocks.load_block.__wrapped__("odd")


@pytest.mark.parametrize("block", BLOCKS, ids=named)
def test_a_block_runs_two_steps_on_a_cpu(block: Block, tmp_path: Path) -> None:
    start = pytest.importorskip("coloop.runtime.start")
    whole = spec_of(loop_around(block))
    spec = rehearsed(whole, root=tmp_path).spec

    result = start.run(
        start.RunRequest(
            spec=spec, text=dump(spec), root=tmp_path, runs_dir=tmp_path, cluster="local", threads=1
        )
    )

    assert result.error is None
    assert result.state == "finished"
    lines = (result.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    losses = dict(readings([json.loads(line) for line in lines], "loss"))
    assert set(losses) == set(whole.graph.learners())
    assert all(len(values) == STEPS for values in losses.values())
    assert all(math.isfinite(value) for values in losses.values() for value in values)
