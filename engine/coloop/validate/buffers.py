"""Buffers and the phases that fill them: do rows arrive, are they enough, is there a cap; and what
they balance."""

from collections.abc import Iterator

from coloop.spec.algorithm import compares_groups
from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Diagnostic, Fix, error, warning
from coloop.spec.levels import Relation
from coloop.spec.nodes import BufferNode
from coloop.validate.facts import Facts, PhaseFacts
from coloop.validate.schedule import nearest_sources


def waiting_has_a_cap(facts: Facts) -> Iterator[Diagnostic]:
    """`until` ends some time even if the buffer does not fill."""
    for phase in facts.phases:
        section = phase.section
        if section is None or section.until is None or section.max_steps is not None:
            continue
        yield warning(
            "learning.until_without_cap",
            f"{phase.path}.until",
            f"{phase.label} waits for {', '.join(as_tuple(section.until))} without `max_steps`",
            "a maximum ends a phase whose buffer fills too slowly",
            Fix.set("Set a maximum of 1000 steps", f"{phase.path}.max_steps", 1000),
        )


def buffers_can_fill(facts: Facts) -> Iterator[Diagnostic]:
    """A buffer that a phase fills gets rows, and enough of them before the cap."""
    for phase in facts.phases:
        until = {
            name.removesuffix(".full") for name in as_tuple(getattr(phase.section, "until", None))
        }
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
    """A buffer that feeds something live is written by some phase, or has a seed."""
    filled = {name for phase in facts.phases for name in phase.fills}
    if any(facts.walk.kinds.get(name) != "buffer" for name in filled):
        return
    for name, _ in facts.of(BufferNode):
        if name in filled or facts.is_connected(name, "seed"):
            continue
        if not facts.walk.out_of(name) or not facts.walk.into(name):
            continue
        first = facts.phases[0]
        path = "schedule.fill" if first.section is None else f"{first.path}.fill"
        fix = Fix.set(f"Fill it in {first.label.replace('`', '')}", path, [*first.fills, name])
        yield error(
            "learning.buffer_never_written",
            f"nodes.{name}",
            f"`{name}` is read, but no phase fills it",
            f"add it to the `fill` of a phase: `fill: [{name}]`",
            fix,
        )


def balance_is_by_a_scorer_of_its_rows(facts: Facts) -> Iterator[Diagnostic]:
    """The score whose classes are balanced is one that the rows bring."""
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
    """Rows that are compared with one another are of one class, as a group is drawn whole."""
    for name, node in facts.of(BufferNode):
        if node.balance is None:
            continue
        by = node.balance.by
        edges = facts.walk.out_of(name, "scores")
        learners = {edge.target.node for edge in edges if edge.target.port == "rewards"}
        comparing = sorted(one for one in learners if compares_groups(facts.spec, one))
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
    """Whether a scorer says something of the rows that a buffer keeps themselves, and not of what
    they were written for."""
    scored = facts.lineage.levels(by, "scores")
    return any(
        facts.lineage.match(level, scored)[0] in (Relation.SAME, Relation.UP)
        for edge in facts.walk.into(name, "scores")
        for level in facts.lineage.edge_levels(edge)
    )


def _why_it_stays_empty(facts: Facts, phase: PhaseFacts, name: str) -> str | None:
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


def _why_it_stays_below(facts: Facts, phase: PhaseFacts, name: str, node: BufferNode) -> str | None:
    steps = phase.section.max_steps if phase.section is not None else None
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
    return f"it gets at most {most} rows in {steps} steps, but has a capacity of {node.capacity}"
