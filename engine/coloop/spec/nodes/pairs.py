"""`pairs`: chosen against rejected."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from coloop.spec.base import Flag, Number, setting
from coloop.spec.levels import Level, Levels, LevelsByPort, align, born
from coloop.spec.names import NOTHING, PAIR_COLUMNS, Found, Names, NamesByPort, NamesOf, merged
from coloop.spec.nodes.kind import (
    BaseNode,
    InPort,
    NodeKind,
    OutPort,
    PortType,
    Stage,
    When,
    is_of_use,
)
from coloop.spec.row_counts import Count, Counts, at_most, largest
from coloop.spec.shaping import SideColumns, Soft

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


_SIBLINGS: When = {"method": ("best_worst", "all", "margin")}
_DIRECT: When = {"method": ("direct",)}
_RELABEL: When = {"method": ("relabel",)}
_COMPARED: Final = {"method": ("best_worst", "all", "margin", "relabel")}
"""Methods that make pairs from scores."""


class PairsNode(BaseNode):
    """Chosen against rejected."""

    kind: Literal["pairs"]
    """Chosen against rejected."""
    method: Literal["best_worst", "all", "margin", "direct", "relabel"] = setting("best_worst")
    """Best against worst, all combinations, all that differ enough, two inputs against each other,
    or new labels."""
    margin: Number | None = setting(
        None, ge=0, when={"method": ("margin",)}, needed={"method": ("margin",)}, hot=True
    )
    """Minimum score difference."""
    drop_ties: Flag = setting(True, when=_COMPARED)
    """Drop pairs with equal scores."""
    soft: Soft = setting(False, level="advanced", when=_COMPARED)
    """Keep the preference as a probability instead of swapping sides."""
    columns: SideColumns = setting(default_factory=SideColumns, level="advanced")
    """Which text each side uses."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "prepare": Stage(
                reads=("rollouts", "scores", "chosen", "rejected", "pairs", "preference"),
                gives=("pairs",),
            )
        },
        inputs={
            "rollouts": InPort(PortType.ROLLOUTS, "score", "Siblings to pair up.", when=_SIBLINGS),
            "scores": InPort(
                PortType.SCORES, "score", "What decides the better one.", max=1, when=_SIBLINGS
            ),
            "chosen": InPort(PortType.ROWS, "score", "The better sides (`direct`).", when=_DIRECT),
            "rejected": InPort(PortType.ROWS, "score", "The worse sides (`direct`).", when=_DIRECT),
            "pairs": InPort(
                PortType.PAIRS, "score", "Pairs to label (`relabel`).", max=1, when=_RELABEL
            ),
            "preference": InPort(
                PortType.SCORES,
                "score",
                "How far `chosen` is the better side.",
                max=1,
                when=_RELABEL,
            ),
        },
        outputs={"pairs": OutPort(PortType.PAIRS, "Chosen against rejected.")},
        rows=("rollouts", "chosen", "rejected", "pairs"),
        scores=("scores", "preference"),
        is_concat_allowed=False,
        metrics=("pairs", "ties", "equal_texts", "left_out"),
        title="Pairs",
        group="shaping",
        icon="columns-2",
        help="Chosen against rejected: best and worst of siblings, all combinations, two inputs "
        "against each other, or new labels for existing pairs. Pairs of equal texts are dropped.",
        template={"kind": "pairs", "method": "best_worst"},
        synonyms="preference, preferences, chosen, rejected, comparison, best worst, margin",
        summary=("method",),
        shown={"method": ("method",), "margin": ("margin",)},
    )

    @property
    def row_inputs(self) -> tuple[str, ...]:
        return tuple(port for port in self.about.rows if is_of_use(self.about.inputs[port], self))

    @property
    def sides(self) -> tuple[str, ...]:
        return ("chosen", "rejected") if self.method == "direct" else ()

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """Children of the two rows that are paired."""
        yield "pairs", self._pairs_of(name, lineage, lineage.input_levels(name))

    def _pairs_of(self, name: str, lineage: "Lineage", rows: Levels) -> Levels:
        match self.method:
            case "direct":
                sides = [lineage.brought(lineage.walk.into(name, port)) for port in self.sides]
                combinations = align(sides)[0] if all(sides) else ()
                return frozenset(born(name, *met) for met in combinations)
            case "relabel":
                return frozenset(
                    born(name, *(level.parents if len(level.parents) == 2 else (level,)))
                    for level in rows
                )
            case _:
                return frozenset(born(name, level, level) for level in rows)

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        names = columns.inputs(name)
        judged = columns.walk.into(name, "preference" if self.method == "relabel" else "scores")
        written = self._written_columns(is_judged=bool(judged))
        sides = columns.of_edges(columns.walk.into(name, *self.sides)) if self.sides else names
        table: NamesOf = {}
        for level in columns.lineage.levels(name, "pairs"):
            parents = [sides[parent].below(1) for parent in level.parents if parent in sides]
            if self.method == "relabel":
                parents = list(names.values())
            pair = _of_pair(level, merged(parents or [NOTHING]))
            table[level] = pair.own(name, written, level)
        yield "pairs", table

    def _written_columns(self, *, is_judged: bool) -> tuple[str, ...]:
        """Columns that it writes; `is_judged`: scores or a preference say which side is better."""
        if not is_judged or self.method == "direct":
            return PAIR_COLUMNS
        margin = () if self.method == "relabel" else ("margin",)
        probability = () if self.soft is False else ("probability",)
        return (*PAIR_COLUMNS, *margin, *probability)

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        """At most the pairs of each group; existing pairs pass through."""
        levels = tuple(counts.levels(name))
        count = self._count(name, counts)
        count = replace(count, mean=count.mean.times(1 / max(len(levels), 1)))
        return dict.fromkeys(levels, count)

    def _count(self, name: str, counts: "RowCounts") -> Count:
        brought = [counts.brought(name, port) for port in self.row_inputs]
        if self.method in ("direct", "relabel"):
            return replace(at_most(largest(brought)), greedy=0)
        rows, each, siblings = brought[0], counts.group_size(name), counts.siblings(name)
        mean = rows.mean.times(self._pairs(siblings) / siblings)
        mean = replace(mean, alike=float(self._pairs(siblings)))
        if rows.rows is None or not each:
            return Count(rows=None, mean=mean)
        return Count(rows=rows.rows // each * self._pairs(each), mean=mean)

    def _pairs(self, siblings: int) -> int:
        return 1 if self.method == "best_worst" else siblings * (siblings - 1) // 2


def _of_pair(level: Level, names: Names) -> Names:
    """Columns that both sides have are ambiguous, even between siblings of one level."""
    if len(set(level.parents)) != 1 or len(level.parents) != 2:
        return names
    side = level.parents[0]
    other = Level(f"{side.node} beside", side.parents)
    bare = {
        name: Found(found.distance, found.rows | {other}) if side in found.rows else found
        for name, found in names.bare.items()
    }
    return replace(names, bare=bare)
