"""Rows at teaching ports other than `rewards`, prepared for the update: demonstrations, pairs,
labels and returns.

The tables of several edges into a port are concatenated; an edge's weight scales the loss of its
rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coloop.algorithms.batch import Pair, Unit
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.labels import LABEL
from coloop.data.tables import OTHER, Row, Table
from coloop.errors import DataError
from coloop.runtime.roles.credit.distilled import distilled_items
from coloop.runtime.roles.protocol import Context, Inputs
from coloop.runtime.roles.rows.labels import graded_as_taught, is_graded, labelled, standing
from coloop.runtime.roles.rows.texts import SIDES, as_pair, as_sequence, is_masked, strangers
from coloop.runtime.roles.verifiers.judge import SWAPPED
from coloop.runtime.roles.verifiers.taught import judges_in_words, pairs_taught, prompts_about
from coloop.runtime.roles.verifiers.verdicts import asked_labels
from coloop.sandbox.inside.values import why_no_score
from coloop.spec.algorithm import (
    SOFT_LOSSES,
    Algorithm,
    BradleyTerry,
    LabelCrossEntropy,
    ResolvedPreference,
    lambda_of,
    measures_others,
    node_algorithms,
    reads,
    resolve_algorithm,
)
from coloop.spec.graph import Edge
from coloop.spec.heads import label_words
from coloop.spec.nodes import Node

PAIRS = "pairs"
LABELS = "labels"
DEMONSTRATIONS = "demonstrations"
RETURNS = "returns"
LEFT_OUT = "rows/left_out"
"""Metric: the share of rows left out of an update because reference log-probs, values or greedy
answers are missing."""
MARGIN = "margin"
"""Default column with the margin of a pair."""
REFERENCE = "reference"
COMPARED = (REFERENCE, "prior")
"""Ports with the log-probs that an algorithm compares its own with."""


def teaching_items(
    node: str,
    port: str,
    context: Context,
    inputs: Mapping[tuple[str, str], Inputs],
    step: int,
) -> tuple[tuple[Unit, ...], dict[str, Any]]:
    """The units for an update from one port, and details of its rows for the log."""
    if port == REFERENCE:
        return distilled_items(node, context, inputs.get((node, port), {}))
    entries = node_algorithms(context.spec, node)[port]
    margin = next((entry.margin for entry in entries if isinstance(entry, BradleyTerry)), None)
    sure = _loss_of_sure_pairs(entries) if port == PAIRS else None
    ahead = lambda_of(context.spec, node) if port == RETURNS else None
    compared = [name for name in COMPARED if any(name in reads(entry) for entry in entries)]
    reference: dict[str, Any] = {}
    others: dict[str, Row] = {}
    for table in (one for name in compared for one in inputs.get((node, name), {}).values()):
        reference.update(table.log_probs or {})
        if any(measures_others(entry) for entry in entries):
            others |= strangers([row for row in table.rows if _is_pair(table, row)])
    items: list[Unit] = []
    without = greedy = truncated = 0
    edges = {}
    for edge, table in inputs.get((node, port), {}).items():
        counts = edges[edge.key] = {"delivered": len(table.rows), "none": 0}
        if chooses(entries):
            chosen = _chosen(node, port, edge, table, entries, context, step)
            items += [unit for unit in chosen if unit is not None]
            counts["none"] = chosen.count(None)
            continue
        for row in _as_taught(node, port, table.rows, context, step):
            if row.is_greedy and row.tokens is not None:
                greedy += 1
                continue
            if port == DEMONSTRATIONS and is_masked(row, context.spec):
                truncated += 1
                continue
            if compared and row.id not in reference:
                without += 1
                continue
            if port == RETURNS:
                items.append(_valued(row, edge, table, ahead))
                continue
            if port == LABELS:
                beside = {"log_probs_reference": reference.get(row.id)} if compared else {}
                label = (table.scores or {}).get(row.id)
                text = labelled(row, edge, label, node, context, entries, **beside)
                if text is None:
                    counts["none"] += 1
                else:
                    items.append(text)
                continue
            if port == PAIRS:
                if sure is not None:
                    _check_sure(row, node, sure)
                known = reference.get(row.id)
                pair = _pair(row, node, edge.weight, known, margin or MARGIN)
                items.append(_with_others(pair, row, others.get(row.id), known))
            else:
                # Whatever a reference has said of the row elsewhere, nobody reads it.
                items.append(as_sequence(row, **standing(row, edge)))
    detail = {
        "port": f"{node}.{port}",
        "learned": len(items),
        "edges": edges,
        "without_reference": without,
        "greedy": greedy,
        "truncated": truncated,
    }
    if compared and (items or without):
        detail[LEFT_OUT] = without / (without + len(items))
    return tuple(items), detail


def columns_that_no_pair_has(node: str, context: Context, given: Inputs) -> list[tuple[str, str]]:
    """Alerts about columns that a scorer of pairs reads and no pair has."""
    entries = node_algorithms(context.spec, node)[PAIRS]
    scorers = [scorer for scorer in entries if isinstance(scorer, BradleyTerry)]
    wanted = [("margin", scorer.margin, "counts as 0") for scorer in scorers if scorer.margin]
    wanted += [("soft", "probability", "counts as 1") for scorer in scorers if scorer.soft]
    pairs = [row for table in given.values() for row in table.rows]
    there = ", ".join(sorted({f"`{name}`" for row in pairs for name in row.columns}))
    return [
        (
            "learn.no_column",
            f"{node}: algorithm.pairs.{field}: none of {len(pairs)} pairs has a number in the "
            f"column `{column}`, so it {counts}; their columns are {there}",
        )
        for field, column, counts in wanted
        if pairs and all(row.columns.get(column) is None for row in pairs)
    ]


def _as_taught(
    node: str, port: str, rows: Sequence[Row], context: Context, step: int
) -> Sequence[Row]:
    """Rows with the texts of a scorer's template, or pairs after the prompts of a judge in
    words."""
    if port in (PAIRS, LABELS) and is_graded(context.spec, node):
        return graded_as_taught(node, port, rows, context, step)
    if port == PAIRS and judges_in_words(context.spec, node):
        return pairs_taught(node, rows, context, step)
    return rows


def _chosen(
    node: str,
    port: str,
    edge: Edge,
    table: Table,
    entries: Sequence[Algorithm],
    context: Context,
    step: int,
) -> list[Unit | None]:
    entry = chooses(entries)
    assert entry is not None
    if is_graded(context.spec, node):
        rows = tuple(graded_as_taught(node, port, table.rows, context, step))
        table = replace(table, rows=rows)
    if port == PAIRS:
        units: list[Unit | None] = [*chosen_sides(node, table.rows, context, step)]
    else:
        units = chosen_labels(node, table, entry, context, step)
    return [None if unit is None else replace(unit, weight=edge.weight) for unit in units]


def _valued(row: Row, edge: Edge, table: Table, ahead: float | None) -> Unit:
    """A rollout with the returns of its tokens. `ahead`: the critic's own lambda; None: the
    actor's."""
    values = table.values if ahead is None else table.values_at[ahead]
    assert values is not None
    return as_sequence(row, returns=values[row.id], **standing(row, edge))


def _pair(row: Row, node: str, weight: float, reference: Any, margin: str) -> Pair:
    return as_pair(
        row,
        reference,
        weight=weight,
        count=row.drawn,
        probability=_number(row, "probability", 1.0, node),
        margin=_number(row, margin, 0.0, node),
    )


def _loss_of_sure_pairs(entries: Sequence[Algorithm]) -> str | None:
    """A loss that is defined only for pairs with a certain preference; None if there is none."""
    resolved = map(resolve_algorithm, entries)
    losses = (settings.loss for settings in resolved if isinstance(settings, ResolvedPreference))
    return next((loss for loss in losses if loss not in SOFT_LOSSES), None)


def _check_sure(row: Row, node: str, loss: str) -> None:
    """Raises `DataError` if the preference of a pair is not certain, as its loss needs."""
    probability = _number(row, "probability", 1.0, node)
    if probability != 1.0:
        names = ", ".join(f"`{name}`" for name in sorted(SOFT_LOSSES))
        raise DataError(
            f"pair {row.id} has the probability {probability:g}, but the loss `{loss}` of "
            f"`{node}.pairs` is defined for certain pairs only; use one of the losses {names}, or "
            "pairs without the column `probability` (`soft: false` at the node that makes them)",
            node,
            "algorithm.pairs.loss",
        )


def _is_pair(table: Table, row: Row) -> bool:
    return isinstance((table.log_probs or {}).get(row.id), dict)


def _with_others(pair: Pair, row: Row, other: Row | None, known: Any) -> Pair:
    """The pair; with another's sides after its prompt as `extra`, if the reference has scored
    them."""
    if other is None or f"{OTHER}chosen" not in known:
        return pair
    log_probs = {side: known[f"{OTHER}{side}"] for side in SIDES}
    crossed = as_pair(row, log_probs, giver=other)
    extra = tuple(
        replace(side_text, count=pair.count) for side_text in (crossed.chosen, crossed.rejected)
    )
    return replace(pair, extra=extra)


def _number(row: Row, column: str, default: float, node: str) -> float:
    """The number in a pair's column, which may be text; the default if it is empty. Raises
    `DataError` for other values."""
    value = row.columns.get(column)
    if value is None:
        return default
    try:
        number = float(value) if isinstance(value, float | int | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if why_no_score(number) is None:
        return number
    raise DataError(
        f"pair {row.id}: `{node}.pairs` reads its column `{column}`, which must be a number, found "
        f"{repr(value)[:80]}; fix it in the data, or leave it empty",
        node,
        "algorithm.pairs",
    )


# Classification (`label_ce`): by a head with one class per label, or in words after a judge's
# prompt.
#
# The target is in the numbers of a unit under `LABEL`: for two labels the probability of the first,
# for more the index of the right one.

TWO = 2


def chooses(entries: Sequence[Algorithm]) -> LabelCrossEntropy | None:
    return next((entry for entry in entries if isinstance(entry, LabelCrossEntropy)), None)


def chosen_labels(
    node: str, table: Table, entry: LabelCrossEntropy, context: Context, step: int
) -> list[Unit | None]:
    """The unit of each row for `label_ce`; None for a row that is greedy or has no label."""
    scores = table.scores or {}
    rows = [row for row in table.rows if scores.get(row.id) is not None and not row.is_greedy]
    targets = {row.id: _target(row, scores[row.id], node, entry, context) for row in rows}
    texts = {
        row.id: text for row, text in zip(rows, _texts(node, rows, context, step), strict=True)
    }
    return [
        replace(texts[row.id], numbers={LABEL: targets[row.id]}) if row.id in texts else None
        for row in table.rows
    ]


def chosen_sides(node: str, rows: Sequence[Row], context: Context, step: int) -> list[Unit]:
    """Units that teach the label of the better side: of the pair as a judge in words sees it, or
    for a head, of each side."""
    if not judges_in_words(context.spec, node):
        return [unit for row in rows for unit in _each_side(row)]
    units: list[Unit] = []
    labels = label_words(context.spec, node) or ()
    for row_prompt in prompts_about(node, rows, context, step, compares=True):
        chance = _chance(row_prompt.row)
        text = asked_labels(row_prompt.row.id, row_prompt.prompt, labels)
        turned = 1 - chance if row_prompt.columns.get(SWAPPED) else chance
        units.append(
            replace(text, id=f"{row_prompt.row.id}/{row_prompt.number}", numbers={LABEL: turned})
        )
    return units


def _each_side(row: Row) -> list[Unit]:
    pair, chance = as_pair(row), _chance(row)
    return [
        replace(text, id=f"{row.id}/{side}", numbers={LABEL: label})
        for side, text, label in zip(
            SIDES, (pair.chosen, pair.rejected), (chance, 1 - chance), strict=True
        )
    ]


def _texts(node: str, rows: Sequence[Row], context: Context, step: int) -> list[TokenSequence]:
    if judges_in_words(context.spec, node):
        labels = label_words(context.spec, node) or ()
        row_prompts = prompts_about(node, rows, context, step, compares=False)
        return [asked_labels(own.row.id, own.prompt, labels) for own in row_prompts]
    return [as_sequence(row) for row in rows]


def _chance(row: Row) -> float:
    given = row.columns.get("probability")
    return float(given) if isinstance(given, float | int) else 1.0


def _target(row: Row, label: Any, node: str, entry: LabelCrossEntropy, context: Context) -> float:
    """The target for a label: the probability of the first of two classes, or the index of the
    class. Raises `DataError` if it is the label of no class."""
    words = label_words(context.spec, node) or ()
    worth = _worth(context.spec.nodes[node], words)
    if len(words) == TWO and not isinstance(label, dict):
        chance = (label - worth[1]) / (worth[0] - worth[1])
        if chance in (0.0, 1.0) or (entry.soft and 0.0 <= chance <= 1.0):
            return float(chance)
    elif not isinstance(label, dict) and label in worth:
        return float(worth.index(label))
    known = ", ".join(f"{word!r} ({number:g})" for word, number in zip(words, worth, strict=True))
    raise DataError(
        f"row {row.id} has the label {label}, but `{node}.labels` learns the classes {known}; set "
        "the value of each in `read.values`"
        + ("" if entry.soft else ", or set `soft` for labels between two"),
        node,
        "read.values",
    )


def _worth(section: Node, words: Sequence[str]) -> list[float]:
    """The label of each class, from `read.values`; by default 1 and 0 for two classes, or else the
    index."""
    values = getattr(getattr(section, "read", None), "values", None) or {}
    own = [1.0, 0.0] if len(words) == TWO else [float(index) for index in range(len(words))]
    return [float(values.get(word, number)) for word, number in zip(words, own, strict=True)]
