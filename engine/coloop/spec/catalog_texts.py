"""Words and looks of the catalog: titles, help, icons, groups, colours, starting nodes.

The catalog joins them with ports and schemas, and with what the records of algorithms say; a test
says when a kind or port type has no words here. Icons are names of lucide, colours are names of CSS
variables of the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coloop.spec.base import FormSection


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupText:
    """How a section of the palette presents itself."""

    title: str
    color: str


GROUPS: dict[str, GroupText] = {
    "data": GroupText(title="Data", color="--group-data"),
    "models": GroupText(title="Models", color="--group-models"),
    "scores": GroupText(title="Scores", color="--group-scores"),
    "shaping": GroupText(title="Shaping", color="--group-shaping"),
    "tools": GroupText(title="Tools and search", color="--group-tools"),
    "measuring": GroupText(title="Measuring", color="--group-measuring"),
}
"""Sections of the palette, in order."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A value that a node shows on its card and lets people edit there."""

    label: str
    """One to three short words."""
    paths: tuple[str, ...]
    """Where the value may stand: the first of these that is set, else the first with a default."""


@dataclass(frozen=True, slots=True)
class Learning:
    """Where a kind that can be taught says how it learns."""

    algorithm: str
    """The setting; without it and without a teaching edge the node is no learner."""
    names: tuple[str, ...]
    """Paths of the names of its algorithms; `*` is any key."""
    rate: str
    """Path of its learning rate."""


_LEARNING = Learning(
    "algorithm",
    ("algorithm.name", "algorithm.*.name", "algorithm.*.*.name"),
    "training.optimizer.lr",
)
_MODEL = ("model.architecture", "model.path", "model.run", "model.of", "model.with")


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionText:
    """How a part of a form presents itself."""

    title: str
    opens: bool = False
    """Whether it begins open."""


FORM_SECTIONS: dict[FormSection, SectionText] = {
    "model": SectionText(title="Model"),
    "reading": SectionText(title="Reading"),
    "generation": SectionText(title="Generation", opens=True),
    "learning": SectionText(title="Learning", opens=True),
    "placement": SectionText(title="Placement"),
    "checkpoint": SectionText(title="Checkpoint"),
    "note": SectionText(title="Note"),
}
"""Parts of a form, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindText:
    """How a node kind presents itself."""

    title: str
    group: str
    icon: str
    help: str
    template: dict[str, Any]
    synonyms: str
    """Other words under which it is looked for, with commas between them."""
    summary: tuple[str, ...]
    """Paths of the values that stand beside the kind, most telling first; `*` is any key."""
    telling: tuple[Telling, ...]
    """At most three further values, most telling first."""
    learning: Learning | None = None


KIND_TEXTS: dict[str, KindText] = {
    "dataset": KindText(
        title="Dataset",
        group="data",
        icon="database",
        help=(
            "Rows from a built-in task, a file, the hub or the loop itself. Each step it gives "
            "`rows_per_step` rows at `rows`; rows that have `chosen` and `rejected` also leave as "
            "`pairs`. `columns` says which of the source's columns is the `prompt`, the `target` "
            "and the `answer`."
        ),
        template={
            "kind": "dataset",
            "source": {"type": "task", "task": "arithmetic", "split": "train"},
            "rows_per_step": 32,
        },
        synonyms=(
            "data, rows, prompts, questions, problems, corpus, examples, file, jsonl, csv, "
            "parquet, hub, hugging face, task, inline"
        ),
        summary=("source.split", "source.part", "source.type"),
        telling=(
            Telling("source", ("source.task", "source.path", "source.type")),
            Telling("rows a step", ("rows_per_step",)),
        ),
    ),
    "buffer": KindText(
        title="Buffer",
        group="data",
        icon="archive",
        help=(
            "Rows that outlive a step: replay, a pool, an iteration. It is read when a step "
            "starts and written when it ends, so a circle through it is legal. It is written in "
            "phases that name it in `fill`; `seed` gives it rows while it is empty."
        ),
        template={"kind": "buffer", "capacity": 1024, "rows_per_step": 32, "sample": "uniform"},
        synonyms="replay, pool, memory, queue, experience, iteration, archive",
        summary=("sample",),
        telling=(
            Telling("capacity", ("capacity",)),
            Telling("rows a step", ("rows_per_step",)),
        ),
    ),
    "actor": KindText(
        title="Actor",
        group="models",
        icon="bot",
        help=(
            "Any policy that writes: generator, proposer, solver, debater, assistant. Prompts go "
            "in, rollouts come out. It learns from what is connected to `rewards`, "
            "`demonstrations` or `pairs` in the phases that name these ports; without a teaching "
            "edge it is frozen."
        ),
        template={
            "kind": "actor",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "rollout": {"completions_per_prompt": 8, "max_new_tokens": 16},
            "algorithm": {"rewards": {"name": "grpo"}},
            "training": {"optimizer": {"name": "adamw", "lr": 3.0e-4}},
        },
        synonyms=(
            "policy, generator, writer, agent, assistant, student, solver, proposer, learner, "
            "rollout, sampler, language model, llm"
        ),
        summary=_MODEL,
        telling=(
            Telling("completions", ("rollout.completions_per_prompt",)),
            Telling("max tokens", ("rollout.max_new_tokens",)),
            Telling("temperature", ("rollout.temperature",)),
        ),
        learning=_LEARNING,
    ),
    "critic": KindText(
        title="Critic",
        group="models",
        icon="gauge",
        help=(
            "Values of tokens, for advantages with a learned baseline (PPO). It reads the actor's "
            "rollouts, gives `values` back to it and learns the actor's `returns`."
        ),
        template={
            "kind": "critic",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "algorithm": {"name": "value"},
            "training": {"optimizer": {"name": "adamw", "lr": 1.0e-5}},
        },
        synonyms="value, value function, value model, baseline, gae",
        summary=_MODEL,
        telling=(
            Telling(
                "model", ("model.architecture", "model.path", "model.run", "model.of", "model.with")
            ),
        ),
        learning=_LEARNING,
    ),
    "reference": KindText(
        title="Reference",
        group="models",
        icon="anchor",
        help=(
            "Log-probs by frozen or following weights: what KL terms and preference losses "
            "compare with. Usually a snapshot of the learner, refreshed when a phase starts."
        ),
        template={
            "kind": "reference",
            "model": {"type": "snapshot", "of": "actor", "refresh": "never"},
        },
        synonyms=(
            "kl, anchor, frozen, ref, reference policy, log probs, snapshot, ema, teacher, prior"
        ),
        summary=_MODEL,
        telling=(
            Telling(
                "of", ("model.of", "model.with", "model.path", "model.run", "model.architecture")
            ),
            Telling("refresh", ("model.refresh",)),
        ),
    ),
    "reward": KindText(
        title="Reward",
        group="scores",
        icon="star",
        help=(
            "Numbers for rows: a built-in check, a Python function, a reward model, or a service. "
            "Some built-ins turn scores into scores. What an edge into a learner's `rewards` "
            "weighs is said on the edge."
        ),
        template={"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        synonyms=(
            "score, scorer, grader, checker, reward function, reward model, preference model, "
            "judge, python, remote"
        ),
        summary=("source.type", *_MODEL),
        telling=(
            Telling("check", ("source.name",)),
            Telling("source", ("source.file", "source.url", "source.code")),
            Telling("reads", ("source.pattern", "source.column", "source.max")),
        ),
        learning=_LEARNING,
    ),
    "verifier": KindText(
        title="Verifier",
        group="scores",
        icon="scale",
        help=(
            "Judges, whole or step by step: the task's own checker, a model that writes a "
            "verdict, an implicit process reward, a majority vote or a proof checker. A "
            "generative one can learn from rewards like an actor."
        ),
        template={"kind": "verifier", "method": "rule"},
        synonyms=(
            "judge, grader, critique, verdict, prm, process reward, orm, genrm, vote, majority, "
            "checker, proof"
        ),
        summary=_MODEL,
        telling=(
            Telling("method", ("method",)),
            Telling("template", ("template.text",)),
            Telling("verdict", ("read.verdict", "read.number", "read.score", "checker", "answer")),
        ),
        learning=_LEARNING,
    ),
    "template": KindText(
        title="Template",
        group="shaping",
        icon="text-cursor-input",
        help=(
            "What some wrote becomes what the next reads: `parse` reads columns out of the text, "
            "`text` writes the new prompt in Jinja, `target` what is to be imitated. `each` makes "
            "a row of every element of a list."
        ),
        template={"kind": "template", "text": "{{ prompt }}"},
        synonyms="prompt, jinja, format, parse, extract, chat, rewrite, regex",
        summary=("each",),
        telling=(
            Telling("text", ("text", "code")),
            Telling("target", ("target",)),
            Telling("each", ("each",)),
        ),
    ),
    "filter": KindText(
        title="Filter",
        group="shaping",
        icon="filter",
        help=(
            "Keeps rows by rules: scores, groups whose rewards differ, length, a regular "
            "expression, Python. With `fill` it runs what is before it again until enough is "
            "left. It hands on only the kinds of table that go in."
        ),
        template={"kind": "filter", "keep": [{"rule": "nonzero_variance"}]},
        synonyms=(
            "select, keep, drop, dynamic sampling, rejection, refill, resample, best of n, cut"
        ),
        summary=("keep.*.rule",),
        telling=(
            Telling("keep", ("keep.*.rule",)),
            Telling("per group", ("per_group.pick",)),
            Telling("resample", ("resample.weight",)),
        ),
    ),
    "pairs": KindText(
        title="Pairs",
        group="shaping",
        icon="columns-2",
        help=(
            "Chosen against rejected: best and worst of siblings, every two, two inputs against "
            "each other, or new labels for pairs that are there. Pairs of equal texts are dropped."
        ),
        template={"kind": "pairs", "method": "best_worst"},
        synonyms="preference, preferences, chosen, rejected, comparison, best worst, margin",
        summary=("method",),
        telling=(
            Telling("method", ("method",)),
            Telling("margin", ("margin",)),
        ),
    ),
    "tool": KindText(
        title="Tool",
        group="tools",
        icon="wrench",
        help=(
            "What a policy may call while it writes: Python, a calculator, a search over "
            "documents, an environment, or another policy. What it answers is never trained."
        ),
        template={"kind": "tool", "type": "calculator"},
        synonyms="function, call, python, calculator, retrieval, rag, environment, sandbox, agent",
        summary=("type",),
        telling=(
            Telling("name", ("name",)),
            Telling("calls", ("call",)),
            Telling("time limit", ("timeout_seconds",)),
        ),
    ),
    "search": KindText(
        title="Search",
        group="tools",
        icon="git-fork",
        help=(
            "Drives policies to grow trees or to label steps: Monte Carlo completions, binary "
            "search for the first error, PUCT, and-or trees. Every search has a hard budget."
        ),
        template={
            "kind": "search",
            "method": "monte_carlo",
            "completions": 8,
            "budget": {"tokens": 100000},
        },
        synonyms="tree, mcts, monte carlo, puct, omegaprm, proof search, beam",
        summary=("method",),
        telling=(
            Telling("method", ("method",)),
            Telling("completions", ("completions",)),
            Telling("budget", ("budget.tokens",)),
        ),
    ),
    "evaluate": KindText(
        title="Evaluate",
        group="measuring",
        icon="chart-line",
        help=(
            "Metrics. With `instead_of` it runs the stages after that node once more on held-out "
            "rows, after the weights were brought up to date; with `of` it reads the loss of "
            "teaching ports; otherwise it reads the step's own tables. It never teaches."
        ),
        template={
            "kind": "evaluate",
            "instead_of": "dataset",
            "every": 20,
            "greedy": True,
            "metrics": ["accuracy"],
        },
        synonyms=(
            "probe, held-out, held out, test, eval, evaluation, validation, metric, benchmark, "
            "accuracy, pass@k, measure"
        ),
        summary=("instead_of", "of.*"),
        telling=(
            Telling("every", ("every",)),
            Telling("metrics", ("metrics.*",)),
            Telling("instead of", ("instead_of",)),
        ),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PortText:
    """How a port type looks and what it is."""

    color: str
    shape: str
    help: str


PORT_TEXTS: dict[str, PortText] = {
    "Rows": PortText(
        color="--port-rows",
        shape="square",
        help="A table of rows with columns such as `prompt` and `answer`.",
    ),
    "Rollouts": PortText(
        color="--port-rollouts",
        shape="circle",
        help="Rows that a policy wrote, with tokens and log-probs; accepted wherever rows are.",
    ),
    "Pairs": PortText(
        color="--port-pairs", shape="pentagon", help="Rows with a chosen and a rejected side."
    ),
    "Scores": PortText(
        color="--port-scores",
        shape="diamond",
        help="One number a row, or numbers at its steps or tokens.",
    ),
    "LogProbs": PortText(
        color="--port-log-probs", shape="triangle", help="One log-prob for each token of a row."
    ),
    "Values": PortText(
        color="--port-values", shape="hexagon", help="One value for each token of a row."
    ),
    "Policy": PortText(
        color="--port-policy",
        shape="ring",
        help="A handle: the node at the other end lets this one write.",
    ),
    "Check": PortText(
        color="--port-check",
        shape="ring",
        help="A handle: the node at the other end asks this one for a score.",
    ),
    "Tool": PortText(
        color="--port-tool", shape="ring", help="A handle: what a policy may call while it writes."
    ),
}
