"""The schedule as a flat list of phases, and the order in which they run.

Groups are expanded: their `set` is overridden by the phase's own, and their `do` applies at the
start of each round. A schedule without phases is one phase, `main`, with every connected teaching
port live.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Severity
from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record
from coloop.spec.schedule import EpochsOf, Phase, PhaseActions, PhaseGroup

WHOLE_RUN = "main"
WHOLE_PATH = "schedule"


@record
class FlatPhase:
    section: Phase
    path: str
    """Its path in the spec, e.g. `schedule.phases.1`; `schedule` for one without phases."""
    index: int
    rounds: int
    """How often the groups around it repeat it."""
    overrides: Mapping[str, Any]
    """Paths and values from its `set` and those of the groups around it."""
    live: frozenset[tuple[str, str]]
    """Live teaching ports (node, port) that are connected."""
    fired: int | None = None
    """Index of the trigger whose `set` is in force; None: none has fired."""
    is_sure: bool = True
    """False if another trigger may set the same value."""

    @property
    def name(self) -> str:
        return self.section.name

    @property
    def is_whole(self) -> bool:
        return self.path == WHOLE_PATH

    @property
    def fills(self) -> tuple[str, ...]:
        """Buffers that it writes, from `fill` and `until`."""
        fill = as_tuple(self.section.fill)
        return tuple(dict.fromkeys((*fill, *buffers_until_full(self.section))))

    @property
    def severity(self) -> Severity:
        """Severity of an error in it: a warning if another trigger may prevent it."""
        return Severity.ERROR if self.is_sure else Severity.WARNING

    @property
    def label(self) -> str:
        label = "the schedule" if self.is_whole else f"phase `{self.name}`"
        if self.fired is None:
            return label
        return f"{label} once trigger {self.fired} has fired{'' if self.is_sure else ' last'}"


@record
class Turn:
    index: int
    """Index of the phase in the flat list."""
    round: int
    actions: tuple[PhaseActions, ...] = ()
    """Actions of groups that begin a round here, outermost first, then the phase's own."""


def flat_phases(spec: LoopSpec) -> tuple[FlatPhase, ...]:
    indices = count()

    def flatten(
        items: Iterable[Phase | PhaseGroup], path: str, rounds: int, overrides: Mapping[str, Any]
    ) -> Iterator[FlatPhase]:
        for position, item in enumerate(items):
            here = f"{path}.{position}"
            merged = {**overrides, **item.set}
            if isinstance(item, PhaseGroup):
                yield from flatten(item.phases, f"{here}.phases", rounds * item.repeat, merged)
            else:
                yield FlatPhase(
                    section=item,
                    path=here,
                    index=next(indices),
                    rounds=rounds,
                    overrides=merged,
                    live=_live_ports(spec, item.learn),
                )

    schedule = spec.schedule
    if schedule.phases:
        return tuple(flatten(schedule.phases, "schedule.phases", 1, {}))
    whole = Phase(name=WHOLE_RUN, steps=schedule.steps, epochs=schedule.epochs, fill=schedule.fill)
    live = _live_ports(spec, spec.graph.learners())
    phase = FlatPhase(section=whole, path=WHOLE_PATH, index=0, rounds=1, overrides={}, live=live)
    return (phase,)


def turns(spec: LoopSpec) -> Iterator[Turn]:
    """Phases in execution order, with repeats expanded."""
    if not spec.schedule.phases:
        yield Turn(index=0, round=1)
        return
    indices = {id(phase.section): phase.index for phase in flat_phases(spec)}
    yield from _turns(spec.schedule.phases, 1, (), indices)


def _turns(
    items: tuple[Phase | PhaseGroup, ...],
    turn: int,
    actions: tuple[PhaseActions, ...],
    indices: Mapping[int, int],
) -> Iterator[Turn]:
    pending = actions
    for item in items:
        own = (*pending, item.do) if item.do is not None else pending
        pending = ()
        if isinstance(item, PhaseGroup):
            for inner in range(1, item.repeat + 1):
                again = (item.do,) if inner > 1 and item.do is not None else ()
                yield from _turns(item.phases, inner, own if inner == 1 else again, indices)
        else:
            yield Turn(index=indices[id(item)], round=turn, actions=own)


def _live_ports(spec: LoopSpec, learn: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Teaching ports that `learn` names; a bare node means all its connected ones."""
    live: set[tuple[str, str]] = set()
    for name in learn:
        node, _, port = name.partition(".")
        connected = spec.graph.teaching_ports(node)
        live.update((node, known) for known in connected if not port or known == port)
    return frozenset(live)


def buffers_until_full(phase: Phase) -> tuple[str, ...]:
    return tuple(name.removesuffix(".full") for name in as_tuple(phase.until))


def epochs_of(phase: Phase) -> tuple[float | None, str | None]:
    match phase.epochs:
        case EpochsOf(of=node, count=count):
            return count, node
        case None:
            return None, None
        case count:
            return count, None
