"""Phases and their goals: what is learned when, what ends a phase, what fills a buffer."""

from collections.abc import Iterator

from coloop.errors import SpecProblem
from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Change, Diagnostic, Fix, closest, error, warning
from coloop.spec.modes import ModeName, mode_of
from coloop.spec.nodes import EvaluateNode
from coloop.spec.paths import apply_overrides, check_path
from coloop.spec.schedule import EpochsOf
from coloop.validate import next_steps
from coloop.validate.facts import Facts, PhaseFacts


def teaching_ports_come_alive(facts: Facts) -> Iterator[Diagnostic]:
    """Every connected teaching port is live in some phase."""
    if not facts.spec.schedule.phases:
        return
    live = frozenset[tuple[str, str]]().union(*(phase.live for phase in facts.phases))
    misspelt = _misspelt_ports(facts)
    for node, port in sorted(facts.teaching_ports - live):
        if facts.model(node) is None or f"{node}.{port}" in misspelt:
            continue
        fixes = []
        last = next((p for p in reversed(facts.phases) if p.live), facts.phases[-1])
        if last.section is not None:
            change = Change(
                op="insert",
                path=f"{last.path}.learn.{len(last.section.learn)}",
                value=f"{node}.{port}",
            )
            fixes.append(Fix(title=f"Learn it in {last.name}", changes=(change,)))
        yield error(
            "learning.never_live",
            f"nodes.{node}.{port}",
            f"`{node}.{port}` is connected, but no phase learns there",
            f"add `{node}.{port}` to the `learn` of a phase",
            *fixes,
        )


def phases_have_goals(facts: Facts) -> Iterator[Diagnostic]:
    """Every phase learns something, fills something, or at least measures something."""
    measures = any(
        isinstance(node, EvaluateNode) and (node.instead_of is not None or node.of)
        for node in facts.nodes.values()
    )
    for phase in facts.phases:
        names_something = phase.section is not None and bool(phase.section.learn)
        if phase.live or phase.fills or names_something:
            continue
        where = f"{phase.path}.learn" if phase.section is not None else "schedule"
        if measures:
            yield warning(
                "learning.measures_only",
                where,
                f"{phase.label} trains and fills nothing: only evaluations run in it",
                "name teaching ports in `learn`, or a buffer in `fill`",
            )
            continue
        ports = sorted(f"{node}.{port}" for node, port in facts.teaching_ports)
        yield error(
            "learning.no_goal",
            where,
            f"{phase.label} has no goal: it trains nothing, fills no buffer and measures nothing",
            "name one of " + ", ".join(f"`{port}`" for port in ports[:3]) + " in `learn`"
            if ports
            else f"connect something to a teaching port, e.g. {_first_lesson(facts)}",
            *(() if ports else _lessons(facts)),
        )


def _lessons(facts: Facts) -> tuple[Fix, ...]:
    """What teaches the first node that waits for it."""
    lessons = (next_steps.to_lesson(facts, name) for name in facts.nodes)
    return next((fixes for fixes in lessons if fixes), ())


FIRST_LESSONS: dict[ModeName, str] = {
    "online": "scores to `actor.rewards`",
    "offline": "pairs to `actor.pairs`",
    "reward_modeling": "pairs to `reward.pairs`",
}
"""By mode, what a loop of it is most often taught by."""


def _first_lesson(facts: Facts) -> str:
    """A lesson of the loop's mode, at a learner that is there."""
    lesson = FIRST_LESSONS[mode_of(facts.spec)]
    what, _, place = lesson.partition(" to `")
    kind, _, port = place.rstrip("`").partition(".")
    name = next((name for name, node in facts.nodes.items() if node.kind == kind), kind)
    return f"{what} to `{name}.{port}`"


def learners_of_two_kinds_are_listed_by_port(facts: Facts) -> Iterator[Diagnostic]:
    """A bare node in `learn` has one teaching port, so that it is clear what is learned."""
    for phase in facts.phases:
        learn = phase.section.learn if phase.section is not None else ()
        for index, name in enumerate(learn):
            ports = facts.teaching_ports_of(name)
            if len(ports) < 2:
                continue
            where = f"{phase.path}.learn.{index}"
            yield error(
                "learning.bare_learner",
                where,
                f"{phase.label} learns `{name}`, which has {len(ports)} teaching ports: "
                + ", ".join(f"`{port}`" for port in ports),
                "name the ports, e.g. " + f"`{name}.{ports[0]}`",
                *(Fix.set(f"Learn {name}.{port}", where, f"{name}.{port}") for port in ports),
            )


def epochs_have_one_source(facts: Facts) -> Iterator[Diagnostic]:
    """`epochs: n` counts passes of one dataset or buffer, or says of which."""
    for phase in facts.phases:
        section = phase.section if phase.section is not None else facts.spec.schedule
        epochs = section.epochs
        if epochs is None:
            continue
        sources = _sources_of(facts, phase)
        where = f"{phase.path}.epochs"
        if isinstance(epochs, EpochsOf):
            if epochs.of in facts.nodes and sources and epochs.of not in sources:
                yield error(
                    "learning.epochs_source",
                    where,
                    f"{phase.label} counts epochs of `{epochs.of}`, but nothing that it trains on "
                    "comes from there",
                    "count epochs of " + " or ".join(f"`{name}`" for name in sources),
                )
            continue
        if len(sources) == 1 or not (phase.live or phase.fills):
            continue
        names = ", ".join(f"`{name}`" for name in sources)
        yield error(
            "learning.epochs_source",
            where,
            f"{phase.label} counts epochs, but it is not clear of which source: {names} feed it"
            if sources
            else f"{phase.label} counts epochs, but no dataset or buffer feeds its training",
            "set `epochs: {of: ..., count: ...}`" if sources else "count `steps` instead",
            *(
                Fix.set(f"Count epochs of {name}", where, {"of": name, "count": epochs})
                for name in sources[:3]
            ),
        )


def staleness_has_two_pools(facts: Facts) -> Iterator[Diagnostic]:
    """Rows can only be late where generation and learning run side by side."""
    if facts.spec.schedule.max_staleness == 0:
        return
    for name in facts.learners:
        node, rollout = facts.nodes[name], facts.rollout(name)
        if (name, "rewards") not in facts.teaching_ports or rollout is None:
            continue
        group = facts.group_of.get(name)
        owner = facts.nodes[group.name] if group is not None else node
        learns = owner.pool or "main"
        writes = rollout.pool or node.pool or "main"
        if learns == writes:
            yield error(
                "learning.staleness_one_pool",
                f"nodes.{name}.rollout.pool",
                f"`max_staleness: {facts.spec.schedule.max_staleness:g}` lets generation and "
                f"training overlap, but `{name}` does both in the pool `{learns}`",
                "give generation a pool of its own with `rollout.pool`, or set `max_staleness: 0`",
            )


def early_learners_score(facts: Facts) -> Iterator[Diagnostic]:
    """`when: before_score` is for learners that also score, outside of what is refilled."""
    for name, rule in facts.spec.schedule.learn.items():
        node = facts.nodes.get(name)
        if node is None or rule.when != "before_score":
            continue
        if node.kind not in ("critic", "reward", "verifier"):
            yield warning(
                "learning.before_score",
                f"schedule.learn.{name}.when",
                f"`when: before_score` has no effect for the {node.kind} `{name}`: it scores "
                "nothing",
                "remove `when`",
            )


def overrides_fit(facts: Facts) -> Iterator[Diagnostic]:
    """Values of `set` are values that the fields take."""
    for phase in facts.phases:
        for path, value in phase.overrides.items():
            yield from _check_override(facts, path, value, f"{phase.path}.set.{path}")
    for index, item in enumerate(facts.spec.schedule.anneal):
        for key, value in (("from", item.from_), ("to", item.to)):
            place = f"schedule.anneal.{index}.{key}"
            yield from _check_override(facts, item.path, value, place)
    for index, trigger in enumerate(facts.spec.schedule.triggers):
        for path, value in trigger.do.set.items():
            place = f"schedule.triggers.{index}.do.set.{path}"
            yield from _check_override(facts, path, value, place)


def best_is_known(facts: Facts) -> Iterator[Diagnostic]:
    """Going back to the best wants a metric that tells which one that is."""
    if facts.spec.run.best is not None:
        return
    for path, actions in facts.actions:
        if any(order.from_ == "best" for order in as_tuple(actions.refresh)):
            yield error(
                "learning.best_unknown",
                f"{path}.refresh",
                "weights are refreshed from the best checkpoint, but `run.best` names no metric",
                "set `run.best`, e.g. to `probe.accuracy`",
            )


def _misspelt_ports(facts: Facts) -> set[str]:
    """Teaching ports that were probably meant by names in `learn` that name nothing."""
    connected = [f"{node}.{port}" for node, port in sorted(facts.teaching_ports)]
    meant: set[str] = set()
    for phase in facts.phases:
        for item in phase.section.learn if phase.section is not None else ():
            node, _, port = item.partition(".")
            ports = facts.teaching_ports_of(node)
            if not ports or (port and port not in ports):
                meant.update(closest(item, connected, limit=1))
    return meant


def _sources_of(facts: Facts, phase: PhaseFacts) -> list[str]:
    """The nearest datasets and buffers behind what a phase learns or fills."""
    starts = [
        edge.source.node
        for node, port in phase.live
        for edge in facts.walk.into(node, port)
        if not facts.is_dead(edge, phase)
    ]
    starts += [edge.source.node for name in phase.fills for edge in facts.walk.into(name)]
    return [name for name in facts.nodes if name in nearest_sources(facts, phase, starts)]


def nearest_sources(facts: Facts, phase: PhaseFacts, starts: list[str]) -> set[str]:
    sources: set[str] = set()
    seen: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if facts.walk.kinds[name] in ("dataset", "buffer"):
            sources.add(name)
            continue
        edges = [*facts.walk.row_edges(name), *facts.walk.score_edges(name)]
        edges += facts.walk.into(name, "spare") if facts.walk.kinds[name] == "filter" else []
        waiting += [e.source.node for e in edges if not facts.is_dead(e, phase) and not e.rounds]
        waiting += list(facts.walk.callers.get(name, ()))
    return sources


def _check_override(facts: Facts, path: str, value: object, place: str) -> Iterator[Diagnostic]:
    if check_path(facts.spec, path) is not None:
        return
    try:
        apply_overrides(facts.spec, {path: value})
    except SpecProblem as problem:
        diagnostic = problem.diagnostics[0]
        if isinstance(diagnostic, Diagnostic):
            message = f"`{path}` cannot be {value!r}: {diagnostic.message}"
            yield diagnostic.model_copy(update={"message": message, "node": None, "field": place})
