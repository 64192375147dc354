"""Names in the schedule: ports that learn, buffers, nodes, phases, paths and metrics."""

from collections.abc import Iterable, Iterator
from typing import Any

from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Change, Diagnostic, Fix, closest, did_you_mean
from coloop.spec.paths import check_path
from coloop.spec.ports import PORTS
from coloop.spec.schedule import EpochsOf
from coloop.validate.facts import Facts, PhaseFacts, a, found
from coloop.validate.metrics import check_metric
from coloop.validate.references import of_kinds, unknown_node, unknown_phase


def schedule_names_ports(facts: Facts) -> Iterator[Diagnostic]:
    """`learn` names connected teaching ports; `until` and `fill` name buffers."""
    connected = [f"{node}.{port}" for node, port in sorted(facts.teaching_ports)]
    for phase in facts.phases:
        section = phase.section
        if section is None:
            yield from _check_buffers(facts, phase, as_tuple(facts.spec.schedule.fill), "fill")
            continue
        for index, item in enumerate(section.learn):
            yield from _check_learn(facts, phase, f"{phase.path}.learn.{index}", item, connected)
        yield from _check_buffers(facts, phase, as_tuple(section.fill), "fill")
        for item in as_tuple(section.until):
            buffer, dot, what = item.partition(".")
            if dot and what == "full":
                yield from _check_buffers(facts, phase, (buffer,), "until")
                continue
            yield found(
                "structure.bad_value",
                f"`until: {item}` is not a condition; write `buffer.full`",
                hint=did_you_mean(item, [f"{b}.full" for b in of_kinds(facts, {"buffer"})]),
                field=f"{phase.path}.until",
            )


def schedule_names_nodes(facts: Facts) -> Iterator[Diagnostic]:
    """`learn`, `order`, `epochs.of` and actions name nodes that can do what is asked."""
    schedule = facts.spec.schedule
    for name in schedule.learn:
        yield from _check_learner(facts, name, f"schedule.learn.{name}")
    for index, name in enumerate(schedule.order):
        yield from _check_learner(facts, name, f"schedule.order.{index}")
    sources = frozenset({"dataset", "buffer"})
    for phase in facts.phases:
        epochs = schedule.epochs if phase.section is None else phase.section.epochs
        if isinstance(epochs, EpochsOf):
            yield from _check_kind(facts, epochs.of, sources, f"{phase.path}.epochs.of")
    for path, actions in facts.actions:
        for order in as_tuple(actions.refresh):
            yield from _check_refresh(facts, order.node, f"{path}.refresh")
        for name in as_tuple(actions.reset_optimizer):
            yield from _check_learner(facts, name, f"{path}.reset_optimizer")
        for name in as_tuple(actions.clear):
            yield from _check_kind(facts, name, frozenset({"buffer"}), f"{path}.clear")


def schedule_names_phases(facts: Facts) -> Iterator[Diagnostic]:
    """`over` and `in` name phases; names of phases are unique."""
    schedule = facts.spec.schedule
    for index, item in enumerate(schedule.anneal):
        for name in as_tuple(item.over):
            if name not in facts.phase_names:
                yield unknown_phase(facts, name, field=f"schedule.anneal.{index}.over")
    for index, trigger in enumerate(schedule.triggers):
        for name in as_tuple(trigger.in_):
            if name not in facts.phase_names:
                yield unknown_phase(facts, name, field=f"schedule.triggers.{index}.in")
    seen: set[str] = set()
    for phase in facts.phases:
        if phase.name is not None and phase.name in seen:
            yield found(
                "structure.duplicate_phase",
                f"two phases are named `{phase.name}`",
                hint="give each phase a unique name; use `repeat` to run a phase again",
                field=f"{phase.path}.name",
            )
        seen.add(phase.name or "")


def paths_name_values(facts: Facts) -> Iterator[Diagnostic]:
    """`set`, `anneal` and triggers name values that exist and may change in a run."""
    schedule = facts.spec.schedule
    checked: dict[str, Diagnostic | None] = {}
    for field, path in _paths_in(schedule.phases, "schedule.phases"):
        yield from _check_path(facts, path, field, checked)
    for index, item in enumerate(schedule.anneal):
        yield from _check_path(facts, item.path, f"schedule.anneal.{index}.path", checked)
        if item.complement is not None:
            field = f"schedule.anneal.{index}.complement"
            yield from _check_path(facts, item.complement, field, checked)
    for index, trigger in enumerate(schedule.triggers):
        for path in trigger.do.set:
            yield from _check_path(facts, path, f"schedule.triggers.{index}.do.set", checked)


def metrics_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Triggers and `run.best` name metrics that somebody reports."""
    for index, trigger in enumerate(facts.spec.schedule.triggers):
        yield from check_metric(
            facts, trigger.when.metric, f"schedule.triggers.{index}.when.metric"
        )
    if facts.spec.run.best is not None:
        yield from check_metric(facts, facts.spec.run.best, "run.best")


def _check_learn(
    facts: Facts, phase: PhaseFacts, field: str, item: str, connected: list[str]
) -> Iterator[Diagnostic]:
    node, _, port = item.partition(".")
    ports = facts.teaching_ports_of(node)
    if (port == "" and ports) or port in ports:
        return
    hint = did_you_mean(item, connected)
    if node not in facts.nodes:
        message = f"{phase.label} learns `{item}`, but there is no node `{node}`"
        code = "structure.unknown_node"
    elif port and port not in PORTS[facts.nodes[node].kind].inputs:
        message = f"{phase.label} learns `{item}`, but {a(facts.nodes[node].kind)} has no such port"
        code = "structure.unknown_port"
    elif port and not PORTS[facts.nodes[node].kind].inputs[port].teaching:
        message = f"{phase.label} learns `{item}`, which is not a teaching port"
        code = "learning.no_teaching_port"
    else:
        message = f"{phase.label} learns `{item}`, but nothing is connected there"
        code = "learning.no_teaching_port"
        hint = hint if connected else "connect data to it"
    fixes = [
        Fix(title=f"Learn {near}", changes=(Change(op="set", path=field, value=near),))
        for near in closest(item, connected, limit=1)
    ]
    yield found(code, message, hint=hint, field=field, fixes=tuple(fixes))


def _check_buffers(
    facts: Facts, phase: PhaseFacts, names: Iterable[str], what: str
) -> Iterator[Diagnostic]:
    for name in names:
        yield from _check_kind(facts, name, frozenset({"buffer"}), f"{phase.path}.{what}")


def _check_learner(facts: Facts, name: str, field: str) -> Iterator[Diagnostic]:
    if name not in facts.nodes:
        yield unknown_node(facts, name, None, field, facts.learners)
    elif name not in facts.learners and name not in facts.groups:
        yield found(
            "structure.wrong_kind",
            f"`{name}` is not trained: none of its teaching ports is connected",
            hint=did_you_mean(name, facts.learners),
            field=field,
        )


def _check_refresh(facts: Facts, name: str, field: str) -> Iterator[Diagnostic]:
    derived = [n for n in facts.nodes if _follows(facts, n)]
    if name not in facts.nodes:
        yield unknown_node(facts, name, None, field, derived)
    elif name not in derived:
        yield found(
            "structure.wrong_kind",
            f"`{name}` does not follow other weights: only `snapshot` and `copy` weights can be "
            "refreshed",
            hint=did_you_mean(name, derived),
            field=field,
        )


def _follows(facts: Facts, name: str) -> bool:
    return getattr(facts.model(name), "type", None) in ("snapshot", "copy")


def _check_kind(facts: Facts, name: str, kinds: frozenset[str], field: str) -> Iterator[Diagnostic]:
    if name not in facts.nodes:
        yield unknown_node(facts, name, None, field, of_kinds(facts, kinds))
    elif facts.walk.kinds[name] not in kinds:
        yield found(
            "structure.wrong_kind",
            f"`{name}` is {a(facts.walk.kinds[name])}, not {a(' or '.join(sorted(kinds)))}",
            hint=did_you_mean(name, of_kinds(facts, kinds)),
            field=field,
        )


def _check_path(
    facts: Facts, path: str, field: str, checked: dict[str, Diagnostic | None]
) -> Iterator[Diagnostic]:
    if path not in checked:
        checked[path] = check_path(facts.spec, path, hot=True, field=field)
    problem = checked[path]
    if problem is not None:
        yield problem.model_copy(update={"field": field})


def _paths_in(items: Iterable[Any], place: str) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(items):
        for path in item.set:
            yield f"{place}.{index}.set", path
        yield from _paths_in(getattr(item, "phases", ()), f"{place}.{index}.phases")


RULES = (
    schedule_names_ports,
    schedule_names_nodes,
    schedule_names_phases,
    paths_name_values,
    metrics_exist,
)
