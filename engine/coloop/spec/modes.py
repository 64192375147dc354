"""Modes: what a loop is made for, what forms and palettes offer for it, and which mode a loop has.

A mode decides what is offered first and what a node begins as; it forbids nothing. What neither it
nor a kind names is offered in every mode.

A loop is online if a policy learns from texts that are generated while it learns, and offline if it
learns from existing texts. It is reward modeling if only scorers learn, apart from SFT of a policy.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from coloop.spec.base import as_tuple
from coloop.spec.catalog_texts import CATALOG, KIND_TEXTS
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lean import record
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import InMode
from coloop.spec.nodes.kind import ModeName as ModeName
from coloop.spec.ports import PORTS, PortType


@record
class Mode:
    name: ModeName
    title: str
    help: str
    kinds: Sequence[str]
    """Node kinds that are offered, in the order in which such a loop is drawn."""
    algorithms: Sequence[str] = ()
    """Families of algorithms that are not offered although their port is."""

    def of(self, kind: str) -> InMode:
        return NODE_CLASSES[kind].about.modes.get(self.name, InMode())

    def hides_port(self, kind: str, port: str) -> bool:
        return port in self.of(kind).ports

    def hidden_fields(self, kind: str) -> tuple[str, ...]:
        """Paths of settings that are not offered: its own, and those of ports that are not."""
        own = self.of(kind).fields
        if "algorithm" in own:
            return own
        teaching = (port for port in PORTS[kind].teaching if self.hides_port(kind, port))
        return (*own, *(f"algorithm.{port}" for port in teaching))


MODES: dict[ModeName, Mode] = {
    name: Mode(name=name, **texts) for name, texts in CATALOG["modes"].items()
}

assert set(MODES) == set(get_args(ModeName))


def begins_as(mode: Mode, kind: str) -> dict[str, Any]:
    """What a node of a kind begins with in a mode, besides its `kind`."""
    begins = {**KIND_TEXTS[kind].template, **mode.of(kind).begins}
    return copy.deepcopy({key: value for key, value in begins.items() if value is not None})


SCORERS = frozenset({"reward", "verifier"})
_ROWS = frozenset({PortType.ROWS, PortType.ROLLOUTS, PortType.PAIRS})


def mode_of(spec: LoopSpec) -> ModeName:
    """The mode that a loop names, else the one that its graph shows."""
    return spec.mode or _shown_mode(spec)


def _shown_mode(spec: LoopSpec) -> ModeName:
    taught = {node: set(spec.graph.teaching_ports(node)) for node in spec.graph.learners()}
    kinds = {spec.kind_of(node) for node in taught}
    policies = [node for node in taught if spec.kind_of(node) == "actor"]
    if not taught or "critic" in kinds or any(_learns_live(spec, policy) for policy in policies):
        return "online"
    imitates_at_most = all(taught[policy] <= {"demonstrations"} for policy in policies)
    return "reward_modeling" if kinds & SCORERS and imitates_at_most else "offline"


def _learns_live(spec: LoopSpec, policy: str) -> bool:
    """Whether a policy learns from scores of its texts, or from texts generated meanwhile."""
    for edge in spec.graph.edges_into(policy):
        if not spec.graph.teaches(edge) or spec.graph.is_dead_throughout(edge):
            continue
        if edge.target.port == "rewards" or _is_written_meanwhile(spec, edge):
            return True
    return False


def _is_written_meanwhile(spec: LoopSpec, edge: Edge) -> bool:
    """Whether a node generates rows of this edge in the same steps that learn from them."""
    kept = _kept_rows(spec)
    seen, waiting = {edge.source.node}, [edge]
    while waiting:
        source = waiting.pop().source
        if source.node in kept:
            continue
        if source.port == "rollouts" and spec.kind_of(source.node) not in ("buffer", "filter"):
            return True
        for before in _rows_into(spec, source.node):
            if before.source.node not in seen:
                seen.add(before.source.node)
                waiting.append(before)
    return False


def _rows_into(spec: LoopSpec, node: str) -> Iterator[Edge]:
    for edge in spec.graph.edges_into(node):
        port = spec.graph.in_port(edge.target)
        if port is not None and port.type in _ROWS:
            yield edge


def _kept_rows(spec: LoopSpec) -> frozenset[str]:
    """Buffers that are not filled in a phase that learns."""
    buffers = {node for node in spec.nodes if spec.kind_of(node) == "buffer"}
    return frozenset(buffers.difference(_filled_while_learning(spec)))


def _filled_while_learning(spec: LoopSpec) -> Iterable[str]:
    phases = spec.schedule.flat_phases()
    if not phases:
        return as_tuple(spec.schedule.fill)
    return [
        name.removesuffix(".full")
        for phase in phases
        if phase.learn
        for name in (*as_tuple(phase.fill), *as_tuple(phase.until))
    ]
