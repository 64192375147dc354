"""Loops that are killed at random: they learn the same bits, remember the same, tell steps once.

driver ── SIGKILL after a random number of events ──> resumed, until it has been killed N times
rank   ── SIGKILL after a random number of events ──> replaced by the driver, or the run ends
                                                      and is resumed

What lasts beyond a step is switched on in each: coefficients that adapt, running scales, shares of
classes, weights that anneal, triggers, the best step, refills, buffers, snapshots and copies.
"""

import json
import os
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.bench.killing import Disturbed, disturbed, most_between, text_of
from tests.bench.results import Goal, Result, Table
from tests.engine.runs.conftest import DIGIT, PLAIN, REST, Ended

from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.run_files.events import RunStateName

KILLS = {
    "driver": int(os.environ.get("COLOOP_CHAOS_KILLS", "20")),
    "rank": int(os.environ.get("COLOOP_CHAOS_RANK_KILLS", "10")),
}
"""For each loop, by who is killed; 0: nobody."""
CHOSEN = tuple(filter(None, os.environ.get("COLOOP_CHAOS_LOOPS", "").split(",")))
"""Names of loops, separated by commas; none: all."""
WORKERS = {"driver": 1, "rank": 2}
"""Processes of the pool, by who is killed."""

KL = {"coefficient": 0.02, "estimator": "k1", "into": "reward", "target": 0.001, "horizon": 50}
ADAPTIVE = {"name": "ppo", "gamma": 1.0, "gae_lambda": 0.95, "reward_clip": 10.0, "kl": KL}
CALLS = "(?P<query>0|1|2|3|a|e|o|u)"
"""A call of a search tool that texts of a random model contain."""
SYSTEMS: dict[str, dict[str, Any]] = {
    "grpo-arithmetic": {"schedule.phases.1.steps": 40, "run.best": "probe.score"},
    "two-halves": {"schedule.phases.1.steps": 40, "run.best": "probe.score"},
    "spin": {"schedule.phases.1.repeat": 6, "run.best": "probe.accuracy"},
    "ppo-four-models": {
        "nodes.policy.algorithm": {"demonstrations": {"name": "sft"}, "rewards": ADAPTIVE},
        "schedule.phases": [
            {"name": "sft", "steps": 3, "learn": ["policy.demonstrations"]},
            {"name": "reward-model", "steps": 4, "learn": ["rm.pairs"]},
            {"name": "critic-warm-up", "steps": 1, "learn": ["critic.returns"]},
            {
                "name": "ppo",
                "steps": 11,
                "learn": ["policy.rewards", "critic.returns"],
                "do": {"reset_optimizer": "policy"},
            },
        ],
        "run.best": "policy_probe.truth.score",
    },
    "prime": {
        "nodes.policy.training": {"optimizer": {"name": "adamw", "lr": 1.0e-3}, "mini_batch": 4},
        "nodes.prm.read": {"granularity": "token", "beta": 0.5, "normalise": "running"},
        "nodes.band.keep": [{"rule": "nonzero_variance"}],
        "nodes.band.fill": {"groups": 3, "max_rounds": 3},
        "schedule.phases": [
            {"name": "warm-up", "steps": 2, "learn": ["policy.demonstrations"]},
            {"name": "prm-warm-up", "steps": 3, "learn": ["prm.labels"]},
            {"name": "rl", "steps": 12, "learn": ["policy.rewards", "prm.labels"]},
        ],
        "schedule.triggers": [
            {
                "in": "rl",
                "when": {"metric": "exact.score/mean", "above": -1.0, "for": 5},
                "do": {"set": {"edges.process.weight": 0.5}},
            }
        ],
        "run.best": "probe.score",
    },
    "tango": {
        "schedule.anneal": [
            {
                "path": "edges.steps.weight",
                "from": 0.1,
                "to": 0.001,
                "shape": "exponential",
                "complement": "edges.outcome.weight",
                "over": ["generate"],
            }
        ],
        "schedule.phases": [
            {"name": "first-solutions", "steps": 2, "learn": ["generator.demonstrations"]},
            {"name": "first-verdicts", "steps": 2, "learn": ["verifier.demonstrations"]},
            {"name": "verifier-warm-up", "steps": 2, "learn": ["verifier.rewards"]},
            {
                "repeat": 4,
                "phases": [
                    {"name": "generate", "steps": 3, "learn": ["generator.rewards"]},
                    {"name": "verify", "steps": 1, "learn": ["verifier.rewards"]},
                ],
            },
        ],
        "run.best": "probe.score",
    },
    "search-r1": {
        "nodes.policy.algorithm": {
            "demonstrations": {"name": "sft", "mask": ["information"]},
            "rewards": ADAPTIVE,
        },
        "nodes.policy.training": {"optimizer": {"name": "adamw", "lr": 1.0e-3}, "mini_batch": 2},
        "schedule.phases": [
            {"name": "warm-up", "steps": 3, "learn": ["policy.demonstrations"]},
            {"name": "rl", "steps": 12, "learn": ["policy.rewards", "critic.returns"]},
        ],
        "run.best": "probe.score",
    },
    "mae": {
        **REST,
        "nodes.seeds.rows_per_step": 4,
        "nodes.held_out.rows_per_step": 4,
        "nodes.questions.capacity": 16,
        "nodes.questions.rows_per_step": 3,
        "nodes.parsed.parse": {"question": "^(.{2,})"},
        "nodes.question_judge.rollout.max_new_tokens": 4,
        "nodes.answer_judge.rollout.max_new_tokens": 4,
        "nodes.solver.rollout": {"completions_per_prompt": 3, "max_new_tokens": 4},
        "nodes.quality.source": {**DIGIT, "on_no_match": 0.5},
        "nodes.answer_score.source": {**DIGIT, "on_no_match": 0.5},
        "nodes.gated_difficulty.source.min": 0.4,
        "nodes.good.keep": [
            {"rule": "score", "min": 0.4},
            {"rule": "unique", "column": "question"},
        ],
        "nodes.question_format.source.pattern": "[0-9]",
        "nodes.answer_format.source.pattern": "^[0-9a-m]",
        "nodes.verdict_format.source.pattern": "[a-m]$",
        "nodes.proposer.training": {**PLAIN, "mini_batch": 8},
        "nodes.probe": {
            "kind": "evaluate",
            "instead_of": "parsed",
            "every": 4,
            "samples": 1,
            "metrics": ["score"],
        },
        "nodes.judged.every": 4,
        "nodes.judged.metrics": ["rank_correlation"],
        "schedule.phases.0.steps": 3,
        "schedule.phases.0.set": {"nodes.judged.every": 100},
        "schedule.phases.1.steps": 20,
        "run.best": "probe.score",
        "schedule.anneal": [
            {
                "path": "nodes.proposer.training.optimizer.lr",
                "from": 1.0e-3,
                "to": 1.0e-4,
                "shape": "cosine",
                "over": ["evolve"],
            }
        ],
    },
    "ssp": {
        **REST,
        "nodes.answers.rows_per_step": 6,
        "nodes.held_out.rows_per_step": 4,
        "nodes.index.call": CALLS,
        "nodes.index.result": "[{{ value[:3] }}]",
        "nodes.proposer.rollout": {
            "completions_per_prompt": 1,
            "max_new_tokens": 10,
            "turns": {"max": 3, "observation_tokens": 12},
        },
        "nodes.proposer.training": {**PLAIN, "mini_batch": 6},
        "nodes.extracted.parse": {"question": "^(.{2,6})"},
        "nodes.valid.keep": [
            {"rule": "length", "column": "question", "min": 2, "max": 60},
            {
                "rule": "python",
                "code": "def keep(tool_outputs, **columns):\n    return any(tool_outputs)\n",
            },
        ],
        "nodes.reader.rollout.max_new_tokens": 6,
        "nodes.readable.source": {"type": "builtin", "name": "regex", "pattern": "[0-4a-m]"},
        "nodes.answerable.up_to": 5,
        "nodes.pool.capacity": 12,
        "nodes.pool.clear.every": 5,
        "nodes.solver.rollout": {
            "completions_per_prompt": 3,
            "max_new_tokens": 10,
            "turns": {"max": 3, "observation_tokens": 12},
        },
        "nodes.exact.source": {**DIGIT, "on_no_match": 0.25},
        "nodes.probe.every": 4,
        "nodes.probe.metrics": ["score"],
        "schedule.phases.0.steps": 3,
        "schedule.phases.0.set": {"nodes.probe.every": 2},
        "schedule.phases.1.steps": 20,
        "run.best": "probe.score",
    },
    "mars": {
        **REST,
        "nodes.questions.rows_per_step": 3,
        "nodes.held_out.rows_per_step": 4,
        "nodes.web.call": f"(?P<purpose>[a-z]){CALLS}",
        "nodes.condense.result": "[{{ value }}]",
        "nodes.system_2.rollout": {
            "completions_per_prompt": 4,
            "max_new_tokens": 12,
            "turns": {"max": 3, "observation_tokens": 20},
        },
        "nodes.system_2.training": {**PLAIN, "mini_batch": 8},
        "nodes.system_1.rollout.max_new_tokens": 5,
        "nodes.system_1.credit.balance.to": 4,
        "nodes.exact.source": DIGIT,
        "nodes.learnable.keep": [{"rule": "score", "min": 0.05, "max": 0.75}],
        "nodes.kept.capacity": 8,
        "nodes.kept.rows_per_step": 3,
        "nodes.probe.every": 4,
        "nodes.probe.metrics": ["score"],
        "schedule.phases.0.steps": 3,
        "schedule.phases.0.set": {"nodes.probe.every": 2},
        "schedule.phases.1.max_steps": 6,
        "schedule.phases.2.steps": 16,
        "run.best": "probe.score",
    },
    "debate": {
        **REST,
        "nodes.stories.rows_per_step": 3,
        "nodes.held_out.rows_per_step": 4,
        "nodes.debater.rollout.max_new_tokens": 5,
        "nodes.debater.training": {**PLAIN, "mini_batch": 6},
        "nodes.opponent.rollout.max_new_tokens": 5,
        "nodes.debates.capacity": 24,
        "nodes.debates.rows_per_step": 6,
        "nodes.quoted.source": DIGIT,
        "nodes.judged.every": 4,
        "nodes.quoting.every": 4,
        "schedule.phases.0.steps": 3,
        "schedule.phases.0.set": {"nodes.stories.rows_per_step": 6},
        "schedule.phases.1.steps": 3,
        "schedule.phases.1.set": {"nodes.judged.every": 2},
        "schedule.phases.2.repeat": 3,
        "schedule.phases.2.phases.0.max_steps": 6,
        "schedule.phases.2.phases.1.epochs": 1,
        "run.best": "judged.agreement",
    },
    "opd": {
        **REST,
        "nodes.problems.rows_per_step": 3,
        "nodes.held_out.rows_per_step": 4,
        "nodes.student.rollout": {"completions_per_prompt": 4, "max_new_tokens": 6},
        "nodes.student.training": {**PLAIN, "mini_batch": 6},
        "nodes.probe.every": 4,
        "nodes.lesson.every": 6,
        "schedule.phases.0.steps": 4,
        "schedule.phases.0.set": {"nodes.problems.rows_per_step": 6},
        "schedule.phases.1.steps": 3,
        "schedule.phases.1.set": {"nodes.problems.rows_per_step": 6},
        "schedule.phases.2.steps": 20,
        "schedule.anneal": [
            {
                "path": "nodes.student.training.optimizer.lr",
                "from": 1.0e-3,
                "to": 1.0e-4,
                "shape": "linear",
                "over": ["distillation"],
            }
        ],
        "run.best": "probe.accuracy",
    },
}
"""What is set in each preset (in its tiny version, where `TINY` has one), so that it passes through
every phase, and that there is something left to kill and to remember."""


OF_A_DRIVER = ("step/", "sync/", "tool/seconds")
"""Metrics that are not of a run but of its machine, or of what a driver has built so far."""
HEAD = (
    "loop",
    "killed",
    "kills",
    "drivers",
    "pools replaced",
    "before a step was done",
    "where",
    "seconds calm",
    "killed",
    "the same",
)


def remembered(run: Disturbed) -> dict[str, Any]:
    """All that the last checkpoint has, by dotted path: what the run and its roles know, and the
    SHA-256 of each file, optimizers among them."""
    last = list_checkpoints(run.folder / "run" / "checkpoints")[-1]
    return {path: one for path, one in _flat(last.manifest()).items() if path != "sha256"}


def told(run: Disturbed) -> dict[str, Any]:
    """Every metric of every step, as the last attempt that did the step has it."""
    ended = Ended(state=RunStateName.FINISHED, folder=run.folder / "run", error=None)
    return {".".join(map(str, key)): value for key, value in ended.readings().items()}


def reported(run: Disturbed) -> dict[str, Any]:
    """The last metrics, and what was found wrong, as the run's report has them."""
    report = json.loads((run.folder / "run" / "report.json").read_text(encoding="utf-8"))
    return _flat({name: report[name] for name in ("steps", "metrics", "alerts")})


def differences(calm: Disturbed, wild: Disturbed) -> list[str]:
    """What the run that was killed has otherwise, in words."""
    found = [] if wild.weights == calm.weights else [f"{wild.weights[:24]} weights"]
    for part in (remembered, told, reported):
        left, right = part(calm), part(wild)
        keys = [key for key in {**left, **right} if not any(one in key for one in OF_A_DRIVER)]
        found += [key for key in keys if left.get(key) != right.get(key)]
    lines = (wild.folder / "run" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    numbers = [json.loads(line)["seq"] for line in lines]
    return found if numbers == [*range(1, len(numbers) + 1)] else [*found, "numbers of events"]


def killed(loop: str, victim: str, kills: int, folder: Path) -> tuple[tuple[str, ...], Goal]:
    """What came of a loop that was killed so often, beside the same loop in peace."""
    text = text_of(loop, WORKERS[victim], SYSTEMS[loop])
    chance = random.Random(f"{loop} {victim}")
    calm = disturbed(folder / "calm", text, victim, 0, chance)
    wild = disturbed(folder / "wild", text, victim, kills, chance, most=most_between(calm, kills))
    other = differences(calm, wild)
    row = _row(loop, victim, calm, wild, other)
    goal = Goal(
        wanted=f"{loop}: {victim} killed {kills} times, the same in every bit",
        found=f"{wild.kills} kills, {row[-1]}",
        is_reached=not other and wild.kills == kills,
    )
    return row, goal


def run(say: Callable[[str], None] | None = None) -> Result:
    """Kill driver and ranks of each loop."""
    found = []
    for victim in (one for one in WORKERS if KILLS[one]):
        for loop in CHOSEN or SYSTEMS:
            with tempfile.TemporaryDirectory() as place:
                found.append(killed(loop, victim, KILLS[victim], Path(place)))
            if say is not None:
                say(" ".join(found[-1][0]))
    return result_of(found)


def result_of(found: Sequence[tuple[tuple[str, ...], Goal]]) -> Result:
    """The page of these loops."""
    title = (
        "A checkpoint of each step; SIGKILL at random moments over the whole run, one driver in "
        "ten while it writes a checkpoint. Compared: weights, optimizers, what roles and run "
        "remember, every metric of every step."
    )
    table = Table(title=title, head=HEAD, rows=tuple(row for row, _ in found))
    goals = tuple(goal for _, goal in found)
    return Result(title="Chaos", tables=(table,), goals=goals)


def _row(
    loop: str, victim: str, calm: Disturbed, wild: Disturbed, other: list[str]
) -> tuple[str, ...]:
    places = ", ".join(f"{place} {count}" for place, count in wild.places.most_common())
    return (
        loop,
        victim,
        str(wild.kills),
        str(wild.drivers),
        str(wild.replaced),
        str(wild.soon),
        places or "anywhere",
        f"{calm.seconds:.0f}",
        f"{wild.seconds:.0f}",
        f"not {', '.join(other[:3])}" if other else "all bits",
    )


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Everything in nested mappings, by its dotted path."""
    if not isinstance(value, dict):
        return {path: value}
    parts = [_flat(part, f"{path}.{key}".lstrip(".")) for key, part in value.items()]
    return {key: one for part in parts for key, one in part.items()}
