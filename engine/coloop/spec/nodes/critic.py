"""`critic`: values of tokens, for advantages with a learned baseline."""

from typing import ClassVar, Literal

from coloop.spec.algorithm import CriticAlgorithm
from coloop.spec.base import setting
from coloop.spec.model import Model
from coloop.spec.nodes.kind import MODEL_PATHS, BaseNode, InPort, NodeKind, OutPort, PortType, Stage
from coloop.spec.training import Training


class CriticNode(BaseNode):
    """Token values, for advantages with a learned baseline."""

    kind: Literal["critic"]
    """Token values."""
    model: Model = setting(section="model")
    """Where its weights come from; its head outputs one number."""
    algorithm: CriticAlgorithm | None = setting(None, section="learning")
    """How it learns; null: it is frozen."""
    training: Training | None = setting(None, section="learning")
    """How its weights are updated; null: the defaults, if it owns weights that are trained."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Inputs are concatenated."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "score": Stage(reads=("rollouts",), gives=("values",)),
            "learn": Stage(reads=("returns", "labels")),
        },
        inputs={
            "rollouts": InPort(
                PortType.ROLLOUTS,
                "score",
                "The rollouts it values token by token.",
                required="where its values are used",
                required_where_used=("values",),
            ),
            "returns": InPort(PortType.VALUES, "learn", "The returns of its actor.", teaching=True),
            "labels": InPort(
                PortType.SCORES, "learn", "Numbers it learns directly.", teaching=True
            ),
        },
        outputs={
            "values": OutPort(PortType.VALUES, "One value per token."),
            "check": OutPort(PortType.CHECK, "A handle for a search that requests values."),
        },
        rows=("rollouts",),
        concat=("rollouts", "returns", "labels"),
        title="Critic",
        group="models",
        icon="gauge",
        help="Values of tokens, for advantages with a learned baseline (PPO). It reads the "
        "actor's rollouts, returns `values` to it and learns from the actor's `returns`.",
        template={
            "kind": "critic",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "algorithm": {"name": "value"},
            "training": {"optimizer": {"name": "adamw", "lr": 1.0e-5}},
        },
        synonyms="value, value function, value model, baseline, gae",
        summary=MODEL_PATHS,
        shown={"model": MODEL_PATHS},
    )
