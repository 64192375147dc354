"""The home of weights that learn: the model with its optimizer and schedule, in a backend."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.models import ONLY
from coloop.plan.settings.settings import UpdateSettings
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import training_of
from coloop.spec.heads import Reading
from coloop.spec.training import Training
from coloop.workers.messages import AtOnce, LearnReply, LearnRequest, TaughtRow
from coloop.workers.taught import taught_rows
from coloop.workers.train_batches import TrainBatches
from coloop.workers.training import Hooks, TrainBackend
from coloop.workers.weights import MODEL, HeldWeights


@dataclass(slots=True, kw_only=True)
class Trainer:
    """See the module."""

    weights: HeldWeights
    backend: TrainBackend
    update: UpdateSettings
    has_changed: bool = False
    """Whether the last order to learn changed the weights; of one that broke off as well."""

    def training(self, spec: LoopSpec) -> Training:
        """The section as a spec has it at a moment, its open values as they were decided."""
        return self.update.fill(training_of(spec, self.weights.name))

    def learn(self, order: LearnRequest, spec: LoopSpec, hooks: Hooks) -> LearnReply:
        """One update: the loads joined, or role after role where an order is given.

        Args:
            spec: with the values of the moment.
        """
        self.has_changed = False
        if order.is_new_phase:
            self.backend.begin_phase(order.phase_updates)
        training, train_batches = self.training(spec), TrainBatches(spec, self.weights)
        parts = train_batches.in_order(order.loads, order.order)
        if order.updates * len(parts) > 1:
            parts = [
                self.backend.prepare(part, training, seed=order.seed, hooks=hooks) for part in parts
            ]
        metrics: dict[str, dict[str, float]] = {}
        samples = tokens = 0
        taught: dict[tuple[str, str, str], TaughtRow] = {}
        before = self.weights.version
        for turn in range(order.updates):
            for number, part in enumerate(parts):
                if self.has_changed:
                    hooks = replace(hooks, should_stop=_never)  # an order is carried to its end
                seed = order.seed + 7919 * turn + number
                with self._noting_changes():
                    report = self.backend.update(part, training, seed=seed, hooks=hooks)
                for role, found in report.metrics.items():
                    metrics.setdefault(role, {}).update(found)
                if turn == order.updates - 1:
                    rows = taught_rows(part, report.seen, self.weights.encoder)
                    taught.update({(one.role, one.port, one.row): one for one in rows})
                if turn == 0:
                    # What is learned from several times is there once in the step.
                    samples += report.rows
                    tokens += report.tokens
        if self.has_changed:
            self.weights.version += 1
        return LearnReply(
            metrics=metrics,
            version=self.weights.version,
            before=before,
            samples=samples,
            tokens=tokens,
            too_long=train_batches.too_long,
            taught=tuple(taught.values()),
        )

    def evaluate(self, order: LearnRequest, spec: LoopSpec, hooks: Hooks) -> LearnReply:
        """Losses of the loads by the weights as they are."""
        training, train_batches = self.training(spec), TrainBatches(spec, self.weights)
        report = self.backend.evaluate(train_batches.of(order.loads), training, hooks=hooks)
        return LearnReply(
            metrics=report.metrics,
            version=self.weights.version,
            before=self.weights.version,
            samples=report.rows,
            tokens=report.tokens,
            too_long=train_batches.too_long,
        )

    @contextmanager
    def _noting_changes(self) -> Iterator[None]:
        """Whether weights changed is known also where an update breaks off."""
        try:
            yield
        finally:
            self.has_changed = self.has_changed or self.backend.has_stepped

    def score(
        self,
        sequences: Sequence[TokenSequence],
        reading: Reading,
        *,
        temperature: float,
        hooks: Hooks,
        node: str = ONLY,
    ) -> list[Numbers]:
        """Log-probs or values of each sequence's tokens by the weights as they are, 0 outside of
        its loss mask; or its score, as a node reads it."""
        return self.backend.score(
            sequences, reading, temperature=temperature, hooks=hooks, node=node
        )

    def at_once(self) -> AtOnce | None:
        """What its passes held at once when it was asked for any last."""
        found = self.backend.at_once()
        return None if found is None else AtOnce(rows=found[0], tokens=found[1])

    def narrow(self, at_once: AtOnce) -> None:
        """No more in a pass from here on."""
        self.backend.narrow(at_once.rows, at_once.tokens)

    def save(self, folder: Path, earlier: Path | None) -> None:
        """The weights in Hugging Face format, an adapter apart from what it stands on; and what a
        resume needs besides them."""
        self.weights.save(folder, earlier)
        self.weights.save_state(folder, {"trainer": self.backend.state_dict(has_weights=False)})

    def load(self, folder: Path) -> None:
        """What `save` wrote."""
        if self.weights.adapted is None:
            saved: dict[str, Any] = {MODEL: self.weights.saved(folder)}
        else:
            saved = self.weights.saved_adapter(folder)
        state = self.weights.saved_state(folder)
        self.backend.load_state_dict({**saved, **state["trainer"]})
        self.weights.version = state["version"]


def _never() -> bool:
    return False
