"""A loop that adds by each algorithm of a policy: the same tiny sums, the same writer, and around
it what the algorithm needs (a critic, a reference, a filter that refills, pairs).

Scores are what the checker says, or with `shuffled` what it says of some other row of the step:
then nothing can be learned but by chance.
"""

import json
from collections.abc import Mapping
from typing import Any

from tests.engine.shuffles import scores_of_other_rows

from coloop.spec.algorithm import REWARDS_NAMES, RewardsAlgorithm, reads
from coloop.spec.algorithms.registry import family_of

OWN_REWARDS = tuple(name for name in REWARDS_NAMES if name == family_of(name))
"""Algorithms of port `rewards`, parity presets left out."""
PARITY = ("trl-grpo", "verl-grpo", "openrlhf-ppo", "openrlhf-reinforce-pp", "nemo-grpo")
ONLINE_PAIRS = ("dpo", "online_dpo", "ipo", "kto", "orpo", "simpo")
LOOPS = (*OWN_REWARDS, *ONLINE_PAIRS, "spin", "sft", "opd")
"""What has a loop here."""

TINY: Mapping[str, Any] = {"type": "scratch", "architecture": "tiny-qwen3"}
ALIKE = {"type": "builtin", "name": "regex", "pattern": "([0-9])", "scale": [0, 9]}
"""A score that differs between the texts of a random model."""


def algorithm_loop(
    name: str,
    *,
    model: Mapping[str, Any] = TINY,
    steps: int = 3,
    rows: int = 2,
    completions: int = 4,
    lr: float = 1e-3,
    seed: int = 0,
    mini_batch: int | None = None,
    score: Mapping[str, Any] = ALIKE,
    probe_every: int | None = None,
    shuffled: bool = False,
    fields: Mapping[str, Any] | None = None,
) -> str:
    """The text of a loop.

    Args:
        fields: of the algorithm, beside its name.
    """
    loop = _Loop(model, rows, completions, lr, mini_batch, score, shuffled)
    algorithm = {"name": name, **(fields or {})}
    family = family_of(name)
    if name == "sft":
        loop.learn_examples(algorithm)
    elif name == "opd":
        loop.learn_from_a_teacher(algorithm)
    elif name == "spin":
        loop.learn_own_against_gold(algorithm)
    elif name in ONLINE_PAIRS:
        loop.learn_pairs(algorithm, with_reference=name not in ("orpo", "simpo"))
    else:
        loop.learn_rewards(algorithm, family)
    if probe_every is not None:
        loop.measure(probe_every)
    return loop.text(steps, seed)


class _Loop:
    """Nodes and edges, put together."""

    def __init__(
        self,
        model: Mapping[str, Any],
        rows: int,
        completions: int,
        lr: float,
        mini_batch: int | None,
        score: Mapping[str, Any],
        shuffled: bool,
    ) -> None:
        self._shuffled = shuffled
        optimizer = {"name": "adamw", "lr": lr, "schedule": "cosine", "warmup": 0.1}
        self._training = {"optimizer": optimizer, "mini_batch": mini_batch}
        self.problems = {"kind": "dataset", "source": _sums("train"), "rows_per_step": rows}
        self.actor: dict[str, Any] = {
            "kind": "actor",
            "model": dict(model),
            "rollout": {"completions_per_prompt": completions, "max_new_tokens": 8},
            "training": self._training,
        }
        self.nodes: dict[str, Any] = {
            "problems": self.problems,
            "actor": self.actor,
            "exact": {"kind": "reward", "source": dict(score)},
        }
        self.edges: list[Any] = ["problems.rows -> actor.prompts"]
        self.scorer = "exact"

    def learn_rewards(self, algorithm: dict[str, Any], family: str) -> None:
        self.actor["algorithm"] = algorithm
        self._score("actor")
        scores = f"{self.scorer}.scores"
        if family == "dapo":
            scores = self._refilled(scores)
        if family == "pf_ppo":
            self.nodes["drawn"] = {"kind": "filter", "resample": {"weight": "power"}}
            self.edges += ["actor.rollouts -> drawn.rollouts", f"{scores} -> drawn.scores"]
            scores = "drawn.scores"
        if family == "remax":
            self.actor["rollout"]["greedy_extra"] = True
        if family in ("ppo", "vapo", "pf_ppo"):
            self._valued("drawn" if family == "pf_ppo" else "actor")
        if "reference" in reads(RewardsAlgorithm.model_validate(algorithm)):
            self._referred("actor.rollouts", "rollouts")
        self.edges.append(f"{scores} -> actor.rewards")

    def learn_pairs(self, algorithm: dict[str, Any], *, with_reference: bool) -> None:
        self.actor["algorithm"] = algorithm
        self._score("actor")
        self.nodes["ranked"] = {"kind": "pairs", "method": "best_worst"}
        self.edges += [
            "actor.rollouts -> ranked.rollouts",
            f"{self.scorer}.scores -> ranked.scores",
            "ranked.pairs -> actor.pairs",
        ]
        if with_reference:
            self._referred("ranked.pairs", "pairs")

    def learn_own_against_gold(self, algorithm: dict[str, Any]) -> None:
        """Gold answers against those of the start."""
        self.actor["algorithm"] = algorithm
        self.nodes["opponent"] = {
            "kind": "actor",
            "model": {"type": "snapshot", "of": "actor", "refresh": "never"},
            "rollout": {"completions_per_prompt": 1, "max_new_tokens": 8},
        }
        columns = {"chosen": "target", "rejected": "completion"}
        self.nodes["sides"] = {"kind": "pairs", "method": "direct", "columns": columns}
        self.edges += [
            "problems.rows -> opponent.prompts",
            f"{self._gold()} -> sides.chosen",
            "opponent.rollouts -> sides.rejected",
            "sides.pairs -> actor.pairs",
        ]
        self._score("actor")
        self.nodes["before"] = {
            "kind": "reference",
            "model": {"type": "shared", "with": "opponent"},
        }
        self.edges += ["sides.pairs -> before.pairs", "before.log_probs -> actor.reference"]

    def learn_from_a_teacher(self, algorithm: dict[str, Any]) -> None:
        """What a teacher says of own texts, which learns by examples meanwhile."""
        self.actor["algorithm"] = algorithm
        self.nodes["teacher"] = {
            "kind": "actor",
            "model": self.actor["model"],
            "algorithm": {"name": "sft"},
            "training": self._training,
        }
        self.nodes["reads"] = {"kind": "reference", "model": {"type": "shared", "with": "teacher"}}
        self.edges += [
            f"{self._gold()} -> teacher.demonstrations",
            "actor.rollouts -> reads.rollouts",
            "reads.log_probs -> actor.reference",
        ]
        self._score("actor")

    def learn_examples(self, algorithm: dict[str, Any]) -> None:
        self.actor["algorithm"] = algorithm
        self.edges.append(f"{self._gold()} -> actor.demonstrations")
        self._score("actor")

    def measure(self, every: int) -> None:
        self.nodes["held_out"] = {
            "kind": "dataset",
            "source": _sums("test"),
            "rows_per_step": 256,
        }
        self.nodes["probe"] = {
            "kind": "evaluate",
            "instead_of": "problems",
            "every": every,
            "greedy": True,
            "metrics": ["accuracy"],
        }
        self.edges += ["held_out.rows -> probe.rows", "exact.scores -> probe.scores"]

    def text(self, steps: int, seed: int) -> str:
        """As a file has it; JSON is YAML."""
        return json.dumps(
            {
                "coloop": 1,
                "name": "by-algorithm",
                "nodes": self.nodes,
                "edges": self.edges,
                "schedule": {"steps": steps},
                "hardware": {"preset": "cpu"},
                "run": {"seed": seed},
            }
        )

    def _score(self, writer: str) -> None:
        self.edges.append(f"{writer}.rollouts -> exact.rollouts")
        if self._shuffled:
            self.nodes["luck"] = scores_of_other_rows()
            self.edges += [f"{writer}.rollouts -> luck.rollouts", "exact.scores -> luck.scores"]
            self.scorer = "luck"

    def _gold(self) -> str:
        """Rows with answers to imitate: their own, or those of other rows."""
        if not self._shuffled:
            return "problems.rows"
        self.nodes["mixed"] = {"kind": "template", "target": "{{ others('target', 1)[0] }}"}
        self.edges.append("problems.rows -> mixed.rows")
        return "mixed.rows"

    def _refilled(self, scores: str) -> str:
        """Groups without variance are drawn again, at most twice; long answers pay."""
        self.nodes["informative"] = {
            "kind": "filter",
            "keep": [{"rule": "nonzero_variance"}],
            "fill": {"groups": max(self.problems["rows_per_step"] // 2, 1), "max_rounds": 3},
        }
        overlong = {"type": "builtin", "name": "overlong", "max": 8, "buffer": 2}
        self.nodes["overlong"] = {"kind": "reward", "source": overlong}
        self.edges += [
            "actor.rollouts -> informative.rollouts",
            f"{scores} -> informative.scores",
            "informative.rollouts -> overlong.rollouts",
            "overlong.scores -> actor.rewards",
        ]
        return "informative.scores"

    def _valued(self, rows: str) -> None:
        """Beside a critic that begins as the actor does."""
        self.nodes["critic"] = {
            "kind": "critic",
            "model": {"type": "copy", "of": "actor"},
            "algorithm": {"name": "value", "gae_lambda": 1.0},
            "training": self._training,
        }
        self.edges += [
            f"{rows}.rollouts -> critic.rollouts",
            "critic.values -> actor.values",
            "actor.returns -> critic.returns",
        ]

    def _referred(self, rows: str, port: str) -> None:
        model = {"type": "snapshot", "of": "actor", "refresh": "never"}
        self.nodes["start"] = {"kind": "reference", "model": model}
        self.edges += [f"{rows} -> start.{port}", "start.log_probs -> actor.reference"]


def _sums(split: str) -> dict[str, Any]:
    return {"type": "task", "task": "arithmetic", "split": split, "digits": 2, "reverse": True}
