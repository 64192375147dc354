"""`actor`: a policy that generates: generator, proposer, solver, debater, assistant."""

from typing import TYPE_CHECKING, ClassVar, Literal

from coloop.spec.algorithm import ActorAlgorithm
from coloop.spec.base import setting
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
)
from coloop.spec.rollout import Rollout
from coloop.spec.row_counts import Counts
from coloop.spec.training import Credit, Training

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


class ActorNode(BaseNode):
    """A policy that generates text: generator, proposer, solver, debater, assistant."""

    kind: Literal["actor"]
    """A policy that generates text."""
    model: Model = setting(section="model")
    """Where its weights come from."""
    rollout: Rollout = setting(default_factory=Rollout, section="generation")
    """How it generates text."""
    algorithm: ActorAlgorithm | None = setting(None, section="learning")
    """How it learns, for each teaching port in use; null: it is frozen."""
    credit: Credit = setting(default_factory=Credit, level="advanced", section="learning")
    """How scores become advantages."""
    training: Training | None = setting(None, section="learning")
    """How its weights are updated; null: the defaults, if it owns weights that are trained."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Prompts of several nodes are concatenated."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "generate": Stage(reads=("prompts",), gives=("rollouts",), calls=True),
            "credit": Stage(reads=("rewards", "reference", "values"), gives=("returns",)),
            "learn": Stage(reads=("demonstrations", "pairs", "reference")),
            "sync": Stage(),
        },
        inputs={
            "prompts": InPort(
                PortType.ROWS,
                "generate",
                "Rows with a `prompt`; each gets its completions.",
                required="where its rollouts or returns are used",
                required_where_used=("rollouts", "returns"),
            ),
            "tools": InPort(
                PortType.TOOL, "generate", "Tools that the policy may call while it generates."
            ),
            "rewards": InPort(
                PortType.SCORES,
                "learn",
                "Scores of its own rollouts; edges are combined by weight.",
                teaching=True,
                of="own rollouts",
            ),
            "demonstrations": InPort(
                PortType.ROWS,
                "learn",
                "Rows whose `target`, or rollouts whose text, it is trained on (SFT).",
                teaching=True,
            ),
            "pairs": InPort(
                PortType.PAIRS, "learn", "Preferences it learns to follow.", teaching=True
            ),
            "reference": InPort(
                PortType.LOG_PROBS,
                "learn",
                "Log-probs of the reference for KL and preference losses; with an algorithm of the "
                "port, what teachers say of the texts that it learns.",
                teaching=True,
                is_optional=True,
            ),
            "values": InPort(PortType.VALUES, "learn", "Token values for advantages (GAE).", max=1),
        },
        outputs={
            "rollouts": OutPort(PortType.ROLLOUTS, "Generated texts, with tokens and log-probs."),
            "policy": OutPort(
                PortType.POLICY, "A handle for another node that calls it to generate."
            ),
            "returns": OutPort(PortType.VALUES, "What a critic of it learns."),
        },
        rows=("prompts",),
        concat=("prompts",),
        modes={
            "offline": InMode(
                ports=("rewards", "values", "tools"),
                outputs=("returns",),
                fields=ROLLOUT_PATHS,
                begins={"rollout": {"max_new_tokens": 16}, "algorithm": {"pairs": {"name": "dpo"}}},
            ),
            "reward_modeling": InMode(
                ports=("rewards", "pairs", "reference", "values"),
                outputs=("returns",),
                fields=("credit",),
                begins={"algorithm": {"demonstrations": {"name": "sft"}}},
            ),
        },
        title="Actor",
        group="models",
        icon="bot",
        help="Any policy that generates text: generator, proposer, solver, debater, assistant. "
        "Prompts go in, rollouts come out. It learns from the rows connected to `rewards`, "
        "`demonstrations` or `pairs` in the phases that name these ports; without a "
        "teaching edge it is frozen.",
        template={
            "kind": "actor",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "rollout": {"completions_per_prompt": 8, "max_new_tokens": 16},
            "algorithm": {"rewards": {"name": "grpo"}},
            "training": {"optimizer": {"name": "adamw", "lr": 3.0e-4}},
        },
        synonyms="policy, generator, writer, agent, assistant, student, solver, proposer, learner, "
        "rollout, sampler, language model, llm",
        summary=MODEL_PATHS,
        shown={
            "completions": ("rollout.completions_per_prompt",),
            "max tokens": ("rollout.max_new_tokens",),
            "temperature": ("rollout.temperature",),
        },
    )

    @property
    def writes_texts(self) -> bool:
        return True

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """Children of the prompts, including prompts from tools that call it."""
        written = children(name, lineage.input_levels(name)) | lineage.called(name)
        yield from (("rollouts", written), ("returns", written))

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        table = columns.rollouts(name)
        yield from (("rollouts", table), ("returns", table))

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        return {**rows, **counts.written(name, rows)}
