"""The home of weights that learn: the model with its optimizer and schedule, in a backend."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coloop.algorithms.batch import Pair, Unit
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.rows import rows_of_algorithm
from coloop.plan.settings.settings import UpdateSettings
from coloop.spec.algorithm import Sft, node_algorithms, resolve_algorithm
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
    """Whether the last order to learn changed the weights; of one that broke off as well."""

    @property
    def scorer(self) -> Learner:
        return self.backend

    def training(self, spec: LoopSpec) -> Training:
        """The section as a spec has it at a moment, its open values as they were decided."""
        return self.update.fill(training_of(spec, self.weights.name))

    def learn(self, order: LearnRequest, spec: LoopSpec, hooks: Hooks) -> LearnReply:
        """One update: the loads joined, or role after role where an order is given."""
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
                if self.has_changed:  # an order is carried to its end
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
                    # What is learned from several times is there once in the step.
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
        """Weights in Hugging Face format, an adapter apart, and the trainer's state."""
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


# Rows encoded by the learner's tokenizer, each with its recipe; those too long are left out and
# counted.

REWARDS = "rewards"
"""The port of whose rows each algorithm has advantages of its own."""


class TrainBatches:
    def __init__(self, spec: LoopSpec, weights: HeldWeights) -> None:
        """
        Args:
            spec: with the values of the moment.
        """
        self._spec = spec
        self._weights = weights
        self.too_long: dict[str, tuple[TooLong, ...]] = {}
        """By role, of what was asked for so far."""

    def of(self, items: Items) -> list[TrainBatch]:
        """One batch for each algorithm of these."""
        return [batch for (node, port), own in items.items() for batch in self._of(node, port, own)]

    def in_order(self, items: Items, order: Sequence[str]) -> list[list[TrainBatch]]:
        """One joint part, or a part for each role in the given order, the others joined last."""
        if not order:
            return [self.of(items)]
        parts = [{port: own for port, own in items.items() if port[0] == node} for node in order]
        rest = {port: own for port, own in items.items() if port[0] not in order}
        return [self.of(part) for part in (*parts, rest) if part]

    def _of(self, node: str, port: str, items: Sequence[Unit]) -> list[TrainBatch]:
        rollout = getattr(self._spec.nodes[node], "rollout", None)
        longest = rollout.max_new_tokens if rollout is not None else None
        encoder = self._weights.encoder(node)
        every = [encoder.encoded(item) for item in items]
        refused = self._weights.too_long([_length(row) for row in every])
        too_long = tuple(problem for problem in refused if problem is not None)
        if too_long:
            self.too_long[node] = (*self.too_long.get(node, ()), *too_long)
        rows = [
            self._readable(row)
            for row, problem in zip(every, refused, strict=True)
            if problem is None
        ]
        batches = []
        entries = node_algorithms(self._spec, node)[port]
        for number, entry in enumerate(entries):
            settings = resolve_algorithm(entry, max_new_tokens=longest)
            own = rows
            if port == REWARDS and len(entries) > 1:
                own = [*rows_of_algorithm(rows, number)]  # type: ignore[arg-type]
            if isinstance(entry, Sft) and entry.mask:
                own = [encoder.without_tagged(row, entry.mask) for row in own]  # type: ignore[arg-type]
            batches.append(
                TrainBatch(
                    role=node,
                    port=port,
                    recipe=recipe_of(settings, scored_at(self._spec.nodes[node])),
                    settings=settings,
                    rows=own,  # type: ignore[arg-type]
                    weight=float(entry.weight),
                    temperature=[1.0 if isinstance(row, Pair) else row.temperature for row in own],
                    number=number,
                )
            )
        return batches

    def _readable(self, row: Unit) -> Unit:
        """The row without those of its further texts that the model cannot read."""
        if not isinstance(row, Pair) or not row.extra:
            return row
        refused = self._weights.too_long([len(text.token_ids) for text in row.extra])
        read = (text for text, why in zip(row.extra, refused, strict=True) if why is None)
        return replace(row, extra=tuple(read))


def _length(row: Unit) -> int:
    if isinstance(row, Pair):
        return max(len(row.chosen.token_ids), len(row.rejected.token_ids))
    return len(row.token_ids)
