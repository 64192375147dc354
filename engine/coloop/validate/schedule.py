"""Phases and their goals: what is learned when, what ends a phase, what fills a buffer."""

from collections.abc import Iterator

from coloop.errors import SpecProblem
from coloop.plan.phases import FlatPhase, buffers_until_full
from coloop.spec.algorithm import compares_groups
from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Change, Diagnostic, Fix, closest, error, warning
from coloop.spec.graph import reach
from coloop.spec.levels import Relation
from coloop.spec.modes import ModeName, mode_of
from coloop.spec.nodes import BufferNode, EvaluateNode
from coloop.spec.paths import apply_overrides, check_path
from coloop.spec.schedule import EpochsOf
from coloop.validate import next_steps
from coloop.validate.facts import Facts


def teaching_ports_come_alive(facts: Facts) -> Iterator[Diagnostic]:
    if not facts.spec.schedule.phases:
        return
    live = frozenset[tuple[str, str]]().union(*(phase.live for phase in facts.phases))
    misspelt = _misspelt_ports(facts)
    for node, port in sorted(facts.teaching_ports - live):
        if facts.model(node) is None or f"{node}.{port}" in misspelt:
            continue
        last = next((p for p in reversed(facts.phases) if p.live), facts.phases[-1])
        end = f"{last.path}.learn.{len(last.section.learn)}"
        change = Change(op="insert", path=end, value=f"{node}.{port}")
        yield error(
            "learning.never_live",
            f"nodes.{node}.{port}",
            f"`{node}.{port}` is connected, but no phase learns there",
            f"add `{node}.{port}` to the `learn` of a phase",
            Fix(title=f"Learn it in {last.name}", changes=(change,)),
        )


def phases_have_goals(facts: Facts) -> Iterator[Diagnostic]:
    """Every phase learns something, fills something, or at least measures something."""
    measures = any(
        isinstance(node, EvaluateNode) and (node.instead_of is not None or node.of)
        for node in facts.nodes.values()
    )
    for phase in facts.phases:
        if phase.live or phase.fills or phase.section.learn:
            continue
        where = phase.path if phase.is_whole else f"{phase.path}.learn"
        if measures:
            yield warning(
                "learning.measures_only",
                where,
                f"{phase.label} trains and fills nothing: only evaluations run in it",
                "name teaching ports in `learn`, or a buffer in `fill`",
            )
            continue
        ports = sorted(f"{node}.{port}" for node, port in facts.teaching_ports)
        lessons = (next_steps.to_lesson(facts, name) for name in facts.nodes)
        yield error(
            "learning.no_goal",
            where,
            f"{phase.label} has no goal: it trains nothing, fills no buffer and measures nothing",
            "name one of " + ", ".join(f"`{port}`" for port in ports[:3]) + " in `learn`"
            if ports
            else f"connect something to a teaching port, e.g. {_first_lesson(facts)}",
            *(() if ports else next((fixes for fixes in lessons if fixes), ())),
        )


FIRST_LESSONS: dict[ModeName, str] = {
    "online": "scores to `actor.rewards`",
    "offline": "pairs to `actor.pairs`",
    "reward_modeling": "pairs to `reward.pairs`",
}
"""By mode, what to connect to which teaching port, for a hint."""


def _first_lesson(facts: Facts) -> str:
    """The entry of `FIRST_LESSONS` for the loop's mode, naming an existing node if it can."""
    lesson = FIRST_LESSONS[mode_of(facts.spec)]
    what, _, port_of_kind = lesson.partition(" to `")
    kind, _, port = port_of_kind.rstrip("`").partition(".")
    name = next((name for name, node in facts.nodes.items() if node.kind == kind), kind)
    return f"{what} to `{name}.{port}`"


def learners_of_two_kinds_are_listed_by_port(facts: Facts) -> Iterator[Diagnostic]:
    """A bare node in `learn` has one teaching port, so that it is clear what is learned."""
    for phase in facts.phases:
        for index, name in enumerate(phase.section.learn):
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
    """`epochs` counts passes over one dataset or buffer: the only one upstream, or that in `of`."""
    for phase in facts.phases:
        epochs = phase.section.epochs
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
    """A `max_staleness` above 0 needs generation and training in separate pools."""
    if facts.spec.schedule.max_staleness == 0:
        return
    for name in facts.learners:
        node, rollout = facts.nodes[name], facts.rollout(name)
        is_live = {"rewards", "reference"} & set(facts.teaching_ports_of(name))
        if not is_live or rollout is None:
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
    """`when: before_score` is only for learners that also score."""
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
    for phase in facts.phases:
        for path, value in phase.overrides.items():
            yield from _check_override(facts, path, value, f"{phase.path}.set.{path}")
    for index, item in enumerate(facts.spec.schedule.anneal):
        for key, value in (("from", item.from_), ("to", item.to)):
            field = f"schedule.anneal.{index}.{key}"
            yield from _check_override(facts, item.path, value, field)
    for index, trigger in enumerate(facts.spec.schedule.triggers):
        for path, value in trigger.do.set.items():
            field = f"schedule.triggers.{index}.do.set.{path}"
            yield from _check_override(facts, path, value, field)


def best_is_known(facts: Facts) -> Iterator[Diagnostic]:
    """Refreshing weights from the best checkpoint needs the metric `run.best`."""
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
    """Teaching ports that unknown names in `learn` probably mean."""
    connected = [f"{node}.{port}" for node, port in sorted(facts.teaching_ports)]
    meant: set[str] = set()
    for phase in facts.phases:
        for item in phase.section.learn:
            node, _, port = item.partition(".")
            ports = facts.teaching_ports_of(node)
            if not ports or (port and port not in ports):
                meant.update(closest(item, connected, limit=1))
    return meant


def _sources_of(facts: Facts, phase: FlatPhase) -> list[str]:
    """The nearest datasets and buffers upstream of what a phase learns or fills."""
    starts = [
        edge.source.node
        for node, port in phase.live
        for edge in facts.alive(node, port, phase=phase)
    ]
    starts += [edge.source.node for name in phase.fills for edge in facts.walk.into(name)]
    return [name for name in facts.nodes if name in nearest_sources(facts, phase, starts)]


def nearest_sources(facts: Facts, phase: FlatPhase, starts: list[str]) -> set[str]:
    """The nearest datasets and buffers upstream of these nodes, or among them."""
    kinds = facts.walk.kinds

    def givers(name: str) -> list[str]:
        if kinds[name] in ("dataset", "buffer"):
            return []
        edges = [*facts.walk.row_edges(name), *facts.walk.score_edges(name)]
        edges += facts.walk.into(name, "spare") if kinds[name] == "filter" else []
        alive = [e.source.node for e in edges if not facts.is_dead(e, phase) and not e.rounds]
        return [*alive, *facts.walk.callers.get(name, ())]

    return {name for name in reach(starts, givers) if kinds[name] in ("dataset", "buffer")}


def _check_override(facts: Facts, path: str, value: object, field: str) -> Iterator[Diagnostic]:
    if check_path(facts.spec, path) is not None:
        return
    try:
        apply_overrides(facts.spec, {path: value})
    except SpecProblem as problem:
        diagnostic = problem.diagnostics[0]
        if isinstance(diagnostic, Diagnostic):
            message = f"`{path}` cannot be {value!r}: {diagnostic.message}"
            yield diagnostic.model_copy(update={"message": message, "node": None, "field": field})


# Buffers and the phases that fill them: do rows arrive, are they enough, is there a cap; and what
# they balance.


def waiting_has_a_cap(facts: Facts) -> Iterator[Diagnostic]:
    """A phase with `until` has `max_steps`, in case the buffer does not fill."""
    for phase in facts.phases:
        section = phase.section
        if section.until is None or section.max_steps is not None:
            continue
        yield warning(
            "learning.until_without_cap",
            f"{phase.path}.until",
            f"{phase.label} waits for {', '.join(as_tuple(section.until))} without `max_steps`",
            "a maximum ends a phase whose buffer fills too slowly",
            Fix.set("Set a maximum of 1000 steps", f"{phase.path}.max_steps", 1000),
        )


def buffers_can_fill(facts: Facts) -> Iterator[Diagnostic]:
    for phase in facts.phases:
        until = buffers_until_full(phase.section)
        for name in phase.fills:
            node = facts.nodes.get(name)
            if not isinstance(node, BufferNode):
                continue
            reason = _why_it_stays_empty(facts, phase, name)
            if reason is None and name in until:
                reason = _why_it_stays_below(facts, phase, name, node)
            if reason is not None:
                yield error(
                    "learning.buffer_never_fills",
                    f"nodes.{name}.capacity" if "at most" in reason else f"nodes.{name}",
                    f"{phase.label} fills `{name}`, but {reason}",
                    "connect rows from a dataset, or give the phase more steps",
                )


def buffers_that_are_read_are_written(facts: Facts) -> Iterator[Diagnostic]:
    """A buffer with edges in and out is filled in some phase, or has a seed."""
    filled = {name for phase in facts.phases for name in phase.fills}
    if any(facts.walk.kinds.get(name) != "buffer" for name in filled):
        return
    for name, _ in facts.of(BufferNode):
        if name in filled or facts.is_connected(name, "seed"):
            continue
        if not facts.walk.out_of(name) or not facts.walk.into(name):
            continue
        first = facts.phases[0]
        title, path = f"Fill it in {first.label.replace('`', '')}", f"{first.path}.fill"
        yield error(
            "learning.buffer_never_written",
            f"nodes.{name}",
            f"`{name}` is read, but no phase fills it",
            f"add it to the `fill` of a phase: `fill: [{name}]`",
            Fix.set(title, path, [*first.fills, name]),
        )


def balance_is_by_a_scorer_of_its_rows(facts: Facts) -> Iterator[Diagnostic]:
    """`balance.by` names a scorer of the buffer's rows."""
    for name, node in facts.of(BufferNode):
        if node.balance is None:
            continue
        by = node.balance.by
        sources = [edge.source.node for edge in facts.walk.into(name)]
        if by in facts.nodes and sources and by not in facts.whence(*sources):
            yield error(
                "structure.unknown_score",
                f"nodes.{name}.balance.by",
                f"`{name}` balances by `{by}`, which scores none of its rows: it would return none",
                f"connect `{by}.scores -> {name}.scores`, or name a scorer upstream of it",
            )


def balance_leaves_groups_whole(facts: Facts) -> Iterator[Diagnostic]:
    """Rows of a group that a learner compares have one class, because groups are drawn whole."""
    for name, node in facts.of(BufferNode):
        if node.balance is None:
            continue
        by = node.balance.by
        edges = facts.walk.out_of(name, "scores")
        learners = {edge.target.node for edge in edges if edge.target.port == "rewards"}
        comparing = sorted(learner for learner in learners if compares_groups(facts.spec, learner))
        if by not in facts.nodes or not comparing or not _differs_in_groups(facts, name, by):
            continue
        yield error(
            "learning.split_groups",
            f"nodes.{name}.balance.by",
            f"`{name}` balances by `{by}`, whose score differs among the completions of a prompt, "
            f"but `{comparing[0]}` compares these: its groups must stay complete",
            "balance by a scorer of prompts, or weight the classes in the learner with "
            "`credit.class_weights`",
            Fix.set("Remove `balance`", f"nodes.{name}.balance", None),
        )


def _differs_in_groups(facts: Facts, name: str, by: str) -> bool:
    """Whether a scorer scores the rows of a buffer or their descendants, not only their prompts."""
    scored = facts.lineage.levels(by, "scores")
    return any(
        facts.lineage.match(level, scored)[0] in (Relation.SAME, Relation.UP)
        for edge in facts.walk.into(name, "scores")
        for level in facts.lineage.edge_levels(edge)
    )


def _why_it_stays_empty(facts: Facts, phase: FlatPhase, name: str) -> str | None:
    edges = [e for e in facts.walk.into(name) if e.target.port != "seed"]
    if not edges:
        return "nothing is connected to it"
    alive = [edge for edge in edges if not facts.is_dead(edge, phase)]
    if not alive:
        return "all its edges have weight 0"
    sources = nearest_sources(facts, phase, [edge.source.node for edge in alive])
    if sources == {name} and not facts.is_connected(name, "seed"):
        return "its rows come only from itself"
    return None


def _why_it_stays_below(facts: Facts, phase: FlatPhase, name: str, node: BufferNode) -> str | None:
    steps = phase.section.max_steps
    if steps is None:
        return None
    counts = facts.counts(phase)
    ports: dict[str, int] = {}
    for edge in facts.walk.into(name):
        if edge.target.port == "seed" or facts.is_dead(edge, phase):
            continue
        rows = counts.of_edge(edge).rows
        if rows is None:
            return None
        ports[edge.target.port] = ports.get(edge.target.port, 0) + rows
    scores = ports.pop("scores", 0)
    most = (sum(ports.values()) or scores) * steps
    if most >= node.capacity:
        return None
    within = f"{steps} steps" if steps != 1 else "one step"
    return f"it gets at most {most} rows in {within}, and its capacity is {node.capacity}"
