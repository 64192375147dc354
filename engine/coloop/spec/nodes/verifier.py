"""`verifier`: judges, whole or step by step."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import model_validator

from coloop.spec.algorithm import VerifierAlgorithm
from coloop.spec.base import Name, OneOrMany, Text, problem, setting
from coloop.spec.levels import LevelsByPort, children
from coloop.spec.model import Model
from coloop.spec.names import NamesByPort
from coloop.spec.nodes.kind import (
    MODEL_PATHS,
    ROLLOUT_PATHS,
    BaseNode,
    InMode,
    InPort,
    NodeKind,
    OutPort,
    PortType,
    Stage,
    When,
)
from coloop.spec.reading import PromptTemplate, Read
from coloop.spec.reward import OnError
from coloop.spec.rollout import CHAT, WITH_TOKENS, JudgeRollout
from coloop.spec.row_counts import Counts
from coloop.spec.training import Credit, Training

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


_LOADED: When = {"rollout.engine": WITH_TOKENS}
_JUDGE_MODEL: When = {"method": ("generative", "implicit_prm", "discriminative"), **_LOADED}
_JUDGE_TEMPLATE: When = {"method": ("generative", "discriminative")}
_JUDGE_TEXTS: When = {"method": ("generative", "implicit_prm", "discriminative")}
_WRITES: When = {"method": ("generative",)}
_WRITES_TOKENS: When = {**_WRITES, **_LOADED}
_TINY = {"model": {"type": "scratch", "architecture": "tiny-qwen3"}}
_BY_URL: When = {"rollout.engine": (CHAT,)}


class VerifierNode(BaseNode):
    """Judges, whole or step by step."""

    kind: Literal["verifier"]
    """Judges, whole or step by step."""
    method: Literal["rule", "generative", "implicit_prm", "discriminative", "vote", "formal"] = (
        setting()
    )
    """The task's checker, a generated verdict, log ratios, a head, a majority, a proof checker."""
    per: Literal["row"] | None = setting(None, level="advanced")
    """With `join: gather`: a score for each row gathered; null: one for the gathered row."""
    model: Model | None = setting(None, when=_JUDGE_MODEL, needed=_JUDGE_MODEL, section="model")
    """Where its weights come from."""
    rollout: JudgeRollout | None = setting(None, when=_WRITES, section="generation")
    """How a generative verifier generates; null: it generates nothing, and label probabilities are
    read."""
    on_error: OnError = setting("stop", level="advanced", when=_BY_URL, section="generation")
    """What a request that fails does to its verdict: `stop` the run, `skip_row` (there is none) or
    `{score: x}` (an empty one)."""
    algorithm: VerifierAlgorithm | None = setting(None, when=_JUDGE_MODEL, section="learning")
    """How it learns, for each teaching port in use; null: it is frozen."""
    credit: Credit = setting(
        default_factory=Credit,
        level="advanced",
        when=_WRITES_TOKENS,
        section="learning",
    )
    """How scores of its verdicts become advantages."""
    training: Training | None = setting(None, when=_JUDGE_MODEL, section="learning")
    """How its weights are updated; null: the defaults, if it owns weights that are trained."""
    template: PromptTemplate | None = setting(
        None, when=_JUDGE_TEXTS, needed=_WRITES, section="reading"
    )
    """What it reads."""
    read: Read = setting(default_factory=Read, section="reading")
    """How its answer becomes a score."""
    checker: Name | None = setting(
        None, when={"method": ("formal",)}, needed={"method": ("formal",)}
    )
    """Which proof checker, e.g. `proof`."""
    by: OneOrMany[Name] | None = setting(
        None, level="advanced", when={"method": ("vote",)}, choices="groupings", reference="node"
    )
    """What the voters have in common, as in `credit.group_by`; null: their prompt row."""
    answer: Text | None = setting(None, when={"method": ("vote",)}, widget="regex")
    """Regular expression with one group: what is counted; null: the whole completion."""

    @model_validator(mode="before")
    @classmethod
    def _has_no_weights_by_url(cls, data: Any) -> Any:
        rollout = data.get("rollout") if isinstance(data, Mapping) else None
        if not isinstance(rollout, Mapping) or rollout.get("engine") != CHAT:
            return data
        for field in ("algorithm", "training"):
            if data.get(field) is not None:
                words = (
                    "belongs to a judge with weights here: with `rollout.engine: chat` it asks a "
                    "model elsewhere, which cannot learn; remove it, or use another engine"
                )
                raise problem("conflict", words, field=field)
        if data.get("model") is not None:
            words = (
                "is not needed with `rollout.engine: chat`, whose model is `rollout.chat.model`; "
                "remove it"
            )
            raise problem("conflict", words, field="model")
        return data

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "score": Stage(
                reads=("rollouts", "rows", "comparisons", "library", "scores", "prior"),
                gives=("scores", "step_scores", "rollouts"),
                calls=True,
            ),
            "credit": Stage(reads=("rewards", "reference")),
            "learn": Stage(reads=("labels", "demonstrations", "pairs", "reference")),
            "sync": Stage(),
        },
        inputs={
            "rollouts": InPort(PortType.ROLLOUTS, "score", "Rollouts to judge."),
            "rows": InPort(PortType.ROWS, "score", "Rows to judge."),
            "comparisons": InPort(
                PortType.PAIRS, "score", "Pairs to judge, as a and b.", when=_JUDGE_TEMPLATE
            ),
            "library": InPort(
                PortType.ROWS,
                "score",
                "Rows that its template draws examples from.",
                when=_JUDGE_TEMPLATE,
            ),
            "scores": InPort(PortType.SCORES, "score", "Scores that its template may refer to."),
            "prior": InPort(
                PortType.LOG_PROBS,
                "score",
                "Log-probs of the reference of an implicit PRM.",
                max=1,
                when={"method": ("implicit_prm",)},
            ),
            "tools": InPort(
                PortType.TOOL,
                "score",
                "Tools that it may call while it generates.",
                when=_WRITES_TOKENS,
            ),
            "reference": InPort(
                PortType.LOG_PROBS, "learn", "Log-probs of its reference.", max=1, when=_JUDGE_MODEL
            ),
            "labels": InPort(
                PortType.SCORES, "learn", "Labels to learn from.", teaching=True, when=_JUDGE_MODEL
            ),
            "rewards": InPort(
                PortType.SCORES,
                "learn",
                "Scores of the verdicts it generated.",
                teaching=True,
                of="own rollouts",
                when=_WRITES_TOKENS,
            ),
            "demonstrations": InPort(
                PortType.ROWS,
                "learn",
                "Verdicts it is trained on (SFT).",
                teaching=True,
                when=_JUDGE_MODEL,
            ),
            "pairs": InPort(
                PortType.PAIRS,
                "learn",
                "Preferences it learns from.",
                teaching=True,
                when=_JUDGE_MODEL,
            ),
        },
        outputs={
            "scores": OutPort(PortType.SCORES, "One number per judged row or generated verdict."),
            "step_scores": OutPort(
                PortType.SCORES,
                "One number per step or token.",
                when={"method": ("rule", "generative", "implicit_prm", "discriminative", "formal")},
            ),
            "rollouts": OutPort(
                PortType.ROLLOUTS, "The verdicts of a generative verifier.", when=_WRITES
            ),
            "check": OutPort(PortType.CHECK, "A handle for a search or tool that requests scores."),
            "policy": OutPort(
                PortType.POLICY,
                "A handle for another node that calls it to generate.",
                when=_WRITES_TOKENS,
            ),
        },
        rows=("rollouts", "rows", "comparisons"),
        scores=("scores", "prior"),
        metrics=(
            *("score/mean", "score/none", "parse/none", "swap/consistent"),
            *("rubric/*", "service/*"),
        ),
        modes={
            "offline": InMode(
                ports=("rewards", "pairs", "prior", "reference", "tools"),
                fields=ROLLOUT_PATHS,
            ),
            "reward_modeling": InMode(
                begins={
                    "method": "discriminative",
                    **_TINY,
                    "algorithm": {"labels": {"name": "outcome"}},
                    "training": {"optimizer": {"name": "adamw", "lr": 0.0003}},
                }
            ),
        },
        title="Verifier",
        group="scores",
        icon="scale",
        help="Judges, whole or step by step: the task's own checker, a model that generates a "
        "verdict, an implicit process reward, a majority vote or a proof checker. A "
        "generative one can learn from rewards like an actor.",
        template={"kind": "verifier", "method": "rule"},
        begins_with={
            "method": {
                "generative": {
                    **_TINY,
                    "rollout": {"completions_per_prompt": 1, "max_new_tokens": 16},
                    "template": {"text": "{{ prompt }}{{ completion }}"},
                    "read": {"verdict": "(yes|no)", "values": {"yes": 1, "no": 0}},
                },
                "discriminative": _TINY,
                "implicit_prm": _TINY,
                "formal": {"checker": "proof"},
            }
        },
        synonyms="judge, grader, critique, verdict, prm, process reward, orm, genrm, vote, "
        "majority, checker, proof",
        summary=("rollout.chat.model", *MODEL_PATHS),
        shown={
            "method": ("method",),
            "template": ("template.text",),
            "verdict": (
                "read.verdict",
                "read.number",
                "read.json",
                "read.score",
                "checker",
                "answer",
            ),
        },
    )

    @property
    def writes_texts(self) -> bool:
        return self.method == "generative" and self.rollout is not None

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """The judged rows, or the verdict texts below them."""
        join = lineage.join(name)
        scored = join.members if self.per == "row" else join.levels
        if self.writes_texts:
            called = lineage.called(name)
            yield "rollouts", children(name, join.levels) | called
            scored = children(name, scored) | called
        yield from (("scores", scored), ("step_scores", scored))

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        names = columns.inputs(name)
        table = columns.rollouts(name) if self.writes_texts else names
        table = {level: part.with_scores([name]) for level, part in table.items()}
        yield "rollouts", table
        yield "scores", columns.per_row(name, table)
        yield "step_scores", columns.per_row(name, table)

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        return {**rows, **counts.written(name, rows)} if self.writes_texts else rows
