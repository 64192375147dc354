"""Credit: turns the scores at `rewards` into what the learner's algorithms learn from.

    rows and scores ──> a batch for each algorithm ──> class weights ──> balance ──> items

A row that was cut at its length limit counts in its group's baseline; its writer's
`rollout.truncated` decides whether it is taught. State beyond a step: adaptive KL coefficients, how
often each class has come, and moving baselines.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.kl_control import (
    Frequencies,
    KlController,
    class_weights,
    moved_frequencies,
)
from coloop.algorithms.recipes.rows import (
    ADVANTAGES,
    OF_OTHERS,
    CreditBatch,
    advantages_of,
    balanced_counts,
)
from coloop.data.arrays import Numbers, numbers_of
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row
from coloop.data.tables.table import Table
from coloop.runtime.roles.credit.credit_batch import Baselines, credit_batch_of
from coloop.runtime.roles.credit.credit_rows import credit_of, group_keys, own_rows, score_rows
from coloop.runtime.roles.credit.teaching import LEFT_OUT
from coloop.runtime.roles.protocol import Call, Context, NodeRole, Outcome
from coloop.runtime.roles.rows.texts import drawn_sequence, drawn_sequences
from coloop.spec.algorithm import ResolvedRewards, node_algorithms, resolve_algorithm
from coloop.spec.groups import rollout_of
from coloop.spec.nodes import ActorNode, VerifierNode
from coloop.spec.training import Balance, ClassWeights

PORT = "rewards"
FLAT = "group/zero_variance"
"""Metric: the share of groups in which all rewards are equal."""


class CreditRole(NodeRole[ActorNode | VerifierNode]):
    """The credit of a node that learns from rewards."""

    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        self._kl: Mapping[int, KlController] = {}
        """By the index of the algorithm."""
        self._frequencies: Frequencies = {}
        self._baselines: Mapping[int, Baselines] = {}
        """By the index of the algorithm."""

    def run(self, call: Call) -> Outcome:
        """Credit the rows of a step; for a probe's rows, without a change of state."""
        if not call.is_probe:
            return self._credited(call)
        memory = self.remember()
        try:
            return self._credited(call)
        finally:
            self.recall(memory)

    def _credited(self, call: Call) -> Outcome:
        rows, inputs = own_rows(self._node, call), call.delivered(PORT)
        own = score_rows(self._node, call.context, rows, inputs)
        batches = [
            self._credit_batch(number, settings, call, own)
            for number, settings in enumerate(self._algorithms(call.context))
        ]
        detail: dict[str, Any] = {"rows": len(rows), **_told(batches)}
        if not any(batch.rows for batch in batches):
            message = f"{self._node}: {_why_none(batches)}; nothing is learned"
            return Outcome(
                items={PORT: ()},
                outputs={"credited": Table(), "returns": Table()},
                detail=detail,
                alerts=[("learn.no_rows", message)],
            )
        credit = credit_of(self._node, call.context)
        batches, shares = self._by_class(batches, credit.class_weights)
        counts = balanced(self._node, call, credit.balance, batches)
        items = items_of(batches, counts)
        metrics: dict[str, float] = {**shares, **_left_out(batches)}
        for batch in reversed(batches):  # of what several know, the first algorithm's stands
            metrics |= batch.metrics
        why = dict.fromkeys(batch.why_left_out for batch in batches if batch.why_left_out)
        reasons = {LEFT_OUT: "; ".join(why)} if why else {}
        if metrics.get(FLAT) == 1.0:
            reasons |= _why_flat(self._node, rows, call.context)
        without = (
            [] if items else [("learn.no_rows", f"{self._node}: no row is left to learn from")]
        )
        return Outcome(
            items={PORT: items},
            metrics=metrics,
            reasons=reasons,
            detail={**detail, "learned": len(items)},
            alerts=[*(alert for batch in batches for alert in batch.alerts), *without],
            outputs={
                "credited": Table(rows=_credited_rows(self._node, batches[0])),
                "returns": _returns(batches),
            },
        )

    def _algorithms(self, context: Context) -> list[ResolvedRewards]:
        rollout = rollout_of(context.spec, self._node)
        longest = rollout.max_new_tokens if rollout is not None else None
        return [
            resolve_algorithm(entry, max_new_tokens=longest)
            for entry in node_algorithms(context.spec, self._node)[PORT]
        ]

    def _credit_batch(
        self, number: int, settings: ResolvedRewards, call: Call, own: CreditBatch
    ) -> CreditBatch:
        """The batch of one algorithm. Its moving baselines move on, and if its KL coefficient in
        the reward is adaptive, it is updated by the measured KL."""
        kl = settings.kl
        if kl is None or kl.into != "reward" or kl.target is None:
            return self._moved(number, settings, call, own)
        controller = replace(self._kl.get(number) or KlController.of(kl))
        settings = controller.applied(settings)
        batch = self._moved(number, settings, call, own)
        coefficient = controller.coefficient
        if batch.kl is not None:
            controller.observe(batch.kl, kl, samples=len(batch))
        self._kl = {**self._kl, number: controller}
        return replace(batch, metrics={**batch.metrics, "kl/coefficient": coefficient})

    def _moved(
        self, number: int, settings: ResolvedRewards, call: Call, own: CreditBatch
    ) -> CreditBatch:
        batch = credit_batch_of(self._node, settings, call, own, self._baselines.get(number))
        if settings.needs_baseline:
            self._baselines = {**self._baselines, number: batch.baselines}
        return batch

    def _by_class(
        self, batches: list[CreditBatch], section: ClassWeights | None
    ) -> tuple[list[CreditBatch], dict[str, float]]:
        """The batches with each row's advantages multiplied by the weight of its class; and the
        share of each class so far, as metrics."""
        if section is None:
            return batches, {}
        classes = {row.id: _class_of(row, section.by) for row, _ in _advantages(batches)}
        self._frequencies = moved_frequencies(
            self._frequencies, [*classes.values()], ema=section.ema
        )
        weights = class_weights(self._frequencies, shape=section.shape)
        weight_of = {
            row: 1.0 if label is None else weights[label] for row, label in classes.items()
        }
        shares = {f"class/{label:g}": share for label, share in self._frequencies.items()}
        return [_weighted(batch, weight_of) for batch in batches], shares

    def remember(self) -> Any:
        return self._kl, self._frequencies, self._baselines

    def recall(self, memory: Any) -> None:
        self._kl, self._frequencies, self._baselines = memory

    def state(self) -> dict[str, Any]:
        return {
            "kl": {str(number): controller.state() for number, controller in self._kl.items()},
            "frequencies": [[label, share] for label, share in self._frequencies.items()],
            "baselines": [
                [number, edge, list(key), value]
                for number, baselines in self._baselines.items()
                for (edge, key), value in baselines.items()
            ],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._kl = {
            int(number): KlController.from_state(values) for number, values in state["kl"].items()
        }
        self._frequencies = {float(label): float(share) for label, share in state["frequencies"]}
        baselines: dict[int, dict[Any, float]] = {}
        for number, edge, key, value in state.get("baselines", ()):
            baselines.setdefault(int(number), {})[edge, tuple(key)] = float(value)
        self._baselines = baselines


def _why_flat(node: str, rows: Sequence[Row], context: Context) -> dict[str, str]:
    """The reason for equal rewards where other policies write the problems."""
    above = dict.fromkeys(name.partition(":")[0] for row in rows for name in row.trail)
    writers = [
        f"`{name}`"
        for name in above
        if name != node and isinstance(context.spec.nodes.get(name), ActorNode)
    ]
    if not writers:
        return {}
    return {
        FLAT: f"its problems come from {', '.join(writers)}, and all are too easy or too hard; "
        "pay for problems that are solved sometimes (a reward with `name: band`), or keep only "
        "these (a filter with `rule: score`, `min` and `max`)"
    }


def _class_of(row: Row, scorer: str) -> float | None:
    value = row.column(scorer)
    return float(value) if isinstance(value, float | int) else None


def _weighted(batch: CreditBatch, weight_of: Mapping[str, float]) -> CreditBatch:
    """The batch with each row's advantages multiplied by its weight. `weight_of`: by row id."""
    weights = [weight_of.get(row.id, 1.0) for row in batch.rows]
    advantages = tuple(
        None if advantage is None else _times(advantage, weight)
        for advantage, weight in zip(batch.advantages, weights, strict=True)
    )
    return replace(batch, advantages=advantages)


def _times(advantage: float | Numbers, weight: float) -> float | Numbers:
    if isinstance(advantage, float | int):
        return float(advantage) * weight
    return numbers_of(np.multiply(advantage, weight, dtype=advantage.dtype))


LACKING = {
    "without_reference": "log-probs of the reference",
    "without_values": "values of the critic",
    "without_greedy": "a greedy answer to compare with",
}
"""By count in `left_out`, what the rows lack, in words."""


def _why_none(batches: Sequence[CreditBatch]) -> str:
    widest = max(batches, key=lambda batch: batch.left_out["kept"])
    lacking = [words for name, words in LACKING.items() if widest.left_out[name]]
    if not lacking:
        return "no row of this step has a score"
    return f"none of the {widest.left_out['kept']} rows that have a score has {lacking[0]}"


def _left_out(batches: Sequence[CreditBatch]) -> dict[str, float]:
    """Metric: the share of scored rows left out of the update, of the algorithm with the
    largest."""
    shares = [
        sum(batch.left_out[name] for name in LACKING) / batch.left_out["kept"]
        for batch in batches
        if batch.left_out["kept"] and _reads_beside(batch.settings)
    ]
    return {LEFT_OUT: max(shares)} if shares else {}


def _reads_beside(settings: ResolvedRewards) -> bool:
    """Whether an algorithm needs reference log-probs, values or greedy scores of its rows."""
    return settings.needs_reference or settings.needs_values or settings.needs_greedy


def _told(batches: Sequence[CreditBatch]) -> dict[str, Any]:
    """Details of the step for the log, from the algorithm that learns from most rows."""
    widest = max(batches, key=len)
    sizes = Counter(widest.groups).values()
    return {
        **widest.left_out,
        "edges": {
            edge.key: {"delivered": edge.delivered, "none": edge.none} for edge in widest.edges
        },
        "groups": len(sizes),
        "group_size": max(sizes, default=0),
        "truncated": list(widest.taught or ()).count(False),
        "versions": sorted({row.version for row in widest.rows}),
    }


def _credited_rows(node: str, batch: CreditBatch) -> tuple[Row, ...]:
    credited = []
    for row, reward, advantage in zip(batch.rows, batch.rewards, batch.advantages, strict=True):
        columns: dict[str, float | None] = {"reward": reward}
        if isinstance(advantage, float | int):
            columns["advantage"] = float(advantage)
        credited.append(row.with_columns(node, columns))
    return tuple(credited)


def _returns(batches: Sequence[CreditBatch]) -> Table:
    """The returns that critics learn, from the first algorithm that has some."""
    batch = next((batch for batch in batches if batch.returns is not None), batches[0])

    def by_row(returns: Sequence[Numbers | None]) -> dict[str, Numbers]:
        known = zip(batch.rows, returns, strict=True)
        return {row.id: own for row, own in known if own is not None}

    values = by_row(batch.returns or [None] * len(batch))
    return Table(
        rows=tuple(row for row in batch.rows if row.id in values),
        values=values,
        values_at={ahead: by_row(returns) for ahead, returns in batch.returns_at.items()},
    )


# From batches to the learner's sequences: one per row, with the advantages of each algorithm, and
# how often it counts.

Counts = Mapping[str, float]
"""By row id, how often a row counts in the update; other rows count as often as they were drawn."""


def balanced(
    node: str, call: Call, section: Balance | None, batches: Sequence[CreditBatch]
) -> Counts:
    """Counts that balance the rows of each group as `section` says. The size of a row is its mean
    absolute advantage, in the first algorithm that has one."""
    if section is None:
        return {}
    key_of = group_keys(node, call.context, (section.per,))
    sizes: dict[str, float] = {}
    groups: dict[Any, list[Row]] = {}
    for row, advantage in _advantages(batches):
        if row.id not in sizes:
            sizes[row.id] = float(np.abs(advantage).mean())
            groups.setdefault(key_of(row), []).append(row)
    new_counts: dict[str, float] = {}
    for key, rows in groups.items():
        counts = balanced_counts(
            [round(row.drawn) for row in rows],
            [sizes[row.id] for row in rows],
            to=section.to,
            by=section.by,
            seed=derive_seed(call.context.seed, node, "balance", call.step, key),
        )
        new_counts |= {row.id: float(count) for row, count in zip(rows, counts, strict=True)}
    return new_counts


def items_of(batches: Sequence[CreditBatch], counts: Counts) -> tuple[TokenSequence, ...]:
    """The sequences for the learner, without rows that have no advantage."""
    if len(batches) == 1 and batches[0].settings.off_policy is None:
        return _items_of_one(batches[0], counts)
    rows = {row.id: row for row, _ in _advantages(batches)}
    indices = [{row.id: index for index, row in enumerate(batch.rows)} for batch in batches]
    counted = ((row, counts.get(row.id, row.drawn)) for row in rows.values())
    return tuple(_item(row, batches, indices, count) for row, count in counted if count)


def _items_of_one(batch: CreditBatch, counts: Counts) -> tuple[TokenSequence, ...]:
    """The same for a single algorithm, where rows have only its advantages; converted in one
    call."""
    row_counts = [counts.get(row.id, row.drawn) for row in batch.rows]
    taught = [
        index
        for index, (advantage, count) in enumerate(zip(batch.advantages, row_counts, strict=True))
        if advantage is not None and count
    ]
    rows: list[Row] = [batch.rows[index] for index in taught]
    reference = batch.log_probs_reference or [None] * len(batch)
    return drawn_sequences(
        rows,
        [row.tokens for row in rows if row.tokens is not None],
        group=[str(batch.groups[index]) for index in taught],
        count=[row_counts[index] for index in taught],
        advantages=[batch.advantages[index] for index in taught],
        log_probs_reference=[reference[index] for index in taught],
    )


def _item(
    row: Row, batches: Sequence[CreditBatch], places: Sequence[Mapping[str, int]], count: float
) -> TokenSequence:
    assert row.tokens is not None
    by_name: dict[str, float | Numbers] = {}
    group, is_of_others = "", False
    reference: Numbers | None = None
    for number, batch in enumerate(batches):
        index = places[number].get(row.id)
        advantage = None if index is None else batch.advantages[index]
        if index is None or advantage is None:
            continue
        by_name[advantages_of(number)] = advantage
        group = group or str(batch.groups[index])
        is_of_others = bool(batch.of_others and batch.of_others[index])
        reference = batch.log_probs_reference[index] if batch.log_probs_reference else None
    if any(batch.settings.off_policy is not None for batch in batches):
        by_name[OF_OTHERS] = float(is_of_others)
    if is_of_others:
        reference = np.zeros(len(row.tokens.token_ids), dtype=np.float32)
    own = by_name.pop(ADVANTAGES, None)
    return drawn_sequence(
        row.id,
        row.tokens,
        version=row.version,
        temperature=row.tokens.temperature,
        group=group,
        count=count,
        advantages=own,
        log_probs_reference=reference,
        numbers=by_name,
    )


def _advantages(batches: Sequence[CreditBatch]) -> list[tuple[Row, float | Numbers]]:
    return [
        (row, advantage)
        for batch in batches
        for row, advantage in zip(batch.rows, batch.advantages, strict=True)
        if advantage is not None
    ]
