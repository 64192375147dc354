"""Builds the call of a stage from the tables that its edges deliver.

tables: (node, port) ──edges──> Call ──role──> Outcome ──> tables
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from coloop.algorithms.batch import Unit
from coloop.data.tables import Row, Table
from coloop.data.tables.table import concat_tables
from coloop.errors import OutOfMemory, StageFailed
from coloop.plan.types import Stage
from coloop.runtime.roles import CREDIT
from coloop.runtime.roles.protocol import Call, Context, Outcome, Role, Tick
from coloop.spec.graph import Edge
from coloop.spec.lineage.walk import Take
from coloop.workers.shortage import is_out_of_memory

Tables = dict[tuple[str, str], Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """Shared by all stages in one pass over a list of stages."""

    step: int
    phase: str
    context: Context
    """The loop with the values of this step."""
    live: frozenset[tuple[str, str]] = frozenset()
    """Live (node, port)."""
    salt: str = ""
    turn: int = 1
    """Number of this run of the stage in the step, from 1."""
    round: int | None = None
    """Number of the round of a region; None outside of regions."""
    without: frozenset[str] = frozenset()
    """Keys of edges that deliver nothing in this pass of a refill or round."""
    is_probe: bool = False
    is_line: bool = False
    """Each row is continued once."""
    greedy: frozenset[str] = frozenset()
    """Writers that a probe sets to greedy."""
    samples: Mapping[str, int] = field(default_factory=dict)
    """Completions per prompt that a probe sets."""
    temperatures: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Unrolled:
    tables: Tables = field(default_factory=dict)
    """By (node, port); of all passes and rounds."""
    taken: dict[Take, Tables] = field(default_factory=lambda: {"last": {}, "ends": {}})
    """What edges with `take: last` or `take: ends` get from the tables of all rounds."""
    parts: dict[tuple[str, str], dict[str, Table]] = field(default_factory=dict)
    """Tables of this pass, by (node, port) and stage: several stages may run one node."""
    brought: dict[str, Table] = field(default_factory=dict)
    """By edge, tables that come into this round from outside and from the round before."""
    past: list[Mapping[str, Row]] = field(default_factory=list)
    """For each finished round, the rows that continued, by id."""
    is_round: bool = False
    """Whether these are the tables of one round."""
    items: dict[tuple[str, str], tuple[Unit, ...]] = field(default_factory=dict)
    """Prepared by credit stages for the update, by (node, port)."""
    delivered: set[str] = field(default_factory=set)
    """Keys of edges that have delivered these tables."""
    foreseen: Tables = field(default_factory=dict)
    """By (node, port), outputs of nodes before they learned, for evaluations."""

    def take(self, stage: Stage, outcome: Outcome) -> None:
        if stage.foresees:
            self.foreseen |= {(stage.node, port): table for port, table in outcome.outputs.items()}
            return
        own = {(stage.node, port): table for port, table in outcome.outputs.items()}
        for key, table in {**own, **outcome.beside}.items():
            given = table.handed_on_by(key[0]) if self.is_round else table
            parts = self.parts.setdefault(key, {})
            parts[stage.name] = given
            several = [parts[name] for name in sorted(parts)]
            self.tables[key] = concat_tables(several) if several[1:] else given
        for port, items in outcome.items.items():
            self.items[stage.node, port] = items

    def along(self, edge: Edge, take: Take | None) -> Table | None:
        source = (edge.source.node, edge.source.port)
        if edge.key in self.brought:
            return self.brought[edge.key]
        taken = self.taken.get(take, {}) if take is not None else {}
        return taken.get(source, self.tables.get(source))

    def leave_out(self, edge: Edge, ids: Collection[str]) -> None:
        """Remove rows by id from the tables that an edge reads."""

        def rest(table: Table) -> Table:
            return table.restricted_to(row.id for row in table.rows if row.id not in ids)

        source = (edge.source.node, edge.source.port)
        if edge.key in self.brought:
            self.brought[edge.key] = rest(self.brought[edge.key])
        for tables in (self.tables, *self.taken.values()):
            if source in tables:
                tables[source] = rest(tables[source])

    def without(self, nodes: Collection[str]) -> "Unrolled":
        """A copy for a pass, without the tables of these nodes."""

        def others(tables: Tables) -> Tables:
            return {key: table for key, table in tables.items() if key[0] not in nodes}

        return Unrolled(
            tables=others(self.tables),
            taken={take: others(tables) for take, tables in self.taken.items()},
            brought=dict(self.brought),
            past=[*self.past],
            is_round=self.is_round,
        )


@dataclass(eq=False)
class Calls:
    edges: Mapping[str, Edge]
    """By key, as the spec has them."""
    roles: Mapping[str, Role]
    """By node, and those of credit."""
    group_roles: Mapping[str, Role]
    """By weights group, for learning and sync."""
    delivered: Callable[[str, int], None]
    """Called with an edge's key and number of rows, once even if several stages read it."""

    def __post_init__(self) -> None:
        self._indices = {key: index for index, key in enumerate(self.edges)}

    def only_source(
        self, stage: Stage, step_context: StepContext, unrolled: Unrolled
    ) -> tuple[str, str] | None:
        """The (node, port) that a stage reads; None unless exactly one edge delivers to it."""
        keys = self._delivering(stage, step_context, unrolled)
        source = self.edges[keys[0]].source if len(keys) == 1 else None
        return None if source is None else (source.node, source.port)

    def _delivering(self, stage: Stage, step_context: StepContext, unrolled: Unrolled) -> list[str]:
        """Keys of the edges that deliver to a stage, those that close a round after the others."""
        closing = [
            key
            for key in unrolled.brought
            if self.edges[key].rounds and self.edges[key].target.node == stage.node
        ]
        return [key for key in (*stage.edges, *closing) if key not in step_context.without]

    def role(self, stage: Stage) -> tuple[str, Role]:
        """The role that runs a stage, and the name of its memory."""
        if stage.verb in ("learn", "sync"):
            return f"weights:{stage.node}", self.group_roles[stage.node]
        name = f"{CREDIT}{stage.node}" if stage.verb == "credit" else stage.node
        return name, self.roles[name]

    def of(self, stage: Stage, step_context: StepContext, unrolled: Unrolled, tick: Tick) -> Call:
        current = step_context.context.spec.edges  # with the edge weights of this step, same order
        inputs: dict[tuple[str, str], dict[Edge, Table]] = {}
        for key in self._delivering(stage, step_context, unrolled):
            edge = self.edges[key]
            table = unrolled.along(edge, step_context.context.lineage.take(edge))
            if table is not None:
                if key not in unrolled.delivered:
                    unrolled.delivered.add(key)
                    self.delivered(key, len(table.rows))
                port = inputs.setdefault((edge.target.node, edge.target.port), {})
                port[current[self._indices[key]]] = table
        nodes = set(stage.members) or {stage.node}
        return Call(
            stage=stage.name,
            verb=stage.verb,
            step=step_context.step,
            phase=step_context.phase,
            inputs={port: own for (node, port), own in inputs.items() if node == stage.node},
            member_inputs={key: own for key, own in inputs.items() if key[0] in nodes},
            live=frozenset((n, p) for n, p in step_context.live if n in nodes),
            own=unrolled.tables.get((stage.node, "rollouts")),
            items={key: items for key, items in unrolled.items.items() if key[0] in nodes},
            salt=step_context.salt,
            turn=step_context.turn,
            past=tuple(unrolled.past),
            greedy=stage.node in step_context.greedy,
            is_line=step_context.is_line,
            samples=step_context.samples.get(stage.node),
            temperature=step_context.temperatures.get(stage.node),
            is_probe=step_context.is_probe or stage.foresees,
            callees={name: self.roles[name] for name in stage.calls},
            context=step_context.context,
            tick=tick,
        )


LOWER = {
    "generate": "lower `rollout.max_num_seqs`, `rollout.max_new_tokens` or the rows of the step",
    "learn": "lower `training.micro_batch` or `training.loss_chunk`, or set "
    "`training.gradient_checkpointing: true`",
    "score": "lower the rows of the step or `rollout.max_new_tokens`",
}


def stage_failure(error: BaseException, stage: Stage | None, step: int) -> StageFailed:
    """A `StageFailed` for any exception in a stage, with its name, node and step; `OutOfMemory`,
    with a hint, if memory ran out."""
    where = f"{stage.name} in step {step}" if stage is not None else f"step {step}"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    node, name = (stage.node, stage.name) if stage is not None else (None, None)
    if not is_out_of_memory(error):
        return StageFailed(f"{where} failed: {what}", node, name, step)
    hint = LOWER.get(stage.verb if stage is not None else "")
    return OutOfMemory(f"{where} ran out of memory: {what}", node, name, step, hint)
