"""`reference`: log-probs by frozen or following weights."""

from __future__ import annotations

from typing import ClassVar, Literal

from coloop.spec.base import setting
from coloop.spec.model import Model
from coloop.spec.nodes.kind import (
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


class ReferenceNode(BaseNode):
    """Log-probs by frozen or following weights."""

    kind: Literal["reference"]
    """Log-probs by frozen or following weights."""
    model: Model = setting(section="model")
    """Where its weights come from; it never trains."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Inputs stand one after another."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "score": Stage(reads=("rollouts", "pairs"), gives=("log_probs",)),
        },
        inputs={
            "rollouts": InPort(type=PortType.ROLLOUTS, phase="score", help="Rollouts to score."),
            "pairs": InPort(type=PortType.PAIRS, phase="score", help="Pairs to score, both sides."),
        },
        outputs={"log_probs": OutPort(type=PortType.LOG_PROBS, help="One log-prob a token.")},
        rows=("rollouts", "pairs"),
        concat=("rollouts", "pairs"),
        text=KindText(
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
                "kl, anchor, frozen, ref, reference policy, log probs, snapshot, ema, teacher, "
                "prior"
            ),
            summary=MODEL_PATHS,
            card_fields=(
                CardField(
                    "of",
                    ("model.of", "model.with", "model.path", "model.run", "model.architecture"),
                ),
                CardField("refresh", ("model.refresh",)),
            ),
        ),
    )
