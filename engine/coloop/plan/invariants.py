"""What holds of every plan, checked whenever one is made: a step of stages that stand before what
they read would run on nothing, and end well.

The checks read the edges themselves, not what the ordering made of them.
"""

from collections.abc import Iterable, Sequence

from coloop.errors import PlanInconsistent
from coloop.plan.needs import GIVES
from coloop.plan.types import Refill, Stage
from coloop.spec.graph import LoopSpec


def check_stages(spec: LoopSpec, stages: Sequence[Stage], refills: Sequence[Refill] = ()) -> None:
    """Every stage stands after all its givers, after the whole slice where a giver is part of one
    that it is not, and after what it says that it waits for; a slice runs in one piece.

    Raises:
        PlanInconsistent: with the stages that break it.
    """
    places = {stage.name: place for place, stage in enumerate(stages)}
    if len(places) < len(stages):
        names = sorted({s.name for s in stages if sum(o.name == s.name for o in stages) > 1})
        raise PlanInconsistent(f"planned twice: {', '.join(names)}")
    for stage in stages:
        givers = _givers(spec, stage)
        waits = {*stage.after, *givers, *_ends_of_slices(stage, givers, refills)}
        for giver in sorted(waits & places.keys()):
            if places[giver] >= places[stage.name]:
                raise PlanInconsistent(
                    f"{stage.name} is planned before {giver}, whose rows it needs"
                )
    for refill in refills:
        _check_slice(refill, [stage.name for stage in stages])


def _givers(spec: LoopSpec, stage: Stage) -> set[str]:
    """The stages that fill what this one's edges bring."""
    sources = [spec.graph.edge(key) for key in stage.edges]
    found = set()
    for edge in sources:
        if edge is not None:
            source = edge.source
            verb = GIVES[spec.nodes[source.node].kind].get(source.port)
            if verb is not None:
                found.add(f"{source.node}.{verb}")
    return found - {stage.name}


def _ends_of_slices(
    stage: Stage, givers: Iterable[str], refills: Sequence[Refill]
) -> Iterable[str]:
    """Filters of slices that give rows to a stage outside of them."""
    wanted = set(givers)
    inside = {name for r in refills if stage.name in r.stages for name in r.stages}
    for refill in refills:
        if stage.name not in refill.stages and wanted & set(refill.stages) - inside:
            yield refill.stages[-1]


def _check_slice(refill: Refill, names: Sequence[str]) -> None:
    if not refill.first_pass or refill.first_pass[-1] != refill.stages[-1]:
        raise PlanInconsistent(f"the slice of {refill.filter} does not end with its filter")
    at = names.index(refill.first_pass[0])
    if tuple(names[at : at + len(refill.first_pass)]) != refill.first_pass:
        among = ", ".join(names[at : at + len(refill.first_pass)])
        raise PlanInconsistent(
            f"the slice of {refill.filter} is not contiguous: {', '.join(refill.first_pass)} are "
            f"spread among {among}"
        )
    early = set(refill.stages) - set(refill.first_pass)
    late = [name for name in early if names.index(name) > at]
    if late:
        raise PlanInconsistent(f"{', '.join(sorted(late))} run after the slice of {refill.filter}")
