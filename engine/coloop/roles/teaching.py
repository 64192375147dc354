"""Rows at teaching ports other than `rewards`, ready for the update: demonstrations, pairs and
returns.

Edges into one port are taken one after another; an edge's weight scales the loss of its rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coloop.batch import Unit
from coloop.roles.protocol import Context, Input
from coloop.roles.texts import as_pair, as_sequence, is_masked
from coloop.spec.algorithm import BradleyTerry, node_algorithms, reads
from coloop.tables import Row

PAIRS = "pairs"
DEMONSTRATIONS = "demonstrations"
RETURNS = "returns"
MARGIN = "margin"
"""Column with the margin of a pair where nobody names another."""
REFERENCE = "reference"


def teaching_items(
    node: str,
    port: str,
    context: Context,
    inputs: Mapping[tuple[str, str], Sequence[Input]],
) -> tuple[tuple[Unit, ...], dict[str, Any]]:
    """Items of one port, and what became of its rows."""
    entries = node_algorithms(context.spec, node)[port]
    margin = next((entry.margin for entry in entries if isinstance(entry, BradleyTerry)), None)
    wants_reference = any(REFERENCE in reads(entry) for entry in entries)
    reference: dict[str, Any] = {}
    for given in inputs.get((node, REFERENCE), ()):
        reference.update(given.table.log_probs or {})
    items: list[Unit] = []
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
            if port == RETURNS:
                items.append(_valued(row, given))
                continue
            known = reference.get(row.id)
            if port == PAIRS:
                items.append(_pair(row, given.edge.weight, known, margin or MARGIN))
            else:
                items.append(_sequence(row, given.edge.weight, known))
    detail = {
        "port": f"{node}.{port}",
        "learned": len(items),
        "edges": edges,
        "without_reference": without,
        "greedy": greedy,
        "truncated": truncated,
    }
    return tuple(items), detail


def _sequence(row: Row, weight: float, reference: Any) -> Unit:
    return as_sequence(
        row,
        weight=weight,
        count=_drawn(row),
        group=row.group or "",
        log_probs_reference=reference,
    )


def _valued(row: Row, given: Input) -> Unit:
    """A rollout with what each of its tokens earned from there on."""
    assert given.table.values is not None
    return as_sequence(
        row,
        weight=given.edge.weight,
        count=_drawn(row),
        group=row.group or "",
        returns=given.table.values[row.id],
    )


def _pair(row: Row, weight: float, reference: Any, margin: str) -> Unit:
    return as_pair(
        row,
        reference,
        weight=weight,
        count=_drawn(row),
        probability=_number(row.columns.get("probability"), 1.0),
        margin=_number(row.columns.get(margin), 0.0),
    )


def _drawn(row: Row) -> float:
    """How often a filter that draws again has drawn the row."""
    return float(row.columns.get("drawn", 1.0))


def _number(value: Any, default: float) -> float:
    return float(value) if isinstance(value, float | int) else default
