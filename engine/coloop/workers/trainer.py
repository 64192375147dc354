"""Trained weights in a worker: the model with its optimizer and schedule, in a backend."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coloop.algorithms.batch import Pair, Unit
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.rows import rows_of_algorithm
from coloop.plan.settings.settings import UpdateSettings
from coloop.spec.algorithm import (
    ResolvedDistillation,
    Sft,
    node_algorithms,
    resolve_algorithm,
)
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import training_of
from coloop.spec.heads import scored_at
from coloop.spec.training import Training
from coloop.workers.messages import Items, LearnReply, LearnRequest, TaughtBy, TooLong
from coloop.workers.training import Hooks, Learner, TrainBatch
from coloop.workers.weights import MODEL, HeldWeights


@dataclass(slots=True, kw_only=True)
class Trainer:
    weights: HeldWeights
    backend: Learner
    update: UpdateSettings
    has_changed: bool = False
    """Whether the last request to learn changed the weights, also if it failed."""

    @property
    def scorer(self) -> Learner:
        return self.backend

    def training(self, spec: LoopSpec) -> Training:
        """The `training` section of a spec, with planned values for settings left open."""
        return self.update.fill(training_of(spec, self.weights.name))

    def learn(self, order: LearnRequest, spec: LoopSpec, hooks: Hooks) -> LearnReply:
        """One update: of all roles jointly, or of one after another if the request has an order."""
        self.has_changed = False
        if order.is_new_phase:
            self.backend.begin_phase(order.phase_updates)
        training, train_batches = self.training(spec), TrainBatches(spec, self.weights)
        parts = train_batches.in_order(order.items, order.order)
        if order.updates * len(parts) > 1:
            parts = [
                self.backend.prepare(part, training, seed=order.seed, hooks=hooks) for part in parts
            ]
        metrics: dict[str, dict[str, float]] = {}
        samples = tokens = 0
        taught: dict[TaughtBy, tuple[TokenSequence, ...]] = {}
        before = self.weights.version
        for turn in range(order.updates):
            for index, part in enumerate(parts):
                if self.has_changed:  # once weights have changed, the request is completed
                    hooks = replace(hooks, should_stop=lambda: False)
                seed = order.seed + 7919 * turn + index
                try:
                    reply = self.backend.update(part, training, seed=seed, hooks=hooks)
                finally:
                    self.has_changed = self.has_changed or self.backend.has_stepped
                for role, own in reply.metrics.items():
                    metrics.setdefault(role, {}).update(own)
                if turn == order.updates - 1:
                    taught |= reply.taught
                if turn == 0:
                    # Rows count once per step, however often they are learned from.
                    samples += reply.samples
                    tokens += reply.tokens
        if self.has_changed:
            self.weights.version += 1
        return LearnReply(
            metrics=metrics,
            version=self.weights.version,
            before=before,
            samples=samples,
            tokens=tokens,
            too_long=train_batches.too_long,
            taught=taught,
            pieces={
                by: tuple(self.weights.encoder(by[0]).pieces(row.token_ids) for row in rows)
                for by, rows in taught.items()
            },
        )

    def evaluate(self, order: LearnRequest, spec: LoopSpec, hooks: Hooks) -> LearnReply:
        training, train_batches = self.training(spec), TrainBatches(spec, self.weights)
        reply = self.backend.evaluate(train_batches.of(order.items), training, hooks=hooks)
        version, too_long = self.weights.version, train_batches.too_long
        return replace(reply, version=version, before=version, too_long=too_long, taught={})

    def save(self, folder: Path, earlier: Path | None) -> None:
        """Write the weights in Hugging Face format, an adapter without its base, and the state of
        the trainer."""
        self.weights.save(folder, earlier)
        self.weights.save_state(folder, {"trainer": self.backend.state_dict(has_weights=False)})

    def load(self, folder: Path) -> None:
        if self.weights.adapted is None:
            saved: dict[str, Any] = {MODEL: self.weights.saved(folder)}
        else:
            saved = self.weights.saved_adapter(folder)
        state = self.weights.saved_state(folder)
        self.backend.load_state_dict({**saved, **state["trainer"]})
        self.weights.version = state["version"]


# The rows of a request as tokens, in a batch per algorithm. Rows that are too long are left out and
# reported.

REWARDS = "rewards"
"""The port at which each algorithm has its own advantages for the rows."""


class TrainBatches:
    def __init__(self, spec: LoopSpec, weights: HeldWeights) -> None:
        """
        Args:
            spec: with the current values of annealed settings.
        """
        self._spec = spec
        self._weights = weights
        self.too_long: dict[str, tuple[TooLong, ...]] = {}
        """By role, the rows that were left out so far."""

    def of(self, items: Items) -> list[TrainBatch]:
        """One batch for each algorithm at these ports."""
        return [batch for (node, port), own in items.items() for batch in self._of(node, port, own)]

    def in_order(self, items: Items, order: Sequence[str]) -> list[list[TrainBatch]]:
        """All batches together, or those of each role in `order`, then those of all other roles."""
        if not order:
            return [self.of(items)]
        parts = [{port: own for port, own in items.items() if port[0] == node} for node in order]
        rest = {port: own for port, own in items.items() if port[0] not in order}
        return [self.of(part) for part in (*parts, rest) if part]

    def _of(self, node: str, port: str, items: Sequence[Unit]) -> list[TrainBatch]:
        rollout = getattr(self._spec.nodes[node], "rollout", None)
        longest = rollout.max_new_tokens if rollout is not None else None
        encoder = self._weights.encoder(node)
        encoded = [encoder.encoded(item) for item in items]
        problems = self._weights.too_long([_length(row) for row in encoded])
        too_long = tuple(problem for problem in problems if problem is not None)
        if too_long:
            self.too_long[node] = (*self.too_long.get(node, ()), *too_long)
        rows = [
            self._without_long_extras(row)
            for row, problem in zip(encoded, problems, strict=True)
            if problem is None
        ]
        batches = []
        entries = node_algorithms(self._spec, node)[port]
        for index, entry in enumerate(entries):
            settings = resolve_algorithm(entry, max_new_tokens=longest)
            algorithm_rows = rows
            if port == REWARDS and len(entries) > 1:
                algorithm_rows = [*rows_of_algorithm(rows, index)]  # type: ignore[arg-type]
            if isinstance(entry, Sft) and entry.mask:
                algorithm_rows = [
                    encoder.without_tagged(row, entry.mask)  # type: ignore[arg-type]
                    for row in algorithm_rows
                ]
            batches.append(
                TrainBatch(
                    role=node,
                    port=port,
                    recipe=recipe_of(settings, scored_at(self._spec.nodes[node])),
                    settings=settings,
                    rows=algorithm_rows,  # type: ignore[arg-type]
                    weight=float(entry.weight),
                    temperature=_temperatures(settings, algorithm_rows),
                    number=index,
                )
            )
        return batches

    def _without_long_extras(self, row: Unit) -> Unit:
        """The row without those of its extra texts that are too long for the model."""
        if not isinstance(row, Pair) or not row.extra:
            return row
        problems = self._weights.too_long([len(text.token_ids) for text in row.extra])
        kept = (text for text, problem in zip(row.extra, problems, strict=True) if problem is None)
        return replace(row, extra=tuple(kept))


def _temperatures(settings: Any, rows: Sequence[Unit]) -> float | list[float]:
    """Of the log-probs of each row: that of sampling, unless a distillation sets its own."""
    if isinstance(settings, ResolvedDistillation) and settings.own_temperature is not None:
        return settings.own_temperature
    return [1.0 if isinstance(row, Pair) else row.temperature for row in rows]


def _length(row: Unit) -> int:
    if isinstance(row, Pair):
        return max(len(row.chosen.token_ids), len(row.rejected.token_ids))
    return len(row.token_ids)
