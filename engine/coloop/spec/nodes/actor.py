"""`actor`: a policy that writes: generator, proposer, solver, debater, assistant."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from coloop.spec.algorithm import ActorAlgorithm
from coloop.spec.base import setting
from coloop.spec.levels import LevelsByPort, children
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
)
from coloop.spec.rollout import Rollout
from coloop.spec.row_counts import Counts
from coloop.spec.training import Credit, Training

if TYPE_CHECKING:
    from coloop.spec.lineage.columns import Columns
    from coloop.spec.lineage.counts import RowCounts
    from coloop.spec.lineage.descent import Descent
    from coloop.spec.lineage.joins import Join


class ActorNode(BaseNode):
    """A policy that writes: generator, proposer, solver, debater, assistant."""

    kind: Literal["actor"]
    """A policy that writes."""
    model: Model = setting(section="model")
    """Where its weights come from."""
    rollout: Rollout = setting(default_factory=Rollout, section="generation")
    """How it writes."""
    algorithm: ActorAlgorithm | None = setting(None, section="learning")
    """How it learns, for each teaching port in use; null: it is frozen."""
    credit: Credit = setting(default_factory=Credit, level="advanced", section="learning")
    """How scores become advantages."""
    training: Training | None = setting(None, section="learning")
    """How its weights are updated; null: the defaults, where it owns weights that learn."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Prompts of several nodes stand one after another."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "generate": Stage(reads=("prompts",), gives=("rollouts",), calls=True),
            "credit": Stage(reads=("rewards", "reference", "values"), gives=("returns",)),
            "learn": Stage(reads=("demonstrations", "pairs", "reference")),
            "sync": Stage(),
        },
        inputs={
            "prompts": InPort(
                type=PortType.ROWS,
                phase="generate",
                required="where its rollouts or returns are used",
                required_where_used=("rollouts", "returns"),
                help="Rows with a `prompt`; each gets its completions.",
            ),
            "tools": InPort(
                type=PortType.TOOL,
                phase="generate",
                help="Tools that the policy may call while it generates.",
            ),
            "rewards": InPort(
                type=PortType.SCORES,
                phase="learn",
                teaching=True,
                of="own rollouts",
                help="Scores of its own rollouts; edges are combined by weight.",
            ),
            "demonstrations": InPort(
                type=PortType.ROWS,
                phase="learn",
                teaching=True,
                help="Rows whose `target`, or rollouts whose text, it is trained on (SFT).",
            ),
            "pairs": InPort(
                type=PortType.PAIRS,
                phase="learn",
                teaching=True,
                help="Preferences it learns to follow.",
            ),
            "reference": InPort(
                type=PortType.LOG_PROBS,
                max=1,
                phase="learn",
                help="Log-probs of the reference for KL and preference losses.",
            ),
            "values": InPort(
                type=PortType.VALUES,
                max=1,
                phase="learn",
                help="Token values for advantages (GAE).",
            ),
        },
        outputs={
            "rollouts": OutPort(
                type=PortType.ROLLOUTS, help="Generated texts, with tokens and log-probs."
            ),
            "policy": OutPort(
                type=PortType.POLICY, help="A handle for another node that calls it to generate."
            ),
            "returns": OutPort(type=PortType.VALUES, help="What a critic of it learns."),
        },
        rows=("prompts",),
        concat=("prompts",),
        modes={
            "offline": InMode(
                ports=("rewards", "values", "tools"),
                outputs=("returns",),
                fields=(
                    "credit",
                    "rollout.turns",
                    "rollout.mask",
                    "rollout.truncated",
                    "rollout.greedy_extra",
                    "rollout.on_sync",
                ),
                begins={"rollout": {"max_new_tokens": 16}, "algorithm": {"pairs": {"name": "dpo"}}},
            ),
            "reward_modeling": InMode(
                ports=("rewards", "pairs", "reference", "values"),
                outputs=("returns",),
                fields=("credit",),
                begins={"algorithm": {"demonstrations": {"name": "sft"}}},
            ),
        },
        text=KindText(
            title="Actor",
            group="models",
            icon="bot",
            help=(
                "Any policy that generates text: generator, proposer, solver, debater, assistant. "
                "Prompts go in, rollouts come out. It learns from the rows connected to `rewards`, "
                "`demonstrations` or `pairs` in the phases that name these ports; without a "
                "teaching edge it is frozen."
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
            summary=MODEL_PATHS,
            card_fields=(
                CardField("completions", ("rollout.completions_per_prompt",)),
                CardField("max tokens", ("rollout.max_new_tokens",)),
                CardField("temperature", ("rollout.temperature",)),
            ),
            learning=LEARNS_BY,
        ),
    )

    @property
    def writes_texts(self) -> bool:
        """Always."""
        return True

    def levels_given(self, name: str, descent: Descent, join: Join) -> LevelsByPort:
        """A child of each prompt, also of those of tools that ask it."""
        written = children(name, join.levels) | descent.called(name)
        yield from (("rollouts", written), ("returns", written))

    def columns_given(self, name: str, columns: Columns, names: NamesOf) -> NamesByPort:
        """What every rollout has, on what its prompt has."""
        table = columns.rollouts(name, names)
        yield from (("rollouts", table), ("returns", table))

    def counts_given(self, name: str, counts: RowCounts, rows: Counts) -> Counts:
        """So many texts for each row."""
        return {**rows, **counts.written(name, rows)}
