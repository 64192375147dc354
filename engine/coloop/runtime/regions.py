"""The stages of one step as a tree of regions, each of which says what may start now.

    step ─┬─ stage                 once
          ├─ slice of a filter     its stages again and again, until the filter has enough
          └─ stage

A region knows stages and tables; it knows nothing of lanes, phases, algorithms or machines. What it
gives does not depend on the order in which its stages end: slices that have stages in common come
one after another, and everything else is put together by name.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coloop.plan.types import Refill, Stage
from coloop.roles.filter import FilterRole
from coloop.roles.protocol import Outcome, Role
from coloop.runtime.calls import Calls, Situation, Tables, Unrolled
from coloop.spec.lineage.inputs import PAIRS_INPUTS, ROW_INPUTS
from coloop.tables.table import concat_tables

ROW_PORTS = frozenset().union(*ROW_INPUTS.values(), *PAIRS_INPUTS.values())
"""Inputs whose rows a node works on."""

Notice = tuple[str, str, str]
"""(node, code, message) of what a person should look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One stage that may start."""

    stage: Stage
    situation: Situation
    tables: Unrolled
    """What it reads from and gives to."""
    place: int
    """Of its unit in the step's order."""

    @property
    def key(self) -> tuple[str, int]:
        """Its name in the step: the stage, and how often it has run."""
        return self.stage.name, self.situation.turn


class StepRegion:
    """The stages of one step, or of one list that runs for a probe."""

    def __init__(
        self,
        stages: Sequence[Stage],
        refills: Sequence[Refill],
        situation: Situation,
        unrolled: Unrolled,
        *,
        calls: Calls,
        roles: Mapping[str, Role],
    ) -> None:
        self.unrolled = unrolled
        self._notices: list[Notice] = []
        names = {stage.name for stage in stages}
        begun = _Begun(shared=frozenset(name for refill in refills for name in refill.shared))
        by_name = {stage.name: stage for stage in stages}
        starts = {refill.first_pass[0]: refill for refill in refills}
        inside = {name for refill in refills for name in refill.first_pass}
        self._units: list[_Alone | _Slice] = []
        for stage in stages:
            refill = starts.get(stage.name)
            place = len(self._units)
            if refill is not None:
                filter_role = roles[refill.filter]
                assert isinstance(filter_role, FilterRole)
                self._units.append(
                    _Slice(
                        refill,
                        [by_name[name] for name in refill.stages],
                        situation,
                        place,
                        unrolled=unrolled,
                        begun=begun,
                        role=filter_role,
                        calls=calls,
                        notices=self._notices,
                    )
                )
            elif stage.name not in inside:
                self._units.append(_Alone(stage, situation, place, unrolled, begun))
        self._before = [_before(unit, self._units, names) for unit in self._units]
        self._order = {stage.node: place for place, stage in reversed([*enumerate(stages)])}

    def ready(self) -> list[Task]:
        """What may start, in the step's order."""
        done = {name for unit in self._units if unit.is_done for name in unit.names}
        return [
            task
            for unit, before in zip(self._units, self._before, strict=True)
            if not unit.is_done and before <= done
            for task in unit.ready()
        ]

    def readers(self, task: Task) -> list[Task]:
        """What could start if a task at work had ended, and reads the same tables."""
        giver = self._units[task.place]
        if isinstance(giver, _Slice):
            return giver.readers(task)
        done = {name for unit in self._units if unit.is_done for name in unit.names}
        return [
            reader
            for unit, before in zip(self._units, self._before, strict=True)
            if isinstance(unit, _Alone) and before - done == giver.names
            for reader in unit.ready()
        ]

    def started(self, task: Task) -> None:
        self._units[task.place].started(task)

    def finished(self, task: Task, outcome: Outcome) -> None:
        """Keep what a task gave."""
        self._units[task.place].finished(task, outcome)
        if self.is_done:
            tables = self.unrolled.tables
            order = sorted(tables, key=lambda key: self._order.get(key[0], -1))
            self.unrolled.tables = {key: tables[key] for key in order}

    def put_back(self, task: Task) -> None:
        """A task that was started has done nothing."""
        self._units[task.place].put_back(task)

    def open_stages(self) -> Iterable[Stage]:
        """Stages that have not ended for good."""
        return (stage for unit in self._units if not unit.is_done for stage in unit.stages)

    def take_notices(self) -> list[Notice]:
        """What came up since this was asked last."""
        notices, self._notices[:] = list(self._notices), []
        return notices

    @property
    def is_done(self) -> bool:
        return all(unit.is_done for unit in self._units)


class _Alone:
    """A stage that runs once."""

    def __init__(
        self, stage: Stage, situation: Situation, place: int, unrolled: Unrolled, begun: "_Begun"
    ) -> None:
        self.stages = (stage,)
        self.names = frozenset({stage.name})
        self.waits = frozenset(stage.after)
        self.is_done = False
        self._begun = begun
        self._task: Task | None = Task(
            stage=stage, situation=situation, tables=unrolled, place=place
        )

    def ready(self) -> list[Task]:
        return [self._task] if self._task is not None else []

    def started(self, task: Task) -> None:
        del task
        self._task = None

    def finished(self, task: Task, outcome: Outcome) -> None:
        task.tables.take(task.stage, outcome)
        self._begun.ran(task.stage, task.tables.tables)
        self.is_done = True

    def put_back(self, task: Task) -> None:
        self._task = task


class _Slice:
    """Stages that are repeated until their filter has enough; what each pass gives is added to the
    tables of each port."""

    def __init__(
        self,
        refill: Refill,
        stages: Sequence[Stage],
        situation: Situation,
        place: int,
        *,
        unrolled: Unrolled,
        begun: "_Begun",
        role: FilterRole,
        calls: Calls,
        notices: list[Notice],
    ) -> None:
        self.stages = tuple(stages)
        self.names = frozenset(refill.first_pass)
        self.members = frozenset(refill.stages)
        self.waits = (
            frozenset(name for stage in stages for name in stage.after) | set(refill.shared)
        ) - self.names
        self.is_done = False
        self._refill = refill
        self._situation = situation
        self._place = place
        self._unrolled = unrolled
        self._begun = begun
        self._role = role
        self._calls = calls
        self._notices = notices
        self._pass: _Pass | None = None
        self._turn = 0
        self._first_pass = 0
        self._seen: Tables = {}
        self._outside: Tables = {}

    def ready(self) -> list[Task]:
        if self._pass is None:
            nodes = {stage.node for stage in self.stages}
            self._seen = {**self._unrolled.tables, **self._begun.tables_of(self._refill.shared)}
            self._outside = {key: t for key, t in self._seen.items() if key[0] not in nodes}
            self._pass = self._next_pass()
        return self._pass.ready()

    def readers(self, task: Task) -> list[Task]:
        """What could start in this pass if a task at work had ended."""
        assert self._pass is not None
        return self._pass.ready({task.stage.name})

    def started(self, task: Task) -> None:
        assert self._pass is not None
        self._pass.waiting.remove(task.stage)

    def put_back(self, task: Task) -> None:
        assert self._pass is not None
        self._pass.waiting.append(task.stage)

    def finished(self, task: Task, outcome: Outcome) -> None:
        assert self._pass is not None
        task.tables.take(task.stage, outcome)
        self._begun.ran(task.stage, task.tables.tables)
        self._pass.done.add(task.stage.name)
        if len(self._pass.done) == len(self._pass.stages):
            self._pass_ends(self._pass)

    def _pass_ends(self, ended: "_Pass") -> None:
        unrolled, fresh, context = self._unrolled, ended.tables, self._situation.context
        unrolled.delivered |= fresh.delivered
        if self._turn == 1:
            self._first_pass = _input_rows(self._refill, self._entries, fresh)
        _add(unrolled.tables, fresh.tables, {stage.node for stage in ended.stages})
        if self._role.has_enough(unrolled.tables, self._first_pass, context):
            self._close()
        elif self._turn == self._refill.max_rounds:
            self._close()
            message = (
                f"{self._refill.filter}: not enough rows after {self._refill.max_rounds} rounds; "
                "the step goes on with what there is"
            )
            self._notices.append((self._refill.filter, "filter.not_filled", message))
        else:
            self._pass = self._next_pass()

    def _close(self) -> None:
        context = self._situation.context
        self._role.cut_surplus(self._unrolled.tables, self._first_pass, context)
        self.is_done = True

    def _next_pass(self) -> "_Pass":
        self._turn += 1
        refill, turn = self._refill, self._turn
        given = dict(self._seen if turn == 1 else self._outside)
        if turn > 1 and refill.only_lacking:
            _keep_lacking(refill, self._entries, given, self._unrolled)
        stages = [s for s in self.stages if turn > 1 or s.name in refill.first_pass]
        return _Pass(
            stages=stages,
            waiting=list(stages),
            situations={stage.name: self._situation_of(stage) for stage in stages},
            tables=Unrolled(tables=given),
            place=self._place,
        )

    def _situation_of(self, stage: Stage) -> Situation:
        """The situation of a stage in this pass: draws and places of their own wherever it has run
        before in this step, be it for another slice."""
        number = self._begun.runs.get(stage.name, 0) + 1
        salt = self._situation.salt
        return replace(
            self._situation,
            salt=f"{salt}refill-{number}" if number > 1 else salt,
            turn=number,
            without=frozenset(self._refill.once) if self._turn > 1 else frozenset(),
        )

    @property
    def _entries(self) -> list[tuple[str, str]]:
        """Where the rows come from on which the slice's sources work, as (node, port); what they
        learn from, call or are scored by is no input of the slice."""
        sources = self._refill.sources
        edges = [self._calls.edge(key) for s in self.stages if s.node in sources for key in s.edges]
        return [(e.source.node, e.source.port) for e in edges if e.target.port in ROW_PORTS]


@dataclass(slots=True, kw_only=True)
class _Pass:
    """One pass of a slice."""

    stages: list[Stage]
    waiting: list[Stage]
    situations: dict[str, Situation]
    tables: Unrolled
    place: int
    done: set[str] = field(default_factory=set)

    def ready(self, lacking: Collection[str] = ()) -> list[Task]:
        """What may start; or what could, if only these had ended."""
        names = {stage.name for stage in self.stages}
        return [
            Task(
                stage=stage,
                situation=self.situations[stage.name],
                tables=self.tables,
                place=self.place,
            )
            for stage in self.stages
            if stage in self.waiting and names.intersection(stage.after) - self.done == {*lacking}
        ]


@dataclass(slots=True)
class _Begun:
    """What has run so far in a step."""

    shared: frozenset[str]
    """Stages with which several slices begin."""
    runs: dict[str, int] = field(default_factory=dict)
    """How often, by stage."""
    first: dict[str, Tables] = field(default_factory=dict)
    """What a shared stage gave when it ran for all of them."""

    def ran(self, stage: Stage, tables: Tables) -> None:
        """A stage has run, and its tables are among these."""
        if stage.name in self.shared and stage.name not in self.runs:
            own = {key: table for key, table in tables.items() if key[0] == stage.node}
            self.first[stage.name] = own
        self.runs[stage.name] = self.runs.get(stage.name, 0) + 1

    def tables_of(self, names: Sequence[str]) -> Tables:
        """What these shared stages gave at first."""
        return {key: table for name in names for key, table in self.first[name].items()}


def _before(
    unit: "_Alone | _Slice", units: Sequence["_Alone | _Slice"], names: Collection[str]
) -> frozenset[str]:
    """Names of the stages that must have ended before a unit starts. Of slices that have stages in
    common the first in the step's order comes first."""
    before = set(unit.waits & frozenset(names))
    if isinstance(unit, _Slice):
        for other in units[: units.index(unit)]:
            if isinstance(other, _Slice) and other.members & unit.members:
                before |= other.names
    return frozenset(before)


def _add(tables: Tables, fresh: Tables, nodes: Collection[str]) -> None:
    """Put what a pass gave at the ports of these nodes behind what is there."""
    for key, table in fresh.items():
        if key[0] in nodes:
            known = tables.get(key)
            tables[key] = concat_tables([known, table]) if known else table


def _input_rows(refill: Refill, entries: Sequence[tuple[str, str]], unrolled: Unrolled) -> int:
    """Rows at the input of the slice's sources; of datasets and buffers, what they gave."""
    given = [unrolled.tables[key] for key in entries if key in unrolled.tables]
    if not given:
        by_source = {
            node: table
            for (node, port), table in reversed(unrolled.tables.items())
            if node in refill.sources
        }
        given = list(by_source.values())
    return sum(len(table.rows) for table in given)


def _keep_lacking(
    refill: Refill, entries: Sequence[tuple[str, str]], given: Tables, unrolled: Unrolled
) -> None:
    """Only rows at the source's input from which nothing has been kept yet go round again; a greedy
    extra is not what is waited for."""
    kept = {
        ancestor
        for (node, _), table in unrolled.tables.items()
        if node == refill.filter
        for row in table.rows
        if not row.is_greedy
        for ancestor in row.trail
    }
    for key in entries:
        if key in given:
            rows = given[key].rows
            given[key] = given[key].restricted_to(row.id for row in rows if row.id not in kept)
