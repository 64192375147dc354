"""Rows at port `reference` of a learner that is distilled: texts with what their teachers say of
each token.

An edge's weight is that of its teacher; a row has the weights of the teachers that have read it,
scaled to a sum of 1.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.distributions import Teacher
from coloop.data.tables import Row, Table
from coloop.errors import NodeFailed
from coloop.runtime.roles.protocol import Context, Inputs
from coloop.runtime.roles.rows.texts import drawn_sequence, is_masked
from coloop.spec.graph import Edge


class TeacherRefused(NodeFailed):
    """A teacher cannot teach its student."""

    code = "learning.teacher_tokenizer"


def distilled_items(
    node: str, context: Context, inputs: Inputs
) -> tuple[tuple[TokenSequence, ...], dict[str, Any]]:
    """The sequences for an update, and details of its rows for the log."""
    rows: dict[str, Row] = {}
    teachers: dict[str, list[Teacher]] = {}
    edges: dict[str, dict[str, int]] = {}
    for edge, table in inputs.items():
        if not context.spec.graph.teaches(edge):
            continue
        edges[edge.key] = {"delivered": len(table.rows), "none": 0}
        for row in table.rows:
            if row.tokens is None or edge.weight <= 0:
                continue
            rows.setdefault(row.id, row)
            teachers.setdefault(row.id, []).append(_teacher(row, edge, table))
    greedy = [row for row in rows.values() if row.is_greedy]
    truncated = [r for r in rows.values() if not r.is_greedy and is_masked(r, context.spec)]
    left_out = {row.id for row in (*greedy, *truncated)}
    items = tuple(
        _sequence(row, teachers[name]) for name, row in rows.items() if name not in left_out
    )
    return items, {
        "port": f"{node}.reference",
        "learned": len(items),
        "edges": edges,
        "greedy": len(greedy),
        "truncated": len(truncated),
    }


def check_teachers(context: Context) -> None:
    """Raises `TeacherRefused` for a teacher whose tokenizer is not that of its student; called
    before a run."""
    graph, known = context.spec.graph, dict[str, tuple[str, int]]()

    def tokenizer(node: str) -> tuple[str, int]:
        if node not in known:
            known[node] = context.hosts.tokenizer(context.groups[node], node)
        return known[node]

    for edge in context.spec.edges:
        teacher, student = edge.source.node, edge.target.node
        if edge.target.port != "reference" or not graph.teaches(edge):
            continue
        own, other = tokenizer(student), tokenizer(teacher)
        if own[0] != other[0]:
            raise TeacherRefused(
                f"`{teacher}` teaches `{student}` token by token, but they have different "
                f"tokenizers: nodes.{teacher}.model has one of {other[1]:,} tokens ({other[0]}), "
                f"nodes.{student}.model one of {own[1]:,} ({own[0]}); take a teacher with the "
                "student's tokenizer, or let it write texts and learn those by `demonstrations`",
                teacher,
                "model",
            )


def _teacher(row: Row, edge: Edge, table: Table) -> Teacher:
    name, said = edge.source.node, (table.distributions or {}).get(row.id)
    if said is not None:
        return replace(said, node=name, weight=edge.weight)
    assert row.tokens is not None
    log_probs: Mapping[str, Any] = table.log_probs or {}
    trained = log_probs[row.id][row.tokens.loss_mask]
    return Teacher(node=name, weight=edge.weight, log_probs=trained)


def _sequence(row: Row, teachers: list[Teacher]) -> TokenSequence:
    assert row.tokens is not None
    total = sum(teacher.weight for teacher in teachers)
    shares = (replace(teacher, weight=teacher.weight / total) for teacher in teachers)
    return drawn_sequence(
        row.id,
        row.tokens,
        version=row.version,
        temperature=row.tokens.temperature,
        count=row.drawn,
        group=row.group or "",
        teachers=tuple(shares),
    )
