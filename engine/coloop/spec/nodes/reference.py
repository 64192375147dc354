"""`reference`: log-probs by frozen or following weights."""

from typing import ClassVar, Literal

from coloop.spec.base import setting
from coloop.spec.model import Model
from coloop.spec.nodes.kind import MODEL_PATHS, BaseNode, InPort, NodeKind, OutPort, PortType, Stage


class ReferenceNode(BaseNode):
    """Log-probs under frozen or periodically refreshed weights."""

    kind: Literal["reference"]
    """Log-probs under frozen or periodically refreshed weights."""
    model: Model = setting(section="model")
    """Where its weights come from; it never trains."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Inputs are concatenated."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={"score": Stage(reads=("rollouts", "pairs", "prompts"), gives=("log_probs",))},
        inputs={
            "rollouts": InPort(PortType.ROLLOUTS, "score", "Rollouts to score."),
            "pairs": InPort(PortType.PAIRS, "score", "Pairs to score, both sides."),
            "prompts": InPort(
                PortType.ROWS,
                "score",
                "Rows whose `prompt` takes the place of the one under which a rollout was written: "
                "of the row that it descends from, or of a template on the rollouts themselves.",
                max=1,
            ),
        },
        outputs={"log_probs": OutPort(PortType.LOG_PROBS, "One log-prob per token.")},
        rows=("rollouts", "pairs"),
        concat=("rollouts", "pairs"),
        title="Reference",
        group="models",
        icon="anchor",
        help="Log-probs by frozen or following weights: what KL terms and preference losses "
        "compare with, usually a snapshot of the learner, refreshed when a phase starts. Or a "
        "teacher, from which a learner with an algorithm at its port `reference` is distilled.",
        template={
            "kind": "reference",
            "model": {"type": "snapshot", "of": "actor", "refresh": "never"},
        },
        synonyms="kl, anchor, frozen, ref, reference policy, log probs, snapshot, ema, teacher, "
        "prior, distillation, distill, opd",
        summary=MODEL_PATHS,
        shown={
            "of": ("model.of", "model.with", "model.path", "model.run", "model.architecture"),
            "refresh": ("model.refresh",),
        },
    )
