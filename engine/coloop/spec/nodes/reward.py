"""`reward`: numbers for rows."""

from typing import TYPE_CHECKING, ClassVar, Literal

from coloop.spec.algorithm import RewardAlgorithm
from coloop.spec.base import setting
from coloop.spec.builtins import BUILTIN_NAMES, SCORE_TO_SCORE
from coloop.spec.levels import LevelsByPort
from coloop.spec.model import Model
from coloop.spec.names import NamesByPort
from coloop.spec.nodes.kind import (
    MODEL_PATHS,
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
from coloop.spec.reward import OnError, RewardSource
from coloop.spec.training import Training

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage


_MODEL_REWARD: When = {"source.type": ("model",)}
_READS_TEXT: When = {"source.type": ("model", "chat")}
_ASKS: When = {"source.type": ("chat",)}
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
    model: Model | None = setting(None, when=_MODEL_REWARD, needed=_MODEL_REWARD, section="model")
    """Where the weights of a model reward come from."""
    template: PromptTemplate | None = setting(
        None, when=_READS_TEXT, needed=_ASKS, section="reading"
    )
    """What a model or a chat model reads; null: prompt and completion."""
    read: Read | None = setting(None, when=_READS_TEXT, needed=_ASKS, section="reading")
    """How its output becomes a score; null: unchanged."""
    algorithm: RewardAlgorithm | None = setting(None, when=_MODEL_REWARD, section="learning")
    """How a model reward learns; null: it is frozen."""
    training: Training | None = setting(None, when=_MODEL_REWARD, section="learning")
    """How its weights are updated; null: the defaults, if it owns weights that are trained."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "score": Stage(reads=("rollouts", "rows", "scores", "comparisons"), gives=("scores",)),
            "learn": Stage(reads=("pairs", "labels")),
        },
        inputs={
            "rollouts": InPort(PortType.ROLLOUTS, "score", "Rollouts to score."),
            "rows": InPort(PortType.ROWS, "score", "Rows to score."),
            "scores": InPort(
                PortType.SCORES, "score", "Scores that it reads under their node's name."
            ),
            "comparisons": InPort(
                PortType.PAIRS,
                "score",
                "Pairs to score, each side alone.",
                max=1,
                when=_NOT_BUILTIN,
            ),
            "pairs": InPort(
                PortType.PAIRS,
                "learn",
                "Preferences a model learns from.",
                teaching=True,
                when=_MODEL_REWARD,
            ),
            "labels": InPort(
                PortType.SCORES,
                "learn",
                "Numbers a model learns from.",
                teaching=True,
                when=_MODEL_REWARD,
            ),
        },
        outputs={
            "scores": OutPort(PortType.SCORES, "One number per row, or one per step."),
            "check": OutPort(
                PortType.CHECK,
                "A handle for a search or tool that requests scores.",
                when=_READS_ROWS,
            ),
        },
        rows=("rollouts", "rows", "comparisons"),
        scores=("scores",),
        metrics=("score/mean", "score/none", "parse/none", "rubric/*", "service/*"),
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
        begins_with={
            "source.type": {
                "model": {"model": {"type": "scratch", "architecture": "tiny-qwen3"}},
            }
        },
        title="Reward",
        group="scores",
        icon="star",
        help="Numbers for rows: a built-in check, a Python function, a reward model, a chat model "
        "by URL, or a service. Some built-ins turn scores into scores. The weight of a reward is "
        "set on its edge into a learner's `rewards`.",
        template={"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        synonyms="score, scorer, grader, checker, reward function, reward model, preference model, "
        "judge, python, remote, chat, api, openai, url, rubric, llm as a judge",
        summary=("source.type", "source.model", *MODEL_PATHS),
        shown={
            "check": ("source.name",),
            "source": ("source.file", "source.url", "source.code"),
            "reads": ("source.pattern", "source.column", "source.max"),
        },
    )

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        join = lineage.join(name)
        yield "scores", join.members if self.per == "row" else join.levels

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        names = columns.inputs(name)
        table = {level: part.with_scores([name]) for level, part in names.items()}
        yield "scores", columns.per_row(name, table)
