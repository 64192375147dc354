"""Rows at teaching ports other than `rewards`, ready for the update: demonstrations and pairs.

Edges into one port are taken one after another; an edge's weight scales the loss of its rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coloop.hosts.messages import LearnItem
from coloop.roles.protocol import Context, Input
from coloop.roles.texts import as_example, as_pair, is_masked
from coloop.spec.algorithm import node_algorithms, reads

PAIRS = "pairs"
DEMONSTRATIONS = "demonstrations"
REFERENCE = "reference"


def teaching_items(
    node: str,
    port: str,
    context: Context,
    inputs: Mapping[tuple[str, str], Sequence[Input]],
) -> tuple[tuple[LearnItem, ...], dict[str, Any]]:
    """Items of one port, and what became of its rows."""
    entries = node_algorithms(context.spec, node)[port]
    wants_reference = any(REFERENCE in reads(entry) for entry in entries)
    reference: dict[str, Any] = {}
    for given in inputs.get((node, REFERENCE), ()):
        reference.update(given.table.log_probs or {})
    items: list[LearnItem] = []
    without = greedy = truncated = 0
    edges = {}
    for given in inputs.get((node, port), ()):
        edges[given.edge.key] = {"delivered": len(given.table.rows), "none": 0}
        for row in given.table.rows:
            if row.is_greedy and row.tokens is not None:
                greedy += 1
                continue
            if port == DEMONSTRATIONS and is_masked(row, context.spec):
                truncated += 1
                continue
            if wants_reference and row.id not in reference:
                without += 1
                continue
            is_pair = port == PAIRS
            items.append(
                LearnItem(
                    id=row.id,
                    example=None if is_pair else as_example(row),
                    pair=as_pair(row) if is_pair else None,
                    weight=given.edge.weight,
                    count=float(row.columns.get("drawn", 1.0)),
                    group=row.group or "",
                    reference=reference.get(row.id),
                    probability=_number(row.columns.get("probability"), 1.0),
                    margin=_number(row.columns.get("margin"), 0.0),
                    version=row.version,
                )
            )
    detail = {
        "port": f"{node}.{port}",
        "learned": len(items),
        "edges": edges,
        "without_reference": without,
        "greedy": greedy,
        "truncated": truncated,
    }
    return tuple(items), detail


def _number(value: Any, default: float) -> float:
    return float(value) if isinstance(value, float | int) else default
