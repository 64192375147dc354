"""What one algorithm at `rewards` learns of a step's rows: its advantages, and what it reads
beside.

A row without the reference, values or greedy row that its algorithm reads leaves the update and is
counted. Rows that others wrote are held to no reference.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.credit import reward_of_rows
from coloop.algorithms.recipes.rows import CreditBatch
from coloop.data.arrays import Numbers
from coloop.data.tables import Row
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
from coloop.spec.algorithm import ResolvedRewards, lambda_of
from coloop.spec.base import as_tuple
from coloop.spec.training import Credit

PORT = "rewards"


def credit_batch_of(
    node: str, settings: ResolvedRewards, call: Call, own: CreditBatch
) -> CreditBatch:
    """What an algorithm of a node learns.

    Args:
        own: the rows that the node wrote.
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
    beside = _Beside(node, settings, call, credit)
    rows, left_out = beside.rows_of(scored)
    group_of = group_keys(node, context, as_tuple(credit.group_by))
    rows = replace(
        rows,
        groups=[group_of(row) for row in rows.rows],
        taught=[not is_masked(row, context.spec) for row in rows.rows],
        critic_lambdas=_critic_lambdas(node, context),
        left_out={"kept": len(scored), **left_out, "without_prompt": without_prompt},
        why_left_out=_why_unvalued(call, beside.unvalued(scored)),
        **beside.fields_of(rows),
    )
    credited: CreditBatch = recipe_of(settings).credit(rows, settings, credit)  # type: ignore[attr-defined]
    return credited


class _Beside:
    """What an algorithm reads of its rows beside their scores."""

    def __init__(self, node: str, settings: ResolvedRewards, call: Call, credit: Credit) -> None:
        self._settings = settings
        self._reference: dict[str, Numbers] = {}
        self._values: dict[str, Numbers] = {}
        for table in call.tables("reference"):
            self._reference |= table.log_probs or {}
        for table in call.tables("values"):
            self._values |= table.values or {}
        self._greedy = _greedy_rewards(node, settings, call, credit)

    def rows_of(self, scored: CreditBatch) -> tuple[CreditBatch, dict[str, int]]:
        """The rows that have all that is read, and how many others lack what, the first of it."""
        settings = self._settings
        own = {row.id for row, is_other in _with_writer(scored) if not is_other}
        lacks: dict[str, Callable[[Row], bool]] = {
            "without_reference": lambda row: (
                settings.needs_reference and row.id not in self._reference and row.id in own
            ),
            "without_values": lambda row: settings.needs_values and row.id not in self._values,
            "without_greedy": lambda row: settings.needs_greedy and row.group not in self._greedy,
        }
        left_out = dict.fromkeys(lacks, 0)
        staying = []
        for index, row in enumerate(scored.rows):
            lacking = next((name for name, is_lacking in lacks.items() if is_lacking(row)), None)
            if lacking is None:
                staying.append(index)
            else:
                left_out[lacking] += 1
        return scored.only(staying), left_out

    def unvalued(self, scored: CreditBatch) -> list[Row]:
        """Rows that others wrote and that no critic values, where values are read."""
        if not self._settings.needs_values:
            return []
        others = [row for row, is_other in _with_writer(scored) if is_other]
        return [row for row in others if row.id not in self._values]

    def fields_of(self, scored: CreditBatch) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "log_probs_reference": [self._reference.get(row.id) for row in scored.rows]
        }
        kl = self._settings.kl
        if kl is not None and kl.into == "reward":
            fields["log_prob_differences"] = [self._difference(row) for row in scored.rows]
        if self._settings.needs_values:
            fields["values"] = [self._values[row.id] for row in scored.rows]
        if self._settings.needs_greedy:
            fields["greedy_scores"] = [self._greedy[row.group] for row in scored.rows]
        return fields

    def _difference(self, row: Row) -> Numbers:
        """In double precision; 0 for a row that is held to no reference."""
        assert row.tokens is not None
        reference = self._reference.get(row.id)
        if reference is None:
            return np.zeros(len(row.tokens.log_probs))
        assert row.tokens.log_probs.shape == reference.shape
        return np.subtract(row.tokens.log_probs, reference, dtype=np.float64)


def _with_writer(batch: CreditBatch) -> "zip[tuple[Row, bool]]":
    """Each row, and whether others wrote it."""
    return zip(batch.rows, batch.of_others or (), strict=True)


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
    """Over which edges the critic would hear of rows that others wrote and that have no values."""
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
