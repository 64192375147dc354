"""The facts that every node kind has in one place, and what all nodes have.

A kind is one file of this package: its section (what can be written under `nodes.<id>`) with
`about`, the facts that no setting changes, and methods for what settings decide. Tables by aspect
(`PORTS`, `SCORE_INPUTS`, `KIND_TEXTS`, ...) are collected from these.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from coloop.spec.base import Name, Section, setting
from coloop.spec.lean import record
from coloop.spec.levels import LevelsByPort
from coloop.spec.names import NamesByPort
from coloop.spec.row_counts import Counts
from coloop.spec.training import Join

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


# Ports: what flows along an edge, and what a node kind says of its inputs and outputs.
#
# Inputs have a type, a greatest number of edges (`None`: any), the phase in which the port is
# read, and may teach (a phase's `learn` may name them) or be required. A port of which only some
# settings of its node make use says which (`when`). This module knows nothing of nodes or edges.


class PortType(StrEnum):
    """What flows along an edge."""

    ROWS = "Rows"
    ROLLOUTS = "Rollouts"
    PAIRS = "Pairs"
    SCORES = "Scores"
    LOG_PROBS = "LogProbs"
    VALUES = "Values"
    POLICY = "Policy"
    CHECK = "Check"
    TOOL = "Tool"


PortPhase = Literal["generate", "score", "learn"]
When = Mapping[str, tuple[str | None, ...]]
"""By the path of a setting, its values for which a port is of use; None: it is not set."""
HANDLES = frozenset({PortType.POLICY, PortType.CHECK, PortType.TOOL})
"""Types by which a node calls another inside its own loop; drawn dashed."""


def accepts(target: PortType, source: PortType) -> bool:
    """Whether a port of type `target` takes an edge from one of type `source`."""
    return source == target or (source == PortType.ROLLOUTS and target == PortType.ROWS)


@dataclass(frozen=True, slots=True)
class InPort:
    """One input of a kind."""

    type: PortType
    phase: PortPhase
    help: str
    _: KW_ONLY
    max: int | None = None
    teaching: bool = False
    is_optional: bool = False
    """Of a teaching port: it teaches only where the node's algorithm has an entry for it; elsewhere
    it serves the algorithms of other ports."""
    required: bool | str = False
    """`True`, or the condition in words (then `required_where_used` lists the outputs)."""
    required_where_used: tuple[str, ...] = ()
    of: str | None = None
    when: When = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutPort:
    """One output of a kind."""

    type: PortType
    help: str
    _: KW_ONLY
    when: When = field(default_factory=dict)


def is_of_use(port: InPort | OutPort, node: object) -> bool:
    """Whether the port has an effect with the node's settings."""
    for path, values in port.when.items():
        value: object = node
        for name in path.split("."):
            value = getattr(value, name, None)
        if value not in values:
            return False
    return True


MODEL_PATHS: Final = ("model.architecture", "model.path", "model.run", "model.of", "model.with")
"""Where the weights of a model come from."""


ROLLOUT_PATHS: Final = (
    *("credit", "rollout.turns", "rollout.mask", "rollout.truncated"),
    *("rollout.greedy_extra", "rollout.on_sync"),
)
"""Settings that only matter to a generating node that learns from its own texts."""

ModeName = Literal["online", "offline", "reward_modeling"]


@record
class Stage:
    """One stage of a kind."""

    reads: tuple[str, ...] = ()
    """Inputs that it reads, without handles: these bring no rows."""
    gives: tuple[str, ...] = ()
    calls: bool = False
    """Whether the node calls its handles in it."""


@record
class InMode:
    ports: tuple[str, ...] = ()
    """Inputs that are not offered; an algorithm of a teaching one is not either."""
    outputs: tuple[str, ...] = ()
    """Outputs that are not offered, because their readers are not offered either."""
    fields: tuple[str, ...] = ()
    """Paths of settings that are not offered."""
    begins: Mapping[str, Any] = field(default_factory=dict)
    """Values that replace those of the kind's template; None removes one."""


@record
class NodeKind:
    """Facts of a kind that hold whatever is set at a node."""

    stages: Mapping[str, Stage]
    """By verb, in the order in which they run."""
    inputs: dict[str, InPort]
    outputs: dict[str, OutPort]
    rows: tuple[str, ...] = ()
    """Inputs whose rows it may work on. If one is connected, scores only reach its rows."""
    scores: tuple[str, ...] = ()
    """Inputs that bring scores, log-probs or values; without row inputs their rows are its rows."""
    concat: tuple[str, ...] = ()
    """Inputs that are concatenated, whatever `join` says."""
    is_concat_allowed: bool = True
    """Whether `join: concat` makes sense for inputs without common rows."""
    apart_without: str | None = None
    """If this input has no edge, each table of scores is handled separately."""
    takes_last_round: bool = False
    """Whether it reads only the last of several rounds, unless the edge says otherwise."""
    sifts: bool = False
    """Whether it may drop rows."""
    outlives_step: bool = False
    """Whether it keeps rows for later steps."""
    metrics: tuple[str, ...] = ()
    """Metrics besides those of learners; `search/*` is a prefix."""
    modes: Mapping[ModeName, InMode] = field(default_factory=dict)
    title: str
    group: str
    """Its section of the palette."""
    icon: str
    """Name of a lucide icon."""
    help: str
    template: dict[str, Any]
    """A node to start from."""
    begins_with: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """By path of a setting and by its value: settings that an editor starts with once the setting
    has that value, if they are not set yet."""
    synonyms: str
    """Other words under which it is looked for, with commas between them."""
    summary: tuple[str, ...]
    """Paths of the values that are shown beside the kind, most important first; `*` is any key."""
    shown: Mapping[str, tuple[str, ...]]
    """At most three further values on the card, most important first: a label of one to three
    words, and paths of the value: the first that is set counts, else the first with a default."""
    runs: bool = True
    """Whether `run` can carry it out; else it can be drawn, checked and planned."""

    @property
    def first_rows(self) -> str:
        """The output whose rows are counted."""
        first = next(iter(self.outputs), "")
        return first if first in ("rollouts", "pairs") else "rows"

    @property
    def teaching(self) -> tuple[str, ...]:
        """The ports that a phase's `learn` may name."""
        return tuple(name for name, port in self.inputs.items() if port.teaching)


class BaseNode(Section):
    """What every node has."""

    note: str | None = setting(None, widget="text", section="note")
    """A note for readers; it has no effect on the run."""
    pool: Name | None = setting(
        None,
        level="advanced",
        widget="select",
        choices="pools",
        section="placement",
        short="pool {}",
    )
    """Pool of processes or GPUs in which it runs; null: `main`."""
    join: Join = setting("align", level="advanced")
    """How its inputs are joined into the rows it works on."""

    about: ClassVar[NodeKind]

    @property
    def row_inputs(self) -> tuple[str, ...]:
        """Names of the inputs whose rows the node works on."""
        return self.about.rows

    @property
    def sides(self) -> tuple[str, ...]:
        """Two inputs whose rows are compared, whatever `join` says."""
        return ()

    @property
    def writes_texts(self) -> bool:
        return False

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """Levels of each output, from those of its inputs: of new rows, or of the same rows passed
        on. By default every output passes on the rows of the join."""
        for port in self._row_outputs():
            yield port, lineage.input_levels(name)

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        for port in self._row_outputs():
            yield port, columns.inputs(name)

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        """Rows of each level that it gives, new or passed on, with mean lengths of their texts.
        `rows`: those that it works on."""
        return rows

    def _row_outputs(self) -> tuple[str, ...]:
        return tuple(p for p, output in self.about.outputs.items() if output.type not in HANDLES)
