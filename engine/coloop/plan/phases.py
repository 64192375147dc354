"""The schedule as a flat list: every phase once, and the order in which they come round.

Groups are opened, their `set` lies under the phase's own, their `do` acts at the start of each
round.
A schedule without phases is one phase, `main`, with every connected teaching port live.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.schedule import EpochsOf, Phase, PhaseActions, PhaseGroup

WHOLE_RUN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatPhase:
    phase: Phase
    path: str
    """Where it is written, e.g. `schedule.phases.1`; `schedule` for one without phases."""
    index: int
    rounds: int
    """How often the groups around it repeat it."""
    overrides: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    index: int
    """Of the phase in the flat list."""
    round: int
    actions: tuple[PhaseActions, ...] = ()
    """Of the groups that begin a round here, outermost first, then the phase's own."""


def flat_phases(spec: LoopSpec) -> tuple[FlatPhase, ...]:
    """Phases in the order in which they are written."""
    path = "schedule.phases" if spec.schedule.phases else ""
    return tuple(_flatten(_items(spec), path, 1, {}, count()))


def turns(spec: LoopSpec) -> Iterator[Turn]:
    """Phases in the order in which they come, repeats written out."""
    items = _items(spec)
    numbers = {id(flat.phase): flat.index for flat in _flatten(items, "", 1, {}, count())}
    yield from _turns(items, 1, (), numbers)


def _items(spec: LoopSpec) -> tuple[Phase | PhaseGroup, ...]:
    schedule = spec.schedule
    if schedule.phases:
        return schedule.phases
    whole = Phase(
        name=WHOLE_RUN,
        steps=schedule.steps,
        epochs=schedule.epochs,
        learn=spec.graph.learners(),
        fill=schedule.fill,
    )
    return (whole,)


def _flatten(
    items: tuple[Phase | PhaseGroup, ...],
    path: str,
    rounds: int,
    overrides: Mapping[str, Any],
    numbers: Iterator[int],
) -> Iterator[FlatPhase]:
    for place, item in enumerate(items):
        here = f"{path}.{place}" if path else "schedule"
        merged = {**overrides, **item.set}
        if isinstance(item, PhaseGroup):
            inner = rounds * item.repeat
            yield from _flatten(item.phases, f"{here}.phases", inner, merged, numbers)
        else:
            yield FlatPhase(
                phase=item, path=here, index=next(numbers), rounds=rounds, overrides=merged
            )


def _turns(
    items: tuple[Phase | PhaseGroup, ...],
    turn: int,
    actions: tuple[PhaseActions, ...],
    numbers: Mapping[int, int],
) -> Iterator[Turn]:
    pending = actions
    for item in items:
        own = (*pending, item.do) if item.do is not None else pending
        pending = ()
        if isinstance(item, PhaseGroup):
            for inner in range(1, item.repeat + 1):
                again = (item.do,) if inner > 1 and item.do is not None else ()
                yield from _turns(item.phases, inner, own if inner == 1 else again, numbers)
        else:
            yield Turn(index=numbers[id(item)], round=turn, actions=own)


def live_ports(spec: LoopSpec, phase: Phase) -> frozenset[tuple[str, str]]:
    """The teaching ports that a phase names; a bare node stands for all of its connected ones."""
    live: set[tuple[str, str]] = set()
    for name in phase.learn:
        node, _, port = name.partition(".")
        connected = spec.graph.teaching_ports(node)
        live.update((node, known) for known in connected if not port or known == port)
    return frozenset(live)


def buffers_until_full(phase: Phase) -> tuple[str, ...]:
    return tuple(name.removesuffix(".full") for name in as_tuple(phase.until))


def fills_of(phase: Phase) -> tuple[str, ...]:
    """Buffers that a phase writes: those of `fill` and of `until`."""
    return tuple(dict.fromkeys((*as_tuple(phase.fill), *buffers_until_full(phase))))


def epochs_of(phase: Phase) -> tuple[float | None, str | None]:
    """Passes and, where it is said, the source that is passed over."""
    match phase.epochs:
        case EpochsOf(of=node, count=count):
            return count, node
        case None:
            return None, None
        case count:
            return count, None
