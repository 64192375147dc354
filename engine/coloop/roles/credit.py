"""Credit: the scores at `rewards` become what the learner's algorithm learns from.

Edges meet on the learner's own rows. What an edge delivers to a row has three values: a number,
`None`, or nothing at all; here both of the latter count as `None`, and a row with nothing but
`None` is out. A row that its limit cut counts in its group's baseline; whether it is taught, its
writer's `rollout.truncated` says. Nothing is trained and no weights are touched.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import compress

import numpy as np

from coloop.arrays import Numbers, mask_of
from coloop.batch import Sequence as TokenSequence
from coloop.errors import DataError
from coloop.recipes import recipe_of
from coloop.recipes.protocol import CreditInput, CreditOutput, EdgeScores, Score
from coloop.recipes.rounds import returns_over_rounds
from coloop.roles.inputs import deliver
from coloop.roles.protocol import Call, Context, Input, Outcome
from coloop.roles.texts import drawn_sequences, is_masked
from coloop.spec.algorithm import (
    RewardsAlgorithm,
    ValueLoss,
    node_algorithms,
    resolve_rewards_algorithm,
)
from coloop.spec.base import as_tuple
from coloop.spec.nodes import ActorNode, VerifierNode
from coloop.tables import Row
from coloop.tables.row import merge_columns
from coloop.tables.table import Table

PORT = "rewards"


def credit_rewards(node: str, context: Context, call: Call) -> Outcome:
    """Items of port `rewards`, one for each row that learns."""
    inputs = call.inputs.get(PORT, ())
    rows = _own_rows(node, call, inputs)
    deliveries = [deliver(context, rows, given) for given in inputs]
    scores = [
        _over_rounds(node, context, rows, [_or_none(delivery.of(row)) for row in rows])
        for delivery in deliveries
    ]
    scored = [any(one is not None for one in of_row) for of_row in zip(*scores, strict=True)]
    kept = list(compress(rows, scored))
    edges = [
        EdgeScores(
            name=given.edge.id or given.edge.source.node,
            weight=given.edge.weight,
            scores=list(compress(said, scored)),
        )
        for given, said in zip(inputs, scores, strict=True)
    ]
    detail = {
        "rows": len(rows),
        "kept": len(kept),
        "edges": {
            given.edge.key: _delivered(delivery.values, rows)
            for given, delivery in zip(inputs, deliveries, strict=True)
        },
    }
    if not kept:
        alert = ("learn.no_rows", f"{node}: no row of this step has a score; nothing is learned")
        return Outcome(items={PORT: ()}, detail=detail, alerts=[alert])
    return _credited(node, context, call, kept, edges, detail)


def _credited(
    node: str,
    context: Context,
    call: Call,
    kept: list[Row],
    edges: list[EdgeScores],
    detail: dict[str, object],
) -> Outcome:
    section = context.spec.nodes[node]
    assert isinstance(section, ActorNode | VerifierNode)
    assert section.rollout is not None
    entry = node_algorithms(context.spec, node)[PORT][0]
    assert isinstance(entry, RewardsAlgorithm)
    settings = resolve_rewards_algorithm(entry, max_new_tokens=section.rollout.max_new_tokens)
    reference = _by_row(call.tables("reference"))
    values = {
        key: one for table in call.tables("values") for key, one in (table.values or {}).items()
    }
    everyone = len(kept)
    if settings.needs_reference:
        kept, edges = _those_in(reference, kept, edges)
    compared = len(kept)
    if settings.needs_values:
        kept, edges = _those_in(values, kept, edges)
    group_of = group_keys(node, context, as_tuple(section.credit.group_by))
    groups = [group_of(row) for row in kept]
    masks = [row.tokens.loss_mask if row.tokens else mask_of([]) for row in kept]
    differences = None
    if settings.kl is not None and settings.kl.into == "reward":
        differences = [_difference(row, reference[row.id]) for row in kept]
    taught = [not is_masked(row, context.spec) for row in kept]
    output: CreditOutput = recipe_of(settings).credit(  # type: ignore[attr-defined]
        CreditInput(
            edges=edges,
            groups=groups,
            loss_masks=masks,
            taught=taught,
            counts=[_drawn(row) for row in kept],
            log_prob_differences=differences,
            values=[values[row.id] for row in kept] if settings.needs_values else None,
            critic_lambda=_critic_lambda(node, context),
        ),
        settings,
        section.credit,
    )
    items = _items(kept, groups, output, reference)
    sizes = Counter(groups).values()
    detail |= {
        "learned": len(items),
        "groups": len(sizes),
        "group_size": max(sizes, default=0),
        "without_reference": everyone - compared,
        "without_values": compared - len(kept),
        "truncated": taught.count(False),
        "versions": sorted({row.version for row in kept}),
    }
    return Outcome(
        items={PORT: items},
        metrics=output.metrics,
        detail=detail,
        alerts=list(output.alerts),
        outputs={
            "credited": Table(rows=_credited_rows(node, kept, output)),
            "returns": _returns(kept, output),
        },
    )


def _over_rounds(
    node: str, context: Context, rows: Sequence[Row], scores: list[Score]
) -> list[Score]:
    """Scores with what later rounds add to them, where the learner's credit says so."""
    section = context.spec.nodes[node]
    credit = getattr(section, "credit", None)
    if credit is None or credit.rounds is None:
        return scores
    places = {row.id: place for place, row in enumerate(rows)}
    below: list[list[int]] = [[] for _ in rows]
    for place, row in enumerate(rows):
        for above in (places[name] for name in row.trail if name in places):
            if rows[above].round == row.round - 1:
                below[above].append(place)
    return returns_over_rounds(
        scores,
        rounds=[row.round for row in rows],
        below=below,
        last_tokens=[_last_token(row) for row in rows],
        discount=credit.rounds.discount,
    )


def _last_token(row: Row) -> int:
    """Position of the last trained token of a completion."""
    trained = np.flatnonzero(row.tokens.loss_mask if row.tokens is not None else [])
    return int(trained[-1]) if trained.size else 0


def _those_in(
    known: Mapping[str, Numbers], rows: list[Row], edges: list[EdgeScores]
) -> tuple[list[Row], list[EdgeScores]]:
    """The rows of which a reference or critic has spoken, and their scores."""
    has = [row.id in known for row in rows]
    return list(compress(rows, has)), [
        EdgeScores(name=edge.name, weight=edge.weight, scores=list(compress(edge.scores, has)))
        for edge in edges
    ]


def _critic_lambda(node: str, context: Context) -> float | None:
    """The lambda of the returns that the node's critics learn; None: the node's own."""
    spec = context.spec
    for edge in spec.graph.edges_out_of(node, "returns"):
        for entry in node_algorithms(spec, edge.target.node).get("returns", ()):
            assert isinstance(entry, ValueLoss)
            return entry.gae_lambda
    return None


def _returns(rows: Sequence[Row], output: CreditOutput) -> Table:
    """What critics learn: the returns of the rows that are taught."""
    found = zip(rows, output.returns or [None] * len(rows), strict=True)
    given = [(row, returns) for row, returns in found if returns is not None]
    return Table(
        rows=tuple(row for row, _ in given), values={row.id: returns for row, returns in given}
    )


def _items(
    rows: Sequence[Row],
    groups: Sequence[Hashable],
    output: CreditOutput,
    reference: Mapping[str, Numbers],
) -> tuple[TokenSequence, ...]:
    """What the learner gets; rows without an advantage teach nothing."""
    teaching = [place for place, one in enumerate(output.advantages) if one is not None]
    taught = [rows[place] for place in teaching]
    return drawn_sequences(
        taught,
        [row.tokens for row in taught if row.tokens is not None],
        group=[str(groups[place]) for place in teaching],
        count=[_drawn(row) for row in taught],
        advantages=[output.advantages[place] for place in teaching],
        log_probs_reference=[reference.get(row.id) for row in taught],
    )


def _drawn(row: Row) -> float:
    """How often a filter that draws again has drawn the row."""
    return float(row.columns.get("drawn", 1.0))


def _credited_rows(node: str, rows: Sequence[Row], output: CreditOutput) -> tuple[Row, ...]:
    """The rows with what came out of it, for people to look at."""
    found = []
    for row, reward, advantage in zip(rows, output.rewards, output.advantages, strict=True):
        columns: dict[str, float | None] = {"reward": reward}
        if isinstance(advantage, float | int):
            columns["advantage"] = float(advantage)
        found.append(row.with_columns(node, columns))
    return tuple(found)


def group_keys(
    node: str, context: Context, group_by: Sequence[str] | None
) -> Callable[[Row], Hashable]:
    """Says of a row of `node` what it shares with its group: the row at the writer's input port, or
    what `group_by` names."""
    if not group_by:
        return lambda row: row.group
    keys = [_key_of(node, context, name) for name in group_by]
    return lambda row: tuple(key(row) for key in keys)


def _key_of(node: str, context: Context, name: str) -> Callable[[Row], Hashable]:
    match name:
        case "prompt":
            return lambda row: max(row.trail, key=lambda ancestor: len(row.trail[ancestor]))
        case "role":
            return lambda row: row.writer
        case "round":
            return lambda row: row.round
    if name not in context.spec.nodes:
        return lambda row: row.columns.get(name)
    births = context.lineage.births_of(name)

    def ancestor(row: Row) -> str:
        found = row.passed.get(name) or row.ancestor_born_at(*births)
        if found is None:
            raise DataError(
                f"{node}: rows are grouped by `{name}`, but row {row.id} descends from no row of "
                f"`{name}`; name a node from which all of them come, or `prompt`",
                node,
            )
        return found

    return ancestor


def _own_rows(node: str, call: Call, inputs: Sequence[Input]) -> tuple[Row, ...]:
    """What the learner wrote in this step, and its own rows that a buffer brings; with what the
    nodes on the way (a filter that draws again) know of them."""
    rows: dict[str, Row] = {row.id: row for row in (call.own.rows if call.own else ())}
    for given in inputs:
        for row in given.table.rows:
            if row.id in rows:
                rows[row.id] = merge_columns(rows[row.id], [row])
            elif row.writer == node:
                rows[row.id] = row
    return tuple(row for row in rows.values() if row.tokens is not None and not row.is_greedy)


def _by_row(tables: Sequence[Table]) -> Mapping[str, Numbers]:
    return {
        row_id: values for table in tables for row_id, values in (table.log_probs or {}).items()
    }


def _difference(row: Row, reference: Numbers) -> Numbers:
    """In double precision, as the difference of two single ones may need it."""
    assert row.tokens is not None
    assert row.tokens.log_probs.shape == reference.shape
    return np.subtract(row.tokens.log_probs, reference, dtype=np.float64)


def _or_none(value: object) -> float | dict[int, float] | None:
    return value if isinstance(value, float | int | dict) else None


def _delivered(values: Mapping[str, object], rows: Sequence[Row]) -> dict[str, int]:
    given = [values[row.id] for row in rows if row.id in values]
    return {"delivered": len(given), "none": sum(value is None for value in given)}
