"""What a node says before it learns from the same rows: where it learns before it scores, and an
evaluation of the step's own tables that is due reads it, it scores once more, before it learns.

What it says then is for these evaluations alone.
"""

from collections.abc import Collection
from dataclasses import replace

from coloop.plan.stages import Step
from coloop.plan.types import ProbePlan, Stage
from coloop.spec.graph import LoopSpec

SUFFIX = "foresee"
"""In the stage's name, where its verb would stand."""


def watched_by(spec: LoopSpec, probes: Collection[ProbePlan]) -> frozenset[str]:
    """Nodes that these evaluations read and that learn before they score."""
    early = {node for node, rule in spec.schedule.learn.items() if rule.when == "before_score"}
    edges = (edge for probe in probes for edge in spec.graph.edges_into(probe.node))
    return frozenset(edge.source.node for edge in edges) & early


def with_foresight(step: Step, watched: Collection[str]) -> Step:
    """The step in which each of these nodes that learns and then scores also scores before."""
    learners = {stage.name: stage for stage in step.stages if stage.verb == "learn"}
    stages: list[Stage] = []
    before: dict[str, list[str]] = {}
    for stage in step.stages:
        own = [
            name
            for name in stage.after
            if name in learners and stage.node in learners[name].members
        ]
        if stage.verb != "score" or stage.node not in watched or not own:
            continue
        name = f"{stage.node}.{SUFFIX}"
        after = tuple(one for one in stage.after if one not in own)
        stages.append(stage.model_copy(update={"name": name, "after": after, "foresees": True}))
        for learner in own:
            before.setdefault(learner, []).append(name)
    if not stages:
        return step
    early = {stage.name: stage for stage in stages}
    found: list[Stage] = []
    for stage in step.stages:
        names = before.get(stage.name, [])
        found += [early[name] for name in names]
        found.append(stage.model_copy(update={"after": (*stage.after, *names)}) if names else stage)
    return replace(step, stages=tuple(found))
