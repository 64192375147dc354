"""Whole runs in the test's own process: tiny versions of the three loops."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.run_requests import request
from torch import Tensor

from coloop.models.folder import weights_in
from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.run_files.event_file import read_events
from coloop.runtime.run_files.events import RunError, RunStateName, StopRequest
from coloop.runtime.run_files.recorder import Sink
from coloop.runtime.start import run
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, patch

ROOT = Path(__file__).resolve().parents[3]
LOOPS = ROOT / "presets" / "loops"

Event = dict[str, Any]

DIGIT = {"type": "builtin", "name": "regex", "pattern": "([0-9])", "scale": [0, 9]}
"""A reward that differs between the texts of a random model: there is something to learn."""

PLAIN = {"optimizer": {"name": "adamw", "lr": 1.0e-3}}
WRITING = {"completions_per_prompt": 4, "max_new_tokens": 6}
SUMS = {
    "nodes.problems.source.size": 32,
    "nodes.problems.rows_per_step": 3,
    "nodes.held_out.source.size": 8,
    "nodes.held_out.rows_per_step": 4,
}
"""Of presets whose rows are `problems`, evaluated on `held_out`."""
REST = {"schedule.triggers": [], "run.best": None, "run.checkpoint_every": None}

SMALL = """
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: grpo}
  length: {kind: reward, source: {type: builtin, name: length, max: 3}}
  probe: {kind: evaluate, instead_of: problems, every: 9, metrics: [score]}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, rows_per_step: 2}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> length.rollouts
  - length.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - length.scores -> probe.scores
schedule: {steps: 2}
hardware: {preset: cpu}
"""

TINY: dict[str, dict[str, Any]] = {
    "grpo-arithmetic": {
        **SUMS,
        "nodes.actor.rollout": WRITING,
        "nodes.actor.training": {**PLAIN, "mini_batch": 6},
        "nodes.exact.source": DIGIT,
        "nodes.probe.every": 2,
        "nodes.probe.metrics": ["score"],
        "schedule.phases": [
            {
                "name": "warm-up",
                "steps": 3,
                "learn": ["actor.demonstrations"],
                "set": {"nodes.problems.rows_per_step": 5},
            },
            {
                "name": "rl",
                "steps": 4,
                "learn": ["actor.rewards"],
                "do": {"reset_optimizer": "actor"},
            },
        ],
        **REST,
    },
    "spin": {
        "nodes.gold.source.size": 16,
        "nodes.gold.rows_per_step": 6,
        "nodes.held_out.source.size": 8,
        "nodes.held_out.rows_per_step": 4,
        "nodes.opponent.rollout.max_new_tokens": 4,
        "nodes.policy.rollout.max_new_tokens": 4,
        "nodes.policy.training": {"optimizer": {"name": "rmsprop", "lr": 1.0e-3}},
        "nodes.iterations.capacity": 18,
        "nodes.iterations.rows_per_step": 6,
        "nodes.probe.every": 4,
        "schedule.phases": [
            {"name": "warm-up", "steps": 2, "learn": ["policy.demonstrations"]},
            {
                "repeat": 2,
                "phases": [
                    {"name": "collect", "epochs": 1, "fill": ["iterations"]},
                    {
                        "name": "train",
                        "epochs": 1,
                        "learn": ["policy.pairs"],
                        "do": {"reset_optimizer": "policy"},
                    },
                ],
            },
        ],
        **REST,
    },
    "two-halves": {
        "nodes.sums.source.size": 32,
        "nodes.sums.rows_per_step": 3,
        "nodes.held_out.source.size": 8,
        "nodes.held_out.rows_per_step": 4,
        "nodes.tens.rollout": {**WRITING, "max_new_tokens": 3},
        "nodes.units.rollout": {**WRITING, "max_new_tokens": 3},
        "nodes.tens.training": PLAIN,
        "nodes.units.training": PLAIN,
        "nodes.joint.source": DIGIT,
        "nodes.probe.every": 2,
        "nodes.probe.metrics": ["score"],
        "schedule.phases": [
            {
                "name": "warm-up",
                "steps": 2,
                "learn": ["tens.demonstrations", "units.demonstrations"],
            },
            {
                "name": "together",
                "steps": 4,
                "learn": ["tens.rewards", "units.rewards"],
                "do": {"reset_optimizer": ["tens", "units"]},
            },
        ],
        **REST,
    },
    "prime": {
        **SUMS,
        "nodes.policy.rollout": WRITING,
        "nodes.policy.training": {**PLAIN, "mini_batch": 6},
        "nodes.exact.source": DIGIT,
        "nodes.band.keep": [{"rule": "nonzero_variance"}],
        "nodes.band.fill": {"groups": 2, "max_rounds": 2},
        "nodes.prm.algorithm": {"labels": {"name": "implicit_prm", "beta": 0.5, "soft": True}},
        "nodes.prm.training": PLAIN,
        "nodes.fresh.every": 1,
        "nodes.probe.every": 2,
        "nodes.probe.metrics": ["score"],
        "schedule.phases": [
            {"name": "warm-up", "steps": 1, "learn": ["policy.demonstrations"]},
            {"name": "prm-warm-up", "steps": 1, "learn": ["prm.labels"]},
            {"name": "rl", "steps": 3, "learn": ["policy.rewards", "prm.labels"]},
        ],
        **REST,
    },
    "cooper": {
        **SUMS,
        "nodes.policy.rollout": WRITING,
        "nodes.policy.training": {**PLAIN, "mini_batch": 6},
        "nodes.rule.source": {"type": "builtin", "name": "regex", "pattern": "[0-4]"},
        "nodes.judge.read": {"activation": "sigmoid"},
        "nodes.judge.training": PLAIN,
        "nodes.fresh.every": 1,
        "nodes.probe.every": 2,
        "nodes.probe.metrics": ["score"],
        "schedule.phases": [
            {"name": "imitation", "steps": 1, "learn": ["policy.demonstrations"]},
            {"name": "judge-pre-training", "steps": 2, "learn": ["judge.labels"]},
            {"name": "co-training", "steps": 3, "learn": ["policy.rewards", "judge.pairs"]},
        ],
        **REST,
    },
    "genrm": {
        "nodes.problems.source.size": 32,
        "nodes.problems.rows_per_step": 3,
        "nodes.held_out.source.size": 8,
        "nodes.held_out.rows_per_step": 2,
        "nodes.solver.rollout": {**WRITING, "completions_per_prompt": 2},
        "nodes.solver.training": PLAIN,
        "nodes.exact.source": {"type": "builtin", "name": "regex", "pattern": "[0-4]"},
        "nodes.solved.keep": [{"rule": "score", "min": 0.0}],
        "nodes.lessons.capacity": 12,
        "nodes.lessons.rows_per_step": 6,
        "nodes.solutions.capacity": 12,
        "nodes.solutions.rows_per_step": 3,
        "nodes.verifier.rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
        "nodes.verifier.training": PLAIN,
        "nodes.solving.every": 4,
        "nodes.chosen.every": 4,
        "nodes.chosen.metrics": ["majority@2", "best_of@2"],
        "nodes.judged.every": 2,
        "nodes.judged.samples": 2,
        "schedule.phases": [
            {"name": "solve", "steps": 1, "learn": ["solver.demonstrations"]},
            {
                "name": "collect",
                "fill": ["lessons", "solutions"],
                "until": ["lessons.full", "solutions.full"],
                "max_steps": 4,
            },
            {
                "name": "train",
                "epochs": {"of": "lessons", "count": 2},
                "learn": ["verifier.demonstrations"],
            },
        ],
        **REST,
    },
    "search-r1": {
        "nodes.questions.rows_per_step": 4,
        "nodes.held_out.rows_per_step": 4,
        "nodes.index.call": "(?P<relation>.)(?P<query>0|1|2|3|a|e|o|u)",
        "nodes.index.result": "[{{ value[:3] }}]",
        "nodes.policy.rollout.max_new_tokens": 12,
        "nodes.policy.training": PLAIN,
        "nodes.critic.training": PLAIN,
        "nodes.exact.source": DIGIT,
        "nodes.probe.every": 2,
        "nodes.probe.metrics": ["score"],
        "schedule.phases": [
            {"name": "warm-up", "steps": 1, "learn": ["policy.demonstrations"]},
            {"name": "rl", "steps": 3, "learn": ["policy.rewards", "critic.returns"]},
        ],
        **REST,
    },
    "tango": {
        "nodes.problems.source.size": 32,
        "nodes.problems.rows_per_step": 2,
        "nodes.held_out.source.size": 8,
        "nodes.held_out.rows_per_step": 2,
        "nodes.generator.rollout": WRITING,
        "nodes.generator.training": {**PLAIN, "mini_batch": 4},
        "nodes.verifier.rollout": WRITING,
        "nodes.verifier.training": {**PLAIN, "mini_batch": 4},
        "nodes.verifier.read": {
            "step_verdicts": "([0-9])([a-z])",
            "values": {"a": 1, "e": -1},
            "number": "([0-9])",
            "scale": [0, 9],
            "on_no_match": 0,
        },
        "nodes.exact.source": DIGIT,
        "nodes.agrees.source": {
            "type": "builtin",
            "name": "weighted",
            "weights": {"verifier": 1, "exact": 0},
        },
        "nodes.probe.every": 2,
        "nodes.probe.metrics": ["score"],
        "nodes.verdicts.every": 2,
        "schedule.anneal": [],
        "schedule.phases": [
            {"name": "first-solutions", "steps": 1, "learn": ["generator.demonstrations"]},
            {"name": "first-verdicts", "steps": 1, "learn": ["verifier.demonstrations"]},
            {"name": "verifier-warm-up", "steps": 1, "learn": ["verifier.rewards"]},
            {
                "repeat": 2,
                "phases": [
                    {"name": "generate", "steps": 1, "learn": ["generator.rewards"]},
                    {"name": "verify", "steps": 1, "learn": ["verifier.rewards"]},
                ],
            },
        ],
        **REST,
    },
    "ppo-four-models": {
        "nodes.preferences.source.size": 16,
        "nodes.preferences.rows_per_step": 4,
        "nodes.held_out.source.size": 8,
        "nodes.held_out.rows_per_step": 4,
        "nodes.policy.rollout.max_new_tokens": 5,
        "nodes.policy.training": {**PLAIN, "mini_batch": 2},
        "nodes.rm.training": PLAIN,
        "nodes.critic.training": {**PLAIN, "mini_batch": 2},
        "nodes.rm_probe.every": 2,
        "nodes.policy_probe.every": 3,
        "schedule.phases": [
            {"name": "sft", "steps": 1, "learn": ["policy.demonstrations"]},
            {"name": "reward-model", "steps": 2, "learn": ["rm.pairs"]},
            {"name": "ppo", "steps": 3, "learn": ["policy.rewards", "critic.returns"]},
        ],
        **REST,
    },
}


def load(text: str) -> LoopSpec:
    """The spec of a text that must be right."""
    parsed = parse(text)
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    return parsed.spec


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over."""

    state: RunStateName
    folder: Path
    error: RunError | None

    @property
    def events(self) -> list[Event]:
        """All durable events of the run."""
        return read_events(self.folder / "events.jsonl")  # type: ignore[return-value]

    def of(self, kind: str, **values: Any) -> list[Event]:
        """Events of one type whose fields have these values."""
        return [
            event
            for event in self.events
            if event["type"] == kind and all(event.get(k) == v for k, v in values.items())
        ]

    def alerts(self) -> list[str]:
        """Codes of all alerts."""
        return [event["code"] for event in self.of("alert")]

    def stages(self, step: int) -> list[str]:
        """Stages of one step in their order, without those of probes."""
        events = self.of("stage.finished", step=step)
        return [event["stage"] for event in events if "evaluation" not in event]

    def metrics(self, node: str, name: str) -> list[float]:
        """All readings of one metric."""
        found = (event["metrics"].get(name) for event in self.of("metrics", node=node))
        return [value for value in found if value is not None]

    def readings(self, after: int = 0) -> dict[tuple[Any, ...], Any]:
        """Every metric of every step after the given one, as the last attempt has it.

        Times are left out, and what a sync says of a rollout engine, which a resumed run builds
        only when something is written.
        """
        found: dict[tuple[Any, ...], Any] = {}
        for event in self.of("metrics"):
            if event["step"] > after:
                for name, value in event["metrics"].items():
                    if not name.startswith(("step/", "sync/", "tool/seconds")):
                        key = (event["step"], event.get("node"), name)
                        found.setdefault(key, []).append((event["attempt"], value))
        return {
            key: [value for attempt, value in seen if attempt == max(a for a, _ in seen)]
            for key, seen in found.items()
        }

    def weights(self, step: int | None = None) -> dict[str, Tensor]:
        """Every tensor of a checkpoint (the last one), by `group/name`."""
        checkpoints = list_checkpoints(self.folder / "checkpoints")
        chosen = checkpoints[-1] if step is None else next(c for c in checkpoints if c.step == step)
        return {
            f"{group.name}/{name}": tensor
            for group in sorted(chosen.path.iterdir())
            if group.is_dir()
            for name, tensor in weights_in(group)
        }

    def group(self, name: str, step: int | None = None) -> dict[str, Tensor]:
        """Tensors of one weights group."""
        return {
            key.partition("/")[2]: tensor
            for key, tensor in self.weights(step).items()
            if key.startswith(f"{name}/")
        }

    def plan(self) -> dict[str, Any]:
        """The compiled plan."""
        text = (self.folder / "plan.json").read_text(encoding="utf-8")
        return dict(json.loads(text))

    def manifest(self) -> dict[str, Any]:
        """The manifest of the last checkpoint."""
        return list_checkpoints(self.folder / "checkpoints")[-1].manifest()


def same(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> bool:
    """Whether two sets of tensors are equal bit for bit."""
    assert left.keys() == right.keys()
    return all(torch.equal(left[name], right[name]) for name in left)


class StopAt:
    """A sink that asks the run to stop when an event comes that it waits for."""

    def __init__(self, is_here: Callable[[Event], bool]) -> None:
        self._is_here = is_here
        self.folder: Path | None = None
        self.has_asked = False

    def __call__(self, what: str, text: str) -> None:
        if what == "event" and not self.has_asked and self._is_here(json.loads(text)):
            assert self.folder is not None
            self.has_asked = True
            request(self.folder, StopRequest())


class Runner:
    """Runs loops in this process, each in a folder of its own."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self._number = 0

    def __call__(
        self,
        text: str,
        *,
        resume: Ended | None = None,
        stop_at: Callable[[Event], bool] | None = None,
        on_event: Callable[[Event, Path], None] | None = None,
        **options: Any,
    ) -> Ended:
        self._number += 1
        name = options.pop("run_id", f"run-{self._number}")
        folder = resume.folder if resume is not None else self.runs_dir / name
        sinks: list[Sink] = [*options.pop("more_sinks", ())]
        if stop_at is not None:
            stopper = StopAt(stop_at)
            stopper.folder = folder
            sinks.append(stopper)
        if on_event is not None:
            tell = on_event

            def listen(what: str, line: str) -> None:
                if what == "event":
                    tell(json.loads(line), folder)

            sinks.append(listen)
        result = run(
            RunRequest(
                spec=load(text),
                text=text,
                root=options.pop("root", self.runs_dir),
                runs_dir=self.runs_dir,
                run_id=None if resume is not None else name,
                resume=None if resume is None else folder,
                cluster=options.pop("cluster", "local"),
                threads=options.pop("threads", 1),
                sinks=sinks,
                **options,
            )
        )
        return Ended(state=result.state, folder=result.folder, error=result.error)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Runs a loop given as text."""
    return Runner(tmp_path)


@pytest.fixture
def small() -> str:
    """The text of the smallest loop that learns by rewards and has a probe: two steps."""
    return SMALL


@pytest.fixture
def tiny() -> Callable[..., str]:
    """The text of a tiny version of a preset, with more values set by path."""

    def make(name: str, values: Mapping[str, Any] | None = None) -> str:
        return changed(shrunk(name), values or {})

    return make


@cache
def shrunk(name: str) -> str:
    return changed((LOOPS / f"{name}.yaml").read_text(encoding="utf-8"), TINY[name])


def changed(text: str, values: Mapping[str, Any]) -> str:
    return patch(text, [Change(op="set", path=path, value=value) for path, value in values.items()])


@pytest.fixture
def finished() -> Callable[[Ended], Ended]:
    """Asserts that a run finished, and gives it."""

    def check(ended: Ended) -> Ended:
        assert ended.state is RunStateName.FINISHED, ended.error
        return ended

    return check


@pytest.fixture
def equal() -> Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], bool]:
    """Compares tensors bit for bit."""
    return same


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ended]:
    """The uninterrupted run of a text, done once however many tests compare with it."""
    runner = Runner(tmp_path_factory.mktemp("whole"))
    known: dict[str, Ended] = {}

    def run_whole(text: str) -> Ended:
        if text not in known:
            known[text] = runner(text)
            assert known[text].state is RunStateName.FINISHED, known[text].error
        return known[text]

    return run_whole
