"""What a stage is asked: the tables that its edges deliver, at the moment at which it runs.

tables: (node, port) ──edges──> Call ──role──> Outcome ──> tables
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from coloop.batch import Unit
from coloop.plan.types import Stage
from coloop.roles.protocol import Call, Context, Input, Outcome, Role, Tick
from coloop.spec.graph import Edge
from coloop.tables import Table

Tables = dict[tuple[str, str], Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is the same for all stages of one run of a list."""

    step: int
    phase: str
    context: Context
    """The loop with the values of this moment."""
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
    items: dict[tuple[str, str], tuple[Unit, ...]] = field(default_factory=dict)
    """What credit stages prepared for the update, by (node, port)."""
    delivered: set[str] = field(default_factory=set)
    """Keys of the edges that have brought these tables to their reader."""

    def take(self, stage: Stage, outcome: Outcome) -> None:
        """Keep what a stage gave."""
        for port, table in outcome.outputs.items():
            self.tables[stage.node, port] = table
        for port, items in outcome.items.items():
            self.items[stage.node, port] = items


class Calls:
    """Makes calls for the roles of one loop."""

    def __init__(
        self,
        edges: Mapping[str, Edge],
        roles: Mapping[str, Role],
        group_roles: Mapping[str, Role],
        delivered: Callable[[str, int], None],
    ) -> None:
        """
        Args:
            edges: by key, as the spec has them.
            roles: by node.
            group_roles: by weights group, for learning and sync.
            delivered: told what an edge brings to its reader, once for all stages that read it.
        """
        self._edges = edges
        self._places = {key: place for place, key in enumerate(edges)}
        self._roles = roles
        self._group_roles = group_roles
        self._delivered = delivered

    def edge(self, key: str) -> Edge:
        return self._edges[key]

    def only_source(self, stage: Stage, situation: Situation) -> tuple[str, str] | None:
        """The (node, port) from which everything comes that a stage reads; None of several."""
        sources = [self._edges[key].source for key in stage.edges if key not in situation.without]
        return (sources[0].node, sources[0].port) if len(sources) == 1 else None

    def role(self, stage: Stage) -> tuple[str, Role]:
        """Who does a stage, and the name of what it remembers."""
        if stage.verb in ("learn", "sync"):
            return f"weights:{stage.node}", self._group_roles[stage.node]
        return stage.node, self._roles[stage.node]

    def of(self, stage: Stage, situation: Situation, unrolled: Unrolled, tick: Tick) -> Call:
        """What a stage is asked where these tables are there."""
        current = situation.context.spec.edges  # with the weights of this moment, never reordered
        inputs: dict[tuple[str, str], list[Input]] = {}
        for key in stage.edges:
            if key in situation.without:
                continue
            edge = self._edges[key]
            table = unrolled.tables.get((edge.source.node, edge.source.port))
            if table is not None:
                if key not in unrolled.delivered:
                    unrolled.delivered.add(key)
                    self._delivered(key, len(table.rows))
                given = Input(edge=current[self._places[key]], table=table)
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
            context=situation.context,
            tick=tick,
        )
