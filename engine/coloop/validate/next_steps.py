"""What brings a loop that is being drawn further: edges between ports that are there, or a node
that is missing, with its edges.

Invariants: a step only adds; applied, the edge is one that the ports take, and no step closes a
circle within one step of training. A node that is added begins as the loop's mode begins it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from coloop.spec.algorithm import PORTS_OF
from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.diagnostics import Change, Fix
from coloop.spec.graph import PortRef
from coloop.spec.modes import MODES, begins_as, mode_of
from coloop.spec.ports import PORTS, accepts, is_of_use
from coloop.validate.facts import Facts, a

MOST = 6
"""So many ways of one step are tried; the best of them are offered (`tried`)."""
HANDS_ON = ("filter", "buffer")
"""Kinds that give what they take: they bring nothing by themselves."""


def sources(facts: Facts, name: str, port: str) -> list[str]:
    """Outputs that fit an input. What comes after a node serves its learning, and nothing else."""
    wanted = PORTS[facts.nodes[name].kind].inputs[port]
    after = set[str]() if wanted.phase == "learn" else facts.walk.downstream(name)
    return [
        f"{other}.{out}"
        for other, node in facts.nodes.items()
        if other not in after and other != name
        for out, given in PORTS[node.kind].outputs.items()
        if accepts(wanted.type, given.type)
        and is_of_use(given, node)
        and (node.kind not in HANDS_ON or facts.is_connected(other, out))
    ]


def to_input(facts: Facts, name: str, port: str) -> tuple[Fix, ...]:
    """Steps that bring an input its edge; a node is added where none gives what it takes."""
    given = sources(facts, name, port)
    fixes = [
        Fix(title=f"Connect {source}", changes=(_edge(source, f"{name}.{port}"),))
        for source in given[:MOST]
    ]
    return tuple(fixes or _additions(facts, name, port))


def to_lesson(facts: Facts, name: str) -> tuple[Fix, ...]:
    """Steps that teach a node what its algorithm waits for."""
    ports = untaught_ports(facts, name)
    return tuple(fix for port in ports for fix in to_input(facts, name, port))[:MOST]


def onward(facts: Facts, name: str) -> tuple[Fix, ...]:
    """Steps by which what a node gives comes to be used, or by which it learns itself."""
    has_work = facts.walk.into(name, *PORTS[facts.nodes[name].kind].inputs)
    work = () if has_work else _inward(facts, name)
    drawn = (*work, *to_lesson(facts, name), *_outward(facts, name))
    return (drawn or _reader(facts, name))[:MOST]


def _inward(facts: Facts, name: str) -> tuple[Fix, ...]:
    """Edges that bring a node what it works on, where it has nothing yet."""
    inputs = PORTS[facts.nodes[name].kind].inputs.items()
    ports = [
        port
        for port, section in inputs
        if not section.teaching
        and section.phase != "learn"
        and is_of_use(section, facts.nodes[name])
    ]
    return tuple(
        Fix(title=f"Connect {source}", changes=(_edge(source, f"{name}.{port}"),))
        for port in ports
        for source in sources(facts, name, port)
    )[:MOST]


def is_short(section: Any) -> bool:
    """Whether an `algorithm` is written without naming ports."""
    return isinstance(section, tuple(PORTS_OF))


def untaught_ports(facts: Facts, name: str) -> list[str]:
    """Teaching ports for which a node has an algorithm, and which nothing reaches."""
    section: Any = getattr(facts.nodes[name], "algorithm", None)
    teaching = PORTS[facts.nodes[name].kind].teaching
    if is_short(section):
        served = [port for port in PORTS_OF[type(section)] if port in teaching]
        return [] if facts.teaching_ports_of(name) else served
    return [
        port
        for port in teaching
        if getattr(section, port, None) is not None and not facts.is_connected(name, port)
    ]


def _outward(facts: Facts, name: str) -> Iterator[Fix]:
    """Edges to inputs of others that have none: first what waits to learn, then what else fits."""
    before = facts.walk.upstream(name)
    found: list[tuple[int, str, str]] = []
    for out, given in PORTS[facts.nodes[name].kind].outputs.items():
        if not is_of_use(given, facts.nodes[name]):
            continue
        for other, node in facts.nodes.items():
            waiting = untaught_ports(facts, other)
            for port, section in PORTS[node.kind].inputs.items():
                is_lesson = section.teaching
                if (
                    other == name
                    or facts.is_connected(other, port)
                    or not accepts(section.type, given.type)
                    or not is_of_use(section, node)
                    or (is_lesson and port not in waiting)
                    or (section.phase != "learn" and other in before)
                ):
                    continue
                rank = 0 if is_lesson else 1 if section.required else 2
                found.append((rank, f"{name}.{out}", f"{other}.{port}"))
    for _, source, target in sorted(found, key=lambda one: one[0])[:MOST]:
        yield Fix(title=f"Connect to {target}", changes=(_edge(source, target),))


def _reader(facts: Facts, name: str) -> tuple[Fix, ...]:
    """A learner of the loop's mode that takes what a node gives."""
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
                for out, given in PORTS[facts.nodes[name].kind].outputs.items():
                    if accepts(section.type, given.type):
                        new = _free_name(facts, kind)
                        edges = (_edge(f"{name}.{out}", f"{new}.{port}"),)
                        return (_addition(facts, kind, new, name, edges),)
    return ()


def _additions(facts: Facts, name: str, port: str) -> Iterator[Fix]:
    """The first kind that the loop's mode offers and that gives what an input takes, with what it
    is to work on."""
    mode = MODES[mode_of(facts.spec)]
    wanted = PORTS[facts.nodes[name].kind].inputs[port].type
    for kind in mode.kinds:
        if kind in HANDS_ON:
            continue
        outputs = (
            out
            for out, section in PORTS[kind].outputs.items()
            if accepts(wanted, section.type) and out not in mode.of(kind).outputs
        )
        for out in outputs:
            new = _free_name(facts, kind)
            edges = [_edge(f"{new}.{out}", f"{name}.{port}")]
            work = _work_for(facts, name, kind)
            if work is not None:
                edges.insert(0, _edge(work[0], f"{new}.{work[1]}"))
            yield _addition(facts, kind, new, name, edges)
            return


def _work_for(facts: Facts, name: str, kind: str) -> tuple[str, str] | None:
    """What a new node beside a learner works on, and its input for that: what is learned, else what
    the learner gives."""
    taught = facts.teaching_ports_of(name)
    learned = [edge.source for port in taught for edge in facts.walk.into(name, port)]
    own = [PortRef(name, out) for out in PORTS[facts.nodes[name].kind].outputs]
    return next(
        (
            (str(one), port)
            for one in (*learned, *own)
            for port, section in PORTS[kind].inputs.items()
            if not section.teaching
            and accepts(section.type, PORTS[facts.nodes[one.node].kind].outputs[one.port].type)
        ),
        None,
    )


def _addition(facts: Facts, kind: str, new: str, beside: str, edges: Iterable[Change]) -> Fix:
    begun: dict[str, Any] = {"kind": kind, **begins_as(MODES[mode_of(facts.spec)], kind)}
    if "of" in begun.get("model", {}):
        begun["model"] = {**begun["model"], "of": beside}
    node = Change(op="set", path=f"nodes.{new}", value=begun)
    title = KIND_TEXTS[kind].title.lower()
    return Fix(title=f"Add {a(title)}", changes=(node, *edges))


def _edge(source: str, target: str) -> Change:
    return Change(op="add_edge", path="edges", value=f"{source} -> {target}")


def _free_name(facts: Facts, kind: str) -> str:
    name, number = kind, 1
    while name in facts.nodes:
        number += 1
        name = f"{kind}_{number}"
    return name
