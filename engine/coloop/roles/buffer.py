"""Rows that outlive a step: `read` gives some of them as new rows, `write` takes what the step
brought.

    write ──> entries (iterations of at most `capacity` rows) ──> read

What is read are rows without parents, as of a dataset; they keep columns, scores, tokens, writer,
version and group. A row that the buffer gave out is not taken back, unless `key` lets it replace
the old one.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coloop.plan.types import PhasePlan
from coloop.roles.protocol import Call, Context, Outcome
from coloop.roles.seeds import derive_seed
from coloop.spec.nodes import BufferNode
from coloop.tables import Row, Score, Table
from coloop.tables.row import born_at, root_row
from coloop.tables.serialize import row_from_json, row_to_json

ROW_PORTS = ("rows", "rollouts", "pairs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One kept row."""

    serial: int
    """Counts the rows that were ever written."""
    port: str
    iteration: int
    row: Row
    score: Score = None
    scorer: str | None = None


@dataclass(slots=True, kw_only=True)
class _Memory:
    entries: list[Entry]
    serial: int = 0
    iteration: int = 0
    written: int = 0
    """Rows taken since the phase started."""
    order: list[int] | None = None
    """Serials still to be served in this pass, where passes are counted."""
    passes: int = 0
    seeded: bool = False

    def copy(self) -> "_Memory":
        order = None if self.order is None else list(self.order)
        return replace(self, entries=list(self.entries), order=order)


class BufferRole:
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        self._node = node
        self._context = context
        self._memory = _Memory(entries=[])
        self._counts_passes = False

    @property
    def _section(self) -> BufferNode:
        section = self._context.spec.nodes[self._node]
        assert isinstance(section, BufferNode)
        return section

    @property
    def is_full(self) -> bool:
        """Whether `capacity` rows were taken since the phase started."""
        return self._memory.written >= self._section.capacity

    def phase_starts(self, phase: PhasePlan, updates: Mapping[str, int]) -> None:
        """A phase that fills the buffer opens an iteration; one that passes over it counts
        passes."""
        del updates
        memory = self._memory
        memory.written = 0
        self._counts_passes = phase.epochs_of == self._node
        memory.order = None
        memory.passes = 0
        if self._node in phase.fill:
            memory.iteration += 1
            keep = self._section.keep_iterations
            if keep is not None:
                oldest = memory.iteration - keep
                memory.entries = [e for e in memory.entries if e.iteration > oldest]

    def steps_for_epochs(self, epochs: float) -> int:
        """Steps that serve every row so often."""
        rows = len(self._memory.entries)
        per_step = self._section.rows_per_step or max(1, rows)
        return -(-int(epochs) * rows // per_step)

    def clear(self) -> None:
        """Let go of every row."""
        self._memory.entries = []
        self._memory.order = None
        self._memory.seeded = False

    def run(self, call: Call) -> Outcome:
        return self._read(call) if call.verb == "read" else self._write(call)

    # --- read
    # ---------------------------------------------------------------------------------------

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
            outputs["scores"] = Table(
                rows=tuple(rows[entry.serial] for entry in scored),
                scores={rows[entry.serial].id: entry.score for entry in scored},
                scorer=scored[0].scorer,
            )
        return Outcome(outputs=outputs, samples=len(drawn))

    def _given(self, entry: Entry, call: Call) -> Row:
        fresh = root_row(self._node, f"{entry.serial}.{self._memory.passes}", entry.row.columns)
        return replace(
            fresh,
            scoped={**entry.row.scoped, **fresh.scoped},
            writer=entry.row.writer,
            version=entry.row.version,
            group=entry.row.group,
            tokens=entry.row.tokens,
        )

    def _draw(self, call: Call) -> list[Entry]:
        entries, section = self._memory.entries, self._section
        count = section.rows_per_step or len(entries)
        chance = random.Random(derive_seed(self._context.seed, self._node, call.step, "read"))
        if self._counts_passes:
            return self._next_of_pass(count)
        if section.balance is not None:
            return self._balanced(entries, count, section.balance.by, chance)
        units = self._units(entries)
        match section.sample:
            case "newest":
                return _until(reversed(units), count)
            case "oldest":
                return _until(units, count)
            case "uniform":
                return _until(chance.sample(units, len(units)), count)
        return _until(self._by_weight(units, chance), count)

    def _units(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """What is drawn in one piece: a whole group where scores feed a learner, else a row."""
        feeds = any(
            edge.target.port == "rewards"
            for edge in self._context.spec.graph.edges_out_of(self._node, "scores")
        )
        if not feeds:
            return [[entry] for entry in entries]
        groups: dict[str, list[Entry]] = {}
        for entry in entries:
            groups.setdefault(entry.row.group or entry.row.id, []).append(entry)
        return list(groups.values())

    def _next_of_pass(self, count: int) -> list[Entry]:
        memory = self._memory
        by_serial = {entry.serial: entry for entry in memory.entries}
        drawn: list[Entry] = []
        while len(drawn) < count and by_serial:
            if not memory.order:
                seed = derive_seed(self._context.seed, self._node, memory.iteration, memory.passes)
                memory.order = sorted(by_serial)
                random.Random(seed).shuffle(memory.order)
                memory.passes += 1
            drawn.append(by_serial[memory.order.pop()])
            if not memory.order:
                break
        return drawn

    def _by_weight(self, units: list[list[Entry]], chance: random.Random) -> Iterable[list[Entry]]:
        """Without replacement, by exponential keys (Efraimidis and Spirakis)."""
        column = self._section.weight or ""

        def key(unit: list[Entry]) -> float:
            weight = max(float(entry.row.columns.get(column) or 0.0) for entry in unit)
            return chance.random() ** (1.0 / weight) if weight > 0 else -chance.random()

        return [unit for _, unit in sorted(((key(u), u) for u in units), key=_first, reverse=True)]

    def _balanced(
        self, entries: Sequence[Entry], count: int, by: str, chance: random.Random
    ) -> list[Entry]:
        classes: dict[Any, list[Entry]] = {}
        for entry in entries:
            classes.setdefault(entry.row.columns.get(by), []).append(entry)
        if not classes:
            return []
        each = max(1, count // len(classes))
        size = min(each, *(len(members) for members in classes.values()))
        return [entry for members in classes.values() for entry in chance.sample(members, size)]

    def _seed(self, call: Call) -> None:
        tables = call.tables("seed")
        if not tables or self._memory.seeded:
            return
        for table in tables:
            self._take(table.rows, "rows", {}, None)
        self._memory.seeded = self.is_full or len(self._memory.entries) >= self._section.capacity

    # --- write
    # --------------------------------------------------------------------------------------

    def _write(self, call: Call) -> Outcome:
        section, memory = self._section, self._memory
        scores: dict[str, Score] = {}
        scorer = None
        for table in call.tables("scores"):
            scores.update(table.scores or {})
            scorer = table.scorer or scorer
        before = memory.serial
        given = False
        for port in ROW_PORTS:
            for table in call.tables(port):
                given = True
                self._take(table.rows, port, scores, scorer)
        if not given:
            for table in call.tables("scores"):
                self._take(table.rows, "rows", scores, scorer)
        if section.clear is not None and call.step % section.clear.every == 0:
            self.clear()
        return Outcome(
            samples=memory.serial - before,
            metrics={"rows": len(memory.entries), "written": memory.serial - before},
            is_idle=memory.serial == before,
        )

    def _take(
        self,
        rows: Sequence[Row],
        port: str,
        scores: Mapping[str, Score],
        scorer: str | None,
    ) -> None:
        section, memory = self._section, self._memory
        known = self._known(section.unique)
        places = self._places(section.key)
        for row in rows:
            if born_at(row.id) == self._node and section.key is None:
                continue
            if section.unique is not None and row.columns.get(section.unique) in known:
                continue
            entry = Entry(
                serial=memory.serial,
                port=port,
                iteration=memory.iteration,
                row=row,
                score=scores.get(row.id),
                scorer=scorer if row.id in scores else None,
            )
            memory.serial += 1
            memory.written += 1
            known.add(row.columns.get(section.unique)) if section.unique else None
            value = row.columns.get(section.key) if section.key else None
            if section.key is not None and value in places:
                memory.entries[places[value]] = entry
                continue
            places[value] = len(memory.entries)
            memory.entries.append(entry)
        self._keep_capacity()

    def _keep_capacity(self) -> None:
        """The newest `capacity` rows, of each iteration where several are kept."""
        section, memory = self._section, self._memory
        bucket: Callable[[Entry], int] = (
            (lambda entry: entry.iteration) if section.keep_iterations else (lambda entry: 0)
        )
        held: dict[int, int] = {}
        kept: list[Entry] = []
        for entry in reversed(memory.entries):
            place = bucket(entry)
            held[place] = held.get(place, 0) + 1
            if held[place] <= section.capacity:
                kept.append(entry)
        memory.entries = kept[::-1]

    def _known(self, column: str | None) -> set[Any]:
        if column is None:
            return set()
        return {entry.row.columns.get(column) for entry in self._memory.entries}

    def _places(self, column: str | None) -> dict[Any, int]:
        if column is None:
            return {}
        return {e.row.columns.get(column): i for i, e in enumerate(self._memory.entries)}

    # --- resume
    # -------------------------------------------------------------------------------------

    def remember(self) -> _Memory:
        return self._memory.copy()

    def recall(self, memory: _Memory) -> None:
        self._memory = memory

    def state(self) -> dict[str, Any]:
        memory = self._memory
        return {
            "serial": memory.serial,
            "iteration": memory.iteration,
            "written": memory.written,
            "order": memory.order,
            "passes": memory.passes,
            "seeded": memory.seeded,
            "counts_passes": self._counts_passes,
            "entries": [
                {
                    "serial": entry.serial,
                    "port": entry.port,
                    "iteration": entry.iteration,
                    "score": entry.score,
                    "scorer": entry.scorer,
                    "row": row_to_json(entry.row),
                }
                for entry in memory.entries
            ],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._counts_passes = state["counts_passes"]
        names = ("serial", "iteration", "written", "order", "passes", "seeded")
        self._memory = _Memory(
            entries=[
                Entry(**{**plain, "row": row_from_json(plain["row"])}) for plain in state["entries"]
            ],
            **{name: state[name] for name in names},
        )


def _until(units: Iterable[list[Entry]], count: int) -> list[Entry]:
    """Whole units until there are `count` entries."""
    drawn: list[Entry] = []
    for unit in units:
        if len(drawn) >= count:
            break
        drawn.extend(unit)
    return drawn


def _first(pair: tuple[float, list[Entry]]) -> float:
    return pair[0]
