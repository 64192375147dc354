"""`critic`: values of tokens, for advantages with a learned baseline."""

from __future__ import annotations

from typing import ClassVar, Literal

from coloop.spec.algorithm import CriticAlgorithm
from coloop.spec.base import setting
from coloop.spec.model import Model
from coloop.spec.nodes.kind import (
    LEARNS_BY,
    MODEL_PATHS,
    BaseNode,
    CardField,
    InPort,
    KindText,
    NodeKind,
    OutPort,
    PortType,
    Stage,
)
from coloop.spec.training import Training


class CriticNode(BaseNode):
    """Values of tokens, for advantages with a learned baseline."""

    kind: Literal["critic"]
    """Values of tokens."""
    model: Model = setting(section="model")
    """Where its weights come from; its head is one number."""
    algorithm: CriticAlgorithm | None = setting(None, section="learning")
    """How it learns; null: it is frozen."""
    training: Training | None = setting(None, section="learning")
    """How its weights are updated; null: the defaults, where it owns weights that learn."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Inputs stand one after another."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "score": Stage(reads=("rollouts",), gives=("values",)),
            "learn": Stage(reads=("returns", "labels")),
        },
        inputs={
            "rollouts": InPort(
                type=PortType.ROLLOUTS,
                phase="score",
                required="where its values are used",
                required_where_used=("values",),
                help="The rollouts it values token by token.",
            ),
            "returns": InPort(
                type=PortType.VALUES, phase="learn", teaching=True, help="The returns of its actor."
            ),
            "labels": InPort(
                type=PortType.SCORES,
                phase="learn",
                teaching=True,
                help="Numbers it learns directly.",
            ),
        },
        outputs={
            "values": OutPort(type=PortType.VALUES, help="One value a token."),
            "check": OutPort(
                type=PortType.CHECK, help=("A handle for a search that requests values.")
            ),
        },
        rows=("rollouts",),
        concat=("rollouts", "returns", "labels"),
        text=KindText(
            title="Critic",
            group="models",
            icon="gauge",
            help=(
                "Values of tokens, for advantages with a learned baseline (PPO). It reads the "
                "actor's rollouts, returns `values` to it and learns from the actor's `returns`."
            ),
            template={
                "kind": "critic",
                "model": {"type": "scratch", "architecture": "tiny-qwen3"},
                "algorithm": {"name": "value"},
                "training": {"optimizer": {"name": "adamw", "lr": 1.0e-5}},
            },
            synonyms="value, value function, value model, baseline, gae",
            summary=MODEL_PATHS,
            card_fields=(
                CardField(
                    "model",
                    ("model.architecture", "model.path", "model.run", "model.of", "model.with"),
                ),
            ),
            learning=LEARNS_BY,
        ),
    )
