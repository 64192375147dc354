"""Carries out the stages of a step: hands each stage the tables that its edges deliver, keeps what
it gives.

    tables: (node, port) ──edges──> Call ──role──> Outcome ──> tables

It knows stages, tables and roles, and repeats a slice of them where a filter wants a refill. It
knows nothing of phases, algorithms or machines.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coloop.hosts.messages import LearnItem
from coloop.plan.types import Refill, Stage
from coloop.roles.filter import FilterRole
from coloop.roles.protocol import Call, Input, Outcome, Role
from coloop.spec.graph import Edge
from coloop.spec.lineage.inputs import PAIRS_INPUTS, ROW_INPUTS
from coloop.tables import Table
from coloop.tables.table import concat_tables

Tables = dict[tuple[str, str], Table]

ROW_PORTS = frozenset().union(*ROW_INPUTS.values(), *PAIRS_INPUTS.values())
"""Inputs whose rows a node works on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is the same for all stages of one run of a list."""

    step: int
    phase: str
    live: frozenset[tuple[str, str]] = frozenset()
    """Live (node, port)."""
    salt: str = ""
    turn: int = 1
    """How often the stage has run in this step, this time counted."""
    without: frozenset[str] = frozenset()
    """Keys of edges that deliver nothing in this pass of a refill."""
    is_probe: bool = False
    greedy: frozenset[str] = frozenset()
    """Writers that a probe sets to greedy."""
    samples: Mapping[str, int] = field(default_factory=dict)
    """Completions per prompt that a probe sets."""
    temperatures: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Unrolled:
    """What the stages gave."""

    tables: Tables = field(default_factory=dict)
    items: dict[tuple[str, str], tuple[LearnItem, ...]] = field(default_factory=dict)
    """What credit stages prepared for the update, by (node, port)."""
    delivered: set[str] = field(default_factory=set)
    """Keys of the edges that have brought these tables to their reader."""


class Watcher:
    """Told of each stage; the default says nothing."""

    def stage_started(self, stage: Stage, situation: Situation) -> None: ...

    def stage_finished(
        self, stage: Stage, situation: Situation, seconds: float, outcome: Outcome
    ) -> None: ...

    def delivered(self, edge: str, rows: int) -> None:
        """An edge brought its reader a table; told once, however many of its stages read it."""

    def noticed(self, node: str, code: str, message: str) -> None: ...


class Executor:
    """Roles by node, and the groups' own roles for learning and sync."""

    def __init__(
        self,
        edges: Mapping[str, Edge],
        roles: Mapping[str, Role],
        group_roles: Mapping[str, Role],
        watcher: Watcher,
        current_edge: Callable[[Edge], Edge],
    ) -> None:
        """
        Args:
            edges: by key, as the spec has them.
            current_edge: the edge with the weight that it has at this moment.
        """
        self._edges = edges
        self._roles = roles
        self._group_roles = group_roles
        self._watcher = watcher
        self._current_edge = current_edge

    def run(
        self,
        stages: Sequence[Stage],
        situation: Situation,
        refills: Sequence[Refill] = (),
        unrolled: Unrolled | None = None,
    ) -> Unrolled:
        """Run the stages in order on these tables, fresh ones where none are given."""
        unrolled = unrolled if unrolled is not None else Unrolled()
        starts = {refill.first_pass[0]: refill for refill in refills}
        by_name = {stage.name: stage for stage in stages}
        begun = _Begun(shared=frozenset(name for refill in refills for name in refill.shared))
        for stage in stages:
            if stage.name in begun.runs:
                continue
            refill = starts.get(stage.name)
            if refill is not None:
                members = [by_name[name] for name in refill.stages]
                self._refill(refill, members, situation, unrolled, begun)
            else:
                self._one(stage, situation, unrolled)
                begun.ran(stage, unrolled.tables)
        return unrolled

    def _refill(
        self,
        refill: Refill,
        stages: Sequence[Stage],
        situation: Situation,
        unrolled: Unrolled,
        begun: "_Begun",
    ) -> None:
        """Repeat the slice until its filter has enough, adding to the tables of each port."""
        role = self._roles[refill.filter]
        assert isinstance(role, FilterRole)
        entries = self._entries(refill, stages)
        nodes = {stage.node for stage in stages}
        seen = {**unrolled.tables, **begun.tables_of(refill.shared)}
        outside = {key: table for key, table in seen.items() if key[0] not in nodes}
        first_pass = 0
        has_enough = False
        for turn in range(1, refill.max_rounds + 1):
            given = dict(seen if turn == 1 else outside)
            if turn > 1 and refill.only_lacking:
                _keep_lacking(refill, entries, given, unrolled)
            fresh = Unrolled(tables=given)
            running = [s for s in stages if turn > 1 or s.name in refill.first_pass]
            for stage in running:
                self._one(stage, self._pass_of(stage, turn, situation, refill, begun), fresh)
                begun.ran(stage, fresh.tables)
            unrolled.delivered |= fresh.delivered
            if turn == 1:
                first_pass = _input_rows(refill, entries, fresh)
            _add(unrolled.tables, fresh.tables, {stage.node for stage in running})
            has_enough = role.has_enough(unrolled.tables, first_pass)
            if has_enough:
                break
        role.cut_surplus(unrolled.tables, first_pass)
        if not has_enough:
            self._watcher.noticed(
                refill.filter,
                "filter.not_filled",
                f"{refill.filter}: not enough rows after {refill.max_rounds} rounds; "
                "the step goes on with what there is",
            )

    def _pass_of(
        self, stage: Stage, turn: int, situation: Situation, refill: Refill, begun: "_Begun"
    ) -> Situation:
        """The situation of a stage in one pass: draws and places of their own wherever it has run
        before in this step, be it for another slice."""
        number = begun.runs.get(stage.name, 0) + 1
        salt = f"{situation.salt}refill-{number}" if number > 1 else situation.salt
        without = frozenset(refill.once) if turn > 1 else frozenset()
        return replace(situation, salt=salt, turn=number, without=without)

    def _entries(self, refill: Refill, stages: Sequence[Stage]) -> list[tuple[str, str]]:
        """Where the rows come from on which the slice's sources work, as (node, port); what they
        learn from, call or are scored by is no input of the slice."""
        edges = [self._edges[key] for s in stages if s.node in refill.sources for key in s.edges]
        return [(e.source.node, e.source.port) for e in edges if e.target.port in ROW_PORTS]

    def _one(self, stage: Stage, situation: Situation, unrolled: Unrolled) -> None:
        role = (
            self._group_roles[stage.node]
            if stage.verb in ("learn", "sync")
            else self._roles[stage.node]
        )
        call = self._call(stage, situation, unrolled)
        self._watcher.stage_started(stage, situation)
        began = time.monotonic()
        outcome = role.run(call)
        seconds = time.monotonic() - began
        for port, table in outcome.outputs.items():
            unrolled.tables[stage.node, port] = table
        for port, items in outcome.items.items():
            unrolled.items[stage.node, port] = items
        self._watcher.stage_finished(stage, situation, seconds, outcome)

    def _call(self, stage: Stage, situation: Situation, unrolled: Unrolled) -> Call:
        inputs: dict[tuple[str, str], list[Input]] = {}
        for key in stage.edges:
            if key in situation.without:
                continue
            edge = self._edges[key]
            table = unrolled.tables.get((edge.source.node, edge.source.port))
            if table is not None:
                if key not in unrolled.delivered:
                    unrolled.delivered.add(key)
                    self._watcher.delivered(key, len(table.rows))
                given = Input(edge=self._current_edge(edge), table=table)
                inputs.setdefault((edge.target.node, edge.target.port), []).append(given)
        nodes = set(stage.members) or {stage.node}
        return Call(
            stage=stage.name,
            verb=stage.verb,
            step=situation.step,
            phase=situation.phase,
            inputs={port: tuple(v) for (node, port), v in inputs.items() if node == stage.node},
            member_inputs={key: tuple(given) for key, given in inputs.items() if key[0] in nodes},
            live=frozenset((n, p) for n, p in situation.live if n in nodes),
            own=unrolled.tables.get((stage.node, "rollouts")),
            items={key: items for key, items in unrolled.items.items() if key[0] in nodes},
            salt=situation.salt,
            turn=situation.turn,
            greedy=stage.node in situation.greedy,
            samples=situation.samples.get(stage.node),
            temperature=situation.temperatures.get(stage.node),
            is_probe=situation.is_probe,
        )


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
