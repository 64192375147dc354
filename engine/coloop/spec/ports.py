"""The port table: what each node kind takes and gives, as literal Python.

Inputs have a type, a greatest number of edges (`None`: any), the phase in which the port is read,
and may teach (a phase's `learn` may name them) or be required. A port of which only some settings
of its node make use says which (`when`). A test holds this table against the language's
`ports.yaml`. This module knows nothing of nodes or edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from coloop.spec.builtins import BUILTIN_NAMES, SCORE_TO_SCORE


class PortType(StrEnum):
    """What flows along an edge."""

    ROWS = "Rows"
    ROLLOUTS = "Rollouts"
    PAIRS = "Pairs"
    SCORES = "Scores"
    LOG_PROBS = "LogProbs"
    VALUES = "Values"
    POLICY = "Policy"
    CHECK = "Check"
    TOOL = "Tool"


PortPhase = Literal["generate", "score", "learn"]
When = Mapping[str, tuple[str | None, ...]]
"""By the path of a setting, its values for which a port is of use; None: it is not set."""
HANDLES = frozenset({PortType.POLICY, PortType.CHECK, PortType.TOOL})
"""Types by which a node calls another inside its own loop; drawn dashed."""


def accepts(target: PortType, source: PortType) -> bool:
    """Whether a port of type `target` takes an edge from one of type `source`."""
    return source == target or (source == PortType.ROLLOUTS and target == PortType.ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class InPort:
    """One input of a kind."""

    type: PortType
    phase: PortPhase
    max: int | None = None
    teaching: bool = False
    required: bool | str = False
    """`True`, or the condition in words (then `required_where_used` lists the outputs)."""
    required_where_used: tuple[str, ...] = ()
    of: str | None = None
    when: When = field(default_factory=dict)
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutPort:
    """One output of a kind."""

    type: PortType
    when: When = field(default_factory=dict)
    help: str = ""


def is_of_use(port: InPort | OutPort, node: object) -> bool:
    """Whether a node makes anything of its port with the settings that it has."""
    for path, values in port.when.items():
        value: object = node
        for name in path.split("."):
            value = getattr(value, name, None)
        if value not in values:
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPorts:
    """The stages, inputs and outputs of one kind."""

    stages: tuple[str, ...]
    inputs: dict[str, InPort]
    outputs: dict[str, OutPort]

    @property
    def teaching(self) -> tuple[str, ...]:
        """The ports that a phase's `learn` may name."""
        return tuple(name for name, port in self.inputs.items() if port.teaching)


_ROWS, _ROLLOUTS, _PAIRS = PortType.ROWS, PortType.ROLLOUTS, PortType.PAIRS
_SCORES, _LOG_PROBS, _VALUES = PortType.SCORES, PortType.LOG_PROBS, PortType.VALUES
_POLICY, _CHECK, _TOOL = PortType.POLICY, PortType.CHECK, PortType.TOOL

_MODEL_REWARD: When = {"source.type": ("model",)}
_NOT_BUILTIN: When = {"source.type": ("python", "model", "remote")}
_READS_ROWS: When = {
    "source.name": (None, *(name for name in BUILTIN_NAMES if name not in SCORE_TO_SCORE))
}
_JUDGE_MODEL: When = {"method": ("generative", "implicit_prm", "discriminative")}
_JUDGE_TEMPLATE: When = {"method": ("generative", "discriminative")}
_WRITES: When = {"method": ("generative",)}
_SIBLINGS: When = {"method": ("best_worst", "all", "margin")}
_DIRECT: When = {"method": ("direct",)}
_RELABEL: When = {"method": ("relabel",)}
_ASKS_POLICY: When = {"type": ("model",)}
_TREES: When = {"method": ("puct", "and_or")}

PORTS: dict[str, KindPorts] = {
    "dataset": KindPorts(
        stages=("load",),
        inputs={},
        outputs={
            "rows": OutPort(type=_ROWS, help="The rows of the step."),
            "pairs": OutPort(type=_PAIRS, help="Its rows that have `chosen` and `rejected`."),
        },
    ),
    "actor": KindPorts(
        stages=("generate", "credit", "learn", "sync"),
        inputs={
            "prompts": InPort(
                type=_ROWS,
                phase="generate",
                required="where its rollouts or returns are used",
                required_where_used=("rollouts", "returns"),
                help="Rows with a `prompt`; each gets its completions.",
            ),
            "tools": InPort(
                type=_TOOL, phase="generate", help="What the policy may call while it writes."
            ),
            "rewards": InPort(
                type=_SCORES,
                phase="learn",
                teaching=True,
                of="own rollouts",
                help="Scores of its own rollouts; edges are combined by weight.",
            ),
            "demonstrations": InPort(
                type=_ROWS,
                phase="learn",
                teaching=True,
                help="Rows whose `target`, or rollouts whose text, it imitates.",
            ),
            "pairs": InPort(
                type=_PAIRS,
                phase="learn",
                teaching=True,
                help="Preferences it learns to follow.",
            ),
            "reference": InPort(
                type=_LOG_PROBS,
                max=1,
                phase="learn",
                help="Log-probs of the reference for KL and preference losses.",
            ),
            "values": InPort(
                type=_VALUES, max=1, phase="learn", help="Token values for advantages (GAE)."
            ),
        },
        outputs={
            "rollouts": OutPort(type=_ROLLOUTS, help="What it wrote, with tokens and log-probs."),
            "policy": OutPort(type=_POLICY, help="A handle by which another node lets it write."),
            "returns": OutPort(type=_VALUES, help="What a critic of it learns."),
        },
    ),
    "critic": KindPorts(
        stages=("score", "learn"),
        inputs={
            "rollouts": InPort(
                type=_ROLLOUTS,
                phase="score",
                required="where its values are used",
                required_where_used=("values",),
                help="The rollouts it values token by token.",
            ),
            "returns": InPort(
                type=_VALUES, phase="learn", teaching=True, help="The returns of its actor."
            ),
            "labels": InPort(
                type=_SCORES, phase="learn", teaching=True, help="Numbers it learns directly."
            ),
        },
        outputs={
            "values": OutPort(type=_VALUES, help="One value a token."),
            "check": OutPort(type=_CHECK, help="A handle by which a search asks it."),
        },
    ),
    "reference": KindPorts(
        stages=("score",),
        inputs={
            "rollouts": InPort(type=_ROLLOUTS, phase="score", help="Rollouts to score."),
            "pairs": InPort(type=_PAIRS, phase="score", help="Pairs to score, both sides."),
        },
        outputs={"log_probs": OutPort(type=_LOG_PROBS, help="One log-prob a token.")},
    ),
    "reward": KindPorts(
        stages=("score", "learn"),
        inputs={
            "rollouts": InPort(type=_ROLLOUTS, phase="score", help="Rollouts to score."),
            "rows": InPort(type=_ROWS, phase="score", help="Rows to score."),
            "scores": InPort(
                type=_SCORES,
                phase="score",
                help="Scores it reads under their node's name.",
            ),
            "comparisons": InPort(
                type=_PAIRS,
                max=1,
                phase="score",
                when=_NOT_BUILTIN,
                help="Pairs to score, each side alone.",
            ),
            "pairs": InPort(
                type=_PAIRS,
                phase="learn",
                teaching=True,
                when=_MODEL_REWARD,
                help="Preferences a model learns from.",
            ),
            "labels": InPort(
                type=_SCORES,
                phase="learn",
                teaching=True,
                when=_MODEL_REWARD,
                help="Numbers a model learns from.",
            ),
        },
        outputs={
            "scores": OutPort(type=_SCORES, help="One number a row, or one a step."),
            "check": OutPort(
                type=_CHECK, when=_READS_ROWS, help="A handle by which a search or tool asks it."
            ),
        },
    ),
    "verifier": KindPorts(
        stages=("score", "credit", "learn", "sync"),
        inputs={
            "rollouts": InPort(type=_ROLLOUTS, phase="score", help="Rollouts to judge."),
            "rows": InPort(type=_ROWS, phase="score", help="Rows to judge."),
            "comparisons": InPort(
                type=_PAIRS, phase="score", when=_JUDGE_TEMPLATE, help="Pairs to judge, as a and b."
            ),
            "library": InPort(
                type=_ROWS,
                phase="score",
                when=_JUDGE_TEMPLATE,
                help="Rows that its template draws examples from.",
            ),
            "scores": InPort(
                type=_SCORES, phase="score", help="Scores that its template may name."
            ),
            "prior": InPort(
                type=_LOG_PROBS,
                max=1,
                phase="score",
                when={"method": ("implicit_prm",)},
                help="Log-probs an implicit PRM is held to.",
            ),
            "tools": InPort(
                type=_TOOL, phase="score", when=_WRITES, help="What it may call while it writes."
            ),
            "reference": InPort(
                type=_LOG_PROBS,
                max=1,
                phase="learn",
                when=_JUDGE_MODEL,
                help="Log-probs of its reference.",
            ),
            "labels": InPort(
                type=_SCORES,
                phase="learn",
                teaching=True,
                when=_JUDGE_MODEL,
                help="Truth it learns to tell.",
            ),
            "rewards": InPort(
                type=_SCORES,
                phase="learn",
                teaching=True,
                of="own rollouts",
                when=_WRITES,
                help="Scores of the verdicts it wrote.",
            ),
            "demonstrations": InPort(
                type=_ROWS,
                phase="learn",
                teaching=True,
                when=_JUDGE_MODEL,
                help="Verdicts it imitates.",
            ),
            "pairs": InPort(
                type=_PAIRS,
                phase="learn",
                teaching=True,
                when=_JUDGE_MODEL,
                help="Preferences it learns from.",
            ),
        },
        outputs={
            "scores": OutPort(type=_SCORES, help="One number a row judged or verdict written."),
            "step_scores": OutPort(
                type=_SCORES,
                when={"method": ("rule", "generative", "implicit_prm", "discriminative", "formal")},
                help="One number a step or token.",
            ),
            "rollouts": OutPort(
                type=_ROLLOUTS, when=_WRITES, help="The verdicts that a generative one wrote."
            ),
            "check": OutPort(type=_CHECK, help="A handle by which a search or tool asks it."),
            "policy": OutPort(
                type=_POLICY, when=_WRITES, help="A handle by which another node lets it write."
            ),
        },
    ),
    "template": KindPorts(
        stages=("prepare",),
        inputs={
            "rows": InPort(
                type=_ROWS, phase="generate", required=True, help="Rows that fill the template."
            ),
            "scores": InPort(
                type=_SCORES, phase="generate", help="Scores that the template may name."
            ),
            "library": InPort(
                type=_ROWS, phase="generate", help="Rows that `others()` draws from."
            ),
        },
        outputs={"rows": OutPort(type=_ROWS, help="The same rows with new columns.")},
    ),
    "filter": KindPorts(
        stages=("prepare",),
        inputs={
            "rows": InPort(type=_ROWS, max=1, phase="score", help="Rows to sift."),
            "rollouts": InPort(type=_ROLLOUTS, max=1, phase="score", help="Rollouts to sift."),
            "pairs": InPort(type=_PAIRS, max=1, phase="score", help="Pairs to sift."),
            "scores": InPort(
                type=_SCORES, max=1, phase="score", help="Scores to sift by and hand on."
            ),
            "by": InPort(type=_SCORES, phase="score", help="More scores that rules may name."),
            "spare": InPort(
                type=_ROWS, max=1, phase="score", help="Rows that fill it up to `up_to`."
            ),
        },
        outputs={
            "rows": OutPort(type=_ROWS, help="Rows that were kept."),
            "rollouts": OutPort(type=_ROLLOUTS, help="Rollouts that were kept."),
            "pairs": OutPort(type=_PAIRS, help="Pairs that were kept."),
            "scores": OutPort(type=_SCORES, help="Scores of what was kept."),
        },
    ),
    "pairs": KindPorts(
        stages=("prepare",),
        inputs={
            "rollouts": InPort(
                type=_ROLLOUTS, phase="score", when=_SIBLINGS, help="Siblings to pair up."
            ),
            "scores": InPort(
                type=_SCORES,
                max=1,
                phase="score",
                when=_SIBLINGS,
                help="What decides the better one.",
            ),
            "chosen": InPort(
                type=_ROWS, phase="score", when=_DIRECT, help="The better sides (`direct`)."
            ),
            "rejected": InPort(
                type=_ROWS, phase="score", when=_DIRECT, help="The worse sides (`direct`)."
            ),
            "pairs": InPort(
                type=_PAIRS, max=1, phase="score", when=_RELABEL, help="Pairs to label (`relabel`)."
            ),
            "preference": InPort(
                type=_SCORES,
                max=1,
                phase="score",
                when=_RELABEL,
                help="How far `chosen` is the better side.",
            ),
        },
        outputs={"pairs": OutPort(type=_PAIRS, help="Chosen against rejected.")},
    ),
    "buffer": KindPorts(
        stages=("read", "write"),
        inputs={
            "rows": InPort(type=_ROWS, phase="score", help="Rows to keep."),
            "rollouts": InPort(type=_ROLLOUTS, phase="score", help="Rollouts to keep."),
            "pairs": InPort(type=_PAIRS, phase="score", help="Pairs to keep."),
            "scores": InPort(type=_SCORES, phase="score", help="Scores to keep with their rows."),
            "seed": InPort(
                type=_ROWS, max=1, phase="generate", help="Rows it starts with when it is empty."
            ),
        },
        outputs={
            "rows": OutPort(type=_ROWS, help="Rows drawn from it."),
            "rollouts": OutPort(type=_ROLLOUTS, help="Rollouts drawn from it."),
            "pairs": OutPort(type=_PAIRS, help="Pairs drawn from it."),
            "scores": OutPort(type=_SCORES, help="Scores of what was drawn."),
        },
    ),
    "tool": KindPorts(
        stages=(),
        inputs={
            "policy": InPort(
                type=_POLICY,
                max=1,
                phase="generate",
                when=_ASKS_POLICY,
                help="The policy behind a `model` tool.",
            ),
            "documents": InPort(
                type=_ROWS,
                max=1,
                phase="generate",
                when={"type": ("search",)},
                help="What a `search` tool looks through.",
            ),
            "check": InPort(
                type=_CHECK, max=1, phase="generate", help="A scorer that the tool asks."
            ),
            "tools": InPort(
                type=_TOOL,
                phase="generate",
                when=_ASKS_POLICY,
                help="Tools that a `model` tool wraps.",
            ),
        },
        outputs={
            "tool": OutPort(type=_TOOL, help="A handle by which a policy calls it."),
            "rollouts": OutPort(
                type=_ROLLOUTS, when=_ASKS_POLICY, help="What a `model` tool's policy wrote."
            ),
        },
    ),
    "search": KindPorts(
        stages=("generate",),
        inputs={
            "rows": InPort(
                type=_ROWS, max=1, phase="generate", required=True, help="What it searches from."
            ),
            "policy": InPort(
                type=_POLICY, phase="generate", required=True, help="Who proposes the next step."
            ),
            "outcome": InPort(
                type=_CHECK, max=1, phase="generate", help="What grades a finished path."
            ),
            "value": InPort(
                type=_CHECK,
                max=1,
                phase="generate",
                when=_TREES,
                help="What grades an unfinished path.",
            ),
            "tools": InPort(
                type=_TOOL,
                phase="generate",
                when={"method": ("and_or",)},
                help="The environment it moves in.",
            ),
        },
        outputs={
            "rollouts": OutPort(type=_ROLLOUTS, help="The paths or labelled texts it gives."),
            "scores": OutPort(type=_SCORES, help="One number a searched row."),
            "step_scores": OutPort(type=_SCORES, help="One number a step."),
            "policy": OutPort(type=_POLICY, help="A handle: the policy with search behind it."),
        },
    ),
    "evaluate": KindPorts(
        stages=("evaluate",),
        inputs={
            "rows": InPort(
                type=_ROWS, max=1, phase="score", help="Held-out rows for `instead_of`."
            ),
            "rollouts": InPort(type=_ROLLOUTS, phase="score", help="Rollouts to measure."),
            "scores": InPort(type=_SCORES, phase="score", help="Scores that grade."),
            "selectors": InPort(type=_SCORES, phase="score", help="Scores that choose among k."),
            "labels": InPort(type=_SCORES, max=1, phase="score", help="The truth to compare with."),
            "pairs": InPort(type=_PAIRS, max=1, phase="score", help="Held-out pairs for `of`."),
        },
        outputs={},
    ),
}
