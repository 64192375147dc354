"""`filter`: keep rows by rules."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from coloop.spec.base import Whole, setting
from coloop.spec.levels import LevelsByPort
from coloop.spec.names import NamesByPort, NamesOf, merged
from coloop.spec.nodes.kind import BaseNode, InMode, InPort, NodeKind, OutPort, PortType, Stage
from coloop.spec.row_counts import Count, Counts, at_most, times
from coloop.spec.shaping import Fill, PerGroup, Resample, Rule
from coloop.spec.table_sizes import TableSize

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


class FilterNode(BaseNode):
    """Keep rows by rules."""

    kind: Literal["filter"]
    """Keep rows by rules."""
    keep: tuple[Rule, ...] = setting(())
    """Rules that a row must all pass; each sees the incoming table."""
    per_group: PerGroup | None = setting(None)
    """At most this many rows per group; null: all."""
    fill: Fill | None = setting(None, level="advanced")
    """Run the stages before it again until enough rows pass; null: once."""
    resample: Resample | None = setting(None, level="advanced")
    """Resample the rows with replacement; null: off."""
    up_to: Whole | None = setting(None, ge=1, level="advanced", unit="rows")
    """With `spare`: fill up to this many rows; null: as many as came in."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "prepare": Stage(
                reads=("rows", "rollouts", "pairs", "scores", "by", "spare"),
                gives=("rows", "rollouts", "pairs", "scores"),
            )
        },
        inputs={
            "rows": InPort(PortType.ROWS, "score", "Rows to filter.", max=1),
            "rollouts": InPort(PortType.ROLLOUTS, "score", "Rollouts to filter.", max=1),
            "pairs": InPort(PortType.PAIRS, "score", "Pairs to filter.", max=1),
            "scores": InPort(PortType.SCORES, "score", "Scores to filter by and pass on.", max=1),
            "by": InPort(PortType.SCORES, "score", "More scores that rules may refer to."),
            "spare": InPort(PortType.ROWS, "score", "Rows that fill it up to `up_to`.", max=1),
        },
        outputs={
            "rows": OutPort(PortType.ROWS, "Rows that were kept."),
            "rollouts": OutPort(PortType.ROLLOUTS, "Rollouts that were kept."),
            "pairs": OutPort(PortType.PAIRS, "Pairs that were kept."),
            "scores": OutPort(PortType.SCORES, "Scores of what was kept."),
        },
        rows=("rows", "rollouts", "pairs"),
        scores=("scores", "by"),
        is_concat_allowed=False,
        sifts=True,
        metrics=("kept", "groups_kept"),
        modes={"offline": InMode(fields=("fill", "resample"))},
        title="Filter",
        group="shaping",
        icon="filter",
        help="Keeps rows by rules: scores, groups whose rewards differ, length, a regular "
        "expression, Python. With `fill` it runs the nodes before it again until enough "
        "rows are left. Its outputs are the kinds of table at its inputs.",
        template={"kind": "filter", "keep": [{"rule": "nonzero_variance"}]},
        synonyms="select, keep, drop, dynamic sampling, rejection, refill, resample, best of n, "
        "cut",
        summary=("keep.*.rule",),
        shown={
            "keep": ("keep.*.rule",),
            "per group": ("per_group.pick",),
            "resample": ("resample.weight",),
        },
    )

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """What comes in at a port leaves at the port of that name."""
        spare = lineage.brought(lineage.walk.into(name, "spare"))
        for port in self.about.rows:
            edges = lineage.walk.into(name, port)
            if edges:
                yield port, lineage.brought(edges) | spare
        if lineage.walk.into(name, "scores"):
            yield "scores", lineage.input_levels(name) | spare

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        names = columns.inputs(name)
        spare: NamesOf = {}
        for edge in columns.walk.into(name, "spare"):
            spare.update(columns.of_edge(edge))
        for port in self.about.rows:
            edges = columns.walk.into(name, port)
            if edges:
                table = {
                    level: merged([part, names[level]]) if level in names else part
                    for edge in edges
                    for level, part in columns.of_edge(edge).items()
                }
                yield port, {**spare, **table}
        if columns.walk.into(name, "scores"):
            yield "scores", {**spare, **names}

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        """At most what its limits allow; a probe neither refills nor cuts to a number."""
        kept = self._counts(name, counts, rows)
        levels = counts.lineage.input_levels(name)
        share = self._share(
            counts.siblings(name), sum(c.mean.rows for level, c in rows.items() if level in levels)
        )
        return {
            level: replace(count, mean=self._kept(rows[level].mean, share))
            for level, count in kept.items()
        }

    def _share(self, siblings: int, rows: float) -> float:
        """Mean share of rows kept; what the rules cut is not known before the run."""
        limits = [rows]
        if self.per_group is not None:
            limits.append(rows * min(self.per_group.max / siblings, 1.0))
        if self.fill is not None:
            groups = self.fill.groups
            wanted = self.fill.rows or (groups * siblings if isinstance(groups, int) else None)
            limits += [float(wanted)] if wanted else []
        if self.resample is not None and self.resample.rows:
            limits = [float(self.resample.rows)]
        if self.up_to:
            limits = [float(self.up_to)]
        return min(limits) / rows if rows else 1.0

    def _kept(self, table: TableSize, share: float) -> TableSize:
        most = table.alike if self.per_group is None else float(self.per_group.max)
        return replace(table, rows=table.rows * share, alike=min(table.alike, most))

    def _counts(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        if counts.is_probe:
            return {level: at_most(c) for level, c in rows.items()} if self.keep else rows
        if self.fill is not None:
            return {level: self._filled(name, self.fill, counts, c) for level, c in rows.items()}
        if self.up_to is not None:
            return {level: Count(rows=self.up_to) for level in rows}
        if self.resample is not None:
            drawn = self.resample.rows
            return {
                level: Count(rows=count.rows if drawn is None else drawn, greedy=count.greedy)
                for level, count in rows.items()
            }
        cuts = bool(self.keep) or self.per_group is not None
        return {level: at_most(c) for level, c in rows.items()} if cuts else rows

    def _filled(self, name: str, fill: Fill, counts: "RowCounts", count: Count) -> Count:
        each = counts.group_size(name)
        if isinstance(fill.groups, int) and fill.surplus == "drop" and each is not None:
            breakdown = f"{fill.groups} groups x {each} completions"
            extra = fill.groups if count.greedy or counts.adds_greedy(name, count) else 0
            exact = self.per_group is None
            return Count(rows=fill.groups * each, is_exact=exact, greedy=extra, breakdown=breakdown)
        if fill.rows is not None and fill.surplus == "drop":
            return Count(rows=fill.rows)
        return times(at_most(count), fill.max_rounds)
