"""The batch of one algorithm at `rewards`: a step's rows with advantages and what else it reads.

Rows without the reference log-probs, values or greedy row that the algorithm reads are left out and
counted. Rows of other nodes need no reference.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.credit import reward_of_rows
from coloop.algorithms.recipes.rows import CreditBatch
from coloop.data.arrays import Numbers
from coloop.data.tables import Row, Table
from coloop.runtime.roles.credit.credit_rows import (
    Prompts,
    credit_of,
    group_keys,
    own_rows,
    score_rows,
    with_rows_of_others,
)
from coloop.runtime.roles.protocol import Call, Context
from coloop.runtime.roles.rows.texts import is_masked
from coloop.spec.algorithm import ResolvedRewards, lambda_of, reference_edges
from coloop.spec.base import as_tuple
from coloop.spec.training import Credit

PORT = "rewards"
BASELINE_BY = ("source", "role")
"""What rows of one moving baseline have in common, where `credit.group_by` does not say: RAE has a
baseline for each environment and role."""

Baselines = Mapping[Any, float]
"""Moving baselines by edge and key, both in a tuple."""


def credit_batch_of(
    node: str,
    settings: ResolvedRewards,
    call: Call,
    own: CreditBatch,
    baselines: Baselines | None = None,
) -> CreditBatch:
    """The batch of one algorithm of a node.

    Args:
        own: the rows that the node generated.
        baselines: moving baselines of earlier steps.
    """
    context = call.context
    credit = credit_of(node, context)
    everyone, without_prompt = own, 0
    if settings.off_policy is not None:
        prompts = Prompts([*(call.own.rows if call.own else ()), *own.rows])
        everyone, without_prompt = with_rows_of_others(
            node, own, call.delivered(PORT), prompts, settings.off_policy
        )
    scored = everyone.scored()
    by_others = zip(scored.rows, scored.of_others or (), strict=True)
    others = {row.id for row, is_other in by_others if is_other}
    reference = _by_row(table.log_probs for table in _measured_against(node, settings, call))
    values = _by_row(table.values for table in call.tables("values"))
    greedy = _greedy_rewards(node, settings, call, credit)
    lacks: dict[str, Callable[[Row], bool]] = {
        "without_reference": lambda row: (
            settings.needs_reference and row.id not in reference and row.id not in others
        ),
        "without_values": lambda row: settings.needs_values and row.id not in values,
        "without_greedy": lambda row: settings.needs_greedy and row.group not in greedy,
    }
    rows, left_out = _complete(scored, lacks)
    unvalued = [row for row in scored.rows if row.id in others and lacks["without_values"](row)]
    fields: dict[str, Any] = {"log_probs_reference": [reference.get(row.id) for row in rows.rows]}
    if settings.kl is not None and settings.kl.into == "reward":
        fields["log_prob_differences"] = [
            _difference(row, reference.get(row.id)) for row in rows.rows
        ]
    if settings.needs_values:
        fields["values"] = [values[row.id] for row in rows.rows]
    if settings.needs_greedy:
        fields["greedy_scores"] = [greedy[row.group] for row in rows.rows]
    group_of = group_keys(node, context, as_tuple(credit.group_by))
    if settings.needs_baseline:
        key_of = group_keys(node, context, as_tuple(credit.group_by) or BASELINE_BY)
        fields["baseline_keys"] = [key_of(row) for row in rows.rows]
        fields["baselines"] = baselines or {}
    rows = replace(
        rows,
        groups=[group_of(row) for row in rows.rows],
        taught=[not is_masked(row, context.spec) for row in rows.rows],
        critic_lambdas=_critic_lambdas(node, context),
        left_out={"kept": len(scored), **left_out, "without_prompt": without_prompt},
        why_left_out=_why_unvalued(call, unvalued),
        **fields,
    )
    credited: CreditBatch = recipe_of(settings).credit(rows, settings, credit)  # type: ignore[attr-defined]
    return credited


def _measured_against(node: str, settings: ResolvedRewards, call: Call) -> list[Table]:
    """The log-probs to which this algorithm's KL is measured."""
    named = settings.kl.reference if settings.kl is not None else None
    read = reference_edges(call.context.spec, node, PORT)
    return [
        table
        for edge, table in call.delivered("reference").items()
        if edge in read and named in (None, edge.source.node)
    ]


def _by_row(tables: Iterable[Mapping[str, Any] | None]) -> dict[str, Numbers]:
    """Numbers per token from several tables, by row id."""
    return {row_id: numbers for table in tables for row_id, numbers in (table or {}).items()}


def _complete(
    scored: CreditBatch, lacks: Mapping[str, Callable[[Row], bool]]
) -> tuple[CreditBatch, dict[str, int]]:
    """The rows that lack nothing, and by name of what is lacking first, the number of others."""
    left_out = dict.fromkeys(lacks, 0)
    staying = []
    for index, row in enumerate(scored.rows):
        lacking = next((name for name, is_lacking in lacks.items() if is_lacking(row)), None)
        if lacking is None:
            staying.append(index)
        else:
            left_out[lacking] += 1
    return scored.only(staying), left_out


def _difference(row: Row, reference: Numbers | None) -> Numbers:
    """Log-probs minus those of the reference, per token, in float64; 0 for a row without
    reference."""
    assert row.tokens is not None
    if reference is None:
        return np.zeros(len(row.tokens.log_probs))
    assert row.tokens.log_probs.shape == reference.shape
    return np.subtract(row.tokens.log_probs, reference, dtype=np.float64)


def _greedy_rewards(
    node: str, settings: ResolvedRewards, call: Call, credit: Credit
) -> dict[str | None, float]:
    if not settings.needs_greedy:
        return {}
    rows = [row for row in own_rows(node, call, greedy=True) if row.parents]
    scored = score_rows(node, call.context, rows, call.delivered(PORT)).scored()
    rewards = reward_of_rows(scored.edges, scored.loss_masks, settings, credit)
    return {
        row.parents[0]: reward
        for row, reward in zip(scored.rows, rewards, strict=True)
        if reward is not None
    }


def _why_unvalued(call: Call, rows: Sequence[Row]) -> str:
    """Which edges would give the critic the rows of other nodes that have no values; "" without
    such rows."""
    if not rows:
        return ""
    critics = [edge.source.node for edge in call.delivered("values")]
    writers = dict.fromkeys(row.writer for row in rows)
    missing = [
        f"`{writer}.rollouts -> {critic}.rollouts`" for writer in writers for critic in critics
    ]
    return (
        f"{len(rows)} rows of other writers have no values; connect {', '.join(missing)} to the "
        "critic"
    )


def _critic_lambdas(node: str, context: Context) -> tuple[float, ...]:
    critics = [edge.target.node for edge in context.spec.graph.edges_out_of(node, "returns")]
    own = (lambda_of(context.spec, critic) for critic in critics)
    return tuple(dict.fromkeys(ahead for ahead in own if ahead is not None))
