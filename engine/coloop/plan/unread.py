"""Fields that are written and that nothing reads, on the way which others of the node choose."""

from collections.abc import Iterator
from typing import Any

from coloop.diagnostics import Change, Diagnostic, Fix
from coloop.plan.refusal import refusal
from coloop.spec.algorithm import PORTS_OF, node_algorithms
from coloop.spec.algorithm_reads import Unread, unread_fields
from coloop.spec.graph import LoopSpec

NAMED = ("advantage", "loss", "aggregation", "deviation")
"""Fields that a message calls by their value: `the loss cispo`."""


def check_unread(spec: LoopSpec) -> Iterator[Diagnostic]:
    """Findings about all nodes of a loop."""
    for name in spec.nodes:
        yield from _of_algorithms(spec, name)


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
    change = Change(op="remove", path=f"nodes.{node}.{field}")
    return refusal(
        f"`{one.field}: {_written(one.value)}` with {chosen}, which does not read it",
        node=node,
        field=field,
        hint=f"leave it out, or set {others}",
        fixes=(Fix(title=f"Leave out `{one.field}`", changes=(change,)),),
    )


def _written(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
