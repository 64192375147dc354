"""Every loop preset reads, validates and compiles; those for this machine run a few steps."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.run_check import check_runs
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, patch
from coloop.validate import validate

LOOPS = presets.presets_root() / "loops"
NAMES = [loop.name for loop in presets.list_loops()]

NEEDS_GPUS = {
    "cooper-qwen2.5-1.5b-8xH100",
    "dapo-qwen2.5-7b-16xH100",
    "genrm-gemma-2-9b-8xH100",
    "grpo-qwen2.5-7b-8xH100",
    "omegaprm-gemma-2-9b-8xH100",
    "ppo-learned-reward-llama-3.1-8b-8xH100",
    "prime-qwen2.5-7b-8xA100-80",
    "reinforce-pp-llama-3.1-8b-8xH100",
    "remax-llama-2-7b-8xA100-80",
    "retool-qwen2.5-7b-16xH100",
    "reward-model-llama-3.1-8b-8xH100",
    "search-r1-qwen2.5-7b-8xH100",
    "tango-qwen2.5-7b-8xH200",
    "ttrl-qwen2.5-7b-8xH100",
    "vapo-qwen2.5-7b-16xH100",
}

FEW_ROWS = {"nodes.held_out.rows_per_step": 8}
TWO_PHASES = {"schedule.phases.0.steps": 3, "schedule.phases.1.steps": 2}
FEW_PROBLEMS = FEW_ROWS | TWO_PHASES | {"nodes.problems.rows_per_step": 8}
JUDGED_FOUR_TIMES = {
    "nodes.generator.rollout.completions_per_prompt": 1,
    "nodes.verifier.rollout.completions_per_prompt": 4,
}
SHORT: Mapping[str, Mapping[str, Any]] = {
    "cooper": FEW_PROBLEMS
    | {
        "nodes.rule.source": {"type": "builtin", "name": "regex", "pattern": "[0-9]"},
        "schedule.phases.1.set": {"nodes.judge.training.optimizer.lr": 1.0e-3},
        "schedule.phases.2.steps": 3,
    },
    "dapo": FEW_PROBLEMS
    | {
        "nodes.informative.fill": {"groups": 2, "max_rounds": 2},
        "schedule.phases.0.set": {"nodes.actor.training.optimizer.lr": 1.0e-3},
    },
    "dpo-from-file": FEW_ROWS | TWO_PHASES | {"schedule.phases.1.epochs": None},
    "genrm": FEW_ROWS
    | {
        "nodes.problems.rows_per_step": 8,
        "nodes.verifier.rollout.completions_per_prompt": 1,
        "nodes.chosen.metrics": ["majority@2", "best_of@2"],
        "nodes.judged.samples": 2,
        "nodes.lessons": {"kind": "buffer", "capacity": 32, "rows_per_step": 16},
        "nodes.solved.keep": [{"rule": "score", "min": 0.0}],
        "nodes.solutions.capacity": 32,
        "nodes.solutions.rows_per_step": 8,
        "schedule.phases.0.steps": 3,
        "schedule.phases.2.epochs.count": 1,
    },
    "grpo-arithmetic": FEW_ROWS | TWO_PHASES,
    "grpo-from-file": TWO_PHASES | {"nodes.questions.rows_per_step": 8},
    "grpo-two-pools": FEW_ROWS | TWO_PHASES,
    "grpo-two-rewards": FEW_ROWS | TWO_PHASES,
    "ppo-four-models": FEW_ROWS
    | TWO_PHASES
    | {"schedule.phases.2.steps": 2, "schedule.phases.3.steps": 2},
    "omegaprm": FEW_ROWS
    | {
        "nodes.policy.rollout.completions_per_prompt": 2,
        "nodes.tree.completions": 2,
        "nodes.tree.budget.searches_per_row": 2,
        "nodes.rerank.metrics": ["accuracy", "weighted_majority@2"],
        "run.best": "rerank.weighted_majority@2",
        "nodes.labelled.capacity": 16,
        "nodes.labelled.rows_per_step": 8,
        "schedule.phases.0.steps": 2,
        "schedule.phases.2.epochs": 1,
    },
    "ppo-learned-reward": FEW_PROBLEMS
    | {"schedule.phases.0.set": {"nodes.policy.training.optimizer.lr": 1.0e-3}},
    "prime": FEW_PROBLEMS
    | {
        "nodes.band.keep": [{"rule": "accuracy_band", "min": 0.0, "max": 1.0}],
        "nodes.band.fill.groups": 4,
        "schedule.phases.2.steps": 2,
    },
    "reinforce-pp": FEW_PROBLEMS,
    "remax": FEW_PROBLEMS,
    "retool": FEW_ROWS
    | TWO_PHASES
    | {"nodes.problems.rows_per_step": 8, "schedule.phases.2.steps": 2},
    "reward-model": FEW_ROWS | TWO_PHASES,
    "reward-model-sums": FEW_ROWS
    | TWO_PHASES
    | {
        "nodes.sums.rows_per_step": 8,
        "schedule.phases.1.set": {"nodes.sums.rows_per_step": 8},
    },
    "rloo-countdown": FEW_ROWS | TWO_PHASES,
    "search-r1": FEW_ROWS | TWO_PHASES | {"nodes.questions.rows_per_step": 8},
    "sft-arithmetic": FEW_ROWS | {"schedule.steps": 5},
    "spin": FEW_ROWS
    | {
        "nodes.gold.source.size": 64,
        "nodes.iterations.capacity": 64,
        "nodes.iterations.rows_per_step": 32,
        "schedule.phases.0.steps": 2,
        "schedule.phases.1.repeat": 2,
    },
    "ttrl": TWO_PHASES
    | {
        "nodes.problems.rows_per_step": 2,
        "nodes.whole_test.rows_per_step": 8,
        "nodes.policy.rollout.completions_per_prompt": 4,
        "nodes.half.per_group.max": 2,
    },
    "tango": FEW_PROBLEMS
    | {
        "schedule.phases.2.steps": 1,
        "schedule.phases.2.set": JUDGED_FOUR_TIMES,
        "schedule.phases.3.repeat": 1,
        "schedule.phases.3.phases.0.steps": 1,
        "schedule.phases.3.phases.1.set": JUDGED_FOUR_TIMES,
    },
    "two-halves": FEW_ROWS | TWO_PHASES,
    "vapo": FEW_PROBLEMS | {"schedule.phases.2.steps": 2},
}
"""What cuts each runnable preset to a handful of steps; None takes a field away."""
EARLIER = {"ppo-learned-reward": "reward-model-sums"}
"""Presets that begin with what a run of another has learned."""


def spec_of(text: str) -> LoopSpec:
    parsed = parse(text)
    assert parsed.spec is not None, [found.describe() for found in parsed.diagnostics]
    return parsed.spec


def shortened(name: str) -> str:
    """The preset's text, cut to a handful of steps."""
    changes = [
        Change(op="remove" if value is None else "set", path=path, value=value)
        for path, value in SHORT[name].items()
    ]
    return patch(presets.load_loop_text(name), changes)


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", NAMES)
def test_a_loop_preset_has_nothing_to_complain_about(name: str) -> None:
    parsed = parse(presets.load_loop_text(name))

    assert not parsed.diagnostics
    assert parsed.spec is not None
    assert not validate(parsed.spec, root=LOOPS).diagnostics


@pytest.mark.parametrize("name", SHORT)
def test_a_preset_that_is_cut_short_can_be_run_by_a_user(name: str) -> None:
    if name in EARLIER:
        pytest.skip("what it begins with is made by a run of another preset")

    found = validate(spec_of(shortened(name)), root=LOOPS).diagnostics

    assert [one.describe() for one in found if one.severity == "error"] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_loop_preset_compiles_to_a_plan_that_learns(name: str) -> None:
    plan = compile_plan(spec_of(presets.load_loop_text(name)))

    assert plan.phases
    assert any(phase.learn for phase in plan.phases)


def test_a_loop_preset_is_called_as_its_file_and_has_a_title_and_a_description() -> None:
    for loop in presets.list_loops():
        assert spec_of(loop.path.read_text(encoding="utf-8")).name == loop.name
        assert loop.title
        assert loop.description


def test_no_two_presets_have_one_name_or_one_title() -> None:
    titles = [loop.title for loop in presets.list_loops()]

    assert len(set(NAMES)) == len(NAMES)
    assert len(set(titles)) == len(titles)


def test_every_loop_preset_runs_here_or_needs_gpus() -> None:
    runs = {name for name in NAMES if not check_runs(spec_of(presets.load_loop_text(name)))}

    assert runs == set(NAMES)
    assert runs - NEEDS_GPUS == set(SHORT)


def run_short(name: str, runs: Path) -> Any:
    """A preset's run, cut to a handful of steps, after the run that it begins with."""
    start = pytest.importorskip("coloop.runtime.start")
    if name in EARLIER:
        run_short(EARLIER[name], runs)
    text = shortened(name)
    request = start.RunRequest(
        spec=spec_of(text), text=text, root=LOOPS, runs_dir=runs, cluster="local", threads=1
    )
    return start.run(request)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SHORT)
def test_a_loop_preset_runs_from_its_first_phase_to_its_last(name: str, tmp_path: Path) -> None:
    result = run_short(name, tmp_path)

    assert result.error is None
    assert result.state == "finished"
    lines = (result.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    entered = [e["phase"] for e in events if e["type"] == "phase" and e["state"] == "started"]
    planned = [phase.name for phase in compile_plan(spec_of(shortened(name))).phases]
    assert set(planned) == set(entered)
    assert any("loss" in e["metrics"] for e in events if e["type"] == "metrics")


LARGE = "grpo-qwen2.5-7b-8xH100"
HEAD = "# GRPO with Qwen2.5-7B on eight H100s"


def _set(path: str, value: object) -> list[Change]:
    return [Change(op="set", path=path, value=value)]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("hardware.preset", "32xH100"),
        ("hardware.pools", {"main": {"gpus": 4}}),
        ("nodes.actor.model.path", "Qwen/Qwen2.5-32B"),
        ("nodes.actor.model", {"type": "scratch", "architecture": "tiny-qwen3"}),
    ],
)
def test_what_a_preset_says_of_itself_goes_with_its_machine_or_model(path, value):
    text = presets.load_loop_text(LARGE)

    new = presets.patched(text, _set(path, value))

    assert text.startswith(HEAD)
    assert new.startswith("coloop: 1\n")
    assert "eight H100" not in new
    assert presets.patched(text.replace("\n", "\r\n"), _set(path, value)).startswith("coloop: 1")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schedule.steps", 7),
        ("hardware.memory_budget", 0.8),
        ("nodes.actor.training.optimizer.lr", 2e-6),
        ("nodes.other", {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}),
        ("name", "mine"),
    ],
)
def test_what_a_preset_says_of_itself_stays_with_other_changes(path, value):
    assert presets.patched(presets.load_loop_text(LARGE), _set(path, value)).startswith(HEAD)


def test_a_comment_of_ones_own_stays():
    text = presets.load_loop_text(LARGE)
    for own in ("# Ours, on eight H100.\n" + text, text.replace(HEAD, "# Mine on eight H100")):
        assert presets.patched(own, _set("hardware.preset", "32xH100")).startswith(own[:20])


def test_comments_of_all_presets_are_known():
    for name in presets.loop_names():
        text = presets.load_loop_text(name)
        new = presets.patched(text, _set("hardware", {"preset": "1xL4"}))
        assert not new.startswith("#"), name
