"""`buffer`: rows that outlive a step: replay, pool, iteration."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from coloop.spec.base import Text, Whole, problem, setting
from coloop.spec.data import BufferBalance, BufferClear
from coloop.spec.levels import LevelsByPort, born
from coloop.spec.names import NamesByPort, rooted
from coloop.spec.nodes.kind import BaseNode, InMode, InPort, NodeKind, OutPort, PortType, Stage
from coloop.spec.row_counts import Count, Counts

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


class BufferNode(BaseNode):
    """Rows that are kept beyond a step: replay, pool, iteration."""

    kind: Literal["buffer"]
    """Rows that are kept beyond a step."""
    capacity: Whole = setting(ge=1, unit="rows")
    """Maximum number of rows (per iteration, if several are kept)."""
    rows_per_step: Whole | None = setting(None, ge=1, hot=True, unit="rows")
    """Rows drawn per step; null: all."""
    sample: Literal["newest", "uniform", "oldest", "weighted"] = setting("newest")
    """Which rows are drawn."""
    weight: Text | None = setting(
        None, widget="column", when={"sample": ("weighted",)}, needed={"sample": ("weighted",)}
    )
    """Column with the weight of a row."""
    unique: Text | None = setting(None, level="advanced", widget="column")
    """A row is skipped if a stored row has the same value in this column."""
    key: Text | None = setting(None, level="advanced", widget="column")
    """A row replaces the stored row that has the same value in this column."""
    balance: BufferBalance | None = setting(None, level="advanced")
    """Draw the same number of rows of each class; null: no balancing."""
    clear: BufferClear | None = setting(None, level="advanced")
    """Empty the buffer periodically; null: never."""
    keep_iterations: Whole | None = setting(None, ge=1, level="advanced")
    """Iterations that are kept; each phase that fills it starts a new one. Null: no iterations."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Inputs are concatenated."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "read": Stage(reads=("seed",), gives=("rows", "rollouts", "pairs", "scores")),
            "write": Stage(reads=("rows", "rollouts", "pairs", "scores")),
        },
        inputs={
            "rows": InPort(PortType.ROWS, "score", "Rows to keep."),
            "rollouts": InPort(PortType.ROLLOUTS, "score", "Rollouts to keep."),
            "pairs": InPort(PortType.PAIRS, "score", "Pairs to keep."),
            "scores": InPort(PortType.SCORES, "score", "Scores to keep with their rows."),
            "seed": InPort(
                PortType.ROWS, "generate", "Rows it starts with when it is empty.", max=1
            ),
        },
        outputs={
            "rows": OutPort(PortType.ROWS, "Rows drawn from it."),
            "rollouts": OutPort(PortType.ROLLOUTS, "Rollouts drawn from it."),
            "pairs": OutPort(PortType.PAIRS, "Pairs drawn from it."),
            "scores": OutPort(PortType.SCORES, "Scores of what was drawn."),
        },
        outlives_step=True,
        concat=("rows", "rollouts", "pairs", "scores", "seed"),
        metrics=("rows", "written"),
        modes={
            "online": InMode(fields=("keep_iterations",)),
            "reward_modeling": InMode(fields=("keep_iterations",)),
        },
        title="Buffer",
        group="data",
        icon="archive",
        help="Rows that outlive a step: replay, a pool, an iteration. It is read when a step "
        "starts and written when it ends, so a cycle through it is allowed. It is written "
        "in phases that list it in `fill`; `seed` provides rows while it is empty.",
        template={"kind": "buffer", "capacity": 1024, "rows_per_step": 32, "sample": "uniform"},
        synonyms="replay, pool, memory, queue, experience, iteration, archive",
        summary=("sample",),
        shown={"capacity": ("capacity",), "rows a step": ("rows_per_step",)},
    )

    @model_validator(mode="after")
    def _one_identity(self) -> Self:
        if self.unique is not None and self.key is not None:
            raise problem("conflict", "does not go together with `unique`", field="key")
        return self

    @model_validator(mode="after")
    def _one_order(self) -> Self:
        if self.balance is not None and self.sample in ("oldest", "weighted"):
            raise problem(
                "conflict",
                f"cannot be combined with `sample: {self.sample}`: the rows of each class are "
                "drawn at random",
                field="balance",
            )
        return self

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """Rows read from a buffer start a new lineage."""
        yield from ((port, frozenset({born(name)})) for port in self.about.outputs)

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        root = born(name)
        table = {root: rooted(columns.kept(name), name, root)}
        yield from ((port, table) for port in self.about.outputs)

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        """At most the number drawn, else the whole capacity."""
        drawn = counts.value(f"nodes.{name}.rows_per_step", self.rows_per_step)
        known = drawn if isinstance(drawn, int) else self.capacity
        held = counts.brought(name, "rows", "rollouts", "pairs", "seed").mean
        mean = replace(held, rows=float(known), alike=float(held.sides))
        count = Count(rows=known, breakdown=f"{known} rows of `{name}`", mean=mean)
        return dict.fromkeys(counts.levels(name), count)
