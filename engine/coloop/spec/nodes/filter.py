"""`filter`: keep rows by rules."""

from __future__ import annotations

from typing import ClassVar, Literal

from coloop.spec.base import Whole, setting
from coloop.spec.nodes.kind import BaseNode, InMode, NodeKind, Stage
from coloop.spec.nodes.ports import InPort, OutPort, PortType
from coloop.spec.nodes.texts import KindText, Telling
from coloop.spec.shaping import Fill, PerGroup, Resample, Rule


class FilterNode(BaseNode):
    """Keep rows by rules."""

    kind: Literal["filter"]
    """Keep rows by rules."""
    keep: tuple[Rule, ...] = setting(())
    """Rules that a row must pass, all of them; they look at the table as it came in."""
    per_group: PerGroup | None = setting(None)
    """At most so many rows of each group; null: all."""
    fill: Fill | None = setting(None, level="advanced")
    """Run the stages before it again until it has enough; null: once."""
    resample: Resample | None = setting(None, level="advanced")
    """Draw the rows again with replacement; null: no."""
    up_to: Whole | None = setting(None, ge=1, level="advanced", unit="rows")
    """With `spare`: fill up to this many rows; null: as many as came in."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "prepare": Stage(
                reads=("rows", "rollouts", "pairs", "scores", "by", "spare"),
                gives=("rows", "rollouts", "pairs", "scores"),
            ),
        },
        inputs={
            "rows": InPort(type=PortType.ROWS, max=1, phase="score", help="Rows to sift."),
            "rollouts": InPort(
                type=PortType.ROLLOUTS, max=1, phase="score", help="Rollouts to sift."
            ),
            "pairs": InPort(type=PortType.PAIRS, max=1, phase="score", help="Pairs to sift."),
            "scores": InPort(
                type=PortType.SCORES, max=1, phase="score", help="Scores to sift by and hand on."
            ),
            "by": InPort(
                type=PortType.SCORES, phase="score", help="More scores that rules may name."
            ),
            "spare": InPort(
                type=PortType.ROWS, max=1, phase="score", help="Rows that fill it up to `up_to`."
            ),
        },
        outputs={
            "rows": OutPort(type=PortType.ROWS, help="Rows that were kept."),
            "rollouts": OutPort(type=PortType.ROLLOUTS, help="Rollouts that were kept."),
            "pairs": OutPort(type=PortType.PAIRS, help="Pairs that were kept."),
            "scores": OutPort(type=PortType.SCORES, help="Scores of what was kept."),
        },
        rows=("rows", "rollouts", "pairs"),
        scores=("scores", "by"),
        metrics=("kept", "groups_kept"),
        modes={
            "offline": InMode(fields=("fill", "resample")),
        },
        text=KindText(
            title="Filter",
            group="shaping",
            icon="filter",
            help=(
                "Keeps rows by rules: scores, groups whose rewards differ, length, a regular "
                "expression, Python. With `fill` it runs what is before it again until enough is "
                "left. It hands on only the kinds of table that go in."
            ),
            template={"kind": "filter", "keep": [{"rule": "nonzero_variance"}]},
            synonyms=(
                "select, keep, drop, dynamic sampling, rejection, refill, resample, best of n, cut"
            ),
            summary=("keep.*.rule",),
            telling=(
                Telling("keep", ("keep.*.rule",)),
                Telling("per group", ("per_group.pick",)),
                Telling("resample", ("resample.weight",)),
            ),
        ),
    )
