"""`reward`: numbers for rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from coloop.spec.algorithm import RewardAlgorithm
from coloop.spec.base import setting
from coloop.spec.builtins import BUILTIN_NAMES, SCORE_TO_SCORE
from coloop.spec.levels import LevelsByPort
from coloop.spec.model import Model
from coloop.spec.names import NamesByPort, NamesOf
from coloop.spec.nodes.kind import (
    LEARNS_BY,
    MODEL_PATHS,
    BaseNode,
    CardField,
    InMode,
    InPort,
    KindText,
    NodeKind,
    OutPort,
    PortType,
    Stage,
    When,
)
from coloop.spec.reading import PromptTemplate, Read
from coloop.spec.reward import OnError, RewardSource
from coloop.spec.training import Training

if TYPE_CHECKING:
    from coloop.spec.lineage.columns import Columns
    from coloop.spec.lineage.descent import Descent
    from coloop.spec.lineage.joins import Join


_MODEL_REWARD: When = {"source.type": ("model",)}
_NOT_BUILTIN: When = {"source.type": ("python", "model", "remote")}
_READS_ROWS: When = {
    "source.name": (None, *(name for name in BUILTIN_NAMES if name not in SCORE_TO_SCORE))
}


class RewardNode(BaseNode):
    """Numbers for rows."""

    kind: Literal["reward"]
    """Numbers for rows."""
    source: RewardSource = setting()
    """Where the numbers come from."""
    on_error: OnError = setting("stop", level="advanced")
    """What a failure does: `stop`, `skip_row` or `{score: x}`."""
    per: Literal["row"] | None = setting(None, level="advanced")
    """With `join: gather`: a number for each row gathered; null: one for the gathered row."""
    model: Model | None = setting(
        None,
        when={"source.type": ("model",)},
        needed={"source.type": ("model",)},
        section="model",
    )
    """Where the weights of a model reward come from."""
    template: PromptTemplate | None = setting(
        None, level="advanced", when={"source.type": ("model",)}, section="reading"
    )
    """What a model reward reads; null: prompt and completion."""
    read: Read | None = setting(
        None, level="advanced", when={"source.type": ("model",)}, section="reading"
    )
    """How its number becomes a score; null: as it is."""
    algorithm: RewardAlgorithm | None = setting(
        None, when={"source.type": ("model",)}, section="learning"
    )
    """How a model reward learns; null: it is frozen."""
    training: Training | None = setting(None, when={"source.type": ("model",)}, section="learning")
    """How its weights are updated; null: the defaults, where it owns weights that learn."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "score": Stage(reads=("rollouts", "rows", "scores", "comparisons"), gives=("scores",)),
            "learn": Stage(reads=("pairs", "labels")),
        },
        inputs={
            "rollouts": InPort(type=PortType.ROLLOUTS, phase="score", help="Rollouts to score."),
            "rows": InPort(type=PortType.ROWS, phase="score", help="Rows to score."),
            "scores": InPort(
                type=PortType.SCORES,
                phase="score",
                help="Scores that it reads under their node's name.",
            ),
            "comparisons": InPort(
                type=PortType.PAIRS,
                max=1,
                phase="score",
                when=_NOT_BUILTIN,
                help="Pairs to score, each side alone.",
            ),
            "pairs": InPort(
                type=PortType.PAIRS,
                phase="learn",
                teaching=True,
                when=_MODEL_REWARD,
                help="Preferences a model learns from.",
            ),
            "labels": InPort(
                type=PortType.SCORES,
                phase="learn",
                teaching=True,
                when=_MODEL_REWARD,
                help="Numbers a model learns from.",
            ),
        },
        outputs={
            "scores": OutPort(type=PortType.SCORES, help="One number a row, or one a step."),
            "check": OutPort(
                type=PortType.CHECK,
                when=_READS_ROWS,
                help="A handle for a search or tool that requests scores.",
            ),
        },
        rows=("rollouts", "rows", "comparisons"),
        scores=("scores",),
        metrics=("score/mean", "score/none"),
        modes={
            "offline": InMode(ports=("pairs", "labels"), fields=("algorithm", "training")),
            "reward_modeling": InMode(
                begins={
                    "source": {"type": "model"},
                    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
                    "algorithm": {"pairs": {"name": "bradley_terry"}},
                    "training": {"optimizer": {"name": "adamw", "lr": 0.0003}},
                }
            ),
        },
        text=KindText(
            title="Reward",
            group="scores",
            icon="star",
            help=(
                "Numbers for rows: a built-in check, a Python function, a reward model, or a "
                "service. Some built-ins turn scores into scores. The weight of a reward is set on "
                "its edge into a learner's `rewards`."
            ),
            template={"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
            synonyms=(
                "score, scorer, grader, checker, reward function, reward model, preference model, "
                "judge, python, remote"
            ),
            summary=("source.type", *MODEL_PATHS),
            card_fields=(
                CardField("check", ("source.name",)),
                CardField("source", ("source.file", "source.url", "source.code")),
                CardField("reads", ("source.pattern", "source.column", "source.max")),
            ),
            learning=LEARNS_BY,
        ),
    )

    def levels_given(self, name: str, descent: Descent, join: Join) -> LevelsByPort:
        """Of the rows that it scores."""
        yield "scores", join.members if self.per == "row" else join.levels

    def columns_given(self, name: str, columns: Columns, names: NamesOf) -> NamesByPort:
        """Its score comes along."""
        table = {level: part.with_scores([name]) for level, part in names.items()}
        yield "scores", columns.per_row(name, table)
