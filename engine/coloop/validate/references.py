"""Checks that the nodes, phases, ports, buffers, metrics and paths that fields name exist.

Only existence and kind are checked here; whether the named thing makes sense there is checked by
other rules.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from coloop.plan.phases import FlatPhase
from coloop.spec.base import as_tuple, texts_in
from coloop.spec.diagnostics import Diagnostic, did_you_mean, error
from coloop.spec.lineage import Level, Levels
from coloop.spec.nodes import ActorNode, EvaluateNode, FilterNode, Node, VerifierNode
from coloop.spec.paths import check_path
from coloop.spec.ports import PORTS
from coloop.spec.schedule import EpochsOf
from coloop.spec.shaping import GROUP_RULES
from coloop.validate.facts import Facts, a, corrections
from coloop.validate.metrics import check_metric

GROUP_WORDS: Final = frozenset({"prompt", "role", "round", "source", "state"})
"""Values of `group_by` that are not names of nodes."""

ROW_GIVERS: Final = frozenset({"dataset", "template", "filter", "buffer"})
"""Node kinds whose rows an evaluation can replace with its own (`instead_of`)."""

SCORERS: Final = frozenset({"reward", "verifier"})
BUFFERS: Final = frozenset({"buffer"})
OF_KINDS: Final = {
    "instead_of": ROW_GIVERS,
    "balance.by": SCORERS,
    "credit.class_weights.by": SCORERS,
    "curriculum.by": SCORERS,
}
"""By field, the kinds of the nodes that it may name; other fields may name any node."""


def models_name_nodes(facts: Facts) -> Iterator[Diagnostic]:
    """`of` and `with` name other nodes that have weights; `at` names phases."""
    weighted = [name for name in facts.nodes if facts.model(name) is not None]
    for name in weighted:
        model, at = facts.model(name), f"nodes.{name}.model"
        for key, attribute in (("of", "of"), ("with", "with_")):
            other = getattr(model, attribute, None)
            if other is not None:
                message = f"`model.{key}` names `{other}`, which has no weights"
                hint = "name a node with a `model`"
                yield from _check_name(facts, f"{at}.{key}", other, weighted, message, hint)
        if model.type == "copy":
            yield from _check_phases(facts, f"{at}.at", as_tuple(model.at))
        refresh = getattr(model, "refresh", None)
        yield from _check_phases(facts, f"{at}.refresh.at", as_tuple(getattr(refresh, "at", None)))


def fields_name_nodes(facts: Facts) -> Iterator[Diagnostic]:
    """Other fields that name nodes name existing ones, of the kinds in `OF_KINDS`."""
    for name, node in facts.nodes.items():
        for field, other in named_nodes(node):
            kinds = OF_KINDS.get(field, frozenset())
            kind, wanted = facts.walk.kinds.get(other), " or ".join(sorted(kinds))
            message = f"`{field}` names the {kind} `{other}`, but needs a {wanted}"
            allowed = _of_kinds(facts, kinds)
            yield from _check_name(facts, f"nodes.{name}.{field}", other, allowed, message)


def named_nodes(node: Node) -> Iterator[tuple[str, str]]:
    """Fields that name a single node, with that name; without those of `model` and of groups."""
    for field, text, marks in texts_in(node):
        if marks.get("x-choices") in ("nodes", "scorers") and not field.startswith("model."):
            yield field, text
    for port in node.of if isinstance(node, EvaluateNode) else ():
        yield "of", port.partition(".")[0]
    for scorer in getattr(getattr(node, "source", None), "weights", ()):
        yield f"source.weights.{scorer}", scorer


def groups_name_ancestors(facts: Facts) -> Iterator[Diagnostic]:
    """Rows are grouped by a word in `GROUP_WORDS`, or by a node from whose rows they descend."""
    for name, node in facts.nodes.items():
        for field, names, levels in _group_fields(facts, name, node):
            at = f"nodes.{name}.{field}"
            for word in names:
                if word == "round" and (buffers := _forgetting_rounds(facts, levels)):
                    yield error(
                        "structure.group_not_ancestor",
                        at,
                        f"`{field}` names `round`, but rows from `{buffers[0]}` no longer have a "
                        "round: those of all rounds would be one group",
                        "name `prompt` or `role`",
                    )
                if word in GROUP_WORDS or (field == "per_group.by" and word not in facts.nodes):
                    continue
                if word not in facts.nodes:
                    yield unknown_node(facts, at, word, [*GROUP_WORDS, *facts.nodes])
                    continue
                unrelated = [
                    level for level in levels if facts.lineage.ancestor_at(level, word) is None
                ]
                if unrelated:
                    yield _no_ancestor(facts, name, field, word, unrelated)


def _group_fields(
    facts: Facts, name: str, node: Node
) -> Iterator[tuple[str, tuple[str, ...], Levels]]:
    rows = facts.lineage.input_levels(name)
    match node:
        case ActorNode() | VerifierNode():
            own = facts.rewarded_levels(name)
            if node.credit.group_by is not None:
                yield "credit.group_by", node.credit.group_by, own
            if node.credit.balance is not None:
                yield "credit.balance.per", (node.credit.balance.per,), own
            if isinstance(node, VerifierNode) and node.by is not None:
                yield "by", as_tuple(node.by), rows
        case FilterNode():
            for index, rule in enumerate(node.keep):
                if rule.rule in GROUP_RULES:
                    yield f"keep.{index}.by", as_tuple(getattr(rule, "by", None)), rows
            if node.per_group is not None:
                yield "per_group.by", as_tuple(node.per_group.by), rows


def _forgetting_rounds(facts: Facts, levels: Iterable[Level]) -> list[str]:
    """Buffers that some of these levels come from and that take in rows of several rounds."""
    return [
        name
        for name in facts.buffers_in(levels)
        if any(facts.lineage.rounds_along(edge) for edge in facts.walk.into(name))
    ]


def _no_ancestor(
    facts: Facts, name: str, field: str, word: str, unrelated: Iterable[Level]
) -> Diagnostic:
    """The error for rows that are grouped by a node from which they do not descend."""
    buffers = facts.buffers_in(unrelated)
    rows, hint = f"the rows of `{name}`", "name a node further up, or `prompt`, `role`, `round`"
    if buffers:
        rows = f"the rows of `{name}` from `{buffers[0]}`"
        hint = "rows from a buffer have no ancestors: name `prompt` or `role`"
    return error(
        "structure.group_not_ancestor",
        f"nodes.{name}.{field}",
        f"`{field}` names `{word}`, but {rows} do not descend from rows of `{word}`",
        hint,
    )


def _of_kinds(facts: Facts, kinds: Collection[str]) -> list[str]:
    return [name for name, kind in facts.walk.kinds.items() if not kinds or kind in kinds]


def _check_name(
    facts: Facts,
    at: str,
    name: str,
    allowed: Collection[str],
    message: str,
    hint: str | None = None,
    known: Collection[str] | None = None,
) -> Iterator[Diagnostic]:
    """Check that a name is that of a node, and of one of the `allowed` nodes.

    Args:
        message: what is wrong with a node that is not allowed.
        known: names to suggest instead; default: all that are allowed.
    """
    known = allowed if known is None else known
    if name not in facts.nodes:
        yield unknown_node(facts, at, name, known)
    elif name not in allowed:
        yield error("structure.wrong_kind", at, message, hint or did_you_mean(name, known))


def unknown_node(facts: Facts, at: str, name: str, known: Iterable[str]) -> Diagnostic:
    names = list(known) or list(facts.nodes)
    is_port = at.startswith("nodes.") and at.count(".") == 2 and at.endswith(".of")
    return error(
        "structure.unknown_node",
        at,
        f"there is no node `{name}`",
        did_you_mean(name, names),
        *(() if is_port else corrections(at, name, names)),
    )


def _check_phases(facts: Facts, at: str, names: Iterable[str]) -> Iterator[Diagnostic]:
    for name in names:
        if name not in facts.phase_names:
            hint = did_you_mean(name, facts.phase_names) or "this schedule has no phases"
            yield error("structure.unknown_phase", at, f"there is no phase `{name}`", hint)


# Names in the schedule: ports that learn, buffers, nodes, phases, paths and metrics.


def schedule_names_ports(facts: Facts) -> Iterator[Diagnostic]:
    """`learn` names connected teaching ports; `until` and `fill` name buffers."""
    connected = [f"{node}.{port}" for node, port in sorted(facts.teaching_ports)]
    for phase in facts.phases:
        section = phase.section
        for index, item in enumerate(section.learn):
            yield from _check_learn(facts, phase, f"{phase.path}.learn.{index}", item, connected)
        for name in as_tuple(section.fill):
            yield from _check_kind(facts, f"{phase.path}.fill", name, BUFFERS)
        for item in as_tuple(section.until):
            buffer = item.removesuffix(".full")
            yield from _check_kind(facts, f"{phase.path}.until", buffer, BUFFERS)


def schedule_names_nodes(facts: Facts) -> Iterator[Diagnostic]:
    """`learn`, `order`, `epochs.of` and actions name nodes of a suitable kind."""
    schedule = facts.spec.schedule
    for name in schedule.learn:
        yield from _check_learner(facts, f"schedule.learn.{name}", name)
    for index, name in enumerate(schedule.order):
        yield from _check_learner(facts, f"schedule.order.{index}", name)
    sources = frozenset({"dataset", "buffer"})
    for phase in facts.phases:
        epochs = phase.section.epochs
        if isinstance(epochs, EpochsOf):
            yield from _check_kind(facts, f"{phase.path}.epochs.of", epochs.of, sources)
    derived = [
        name
        for name in facts.nodes
        if getattr(facts.model(name), "type", None) in ("snapshot", "copy")
    ]
    for path, actions in facts.actions:
        for refresh in as_tuple(actions.refresh):
            message = (
                f"`{refresh.node}` does not follow other weights: only `snapshot` and `copy` "
                "weights can be refreshed"
            )
            yield from _check_name(facts, f"{path}.refresh", refresh.node, derived, message)
        for name in as_tuple(actions.reset_optimizer):
            yield from _check_learner(facts, f"{path}.reset_optimizer", name)
        for name in as_tuple(actions.clear):
            yield from _check_kind(facts, f"{path}.clear", name, BUFFERS)


def schedule_names_phases(facts: Facts) -> Iterator[Diagnostic]:
    """`over` and `in` name phases, and no two phases have the same name."""
    schedule = facts.spec.schedule
    for index, item in enumerate(schedule.anneal):
        yield from _check_phases(facts, f"schedule.anneal.{index}.over", as_tuple(item.over))
    for index, trigger in enumerate(schedule.triggers):
        yield from _check_phases(facts, f"schedule.triggers.{index}.in", as_tuple(trigger.in_))
    seen: set[str] = set()
    for phase in facts.phases:
        if not phase.is_whole and phase.name in seen:
            yield error(
                "structure.duplicate_phase",
                f"{phase.path}.name",
                f"two phases are named `{phase.name}`",
                "give each phase a unique name; use `repeat` to run a phase again",
            )
        seen.add(phase.name)


def paths_name_values(facts: Facts) -> Iterator[Diagnostic]:
    """`set`, `anneal` and triggers name values that exist and may change during a run."""
    schedule = facts.spec.schedule
    named = [(f"{at}.set", path) for at, item in schedule.items() for path in item.set]
    for index, anneal in enumerate(schedule.anneal):
        named.append((f"schedule.anneal.{index}.path", anneal.path))
        if anneal.complement is not None:
            named.append((f"schedule.anneal.{index}.complement", anneal.complement))
    for index, trigger in enumerate(schedule.triggers):
        named += [(f"schedule.triggers.{index}.do.set", path) for path in trigger.do.set]
    problems = {path: check_path(facts.spec, path, hot=True, field=at) for at, path in named}
    for at, path in named:
        problem = problems[path]
        if problem is not None:
            yield problem.model_copy(update={"field": at})


def metrics_exist(facts: Facts) -> Iterator[Diagnostic]:
    for index, trigger in enumerate(facts.spec.schedule.triggers):
        at = f"schedule.triggers.{index}.when.metric"
        yield from check_metric(facts, trigger.when.metric, at)
    if facts.spec.run.best is not None:
        yield from check_metric(facts, facts.spec.run.best, "run.best")


def _check_learn(
    facts: Facts, phase: FlatPhase, at: str, item: str, connected: Sequence[str]
) -> Iterator[Diagnostic]:
    node, _, port = item.partition(".")
    ports = facts.teaching_ports_of(node)
    if (port == "" and ports) or port in ports:
        return
    hint = did_you_mean(item, connected)
    code, why = "learning.no_teaching_port", "but nothing is connected there"
    if node not in facts.nodes:
        code, why = "structure.unknown_node", f"but there is no node `{node}`"
    elif port and port not in PORTS[facts.nodes[node].kind].inputs:
        code, why = "structure.unknown_port", f"but {a(facts.nodes[node].kind)} has no such port"
    elif port and not facts.spec.graph.is_taught_at(node, port):
        why = "which is not a teaching port"
        if PORTS[facts.nodes[node].kind].inputs[port].is_optional:
            why += f" without an algorithm at `algorithm.{port}`"
    elif not connected:
        hint = "connect data to it"
    fixes = corrections(at, item, connected, "Learn {}")
    yield error(code, at, f"{phase.label} learns `{item}`, {why}", hint, *fixes)


def _check_learner(facts: Facts, at: str, name: str) -> Iterator[Diagnostic]:
    message = f"`{name}` is not trained: none of its teaching ports is connected"
    trained = {*facts.learners, *facts.groups}
    yield from _check_name(facts, at, name, trained, message, known=facts.learners)


def _check_kind(facts: Facts, at: str, name: str, kinds: frozenset[str]) -> Iterator[Diagnostic]:
    kind = facts.walk.kinds.get(name, "node")
    message = f"`{name}` is {a(kind)}, not {a(' or '.join(sorted(kinds)))}"
    yield from _check_name(facts, at, name, _of_kinds(facts, kinds), message)
