"""The charts that a run opens with: which metrics stand together, and for which learning.

A chart is shown where one of its metrics was told, and where a node of the loop learns at one of
its ports. Metrics of evaluations count by their own name, whatever stands before it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Metrics of all nodes on one axis."""

    name: str
    title: str
    metrics: tuple[str, ...]
    ports: tuple[str, ...] = ()
    """Teaching ports for whose algorithms it is; none: for every loop."""


CHARTS: tuple[Chart, ...] = (
    Chart(
        name="accuracy",
        title="Accuracy",
        metrics=("accuracy", "score", "agreement", "pair_accuracy", "label_accuracy"),
    ),
    Chart(name="reward", title="Reward", metrics=("reward/mean",), ports=("rewards",)),
    Chart(
        name="loss",
        title="Loss",
        metrics=("loss/demonstrations", "loss/pairs", "loss/labels", "loss/returns"),
        ports=("demonstrations", "pairs", "labels", "returns"),
    ),
    Chart(name="kl", title="KL to the reference", metrics=("kl",), ports=("rewards",)),
    Chart(name="length", title="Length", metrics=("rollout/length",), ports=("rewards",)),
    Chart(
        name="recall",
        title="Recall and false verdicts",
        metrics=("class_recall", "false_positive_rate", "false_negative_rate"),
    ),
    Chart(name="entropy", title="Entropy", metrics=("entropy",), ports=("rewards",)),
    Chart(
        name="margin",
        title="Chosen and rejected",
        metrics=("margin", "log_ratio/chosen", "log_ratio/rejected"),
        ports=("pairs",),
    ),
    Chart(
        name="explained",
        title="Explained variance",
        metrics=("explained_variance",),
        ports=("returns",),
    ),
    Chart(name="clip", title="Clip share", metrics=("clip_fraction",), ports=("rewards",)),
    Chart(
        name="groups",
        title="Groups without variance",
        metrics=("group/zero_variance",),
        ports=("rewards",),
    ),
    Chart(
        name="calibration",
        title="Calibration",
        metrics=("calibration", "brier"),
        ports=("labels",),
    ),
)
