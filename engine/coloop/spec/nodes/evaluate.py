"""`evaluate`: metrics, on held-out rows or on the step's own."""

from typing import ClassVar, Literal

from coloop.spec.base import Flag, NodeId, Number, PortName, Text, Whole, setting
from coloop.spec.nodes.kind import BaseNode, InMode, InPort, NodeKind, PortType, Stage


def _reads_losses(port: str) -> InMode:
    """A mode in which a new node measures the loss of a teaching port."""
    metrics = ["loss", "pair_accuracy"]
    begins = {"instead_of": None, "of": [port], "greedy": None, "metrics": metrics}
    return InMode(begins=begins)


class EvaluateNode(BaseNode):
    """Metrics, on held-out rows or on the step's own."""

    kind: Literal["evaluate"]
    """Metrics, on held-out rows or on the step's own."""
    instead_of: NodeId | None = setting(None, widget="node")
    """Run the stages after this node again, on the rows at port `rows`. Null: measure the step's
    tables."""
    of: tuple[PortName, ...] = setting((), level="advanced", widget="port")
    """Teaching ports (`node.port`) whose loss and accuracy are reported, without learning."""
    every: Whole = setting(20, ge=1, hot=True, unit="steps")
    """Steps between two evaluations; there is also one at step 0 and one at the end."""
    greedy: Flag = setting(False)
    """The first generating nodes decode greedily."""
    samples: Whole | None = setting(None, ge=1, hot=True)
    """Completions per prompt of the first generating nodes; null: as in their `rollout`."""
    temperature: Number | None = setting(None, ge=0, le=10, level="advanced", hot=True)
    """Sampling temperature of the first generating nodes; null: as in their `rollout`."""
    right_at: Number = setting(1.0, level="advanced")
    """Scores at or above this value count as correct."""
    metrics: tuple[Text, ...] = setting(("score",), min_length=1, widget="metrics")
    """What is measured, e.g. `accuracy`, `pass@8`."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "evaluate": Stage(reads=("rows", "rollouts", "scores", "selectors", "labels", "pairs"))
        },
        inputs={
            "rows": InPort(PortType.ROWS, "score", "Held-out rows for `instead_of`.", max=1),
            "rollouts": InPort(PortType.ROLLOUTS, "score", "Rollouts to measure."),
            "scores": InPort(PortType.SCORES, "score", "Scores that grade."),
            "selectors": InPort(PortType.SCORES, "score", "Scores that choose among k."),
            "labels": InPort(PortType.SCORES, "score", "The ground truth to compare with.", max=1),
            "pairs": InPort(PortType.PAIRS, "score", "Held-out pairs for `of`.", max=1),
        },
        outputs={},
        rows=("rollouts",),
        scores=("scores", "selectors", "labels"),
        apart_without="rollouts",
        takes_last_round=True,
        modes={
            "offline": _reads_losses("actor.pairs"),
            "reward_modeling": _reads_losses("reward.pairs"),
        },
        title="Evaluate",
        group="measuring",
        icon="chart-line",
        help="Metrics. With `instead_of` it runs the stages after that node again on held-out "
        "rows, after the weights were updated; with `of` it reads the loss of teaching "
        "ports; otherwise it reads the step's own tables. It never trains anything.",
        template={
            "kind": "evaluate",
            "instead_of": "dataset",
            "every": 20,
            "greedy": True,
            "metrics": ["accuracy"],
        },
        synonyms="probe, held-out, held out, test, eval, evaluation, validation, metric, "
        "benchmark, accuracy, pass@k, measure",
        summary=("instead_of", "of.*"),
        shown={"every": ("every",), "metrics": ("metrics.*",), "instead of": ("instead_of",)},
    )
