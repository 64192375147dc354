"""Suggested next steps for an incomplete loop: edges between existing ports, or a missing node with
its edges.

Invariants: a suggestion only adds to the loop; its edges fit their ports, and none of them closes a
cycle within one training step. A new node starts with the loop mode's template for its kind.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from coloop.spec.algorithm import PORTS_OF
from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.diagnostics import Change, Fix
from coloop.spec.graph import PortRef
from coloop.spec.modes import MODES, begins_as, mode_of
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.ports import PORTS, accepts, is_of_use
from coloop.validate.facts import Facts, a

MOST = 6
"""Maximum number of suggestions for one finding; `tried` applies them and offers the best."""
HANDS_ON = ("filter", "buffer")
"""Node kinds that only pass on what they receive; without input they provide nothing."""


def sources(facts: Facts, name: str, port: str) -> list[str]:
    """Outputs that fit an input. Outputs downstream of the node fit only its learning inputs."""
    target = PORTS[facts.nodes[name].kind].inputs[port]
    excluded = set[str]() if target.phase == "learn" else facts.walk.downstream(name)
    return [
        f"{other}.{out}"
        for other, node in facts.nodes.items()
        if other not in excluded and other != name
        for out, output in PORTS[node.kind].outputs.items()
        if accepts(target.type, output.type)
        and is_of_use(output, node)
        and (node.kind not in HANDS_ON or facts.is_connected(other, out))
    ]


def to_input(facts: Facts, name: str, port: str) -> tuple[Fix, ...]:
    """Fixes that connect an input; if no output fits, they add a node that has one."""
    return tuple(_connections(facts, name, [port]) or _additions(facts, name, port))


def to_lesson(facts: Facts, name: str) -> tuple[Fix, ...]:
    """Fixes that connect the teaching ports that a node's algorithm needs."""
    ports = untaught_ports(facts, name)
    unserved = [port for port in ports if not sources(facts, name, port)]
    additions = (fix for port in unserved for fix in _additions(facts, name, port))
    return (*_connections(facts, name, ports), *additions)[:MOST]


def _connections(facts: Facts, name: str, ports: Sequence[str]) -> list[Fix]:
    """Fixes that connect inputs of a node. Their titles name the input if there are several."""
    pairs = [(source, port) for port in ports for source in sources(facts, name, port)]
    has_choice = len({port for _, port in pairs}) > 1
    return [
        Fix(
            title=f"Connect {source} to {port}" if has_choice else f"Connect {source}",
            changes=(_edge(source, f"{name}.{port}"),),
        )
        for source, port in pairs[:MOST]
    ]


def onward(facts: Facts, name: str) -> tuple[Fix, ...]:
    """Fixes that put a node to use: connect its inputs, teaching ports and outputs; if none of
    these can be connected, add a learner that takes one of its outputs."""
    has_input = facts.walk.into(name, *PORTS[facts.nodes[name].kind].inputs)
    inward = () if has_input else _inward(facts, name)
    connections = (*inward, *to_lesson(facts, name), *_outward(facts, name))
    return (connections or _reader(facts, name))[:MOST]


def _inward(facts: Facts, name: str) -> tuple[Fix, ...]:
    """Fixes that connect the inputs of a node other than those it learns from."""
    inputs = PORTS[facts.nodes[name].kind].inputs.items()
    ports = [
        port
        for port, section in inputs
        if not facts.spec.graph.is_taught_at(name, port)
        and section.phase != "learn"
        and is_of_use(section, facts.nodes[name])
    ]
    return tuple(_connections(facts, name, ports))


def is_short(section: Any) -> bool:
    return isinstance(section, tuple(PORTS_OF))


def untaught_ports(facts: Facts, name: str) -> list[str]:
    """Teaching ports for which a node has an algorithm, but no edge."""
    section: Any = getattr(facts.nodes[name], "algorithm", None)
    teaching = PORTS[facts.nodes[name].kind].teaching
    if is_short(section):
        served = [port for port in PORTS_OF[type(section)] if port in teaching]
        return [] if facts.teaching_ports_of(name) else served
    return [
        port
        for port in teaching
        if getattr(section, port, None) is not None and port not in facts.teaching_ports_of(name)
    ]


def _outward(facts: Facts, name: str) -> Iterator[Fix]:
    """Fixes that connect a node to unconnected inputs of others: first teaching ports, then
    required inputs, then the rest."""
    upstream = facts.walk.upstream(name)
    candidates: list[tuple[int, str, str]] = []
    for out, output in PORTS[facts.nodes[name].kind].outputs.items():
        if not is_of_use(output, facts.nodes[name]):
            continue
        for other, node in facts.nodes.items():
            untaught = untaught_ports(facts, other)
            for port, section in PORTS[node.kind].inputs.items():
                is_lesson = facts.spec.graph.is_taught_at(other, port)
                if (
                    other == name
                    or facts.is_connected(other, port)
                    or not accepts(section.type, output.type)
                    or not is_of_use(section, node)
                    or (is_lesson and port not in untaught)
                    or (section.phase != "learn" and other in upstream)
                ):
                    continue
                rank = 0 if is_lesson else 1 if section.required else 2
                candidates.append((rank, f"{name}.{out}", f"{other}.{port}"))
    for _, source, target in sorted(candidates, key=lambda candidate: candidate[0])[:MOST]:
        yield Fix(title=f"Connect to {target}", changes=(_edge(source, target),))


def _reader(facts: Facts, name: str) -> tuple[Fix, ...]:
    """A fix that adds a learner, of a kind in the loop's mode, that takes an output of a node."""
    mode = MODES[mode_of(facts.spec)]
    for kind in mode.kinds:
        if not PORTS[kind].teaching:
            continue
        lessons = begins_as(mode, kind).get("algorithm", {})
        inputs = PORTS[kind].inputs.items()
        for is_lesson in (True, False):
            for port, section in inputs:
                if section.teaching is not is_lesson or mode.hides_port(kind, port):
                    continue
                if not (port in lessons if is_lesson else section.required):
                    continue
                for out, output in PORTS[facts.nodes[name].kind].outputs.items():
                    if accepts(section.type, output.type):
                        new = _free_name(facts, kind)
                        edges = (_edge(f"{name}.{out}", f"{new}.{port}"),)
                        return (_addition(facts, kind, new, name, edges),)
    return ()


def _additions(facts: Facts, name: str, port: str) -> Iterator[Fix]:
    """A fix that adds a node of the first kind in the loop's mode with an output that fits an
    input, and connects what the new node works on."""
    mode = MODES[mode_of(facts.spec)]
    wanted_type = PORTS[facts.nodes[name].kind].inputs[port].type
    for kind in mode.kinds:
        if kind in HANDS_ON:
            continue
        outputs = (
            out
            for out, section in PORTS[kind].outputs.items()
            if accepts(wanted_type, section.type) and out not in mode.of(kind).outputs
        )
        for out in outputs:
            new = _free_name(facts, kind)
            edges = [_edge(f"{new}.{out}", f"{name}.{port}")]
            work = _work_for(facts, name, kind)
            if work is not None:
                source, work_port = work
                edges.insert(0, _edge(source, f"{new}.{work_port}"))
            yield _addition(facts, kind, new, name, edges)
            return


def _work_for(facts: Facts, name: str, kind: str) -> tuple[str, str] | None:
    """What a new node that serves a learner works on, and its input for that: the rows that the
    learner learns from, else the learner's own outputs."""
    taught = facts.teaching_ports_of(name)
    learned = [edge.source for port in taught for edge in facts.walk.into(name, port)]
    own = [PortRef(name, out) for out in PORTS[facts.nodes[name].kind].outputs]
    return next(
        (
            (str(source), port)
            for source in (*learned, *own)
            for port, section in PORTS[kind].inputs.items()
            if port in NODE_CLASSES[kind].about.rows
            and accepts(
                section.type, PORTS[facts.nodes[source.node].kind].outputs[source.port].type
            )
        ),
        None,
    )


def _addition(facts: Facts, kind: str, new: str, beside: str, edges: Iterable[Change]) -> Fix:
    section: dict[str, Any] = {"kind": kind, **begins_as(MODES[mode_of(facts.spec)], kind)}
    if "of" in section.get("model", {}):
        section["model"] = {**section["model"], "of": beside}
    node = Change(op="set", path=f"nodes.{new}", value=section)
    title = KIND_TEXTS[kind].title.lower()
    return Fix(title=f"Add {a(title)}", changes=(node, *edges))


def _edge(source: str, target: str) -> Change:
    return Change(op="add_edge", path="edges", value=f"{source} -> {target}")


def _free_name(facts: Facts, kind: str) -> str:
    name, count = kind, 1
    while name in facts.nodes:
        count += 1
        name = f"{kind}_{count}"
    return name
