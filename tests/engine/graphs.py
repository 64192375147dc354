"""A small grammar of valid loops, drawn by a seed: rounds, refills, probes, two writers, pairs, two
pools, in whatever combination the language allows.

    problems ── [first region of rounds] ── [second region] ── scores ── learners
                 one or two writers          one writer
"""

import random
from typing import Any

MODEL = {"type": "scratch", "architecture": "tiny-qwen3"}
DIGITS = {
    "kind": "reward",
    "source": {
        "type": "python",
        "code": "def reward(prompts, completions, **columns):\n"
        "    return [sum(map(ord, text)) % 7 / 7 for text in completions]\n",
    },
}
"""A number that differs between the texts of a random model."""
SHORT = "{{ problems.prompt[:3] }}"


class Draft:
    """A loop that is being drawn."""

    def __init__(self, seed: int, may_be_ahead: bool) -> None:
        self.chance = random.Random(seed)
        rows = [{"prompt": f"{number}+{number}=", "answer": "1"} for number in range(1, 8)]
        self.nodes: dict[str, Any] = {
            "problems": {
                "kind": "dataset",
                "source": {"type": "inline", "rows": rows},
                "rows_per_step": 2,
            }
        }
        self.edges: list[Any] = []
        self.writers: list[str] = []
        self.is_ahead = self.has(0.25) and may_be_ahead

    def has(self, share: float) -> bool:
        return self.chance.random() < share

    def writer(self, name: str, most: int = 3) -> dict[str, Any]:
        """One who writes and learns, now and then with the weights of the one before."""
        count = self.chance.randint(2, most)
        rollout: dict[str, Any] = {"completions_per_prompt": count, "max_new_tokens": 3}
        if self.has(0.25):
            rollout["greedy_extra"] = True
        credit: dict[str, Any] = {}
        if self.has(0.5):
            credit["rounds"] = {"discount": 0.5}
        if self.has(0.3):
            credit["group_by"] = ["problems", "round"]
        node = {
            "kind": "actor",
            "rollout": rollout,
            "algorithm": {"rewards": {"name": self.chance.choice(["grpo", "reinforce", "rloo"])}},
        }
        if self.is_ahead:
            rollout["pool"] = "write"
        if self.writers and self.has(0.3):
            node["model"] = {"type": "shared", "with": self.writers[0]}
        else:
            node |= {"model": MODEL, "training": {"optimizer": {"name": "adamw", "lr": 1.0e-3}}}
        if self.is_ahead:
            node["pool"] = "train"
        if credit:
            node["credit"] = credit
        self.nodes[name] = node
        self.writers.append(name)
        return node


def drawn(seed: int, may_be_ahead: bool = True) -> dict[str, Any]:
    """The loop of a seed.

    Args:
        may_be_ahead: some loops write a step ahead, in a pool of their own.
    """
    draft = Draft(seed, may_be_ahead)
    asks = _two(draft) if draft.has(0.5) else _one(draft)
    for ask in asks:
        draft.edges.append(f"problems.rows -> {ask}.rows")
    if draft.has(0.3):
        _second_region(draft)
    _score(draft)
    if draft.has(0.3):
        _pairs(draft)
    if draft.has(0.5):
        _probe(draft)
    schedule: dict[str, Any] = {"steps": 3}
    hardware: dict[str, Any] = {"preset": "cpu"}
    if draft.is_ahead:
        schedule["max_staleness"] = 1
        hardware["pools"] = {"train": {"workers": 1}, "write": {"workers": 1}}
    if draft.has(0.3):
        schedule["stream"] = True
    if draft.has(0.3):
        _judge(draft)
    return {
        "coloop": 1,
        "name": f"drawn-{seed}",
        "nodes": draft.nodes,
        "edges": draft.edges,
        "schedule": schedule,
        "hardware": hardware,
        "run": {"seed": seed},
    }


def _closing(draft: Draft, source: str, target: str, how: dict[str, Any]) -> dict[str, Any]:
    return {"from": source, "to": f"{target}.rows", **how}


def _how(draft: Draft) -> dict[str, Any]:
    """How a region goes round."""
    branch = draft.chance.choice([None, "one", "all", "lines"])
    how: dict[str, Any] = {"rounds": draft.chance.randint(1, 2 if branch == "all" else 3)}
    return {**how, "branch": branch} if branch else how


def _one(draft: Draft) -> list[str]:
    """One writer who goes on with what it wrote, through what a filter lets pass."""
    how = _how(draft)
    text = f"{SHORT}{{{{ left.completion }}}}{{{{ past('left.completion') | length }}}}"
    draft.nodes["ask_left"] = {"kind": "template", "text": text}
    left = draft.writer("left")
    draft.edges.append("ask_left.rows -> left.prompts")
    source = "left.rollouts"
    what = draft.chance.choice(["nothing", "cut", "fill", "note"])
    if what == "note":
        draft.nodes["note"] = {"kind": "template", "text": "{{ prompt }}{{ completion }}"}
        draft.edges.append("left.rollouts -> note.rows")
        source = "note.rows"
    elif what != "nothing":
        draft.nodes["inner"] = DIGITS
        keep = {"kind": "filter", "keep": [{"rule": "score", "min": 0.3}]}
        if what == "fill":
            keep["fill"] = {"groups": "all", "from": "left", "max_rounds": 2}
            left["rollout"].pop("greedy_extra", None)
        draft.nodes["going_on"] = keep
        draft.edges += [
            "left.rollouts -> inner.rollouts",
            "left.rollouts -> going_on.rollouts",
            "inner.scores -> going_on.scores",
        ]
        source = "going_on.rollouts"
    draft.edges.append(_closing(draft, source, "ask_left", how))
    return ["ask_left"]


def _two(draft: Draft) -> list[str]:
    """Two writers who see each other's texts, directly or over a common record."""
    how = _how(draft)
    seen = "{{ left.completion }}{{ right.completion }}"
    for name in ("left", "right"):
        draft.nodes[f"ask_{name}"] = {"kind": "template", "text": f"{SHORT}{seen}"}
        draft.writer(name)
        draft.edges.append(f"ask_{name}.rows -> {name}.prompts")
    if draft.has(0.5):
        draft.nodes["record"] = {"kind": "template", "text": f"{{{{ record.prompt }}}}{seen}"}
        draft.edges += [f"{name}.rollouts -> record.rows" for name in ("left", "right")]
        sources = ["record.rows"]
    else:
        sources = ["left.rollouts", "right.rollouts"]
    draft.edges += [
        _closing(draft, source, f"ask_{name}", how)
        for name in ("left", "right")
        for source in sources
    ]
    return ["ask_left", "ask_right"]


def _second_region(draft: Draft) -> None:
    """A writer that works on what the first region brought, in rounds of its own."""
    draft.nodes["ask_late"] = {"kind": "template", "text": f"{SHORT}{{{{ late.completion }}}}"}
    draft.writer("late", most=2)
    draft.edges += [
        {"from": "left.rollouts", "to": "ask_late.rows", "take": draft.chance.choice(TAKES)},
        "ask_late.rows -> late.prompts",
        _closing(draft, "late.rollouts", "ask_late", {"rounds": 2}),
    ]


TAKES = ("last", "ends", "all")


def _score(draft: Draft) -> None:
    """Every writer is scored; now and then only what a filter keeps, which is filled up."""
    draft.nodes["mark"] = {**DIGITS, "join": "concat"}
    draft.edges += [f"{name}.rollouts -> mark.rollouts" for name in draft.writers]
    scores = "mark.scores"
    if draft.has(0.4) and "fill" not in draft.nodes.get("going_on", {}):
        fill = {"groups": draft.chance.randint(2, 4), "max_rounds": 2}
        if draft.has(0.5):
            fill["surplus"] = "drop"
        keep = {"kind": "filter", "keep": [{"rule": "nonzero_variance"}], "fill": fill}
        draft.nodes["alive"] = keep
        draft.edges.append("mark.scores -> alive.scores")
        scores = "alive.scores"
    draft.edges += [f"{scores} -> {name}.rewards" for name in draft.writers]


def _judge(draft: Draft) -> None:
    """Somebody frozen judges how conversations ended, and all who wrote in them are told."""
    draft.nodes["ended"] = {"kind": "template", "text": f"{SHORT}{{{{ left.completion }}}}"}
    draft.nodes["judge"] = {
        "kind": "actor",
        "model": {"type": "snapshot", "of": "left", "refresh": "never"},
        "rollout": {"completions_per_prompt": 1, "max_new_tokens": 2},
    }
    if draft.is_ahead:
        draft.nodes["judge"] |= {"pool": "train"}
        draft.nodes["judge"]["rollout"]["pool"] = "write"
    draft.nodes["verdict"] = DIGITS
    draft.edges += [
        {"from": "left.rollouts", "to": "ended.rows", "take": draft.chance.choice(TAKES)},
        "ended.rows -> judge.prompts",
        "judge.rollouts -> verdict.rollouts",
        *[
            {"from": "verdict.scores", "to": f"{name}.rewards", "aggregate": "mean"}
            for name in draft.writers
        ],
    ]


def _pairs(draft: Draft) -> None:
    """The first writer learns from pairs of its texts as well."""
    left = draft.nodes["left"]
    left["algorithm"] = {**left["algorithm"], "pairs": {"name": "dpo"}}
    draft.nodes["better"] = {"kind": "pairs", "method": "best_worst"}
    draft.nodes["start"] = {
        "kind": "reference",
        "model": {"type": "snapshot", "of": "left", "refresh": "never"},
    }
    if draft.is_ahead:
        draft.nodes["start"]["pool"] = "train"
    draft.edges += [
        "left.rollouts -> better.rollouts",
        "mark.scores -> better.scores",
        "better.pairs -> left.pairs",
        "better.pairs -> start.pairs",
        "start.log_probs -> left.reference",
    ]


def _probe(draft: Draft) -> None:
    held_out = {"type": "inline", "rows": [{"prompt": "8+1=", "answer": "9"}]}
    draft.nodes["held_out"] = {"kind": "dataset", "source": held_out, "rows_per_step": 1}
    draft.nodes["probe"] = {
        "kind": "evaluate",
        "instead_of": "problems",
        "every": 2,
        "metrics": ["score"],
    }
    if draft.has(0.4):
        draft.nodes["probe"]["greedy"] = True
    draft.edges += [
        "held_out.rows -> probe.rows",
        "left.rollouts -> probe.rollouts",
        "mark.scores -> probe.scores",
    ]
