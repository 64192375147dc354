"""Rows of a dataset: `load` gives the next rows of its source, in the order of its cursor, or as
its curriculum draws them."""

from collections.abc import Mapping
from typing import Any

from coloop.data.curriculum import DifficultyPools
from coloop.data.seeds import derive_seed
from coloop.data.sources import DataCursor, Draw, Source, mark_of, open_source, steps_for, unfolded
from coloop.data.tables import Row, Table
from coloop.data.tables.row import born_at, child_row, root_row, whole
from coloop.plan.types import PhasePlan
from coloop.runtime.roles.protocol import Call, Context, NodeRole, Outcome
from coloop.spec.nodes import DatasetNode


class DatasetRole(NodeRole[DatasetNode]):
    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        section = self._section(context)
        self._root = context.root
        self._as_written = section
        self._opened_as = section.source
        self._alerts: list[tuple[str, str]] = []
        """Alerts for the next outcome."""
        self._source = self._open(section)
        self._cursor = DataCursor(
            rows=len(self._source),
            seed=derive_seed(context.seed, node, "order"),
            shuffle=section.shuffle,
        )
        self._pools = self._new_pools()

    def run(self, call: Call) -> Outcome:
        section = self._section(call.context)
        self._follow_changes(section)
        if call.is_probe:
            rows = self._probe_rows(section)
        else:
            rows = [self._row(draw) for draw in self._draws(section)]
        if section.unfold is not None:
            rows = [child for row in rows for child in self._children(row, section.unfold)]
        table = Table(rows=tuple(rows))
        outputs = {"rows": table}
        if rows and "chosen" in rows[0].columns and "rejected" in rows[0].columns:
            outputs["pairs"] = table
        alerts, self._alerts = self._alerts, []
        metrics = {}
        if section.curriculum is not None and not call.is_probe:
            shares = self._pools.shares(section.curriculum)
            metrics = {f"band/{name}": share for name, share in shares.items()}
        return Outcome(outputs=outputs, metrics=metrics, samples=len(rows), alerts=alerts)

    def _draws(self, section: DatasetNode) -> list[Draw]:
        draws = self._cursor.take(section.rows_per_step)
        if section.curriculum is None:
            return draws
        return self._pools.take(len(draws), section.curriculum)

    def step_ends(self, tables: Mapping[tuple[str, str], Table], context: Context) -> None:
        """Measure the rows that the scorer of the curriculum has scored in this step."""
        curriculum = self._section(context).curriculum
        table = None if curriculum is None else tables.get((curriculum.by, "scores"))
        if curriculum is None or table is None:
            return
        scores: dict[int, list[float]] = {}
        for row in table.rows:
            score = whole((table.scores or {}).get(row.id))
            index = None if row.is_greedy else self._index_of(row)
            if score is not None and index is not None:
                scores.setdefault(index, []).append(float(score))
        self._pools.observe(scores, ema=curriculum.ema)

    def _index_of(self, row: Row) -> int | None:
        """Index in the source of the row from which this one descends; None: from no row of it."""
        own = [name for name in row.trail if born_at(name) == self._node]
        root = max(own, key=lambda name: len(row.trail[name]), default=None)
        return None if root is None else int(root.rpartition(".")[2])

    def _new_pools(self) -> DifficultyPools:
        return DifficultyPools(rows=len(self._source), seed=self._cursor.seed)

    def phase_starts(self, phase: PhasePlan, updates: Mapping[str, int], context: Context) -> None:
        """Start a new pass if the epochs of the phase are over this dataset."""
        del updates, context
        if phase.epochs_of == self._node and self._cursor.position:
            self._cursor.drawn = (self._cursor.epoch + 1) * self._cursor.rows

    def steps_for_epochs(self, epochs: float, context: Context) -> int:
        section = self._section(context)
        self._follow_changes(section)
        return steps_for(
            epochs=int(epochs), rows=len(self._source), rows_per_step=section.rows_per_step
        )

    def _probe_rows(self, section: DatasetNode) -> list[Row]:
        """The same rows for every evaluation: the first `rows_per_step` of the first pass."""
        fixed = DataCursor(rows=len(self._source), seed=self._cursor.seed, shuffle=section.shuffle)
        count = min(section.rows_per_step or len(self._source), len(self._source))
        return [self._row(draw) for draw in fixed.take(count)]

    def _row(self, draw: Draw) -> Row:
        columns = self._source.row(draw.index)
        return root_row(self._node, f"{draw.epoch}.{draw.index}", columns)

    def _children(self, row: Row, column: str) -> list[Row]:
        parts = unfolded(row.columns, column, node=self._node)
        return [child_row(self._node, row, k, columns) for k, columns in enumerate(parts)]

    def _open(self, section: DatasetNode) -> Source:
        self._mark = mark_of(section.source, self._root)
        source = open_source(section, node_id=self._node, root=self._root)
        if source.nulls:
            told = ", ".join(f"`{name}`" for name in source.nulls)
            message = (
                f"{self._node}: keys that are null in {told} are left out of prompts and targets, "
                "because an Arrow file gives each row the keys of all rows"
            )
            self._alerts.append(("data.nulls", message))
        return source

    def _follow_changes(self, section: DatasetNode) -> None:
        """Open the source again if a phase has `set` its parameters; the number of passes is
        kept."""
        if section.source != self._opened_as:
            self._source, self._opened_as = self._open(section), section.source
            self._cursor = self._cursor.resized(len(self._source))
            self._pools = self._new_pools()

    def remember(self) -> Any:
        pools = self._pools
        of_cursor = (self._source, self._opened_as, self._cursor, self._cursor.drawn)
        return of_cursor, (pools, pools.turn, pools.means)

    def recall(self, memory: Any) -> None:
        of_cursor, of_pools = memory
        self._source, self._opened_as, self._cursor, self._cursor.drawn = of_cursor
        self._pools, self._pools.turn, self._pools.means = of_pools

    def state(self) -> dict[str, Any]:
        changed = None if self._opened_as == self._as_written.source else self._opened_as
        source = None if changed is None else changed.model_dump(mode="json", by_alias=True)
        own = {"source": source, "mark": self._mark, "pools": self._pools.state()}
        return {**self._cursor.state(), **own}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue in the source that was open, whose parameters may differ from the spec's."""
        if state["source"] is not None:
            section = DatasetNode.model_validate(
                {**self._as_written.model_dump(by_alias=True), "source": state["source"]}
            )
            self._follow_changes(section)
        self._cursor.load(state)
        self._pools = self._new_pools()
        if state.get("pools") is not None:
            self._pools.load(state["pools"])
        known = state.get("mark")
        if known is not None and known != self._mark:
            path = getattr(self._opened_as, "path", "")
            message = (
                f"{self._node}: {path} has changed since the checkpoint: the run continues with "
                "other rows; restore the file, or start a new run"
            )
            self._alerts.append(("data.changed", message))
