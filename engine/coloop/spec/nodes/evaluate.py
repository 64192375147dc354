"""`evaluate`: metrics, on held-out rows or on the step's own."""

from __future__ import annotations

from typing import ClassVar, Literal

from coloop.spec.base import Flag, NodeId, Number, PortName, Text, Whole, setting
from coloop.spec.nodes.kind import (
    BaseNode,
    CardField,
    InMode,
    InPort,
    KindText,
    NodeKind,
    PortType,
    Stage,
)


class EvaluateNode(BaseNode):
    """Metrics, on held-out rows or on the step's own."""

    kind: Literal["evaluate"]
    """Metrics, on held-out rows or on the step's own."""
    instead_of: NodeId | None = setting(None, widget="node")
    """Run the stages after this node once more, on the rows at `rows`. Null: the step's tables."""
    of: tuple[PortName, ...] = setting((), level="advanced", widget="port")
    """Teaching ports (`node.port`) whose loss and accuracy are reported, without learning."""
    every: Whole = setting(20, ge=1, hot=True, unit="steps")
    """Steps between two readings; also at step 0 and at the end."""
    greedy: Flag = setting(False)
    """The first writers write greedily."""
    samples: Whole | None = setting(None, ge=1, hot=True)
    """Completions that the first writers write; null: as their rollout says."""
    temperature: Number | None = setting(None, ge=0, le=10, level="advanced", hot=True)
    """Randomness of the first writers; null: as their rollout says."""
    right_at: Number = setting(1.0, level="advanced")
    """A score from here on counts as right."""
    metrics: tuple[Text, ...] = setting(("score",), min_length=1, widget="metrics")
    """What is measured, e.g. `accuracy`, `pass@8`."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "evaluate": Stage(reads=("rows", "rollouts", "scores", "selectors", "labels", "pairs")),
        },
        inputs={
            "rows": InPort(
                type=PortType.ROWS, max=1, phase="score", help="Held-out rows for `instead_of`."
            ),
            "rollouts": InPort(type=PortType.ROLLOUTS, phase="score", help="Rollouts to measure."),
            "scores": InPort(type=PortType.SCORES, phase="score", help="Scores that grade."),
            "selectors": InPort(
                type=PortType.SCORES, phase="score", help="Scores that choose among k."
            ),
            "labels": InPort(
                type=PortType.SCORES, max=1, phase="score", help="The truth to compare with."
            ),
            "pairs": InPort(
                type=PortType.PAIRS, max=1, phase="score", help="Held-out pairs for `of`."
            ),
        },
        outputs={},
        rows=("rollouts",),
        scores=("scores", "selectors", "labels"),
        apart_without="rollouts",
        takes_last_round=True,
        modes={
            "offline": InMode(
                begins={
                    "instead_of": None,
                    "of": ["actor.pairs"],
                    "greedy": None,
                    "metrics": ["loss", "pair_accuracy"],
                }
            ),
            "reward_modeling": InMode(
                begins={
                    "instead_of": None,
                    "of": ["reward.pairs"],
                    "greedy": None,
                    "metrics": ["loss", "pair_accuracy"],
                }
            ),
        },
        text=KindText(
            title="Evaluate",
            group="measuring",
            icon="chart-line",
            help=(
                "Metrics. With `instead_of` it runs the stages after that node again on held-out "
                "rows, after the weights were updated; with `of` it reads the loss of teaching "
                "ports; otherwise it reads the step's own tables. It never trains anything."
            ),
            template={
                "kind": "evaluate",
                "instead_of": "dataset",
                "every": 20,
                "greedy": True,
                "metrics": ["accuracy"],
            },
            synonyms=(
                "probe, held-out, held out, test, eval, evaluation, validation, metric, benchmark, "
                "accuracy, pass@k, measure"
            ),
            summary=("instead_of", "of.*"),
            card_fields=(
                CardField("every", ("every",)),
                CardField("metrics", ("metrics.*",)),
                CardField("instead of", ("instead_of",)),
            ),
        ),
    )
