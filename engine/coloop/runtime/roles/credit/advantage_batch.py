"""What one algorithm at `rewards` learns of a step's rows: its advantages, and what it reads
beside.

A row without the reference, values or greedy row that its algorithm reads leaves the update and is
counted. Rows that others wrote are held to no reference.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.credit import reward_of_rows
from coloop.algorithms.recipes.protocol import CreditInput, CreditOutput
from coloop.data.arrays import Numbers, mask_of, numbers_of
from coloop.data.tables import Row
from coloop.runtime.roles.credit.credit_rows import (
    Prompts,
    ScoredRows,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvantageBatch:
    """Rows of a step with the advantages of one algorithm at `rewards`."""

    settings: ResolvedRewards
    scored: ScoredRows
    groups: Sequence[Hashable]
    is_taught: Sequence[bool]
    """False for rows that only count in their group's baseline."""
    reference: Mapping[str, Numbers]
    """By row id, log-probs of the completion by the reference."""
    output: CreditOutput
    left_out: Mapping[str, int]
    """How many rows are not among them, by what they lack."""
    reason: str
    """Why some are not, where an edge to the critic is missing; else empty."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.scored.rows

    @property
    def reads_beside(self) -> bool:
        """Whether it reads of its rows what another node, or a greedy answer, says."""
        settings = self.settings
        return settings.needs_reference or settings.needs_values or settings.needs_greedy

    @property
    def taught(self) -> list[Row]:
        advantages = self.output.advantages
        return [row for row, one in zip(self.rows, advantages, strict=True) if one is not None]

    def weighted(self, weight_of: Mapping[str, float]) -> "AdvantageBatch":
        """The same with each row's advantages times a weight, by its id."""
        advantages = tuple(
            None if one is None else _times(one, weight_of[row.id])
            for row, one in zip(self.rows, self.output.advantages, strict=True)
        )
        return replace(self, output=replace(self.output, advantages=advantages))


def advantage_batch_of(
    node: str, settings: ResolvedRewards, call: Call, own: ScoredRows
) -> AdvantageBatch:
    """What an algorithm of a node learns.

    Args:
        own: the rows that the node wrote.
    """
    context = call.context
    credit = credit_of(node, context)
    everyone, strangers = _with_others(node, settings, call, own)
    scored = everyone.scored()
    read = _Read(node, settings, call, credit)
    rows, left_out = read.rows_of(scored)
    group_of = group_keys(node, context, as_tuple(credit.group_by))
    groups = [group_of(row) for row in rows.rows]
    is_taught = [not is_masked(row, context.spec) for row in rows.rows]
    output: CreditOutput = recipe_of(settings).credit(  # type: ignore[attr-defined]
        CreditInput(
            edges=rows.edges,
            groups=groups,
            loss_masks=[row.tokens.loss_mask if row.tokens else mask_of([]) for row in rows.rows],
            taught=is_taught,
            counts=[row.drawn for row in rows.rows],
            of_others=[row.id in rows.of_others for row in rows.rows],
            critic_lambdas=_critic_lambdas(node, context),
            **read.fields_of(rows),
        ),
        settings,
        credit,
    )
    return AdvantageBatch(
        settings=settings,
        scored=rows,
        groups=groups,
        is_taught=is_taught,
        reference=read.reference,
        output=output,
        left_out={"kept": scored.size, **left_out, "without_prompt": strangers},
        reason=_why_unvalued(call, read.unvalued(scored)),
    )


def _with_others(
    node: str, settings: ResolvedRewards, call: Call, own: ScoredRows
) -> tuple[ScoredRows, int]:
    if settings.off_policy is None:
        return own, 0
    prompts = Prompts([*(call.own.rows if call.own else ()), *own.rows])
    return with_rows_of_others(node, own, call.delivered(PORT), prompts, settings.off_policy)


class _Read:
    """What an algorithm reads of its rows beside their scores."""

    def __init__(self, node: str, settings: ResolvedRewards, call: Call, credit: Credit) -> None:
        self._settings = settings
        self.reference: dict[str, Numbers] = {}
        self._values: dict[str, Numbers] = {}
        for table in call.tables("reference"):
            self.reference |= table.log_probs or {}
        for table in call.tables("values"):
            self._values |= table.values or {}
        self._greedy = _greedy_rewards(node, settings, call, credit)

    def rows_of(self, scored: ScoredRows) -> tuple[ScoredRows, dict[str, int]]:
        """The rows that have all that is read, and how many others lack what."""
        settings = self._settings
        left_out: dict[str, int] = {}
        lacks: dict[str, Callable[[Row], bool]] = {
            "without_reference": lambda row: (
                settings.needs_reference
                and row.id not in self.reference
                and row.id not in scored.of_others
            ),
            "without_values": lambda row: settings.needs_values and row.id not in self._values,
            "without_greedy": lambda row: settings.needs_greedy and row.group not in self._greedy,
        }
        for name, is_left_out in lacks.items():
            before = scored.size
            scored = scored.only([not is_left_out(row) for row in scored.rows])
            left_out[name] = before - scored.size
        return scored, left_out

    def unvalued(self, scored: ScoredRows) -> list[Row]:
        """Rows that others wrote and that no critic values, where values are read."""
        if not self._settings.needs_values:
            return []
        others = [row for row in scored.rows if row.id in scored.of_others]
        return [row for row in others if row.id not in self._values]

    def fields_of(self, scored: ScoredRows) -> dict[str, Any]:
        found: dict[str, Any] = {}
        kl = self._settings.kl
        if kl is not None and kl.into == "reward":
            found["log_prob_differences"] = [self._difference(row) for row in scored.rows]
        if self._settings.needs_values:
            found["values"] = [self._values[row.id] for row in scored.rows]
        if self._settings.needs_greedy:
            found["greedy_scores"] = [self._greedy[row.group] for row in scored.rows]
        return found

    def _difference(self, row: Row) -> Numbers:
        """In double precision; 0 for a row that is held to no reference."""
        assert row.tokens is not None
        reference = self.reference.get(row.id)
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
    masks = [row.tokens.loss_mask if row.tokens else mask_of([]) for row in scored.rows]
    rewards = reward_of_rows(scored.edges, masks, settings, credit)
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
    missing = [f"`{one}.rollouts -> {critic}.rollouts`" for one in writers for critic in critics]
    return (
        f"{len(rows)} rows of other writers have no values; connect {', '.join(missing)} to the "
        "critic"
    )


def _critic_lambdas(node: str, context: Context) -> tuple[float, ...]:
    critics = [edge.target.node for edge in context.spec.graph.edges_out_of(node, "returns")]
    own = (lambda_of(context.spec, critic) for critic in critics)
    return tuple(dict.fromkeys(one for one in own if one is not None))


def _times(advantage: float | Numbers, weight: float) -> float | Numbers:
    if isinstance(advantage, float | int):
        return float(advantage) * weight
    return numbers_of(np.multiply(advantage, weight, dtype=advantage.dtype))
