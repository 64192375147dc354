"""What an evaluation runs: the slice between the node that it stands in for and its own inputs, and
what has to be loaded for that.

    held_out.load ──as rows of problems──> actor.generate ── exact.score ──> probe

Where rows of the slice are put together with others (`concat`, `spare`), the others stay away: a
reading is of the probe's rows alone. No buffer is read, so a way through one is no part of a slice.
"""

from collections.abc import Iterable

from coloop.plan.closure import Serves
from coloop.plan.needs import WRITES
from coloop.plan.stages import Unrolling
from coloop.plan.types import ProbePlan, Stage
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.homes import rollout_of
from coloop.spec.nodes import EvaluateNode

Port = tuple[str, str]

SLICED = ("generate", "score", "prepare", "credit")
"""Verbs of the stages that run for a probe; credit, where the returns of its rows are wanted."""


def plan_probe(spec: LoopSpec, name: str, unrolling: Unrolling, serves: Serves) -> ProbePlan:
    """The plan of one evaluation, over the edges that live in the unrolling."""
    node = spec.nodes[name]
    assert isinstance(node, EvaluateNode)
    edges = [edge for port in _inputs(spec, name) for edge in unrolling.live_edges(name, port)]
    has_rows = bool(node.instead_of or node.of)
    rows = [_source(e) for e in edges if has_rows and e.target.port in ("rows", "pairs")]
    sources = unrolling.sources_of(rows) if rows else ()
    plan = ProbePlan(
        node=name,
        every=node.every,
        instead_of=node.instead_of,
        of=tuple(node.of or ()),
        of_stages=_serving_stages(node, unrolling, serves),
        sources=sources,
    )
    if node.instead_of is None:
        return plan
    graded = [_source(edge) for edge in edges]
    taught = [_source(edge) for edge in _taught(node, unrolling)]
    below = unrolling.below(node.instead_of)
    wanted = [port for port in (*graded, *taught) if port not in rows and port[0] in below]
    step, beside = unrolling.slice_after(node.instead_of, wanted)
    known = {stage.name for stage in sources}
    others = tuple(s for s in beside.stages if s.verb != "read" and s.name not in known)
    stages = tuple(s for s in step.stages if s.verb in SLICED)
    return plan.model_copy(
        update={
            "stages": stages,
            "regions": step.regions + beside.regions,
            "writers": _first_writers(spec, stages),
            "sources": sources + others,
        }
    )


def _inputs(spec: LoopSpec, name: str) -> Iterable[str]:
    return dict.fromkeys(edge.target.port for edge in spec.graph.edges_into(name))


def _source(edge: Edge) -> Port:
    return edge.source.node, edge.source.port


def _taught(node: EvaluateNode, unrolling: Unrolling) -> Iterable[Edge]:
    """Edges into the teaching ports named in `of`."""
    for name in node.of or ():
        learner, _, port = name.partition(".")
        yield from unrolling.live_edges(learner, port)


def _serving_stages(node: EvaluateNode, unrolling: Unrolling, serves: Serves) -> tuple[Stage, ...]:
    """Reference stages that the teaching ports named in `of` read."""
    serving = []
    for name in node.of or ():
        learner, _, port = name.partition(".")
        for reading in serves(learner, port):
            serving += [_source(edge) for edge in unrolling.live_edges(learner, reading)]
    if not serving:
        return ()
    return tuple(stage for stage in unrolling.sources_of(serving) if stage.verb == "score")


def _first_writers(spec: LoopSpec, stages: tuple[Stage, ...]) -> tuple[str, ...]:
    """Writers above which no other writer of the slice stands."""
    sources = {edge.key: edge.source.node for edge in spec.edges}
    above: dict[str, set[str]] = {}
    for stage in stages:
        given = {sources[key] for key in stage.edges}
        above[stage.node] = given.union(*(above.get(source, set()) for source in given))
    writers = [
        stage.node
        for stage in stages
        if rollout_of(spec, stage.node) is not None
        and stage.verb == WRITES.get(spec.nodes[stage.node].kind)
    ]
    return tuple(node for node in writers if above[node].isdisjoint(writers))
