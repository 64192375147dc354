"""`pairs`: chosen against rejected."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from coloop.spec.base import Flag, Number, setting
from coloop.spec.nodes.kind import BaseNode, NodeKind, Stage
from coloop.spec.nodes.ports import InPort, OutPort, PortType, When, is_of_use
from coloop.spec.nodes.texts import KindText, Telling
from coloop.spec.shaping import SideColumns, Soft

_SIBLINGS: When = {"method": ("best_worst", "all", "margin")}
_DIRECT: When = {"method": ("direct",)}
_RELABEL: When = {"method": ("relabel",)}
_COMPARED: Final = {"method": ("best_worst", "all", "margin", "relabel")}
"""Methods by which pairs come of scores."""


class PairsNode(BaseNode):
    """Chosen against rejected."""

    kind: Literal["pairs"]
    """Chosen against rejected."""
    method: Literal["best_worst", "all", "margin", "direct", "relabel"] = setting("best_worst")
    """Best against worst, every two, every two that differ enough, two inputs, or new labels."""
    margin: Number | None = setting(
        None, ge=0, when={"method": ("margin",)}, needed={"method": ("margin",)}, hot=True
    )
    """Least difference of scores."""
    drop_ties: Flag = setting(True, when=_COMPARED)
    """Leave out pairs of equal score."""
    soft: Soft = setting(False, level="advanced", when=_COMPARED)
    """Keep the preference as a probability instead of swapping sides."""
    columns: SideColumns = setting(default_factory=SideColumns, level="advanced")
    """Which text each side brings."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "prepare": Stage(
                reads=("rollouts", "scores", "chosen", "rejected", "pairs", "preference"),
                gives=("pairs",),
            ),
        },
        inputs={
            "rollouts": InPort(
                type=PortType.ROLLOUTS, phase="score", when=_SIBLINGS, help="Siblings to pair up."
            ),
            "scores": InPort(
                type=PortType.SCORES,
                max=1,
                phase="score",
                when=_SIBLINGS,
                help="What decides the better one.",
            ),
            "chosen": InPort(
                type=PortType.ROWS, phase="score", when=_DIRECT, help="The better sides (`direct`)."
            ),
            "rejected": InPort(
                type=PortType.ROWS, phase="score", when=_DIRECT, help="The worse sides (`direct`)."
            ),
            "pairs": InPort(
                type=PortType.PAIRS,
                max=1,
                phase="score",
                when=_RELABEL,
                help="Pairs to label (`relabel`).",
            ),
            "preference": InPort(
                type=PortType.SCORES,
                max=1,
                phase="score",
                when=_RELABEL,
                help="How far `chosen` is the better side.",
            ),
        },
        outputs={"pairs": OutPort(type=PortType.PAIRS, help="Chosen against rejected.")},
        rows=("rollouts", "chosen", "rejected", "pairs"),
        scores=("scores", "preference"),
        metrics=("pairs", "ties", "equal_texts", "left_out"),
        text=KindText(
            title="Pairs",
            group="shaping",
            icon="columns-2",
            help=(
                "Chosen against rejected: best and worst of siblings, every two, two inputs "
                "against each other, or new labels for pairs that are there. Pairs of equal texts "
                "are dropped."
            ),
            template={"kind": "pairs", "method": "best_worst"},
            synonyms="preference, preferences, chosen, rejected, comparison, best worst, margin",
            summary=("method",),
            telling=(
                Telling("method", ("method",)),
                Telling("margin", ("margin",)),
            ),
        ),
    )

    @property
    def row_inputs(self) -> tuple[str, ...]:
        """By its method: siblings, two sides, or pairs that are there."""
        return tuple(port for port in self.about.rows if is_of_use(self.about.inputs[port], self))
