"""Fields that are written and that nothing reads on the way which others of the loop choose: they
are refused by name, here and nowhere else.

Which those are, tables say: `plan.reads`, and `spec.algorithm_reads` of algorithms. What says what
happens anyway is no finding.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coloop.plan.reads import LEAVE_OUT, OF_BACKENDS, OF_ENGINES, OF_NODES, OF_WAYS, Idle
from coloop.plan.refusal import LATER, NOT_YET, UNREAD, refusal
from coloop.spec.algorithm import PORTS_OF, LabelCrossEntropy, node_algorithms
from coloop.spec.algorithm_reads import Unread, unread_fields
from coloop.spec.diagnostics import Change, Diagnostic, Fix
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import RewardNode, VerifierNode
from coloop.spec.reading import Read

BY_VALUE: Final = ("advantage", "loss", "aggregation", "deviation")
"""Fields that a message calls by their value: `the loss cispo`."""


def check_unread(spec: LoopSpec) -> Iterator[Diagnostic]:
    """Findings about all nodes of a loop, on whatever machine."""
    for name, node in spec.nodes.items():
        yield from _of_node(spec, name)
        read = getattr(node, "read", None)
        if isinstance(node, RewardNode | VerifierNode) and read is not None:
            yield from _of_read(spec, name, read, _way_of(node))
        yield from _of_algorithms(spec, name)


def unread_by_engine(node: str, rollout: object, engine: str) -> Iterator[Diagnostic]:
    """Findings about a writer's `rollout`."""
    return _passed_by(node, "rollout", rollout, OF_ENGINES, engine, f"the `{engine}` engine")


def unread_by_backend(node: str, training: object, backend: str) -> Iterator[Diagnostic]:
    """Findings about a learner's `training`."""
    return _passed_by(node, "training", training, OF_BACKENDS, backend, f"`{backend}`")


def _of_node(spec: LoopSpec, name: str) -> Iterator[Diagnostic]:
    node = spec.nodes[name]
    for row in (one for one in OF_NODES if isinstance(node, one.kind)):
        fields = [one for one in row.fields if _is_said(node, one)]
        if fields and row.when(spec, name, node):
            what = row.what.format(name=name, node=node)
            for field in fields:
                yield _finding(name, field, f"`{field}` {what}", row.hint)


def _is_said(section: Any, field: str) -> bool:
    """Whether it says something else than its default."""
    first, _, rest = field.partition(".")
    value = getattr(section, first)
    if rest:
        return value is not None and _is_said(value, rest)
    return bool(value != type(section).model_fields[first].default)


def _way_of(node: RewardNode | VerifierNode) -> str:
    if isinstance(node, RewardNode):
        return "reward"
    if node.method != "generative":
        return node.method
    if node.rollout is None:
        return "choosing"
    return "weighing" if node.read.score == "probability" else "writing"


def _of_read(spec: LoopSpec, name: str, read: Read, way: str) -> Iterator[Diagnostic]:
    who, fields, *_ = OF_WAYS[way]
    for field in sorted(read.model_fields_set - fields - _read_besides(spec, name, read, way)):
        if _is_said(read, field):
            what = f"`read.{field}`, which {who}{_without(field, way)} does not use (node `{name}`)"
            yield _finding(name, f"read.{field}", what)


def _without(field: str, way: str) -> str:
    """What is missing for a field that is read elsewhere."""
    if field == "order" and OF_WAYS[way].orders:
        return " without `comparisons` or `pairs`"
    return " without `labels`" if field == "values" and OF_WAYS[way].weighs else ""


def _read_besides(spec: LoopSpec, name: str, read: Read, way: str) -> frozenset[str]:
    """Fields that are read for what comes in, and for what is learned."""
    learned = [one for entries in node_algorithms(spec, name).values() for one in entries]
    is_taught_pairs = bool(spec.graph.edges_into(name, "pairs"))
    shows_pairs = is_taught_pairs or bool(spec.graph.edges_into(name, "comparisons"))
    found = {"order"} if shows_pairs and OF_WAYS[way].orders else set()
    found |= {"labels"} if is_taught_pairs else set()
    found |= {"values"} if read.labels is not None and OF_WAYS[way].weighs else set()
    found |= {"score"} if way == "discriminative" and read.labels is not None else set()
    if any(isinstance(one, LabelCrossEntropy) for one in learned):
        found |= {"labels", "values"}
    return frozenset(found)


def _of_algorithms(spec: LoopSpec, name: str) -> Iterator[Diagnostic]:
    node = spec.nodes[name]
    section: Any = getattr(node, "algorithm", None)
    combine = getattr(getattr(node, "credit", None), "combine", None)
    also_read = frozenset({"epsilon"} if combine == "normalize_then_sum" else ())
    for port, entries in node_algorithms(spec, name).items():
        place = "algorithm" if type(section) in PORTS_OF else f"algorithm.{port}"
        for number, entry in enumerate(entries):
            is_listed = isinstance(getattr(section, port, None), tuple)
            here = f"{place}.{number}" if is_listed else place
            for one in unread_fields(entry, also_read=also_read):
                yield _of_algorithm(name, f"{here}.{one.field}", one)


def _of_algorithm(node: str, field: str, one: Unread) -> Diagnostic:
    by, instead = one.reader.by, _written(one.instead)
    chosen = f"the {by} `{instead}`" if by in BY_VALUE else f"`{by}: {instead}`"
    values = sorted(map(_written, one.reader.values))
    others = " or ".join(f"`{by}: {value}`" for value in values) or f"a `{by}`"
    what = f"`{one.field}: {_written(one.value)}` with {chosen}, which does not use it"
    way_out = LEAVE_OUT if one.nothing is None else f"set it to {one.nothing:g}"
    return _finding(node, field, what, f"{way_out}, or set {others}", instead=one.nothing)


def _passed_by(
    node: str, section: str, given: object, table: Mapping[str, Idle], who: str, called: str
) -> Iterator[Diagnostic]:
    for field, idle in table.items():
        value = getattr(given, field, None)
        if who not in idle.read_by and value not in (None, *idle.fine):
            said = "" if isinstance(value, tuple) else f": {value}"
            what = f"`{section}.{field}{said}` with {called}, which does not use it"
            yield _finding(node, f"{section}.{field}", what, LATER)


def _finding(
    node: str, field: str, what: str, hint: str = LEAVE_OUT, *, instead: float | None = None
) -> Diagnostic:
    """
    Args:
        instead: what says nothing, where leaving the field out would say something.
    """
    path = f"nodes.{node}.{field}"
    if instead is None:
        fix = Fix(title=f"Remove `{field}`", changes=(Change(op="remove", path=path),))
    else:
        title = f"Set `{field}` to {instead:g}"
        fix = Fix(title=title, changes=(Change(op="set", path=path, value=instead),))
    begins = NOT_YET if hint == LATER else UNREAD
    return refusal(what, node=node, field=field, hint=hint, fixes=(fix,), begins=begins)


def _written(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
