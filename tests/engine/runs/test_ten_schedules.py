"""The ten ways to schedule who learns when (order, rhythm, ratio, warm-up, phases, snapshots,
refills, annealing, steps that overlap, triggers), each in a run of a few steps.

`--update-golden` writes the table in the README of `spec`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engine.runs.conftest import ROOT, Ended, Runner, changed, same
from tests.engine.smallest import AHEAD

from coloop.runtime.run_files.events import RunStateName

README = ROOT / "engine" / "coloop" / "spec" / "README.md"
BEGIN, END = "<!-- schedules -->\n", "\n<!-- end of schedules -->"

DUO = """
coloop: 1
name: duo
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  one:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {rewards: {name: rloo}, demonstrations: {name: sft}}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  two:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {rewards: {name: rloo}, demonstrations: {name: sft}}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  digit: {kind: reward, join: concat, source: {type: builtin, name: regex, pattern: "[0-4a-m]"}}
  good: {kind: filter, keep: []}
  old: {kind: reference, model: {type: snapshot, of: one, refresh: {every: 2}}}
  kept: {kind: buffer, capacity: 4, rows_per_step: 2}
edges:
  - sums.rows -> one.prompts
  - sums.rows -> two.prompts
  - sums.rows -> one.demonstrations
  - one.rollouts -> digit.rollouts
  - two.rollouts -> digit.rollouts
  - digit.scores -> good.scores
  - good.scores -> one.rewards
  - digit.scores -> two.rewards
  - one.rollouts -> old.rollouts
  - old.log_probs -> one.reference
  - sums.rows -> kept.rows
  - kept.rows -> two.demonstrations
schedule: {phases: [{name: both, steps: 4, learn: [one.rewards, two.rewards]}]}
hardware: {preset: cpu}
run: {checkpoint_every: 1, keep: 20}
"""
KL = {"rewards": {"name": "rloo", "kl": {"coefficient": 0.1}}, "demonstrations": {"name": "sft"}}
RATE = "nodes.one.training.optimizer.lr"
ONE, TWO, BOTH = ["one.rewards"], ["two.rewards"], ["one.rewards", "two.rewards"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A way to schedule, and the check of a run in which it is set."""

    said: str
    """In the loop language, as the README shows it."""
    set: Mapping[str, Any]
    check: Callable[[Ended], None]
    text: str = DUO


def learned(ended: Ended, node: str) -> list[int]:
    """Steps in which a node had an update from rows."""
    events = ended.of("stage.finished", stage=f"{node}.learn")
    return [event["step"] for event in events if event["samples"]]


def phases(*items: tuple[str, int, list[str]]) -> list[dict[str, Any]]:
    return [{"name": name, "steps": steps, "learn": learn} for name, steps, learn in items]


def in_order(ended: Ended) -> None:
    order = [stage for stage in ended.stages(1) if stage.startswith("one.")]
    assert order == ["one.generate", "one.credit", "one.learn", "one.sync"]
    assert "two.learn" not in ended.stages(1)  # one stage of their weights, an update for each
    assert ended.metrics("one", "loss")[0] != ended.metrics("two", "loss")[0]


def every_second(ended: Ended) -> None:
    assert learned(ended, "one") == [1, 2, 3, 4]
    assert learned(ended, "two") == [1, 3]


def three_to_one(ended: Ended) -> None:
    assert learned(ended, "one") == [1, 2, 3, 5, 6, 7, 9]
    assert learned(ended, "two") == [4, 8, 9]


def one_alone_first(ended: Ended) -> None:
    assert learned(ended, "two") == [1, 2, 3]
    assert learned(ended, "one") == [3]
    assert same(ended.group("one", 1), ended.group("one", 2))


def handed_over(ended: Ended) -> None:
    assert learned(ended, "one") == [1, 2]
    assert ended.metrics("kept", "rows") == [2.0, 4.0]
    assert len(learned(ended, "two")) == 2
    assert same(ended.group("one", 4), ended.group("one", 2))
    assert not same(ended.group("two", 5), ended.group("one", 2))  # a copy that goes on


def followed(ended: Ended) -> None:
    assert same(ended.group("old", 2), ended.group("one", 2))
    assert same(ended.group("old", 3), ended.group("one", 2))
    assert same(ended.group("old", 4), ended.group("one", 4))


def refilled(ended: Ended) -> None:
    assert ended.stages(1).count("one.generate") == 3
    assert "filter.not_filled" in ended.alerts()


def annealed(ended: Ended) -> None:
    rates = [round(rate, 9) for rate in ended.metrics("one", "lr")]
    assert rates == [1.0e-3, 2.0e-3, 3.0e-3, 4.0e-3]


def overlapping(ended: Ended) -> None:
    rows = [event["samples"] for event in ended.of("stage.finished", stage="actor.learn")]
    assert rows == [4] * 4
    assert max(ended.metrics("actor", "staleness/max")) <= 1


def triggered(ended: Ended) -> None:
    assert [event["step"] for event in ended.of("alert", code="trigger.fired")] == [2, 3]
    assert ended.metrics("one", "lr") == [1.0e-3, 1.0e-3, 5.0e-4]
    assert ended.of("run.state")[-1]["step"] == 3


ALWAYS = {"metric": "digit.score/mean", "above": -1.0}
SCHEDULES = {
    "stages of a step, and updates of shared weights, one after another": Schedule(
        said="edges; `order: [proposer, solver]`",
        set={
            "nodes.two.model": {"type": "shared", "with": "one"},
            "nodes.two.training": None,
            "schedule.order": ["one", "two"],
            "schedule.phases.0.steps": 1,
        },
        check=in_order,
    ),
    "every k steps": Schedule(
        said="`learn: {judge: {every: 2}}`; `every` of a probe",
        set={"schedule.learn": {"two": {"every": 2}}},
        check=every_second,
    ),
    "so many steps of one to so many of another, or both at once": Schedule(
        said="`repeat: 2` over phases with `steps: 3` and `steps: 1`; both in one `learn`",
        set={
            "schedule.phases": [
                {"repeat": 2, "phases": phases(("three", 3, ONE), ("single", 1, TWO))},
                *phases(("both", 1, BOTH)),
            ]
        },
        check=three_to_one,
    ),
    "one learns alone first": Schedule(
        said="a phase of its own, or `learn: {policy: {after: 2}}`",
        set={
            "schedule.learn": {"one": {"after": 2}},
            "schedule.phases": phases(("both", 3, BOTH)),
        },
        check=one_alone_first,
    ),
    "phases that hand over weights, buffers and snapshots": Schedule(
        said="`phases`, `fill`, `until`, `model: {type: copy, at: phase}`, `do: {clear: pool}`",
        set={
            "nodes.two.model": {"type": "copy", "of": "one", "at": "train"},
            "schedule.phases": [
                *phases(("sft", 2, ["one.demonstrations"])),
                {"name": "collect", "fill": ["kept"], "until": "kept.full", "max_steps": 5},
                {
                    "name": "train",
                    "steps": 2,
                    "learn": ["two.demonstrations"],
                    "do": {"reset_optimizer": "two"},
                },
            ],
        },
        check=handed_over,
    ),
    "snapshots that follow": Schedule(
        said="`refresh: {every: 2}` or `{at: phase}`, `ema`",
        set={"nodes.one.algorithm": KL, "schedule.phases.0.learn": ONE},
        check=followed,
    ),
    "refills until there is enough, with a cap": Schedule(
        said="`fill: {groups: 4, max_rounds: 3}` of a filter",
        set={
            "nodes.good": {
                "kind": "filter",
                "keep": [{"rule": "score", "min": 2.0}],
                "fill": {"groups": 4, "max_rounds": 3},
            },
            "schedule.phases": phases(("one", 1, ONE)),
        },
        check=refilled,
    ),
    "values that are annealed": Schedule(
        said="`anneal: [{path: ..., from: 0.1, to: 0.001, shape: exponential}]`",
        set={
            "schedule.anneal": [{"path": RATE, "from": 1.0e-3, "to": 4.0e-3}],
            "schedule.phases.0.learn": ONE,
        },
        check=annealed,
    ),
    "generation that runs ahead, within a bound": Schedule(
        said="`max_staleness: 1`, `stream: true`, `rollout: {on_sync: resume}`, two pools",
        set={"schedule.steps": 4},
        check=overlapping,
        text=AHEAD,
    ),
    "triggers": Schedule(
        said="`triggers: [{when: {metric: ..., below: 0.5, for: 3}, do: {set: ...}}]`",
        set={
            "schedule.phases.0.learn": ONE,
            "schedule.triggers": [
                {"when": {**ALWAYS, "for": 2}, "do": {"set": {RATE: 5.0e-4}, "checkpoint": True}},
                {"when": {**ALWAYS, "for": 3}, "do": {"stop": True}},
            ],
        },
        check=triggered,
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_runs(name: str, tmp_path: Path) -> None:
    schedule = SCHEDULES[name]

    ended = Runner(tmp_path)(changed(schedule.text, schedule.set))

    assert ended.error is None
    assert ended.state in (RunStateName.FINISHED, RunStateName.STOPPED)
    schedule.check(ended)


def test_the_readme_shows_every_schedule(update_golden: bool) -> None:
    test = "`tests/engine/runs/test_ten_schedules.py`"
    rows = [f"| {name} | {one.said} |" for name, one in SCHEDULES.items()]
    table = "\n".join([f"| schedule, run by {test} | in a loop |", "|---|---|", *rows])
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    shown, _, after = rest.partition(END)
    if update_golden:
        README.write_text(before + BEGIN + table + END + after, encoding="utf-8")
        return

    assert len(SCHEDULES) == 10
    assert shown == table, "write it anew with --update-golden"
