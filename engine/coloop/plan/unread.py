"""Fields that are written and that nothing reads, on the way which others of the node choose."""

from collections.abc import Iterator
from typing import Any

from coloop.diagnostics import Change, Diagnostic, Fix
from coloop.plan.refusal import refusal
from coloop.spec.algorithm import PORTS_OF, node_algorithms
from coloop.spec.algorithm_reads import Unread, unread_fields
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import EvaluateNode, PairsNode, RewardNode, ToolNode
from coloop.spec.reward import ModelSource

JUDGED_AT = ("scores", "preference")
"""Ports at which pairs hear which side is the better one."""
NAMED = ("advantage", "loss", "aggregation", "deviation")
"""Fields that a message calls by their value: `the loss cispo`."""


def check_unread(spec: LoopSpec) -> Iterator[Diagnostic]:
    """Findings about all nodes of a loop."""
    for name in spec.nodes:
        yield from _of_algorithms(spec, name)
        for field, because in _of_node(spec, name):
            yield _left_out(name, field, f"`{field}` {because}", "leave it out")


def _of_node(spec: LoopSpec, name: str) -> Iterator[tuple[str, str]]:
    """Fields of a node that say something, and why nobody reads them."""
    node = spec.nodes[name]
    because = ""
    fields: tuple[str, ...] = ()
    match node:
        case EvaluateNode() if node.instead_of is None:
            fields = ("greedy", "samples", "temperature")
            because = "of an evaluation of the step's own rows (`instead_of` is not set)"
        case EvaluateNode() if node.greedy:
            fields, because = ("temperature",), "of an evaluation that writes greedily"
        case RewardNode(source=ModelSource()):
            fields = ("on_error",)
            because = "of a reward model: a text that it cannot read has no score"
        case PairsNode() if not any(spec.graph.edges_into(name, port) for port in JUDGED_AT):
            fields, because = ("soft", "drop_ties"), "of pairs without `scores`"
        case ToolNode(type="environment") if node.name is not None:
            fields, because = ("timeout_seconds",), "of an environment that coloop brings"
    for field in fields:
        if getattr(node, field) != type(node).model_fields[field].default:
            yield field, because


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
                yield _refused(name, f"{here}.{one.field}", one)


def _refused(node: str, field: str, one: Unread) -> Diagnostic:
    by, instead = one.reader.by, _written(one.instead)
    chosen = f"the {by} `{instead}`" if by in NAMED else f"`{by}: {instead}`"
    values = sorted(map(_written, one.reader.values))
    others = " or ".join(f"`{by}: {value}`" for value in values) or f"a `{by}`"
    what = f"`{one.field}: {_written(one.value)}` with {chosen}, which does not read it"
    return _left_out(node, field, what, f"leave it out, or set {others}")


def _left_out(node: str, field: str, what: str, hint: str) -> Diagnostic:
    change = Change(op="remove", path=f"nodes.{node}.{field}")
    fixes = (Fix(title=f"Leave out `{field}`", changes=(change,)),)
    return refusal(what, node=node, field=field, hint=hint, fixes=fixes)


def _written(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
