"""Rows that outlive a step: `read` gives some of them as new rows, `write` stores those of the
step.

    write ──> entries (iterations of at most `capacity` rows) ──> read

Rows that are read have no parents, like those of a dataset; they keep columns, scores, tokens,
writer, version and group. A row that came from the buffer is not stored again, unless `key` lets it
replace the old one.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Table
from coloop.data.tables.row import born_at, merge_columns, root_row
from coloop.errors import DataError
from coloop.plan.types import PhasePlan
from coloop.runtime.roles.credit.credit_rows import problem_of
from coloop.runtime.roles.protocol import Call, Context, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import deliver
from coloop.runtime.roles.rows.kept import Entry, Kept
from coloop.spec.algorithm import compares_groups
from coloop.spec.nodes import BufferNode

ROW_PORTS = ("rows", "rollouts", "pairs")
PLAIN = ("serial", "iteration", "written", "order", "passes", "seeded")
"""Fields that a checkpoint stores unchanged."""


@dataclass(slots=True, kw_only=True)
class _Memory:
    entries: list[Entry]
    serial: int = 0
    iteration: int = 0
    written: int = 0
    """Rows stored since the phase started."""
    order: list[int] | None = None
    """Serials left to serve in this pass; None: passes are not counted, or none has started."""
    passes: int = 0
    seeded: bool = False
    seeds: set[str] = field(default_factory=set)
    """Seed rows stored since the buffer was last cleared, by ids that are the same in each pass."""

    def copy(self) -> "_Memory":
        order = None if self.order is None else list(self.order)
        return replace(self, entries=list(self.entries), order=order, seeds=set(self.seeds))


class BufferRole(NodeRole[BufferNode]):
    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        self._random_seed = context.seed
        self._memory = _Memory(entries=[])
        self._counts_passes = False

    def is_full(self, context: Context) -> bool:
        """Whether `capacity` rows were stored since the phase started."""
        return self._memory.written >= self._section(context).capacity

    def fill_words(self, context: Context) -> str:
        """How full it has become since the phase started."""
        return f"{self._memory.written} of {self._section(context).capacity} rows (`capacity`)"

    def phase_starts(self, phase: PhasePlan, updates: Mapping[str, int], context: Context) -> None:
        """Start an iteration if the phase fills the buffer; count passes if its epochs are over the
        buffer."""
        del updates
        memory = self._memory
        memory.written = 0
        self._counts_passes = phase.epochs_of == self._node
        memory.order = None
        memory.passes = 0
        if self._node in phase.fill:
            memory.iteration += 1
            keep = self._section(context).keep_iterations
            if keep is not None:
                oldest = memory.iteration - keep
                memory.entries = [e for e in memory.entries if e.iteration > oldest]

    def steps_for_epochs(self, epochs: float, context: Context) -> int:
        """Steps for this many passes over all rows; no step spans two passes."""
        per_step = self._section(context).rows_per_step or max(1, len(self._memory.entries))
        steps = 0
        for number in range(int(epochs)):
            served = per_step
            for unit in self._shuffled(number, context):
                if served >= per_step:
                    steps, served = steps + 1, 0
                served += len(unit)
        return steps

    def clear(self) -> None:
        memory = self._memory
        memory.entries, memory.order = [], None
        memory.seeded, memory.seeds = False, set()

    def run(self, call: Call) -> Outcome:
        return self._read(call) if call.verb == "read" else self._write(call)

    # --- read

    def _read(self, call: Call) -> Outcome:
        self._seed(call)
        drawn = self._draw(call)
        if not drawn:
            return Outcome(outputs={})
        outputs: dict[str, Table] = {}
        rows = {entry.serial: self._given(entry, call) for entry in drawn}
        for port in ROW_PORTS:
            members = tuple(rows[e.serial] for e in drawn if e.port == port)
            if members:
                outputs[port] = Table(rows=members)
        outputs.setdefault("rows", Table(rows=tuple(rows.values())))
        scored = [entry for entry in drawn if entry.scorer is not None]
        if scored:
            bounds = scored[0].score_range
            outputs["scores"] = Table(
                rows=tuple(rows[entry.serial] for entry in scored),
                scores={rows[entry.serial].id: entry.score for entry in scored},
                scorer=scored[0].scorer,
                score_range=None if bounds is None else (bounds[0], bounds[1]),  # it may be a list
            )
        return Outcome(outputs=outputs, samples=len(drawn))

    def _given(self, entry: Entry, call: Call) -> Row:
        again = f".{call.turn}" if call.turn > 1 else ""
        fresh = root_row(self._node, f"{entry.serial}.{call.step}{again}", entry.row.columns)
        return replace(
            fresh,
            scoped={**entry.row.scoped, **fresh.scoped},
            writer=entry.row.writer,
            version=entry.row.version,
            group=entry.row.group,
            tokens=entry.row.tokens,
        )

    def _draw(self, call: Call) -> list[Entry]:
        entries, section = self._memory.entries, self._section(call.context)
        count = section.rows_per_step or len(entries)
        seed = derive_seed(self._random_seed, self._node, call.salt, call.step, "read")
        chance = random.Random(seed)
        if self._counts_passes:
            return self._next_of_pass(count, call.context)
        if section.balance is not None:
            learners = self._rewarded(call.context)
            in_groups = any(compares_groups(call.context.spec, one) for one in learners)
            rows = self._units(entries, call.context) if in_groups else [[one] for one in entries]
            return self._balanced(rows, count, section.balance.by, chance)
        units = self._units(entries, call.context)
        match section.sample:
            case "newest":
                return _until(reversed(units), count)
            case "oldest":
                return _until(units, count)
            case "uniform":
                return _until(chance.sample(units, len(units)), count)
        return _until(self._by_weight(units, section.weight or "", chance), count)

    def _units(self, entries: Sequence[Entry], context: Context) -> list[list[Entry]]:
        """Units that are drawn and dropped as a whole: groups if the scores are rewards, or else
        rows."""
        if not self._rewarded(context):
            return [[entry] for entry in entries]
        groups: dict[str, list[Entry]] = {}
        for entry in entries:
            groups.setdefault(_group_of(entry), []).append(entry)
        return list(groups.values())

    def _rewarded(self, context: Context) -> set[str]:
        edges = context.spec.graph.edges_out_of(self._node, "scores")
        return {edge.target.node for edge in edges if edge.target.port == "rewards"}

    def _shuffled(self, number: int, context: Context) -> list[list[Entry]]:
        """The units of all rows in the order of a pass."""
        memory = self._memory
        units = self._units(sorted(memory.entries, key=lambda entry: entry.serial), context)
        seed = derive_seed(self._random_seed, self._node, memory.iteration, number)
        random.Random(seed).shuffle(units)
        return units[::-1]

    def _next_of_pass(self, count: int, context: Context) -> list[Entry]:
        memory = self._memory
        by_serial = {entry.serial: entry for entry in memory.entries}
        order = [serial for serial in memory.order or () if serial in by_serial]
        if not order:
            units = self._shuffled(memory.passes, context)
            order = [entry.serial for unit in units for entry in unit][::-1]
            memory.passes += 1
        drawn: list[Entry] = []
        in_groups = bool(self._rewarded(context))

        def is_one(entry: Entry, other: Entry) -> bool:
            return in_groups and _group_of(entry) == _group_of(other)

        while order and (len(drawn) < count or is_one(drawn[-1], by_serial[order[-1]])):
            drawn.append(by_serial[order.pop()])
        memory.order = order
        return drawn

    def _by_weight(
        self, units: list[list[Entry]], column: str, chance: random.Random
    ) -> Iterable[list[Entry]]:
        """Units in weighted random order without replacement, by exponential keys (Efraimidis and
        Spirakis)."""

        def key(unit: list[Entry]) -> float:
            weight = max(self._weight(entry, column) for entry in unit)
            return chance.random() ** (1.0 / weight) if weight > 0 else -chance.random()

        return [
            unit
            for _, unit in sorted(((key(u), u) for u in units), key=itemgetter(0), reverse=True)
        ]

    def _weight(self, entry: Entry, column: str) -> float:
        value = entry.row.columns.get(column)
        if value is None or isinstance(value, float | int):
            return float(value or 0.0)
        raise DataError(
            f"{self._node}: weight: column `{column}` must be a number, found {repr(value)[:80]}",
            self._node,
            "weight",
        )

    def _balanced(
        self, units: Sequence[list[Entry]], count: int, by: str, chance: random.Random
    ) -> list[Entry]:
        """Equally many rows of each class, in whole groups if a learner compares them."""
        classes: dict[Any, list[list[Entry]]] = {}
        for unit in units:
            label = self._class_of(unit, by)
            if label is not None:
                classes.setdefault(label, []).append(unit)
        if not classes:
            return []
        each = max(1, count // len(classes))
        size = min(each, *(sum(map(len, members)) for members in classes.values()))
        return [
            entry
            for members in classes.values()
            for entry in _until(chance.sample(members, min(size, len(members))), size)
        ]

    def _class_of(self, unit: Sequence[Entry], by: str) -> Any:
        labels = list(dict.fromkeys(entry.row.columns.get(by) for entry in unit))
        if len(labels) == 1:
            return labels[0]
        raise DataError(
            f"{self._node}: balance.by: rows of one group are in several classes of `{by}` "
            f"({', '.join(map(str, labels[:3]))}), but a group that is compared must stay "
            "complete; balance by a scorer of the prompts",
            self._node,
            "balance.by",
        )

    def _seed(self, call: Call) -> None:
        tables = call.tables("seed")
        if not tables or self._memory.seeded:
            return
        memory = self._memory
        rows = [row for table in tables for row in table.rows]
        fresh = [row for row in rows if _seed_of(row) not in memory.seeds]
        memory.seeds.update(map(_seed_of, fresh))
        self._take(fresh, "rows", {}, call.context)
        is_full = len(memory.entries) >= self._section(call.context).capacity
        memory.seeded = is_full or len(fresh) < len(rows)

    # --- write

    def _write(self, call: Call) -> Outcome:
        section, memory = self._section(call.context), self._memory
        before = memory.serial
        given = {port: self._rows_at(call, port) for port in ROW_PORTS if call.tables(port)}
        if not given:
            known = self._scored_rows(call).values()
            given = {"rows": tuple(merge_columns(rows[0], rows[1:]) for rows in known)}
        for port, rows in given.items():
            self._take(rows, port, self._scores_of(rows, call), call.context)
        if section.clear is not None and call.step % section.clear.every == 0:
            self.clear()
        return Outcome(
            samples=memory.serial - before,
            metrics={"rows": len(memory.entries), "written": memory.serial - before},
            is_idle=memory.serial == before,
        )

    def _rows_at(self, call: Call, port: str) -> tuple[Row, ...]:
        """The rows of a port with the columns of the scored rows. Tokens are those of the port, as
        a scorer may have another text of the row."""
        known = self._scored_rows(call)
        return tuple(
            replace(merge_columns(row, known.get(row.id, ())), tokens=row.tokens)
            for table in call.tables(port)
            for row in table.rows
        )

    def _scored_rows(self, call: Call) -> dict[str, list[Row]]:
        known: dict[str, list[Row]] = {}
        for table in call.tables("scores"):
            for row in table.rows:
                known.setdefault(row.id, []).append(row)
        return known

    def _scores_of(self, rows: Sequence[Row], call: Call) -> dict[str, dict[str, Any]]:
        """By row id, the score fields of its entry."""
        fields: dict[str, dict[str, Any]] = {}
        for edge, table in call.delivered("scores").items():
            scorer = {"scorer": table.scorer or edge.source.node, "score_range": table.score_range}
            for row_id, score in deliver(call.context, rows, edge, table).items():
                fields.setdefault(row_id, {"score": score, **scorer})
        return fields

    def _take(
        self,
        rows: Sequence[Row],
        port: str,
        scores: Mapping[str, Mapping[str, Any]],
        context: Context,
    ) -> None:
        section, memory = self._section(context), self._memory
        known = {_value(entry.row, section.unique) for entry in memory.entries}
        places = {_value(e.row, section.key): index for index, e in enumerate(memory.entries)}
        for row in rows:
            if born_at(row.id) == self._node and section.key is None:
                continue
            value = _value(row, section.unique)
            if value is not None and value in known:
                continue
            known.add(value)
            entry = Entry(
                serial=memory.serial,
                port=port,
                iteration=memory.iteration,
                row=row.owned(),
                **scores.get(row.id, {}),
            )
            memory.serial += 1
            memory.written += 1
            key = _value(row, section.key)
            if key is not None and key in places:
                memory.entries[places[key]] = entry
                continue
            places[key] = len(memory.entries)
            memory.entries.append(entry)
        self._keep_capacity(context)

    def _keep_capacity(self, context: Context) -> None:
        """Keep the newest `capacity` rows in whole units, per iteration if several are kept."""
        section, memory = self._section(context), self._memory
        iterations: dict[int, list[Entry]] = {}
        for entry in memory.entries:
            bucket = entry.iteration if section.keep_iterations else 0
            iterations.setdefault(bucket, []).append(entry)
        kept: set[int] = set()
        for entries in iterations.values():
            kept.update(entry.serial for entry in self._newest(entries, context))
        memory.entries = [entry for entry in memory.entries if entry.serial in kept]

    def _newest(self, entries: Sequence[Entry], context: Context) -> list[Entry]:
        capacity = self._section(context).capacity
        if len(entries) <= capacity:
            return list(entries)
        newest: list[Entry] = []
        for unit in reversed(self._units(entries, context)):
            if len(newest) + len(unit) > capacity:
                break
            newest.extend(unit)
        if not newest:
            raise DataError(
                f"{self._node}: a group of {len(unit)} rows does not fit into a capacity of "
                f"{capacity}; groups must stay complete, because their scores are rewards; raise "
                "`capacity`",
                self._node,
                "capacity",
            )
        return newest

    # --- resume

    def remember(self) -> _Memory:
        return self._memory.copy()

    def recall(self, memory: _Memory) -> None:
        self._memory = memory

    def state(self) -> dict[str, Any]:
        memory = self._memory
        return {
            **{name: getattr(memory, name) for name in PLAIN},
            "seeds": sorted(memory.seeds),
            "counts_passes": self._counts_passes,
            "entries": Kept(rows={entry.serial: entry for entry in memory.entries}),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._counts_passes = state["counts_passes"]
        self._memory = _Memory(
            entries=list(state["entries"].rows.values()),
            seeds=set(state["seeds"]),
            **{name: state[name] for name in PLAIN},
        )


def _group_of(entry: Entry) -> str:
    return entry.row.group or entry.row.id


def _until(units: Iterable[list[Entry]], count: int) -> list[Entry]:
    drawn: list[Entry] = []
    for unit in units:
        if len(drawn) >= count:
            break
        drawn.extend(unit)
    return drawn


def _value(row: Row, column: str | None) -> str | None:
    """The value of a row's column as JSON text for comparisons; None without a value."""
    value = None if column is None else row.columns.get(column)
    return None if value is None else json.dumps(value, sort_keys=True, default=str)


def _seed_of(row: Row) -> str:
    """The source row of a seed row, by an id that is the same in each pass."""
    root = problem_of(row)
    node, _, key = root.partition(":")
    others = tuple(k for _, k in row.trail[root])
    return f"{node}:{key.partition('.')[2]}:{others}"
