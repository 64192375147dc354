"""One update of a weights group, on one process or sharded over ranks.

    update: collate batches -> plan steps -> (values that recipes need of the whole batch, unless
            `prepare` has added them) -> each step:
                each batch, each micro-batch: forward, loss / divisor, backward
                are all losses finite? -> clip -> optimizer step

Each rank gets the whole request and trains on its own rows.

Invariants:
- The divisor of a batch is taken over a whole optimizer step, so micro-batches change nothing.
- The order of rows and dropout follow from seeds that are passed, never from global state.
- `state_dict` is all that an exact resume needs: k + (N - k) updates equal N bit for bit on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from coloop.algorithms.batch import Batch
from coloop.algorithms.kl import kl_divergence
from coloop.algorithms.masks import masked_sum
from coloop.algorithms.recipes.kl_control import KlController
from coloop.algorithms.recipes.protocol import OF_WORDS, LossOutput
from coloop.algorithms.recipes.rows import own_tokens
from coloop.data.seeds import derive_seed
from coloop.errors import CheckpointError, NodeFailed, StopRequested
from coloop.spec.training import Training
from coloop.workers.messages import LearnReply
from coloop.workers.training.adapters import Adapter, LearningAdapter, names_of
from coloop.workers.training.forward import TokenModel, set_training
from coloop.workers.training.meter import Meter
from coloop.workers.training.optimizers import learning_rate
from coloop.workers.training.ranks import ALONE, Hooks, Ranks, Step, passes_of, plan_steps
from coloop.workers.training.scorer import ScoresTexts
from coloop.workers.training.states import ModelStates
from coloop.workers.training.train_batch import (
    Seen,
    SeenTokens,
    TrainBatch,
    collated,
    taught_rows,
    together,
)

STATE_VERSION = 1
STOPPED = "stopped before the first optimizer step of an update"
SEED_STRIDE = 1_000_003
"""Difference between the seeds of neighboring parts, whose dropout must differ."""


class UpdateFailed(NodeFailed):
    """A loss or gradient is not finite; the weights are as they were before that optimizer step."""

    code = "training.not_finite"


class Learner(ScoresTexts):
    """A training backend: a group's model, optimizer, learning-rate schedule and counters. Each
    rank has one; all ranks get the same calls and arguments, and return the same result."""

    def __init__(
        self,
        tokens: TokenModel,
        states: ModelStates,
        adapter: Adapter | None = None,
        *,
        group: str = "",
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(tokens, ranks)
        self.group = group
        self.model: nn.Module = tokens.model
        self.model.eval()
        self.adapted = None
        """The trained adapter with its frozen base; None: all weights are trained."""
        if adapter is not None:
            self.adapted = LearningAdapter(states, adapter, names_of(self.model))
        self.updates = 0  # since the initial weights
        self.has_stepped = False
        """Whether the last update changed the weights, also if it failed."""
        self._states = states
        self._weights_holder = self.adapted or states
        self._dropout = Dropout(self.model)
        self._kl: dict[str, KlController] = {}
        self._phase_done = 0
        self._phase_total: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the model itself holds all weights: they are neither sharded nor an adapter."""
        return self.adapted is None and self._states.is_whole

    def begin_phase(self, total_updates: int | None) -> None:
        """Restart warm-up and decay of the learning rate, which span the updates of a phase."""
        self._phase_done, self._phase_total = 0, total_updates

    def prepare(
        self,
        train_batches: Sequence[TrainBatch],
        training: Training,
        *,
        seed: int,
        hooks: Hooks | None = None,
    ) -> list[TrainBatch]:
        """The batches with the values that recipes need of the whole batch (`Needs.prepares`),
        computed with the current weights. Raises `StopRequested`; nothing has changed then."""
        self._apply_options(training)
        return [
            self._prepared(train_batch, training, seed, hooks or Hooks())
            for train_batch in train_batches
        ]

    def update(
        self,
        train_batches: Sequence[TrainBatch],
        training: Training,
        *,
        seed: int,
        hooks: Hooks | None = None,
    ) -> LearnReply:
        """Train on all batches. For rows that were not prepared, the old policy is that before this
        update. Raises `StopRequested` before the first optimizer step (nothing has changed;
        afterwards the update is completed), `UpdateFailed` on a loss that is not finite."""
        self.has_stepped = False
        batches = self._collated(train_batches)
        if not batches:
            return LearnReply(metrics={}, samples=0, tokens=0)
        rate = learning_rate(training.optimizer, done=self._phase_done, total=self._phase_total)
        steps = plan_steps(
            [train_batch.size for train_batch in batches],
            mini_batch=training.mini_batch,
            epochs=training.epochs,
            seed=seed,
        )
        run = _Run(batches, steps, hooks or Hooks(), self._ranks)
        self._apply_options(training)
        with self._learning(seed):
            self._prepare_missing(run, training, seed)
            norms = []
            for number, step in enumerate(steps):
                norms.append(self._take_step(run, number, step, training, rate))
        run.combine(len(steps))
        for role in run.roles():
            for norm in norms:
                run.meter.add(role, "grad_norm", norm, 1.0)
        for train_batch in batches:
            run.meter.add(train_batch.role, "lr", rate, 1.0)
            run.meter.add(train_batch.role, "optimizer_steps", len(steps), 1.0)
        self.updates += 1
        self._phase_done += 1
        self._adapt_kl(run)
        return self._reply(run)

    def evaluate(
        self, train_batches: Sequence[TrainBatch], training: Training, *, hooks: Hooks | None = None
    ) -> LearnReply:
        batches = self._collated(train_batches)
        everything: Step = [list(range(train_batch.size)) for train_batch in batches]
        run = _Run(batches, [everything], hooks or Hooks(), self._ranks)
        self._apply_options(training)
        self._prepare_missing(run, training, seed=0)
        with torch.no_grad():
            losses, is_stopped = self._learn_step(run, everything, training)
        self._check_step(losses, self._ranks.any_of, is_stopped=is_stopped, number=0)
        run.combine(1)
        return self._reply(run)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each whole weight with its Hugging Face name, one at a time in memory."""
        return self._weights_holder.weights()

    def replace_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Replace weights by name. Optimizer state and counters stay; an adapter starts anew."""
        self._weights_holder.replace(weights)

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        """own = ema * own + (1 - ema) * given, weight by weight; returns the names not given."""
        return self._weights_holder.blend(given, ema)

    def reset_optimizer(self) -> None:
        """Reset the optimizer's state; weights and counters are kept."""
        self._states.reset_optimizer()

    def state_dict(self, *, has_weights: bool = True) -> dict[str, Any]:
        """All that a resume needs, on rank 0, in the form that all backends share. `has_weights`:
        whether weights are included; otherwise they are saved in separate files."""
        return {
            "version": STATE_VERSION,
            **self._weights_holder.state_dict(has_weights=has_weights),
            "updates": self.updates,
            "phase_done": self._phase_done,
            "phase_total": self._phase_total,
            "kl": {name: controller.state() for name, controller in self._kl.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the `state_dict` of any backend; raises `CheckpointError` if it does not fit."""
        if state.get("version") != STATE_VERSION:
            raise CheckpointError(
                f"trainer state of `{self.group}` has version {state.get('version')}, "
                f"expected {STATE_VERSION}"
            )
        try:
            self._weights_holder.load_state_dict(state)
        except (KeyError, ValueError, RuntimeError) as error:
            first, *others = str(error).strip().splitlines() or [type(error).__name__]
            why = " ".join((first + " " + others[0] if others else first).split()).rstrip(".")
            why += f" (and {len(others) - 1} more)" if len(others) > 1 else ""
            raise CheckpointError(
                f"the checkpoint's state of `{self.group}` does not fit its current `model` and "
                f"`training.optimizer.name`: {why}; a resumed run keeps both: set them back, or "
                "start a new run from these weights: `model: {type: run, ...}`"
            ) from error
        self.updates = state["updates"]
        self._phase_done = state["phase_done"]
        self._phase_total = state["phase_total"]
        self._kl = {name: KlController.from_state(kl) for name, kl in state["kl"].items()}

    def _apply_options(self, training: Training) -> None:
        self._tokens.options = replace(self._tokens.options, loss_chunk=training.loss_chunk)

    def _collated(self, train_batches: Sequence[TrainBatch]) -> list[TrainBatch]:
        batches = (collated(train_batch, self._kl) for train_batch in train_batches)
        return [batch for batch in batches if batch.size]

    @contextmanager
    def _learning(self, seed: int) -> Iterator[None]:
        """Random numbers of an update; at its end the gradient is dropped and dropout is off."""
        devices = [self._tokens.device] if self._tokens.device.type == "cuda" else []
        part_seed = seed + self._ranks.part * SEED_STRIDE
        try:
            with torch.random.fork_rng(devices=devices):
                if devices:
                    torch.manual_seed(part_seed)
                else:  # `torch.manual_seed` keeps a stack trace per call until CUDA is used
                    torch.default_generator.manual_seed(part_seed)
                yield
        finally:
            self._states.drop_gradient()
            self._dropout.set("reads")

    def _prepared(
        self, train_batch: TrainBatch, training: Training, seed: int, hooks: Hooks
    ) -> TrainBatch:
        ready = collated(train_batch, self._kl)
        if not ready.size or ready.is_prepared:
            return train_batch
        run = _Run([ready], [[list(range(ready.size))]], hooks, self._ranks)
        self._prepare_batch(run, ready, training, seed)
        return replace(train_batch, rows=ready.rows_with_prepared())

    def _prepare_missing(self, run: _Run, training: Training, seed: int) -> None:
        """Prepare the batches that need it, and measure the engine's mismatch."""
        for train_batch in run.to_prepare():
            self._prepare_batch(run, train_batch, training, seed)
        for train_batch in run.train_batches:
            old = train_batch.batch.sequences.log_probs_old
            if old is not None:
                _measure_mismatch(run.meter, train_batch.role, train_batch.batch.sequences, old)

    def _prepare_batch(
        self, run: _Run, train_batch: TrainBatch, training: Training, seed: int
    ) -> None:
        """Compute the values that a recipe needs of its whole batch, and add them to it."""
        recipe: Any = train_batch.recipe  # it has `prepare`, as its `needs` say
        passes = self._passes(train_batch, range(train_batch.size), training)
        outputs = self._measure(
            train_batch.batch.sequences,
            train_batch.needs,
            [train_batch.sequences_of(units) for units in passes],
            temperature_of=train_batch.temperature_of,
            before_each=partial(run.check_stop, is_together=True),
            after_each=lambda rows: run.advance(rows // train_batch.sides),
            node=train_batch.role,
        )
        if train_batch.extra is not None:
            split = partial(self._tokens.split, rows=training.micro_batch)
            lengths = train_batch.extra.lengths()
            extra = self._measure(
                train_batch.extra,
                train_batch.needs,
                passes_of(self._ranks, range(train_batch.extra.size), lengths, split),
                temperature_of=lambda rows: 1.0,
                before_each=partial(run.check_stop, is_together=True),
                after_each=lambda rows: None,
                node=train_batch.role,
            )
            outputs = replace(outputs, extra=extra)
        generator = torch.Generator().manual_seed(derive_seed(seed, train_batch.name, "prepare"))
        train_batch.give(
            recipe.prepare(train_batch.batch, outputs, train_batch.settings, generator)
        )

    def _passes(
        self,
        train_batch: TrainBatch,
        rows: Sequence[int],
        training: Training,
        *,
        is_in_step: bool = True,
    ) -> list[list[int]]:
        split = partial(self._tokens.split, rows=training.micro_batch)
        batch = train_batch.batch
        return passes_of(
            self._ranks,
            rows,
            train_batch.lengths,
            split,
            batch if isinstance(batch, Batch) else None,  # the sides of pairs are separate
            is_in_step=is_in_step,
        )

    def _take_step(
        self, run: _Run, number: int, step: Step, training: Training, rate: float
    ) -> Tensor:
        losses, is_stopped = self._learn_step(run, step, training)
        self._check_step(losses, self._states.sum_up, is_stopped=is_stopped, number=number)
        was_changed, run.has_stepped, self.has_stepped = run.has_stepped, True, True
        norm = self._states.step(training.optimizer, rate=rate, clip=training.gradient_clip)
        if not torch.isfinite(norm):
            run.has_stepped = self.has_stepped = was_changed
            raise UpdateFailed(
                f"the gradient of {self.group!r} is {float(norm)} in optimizer step {number} of "
                f"update {self.updates}; this step was skipped"
            )
        return norm

    def _learn_step(self, run: _Run, step: Step, training: Training) -> tuple[list[_Loss], bool]:
        """Add the gradient of an optimizer step; returns the loss of each pass, and whether this
        rank was stopped."""
        losses: list[_Loss] = []
        try:
            for train_batch, rows in zip(run.train_batches, step, strict=True):
                if rows:
                    losses += self._learn_batch(run, train_batch, rows, training)
        except StopRequested:
            return [], True
        return losses, False

    def _learn_batch(
        self, run: _Run, train_batch: TrainBatch, rows: list[int], training: Training
    ) -> list[_Loss]:
        """Add the gradient of one batch in an optimizer step; returns the loss of each pass."""
        step_batch = train_batch.batch.select(rows)
        divisor = train_batch.recipe.count(step_batch, train_batch.settings)
        if divisor <= 0:
            return []
        if torch.is_grad_enabled():
            self._dropout.set("drops" if drops(train_batch.port, training) else "learns")
        losses = []
        is_in_step = self._states.is_in_step
        for indices in self._passes(train_batch, rows, training, is_in_step=is_in_step):
            run.check_stop(is_together=is_in_step)
            if not indices:
                self._join_pass(train_batch)
                continue
            is_all = len(indices) == len(rows)
            indices = rows if is_all else indices
            micro_batch = (step_batch if is_all else train_batch.batch.select(indices)).to(
                self._tokens.device
            )
            outputs = self._tokens.outputs(
                micro_batch.sequences,
                train_batch.needs,
                temperature=train_batch.temperature_of(indices),
                node=train_batch.role,
            )
            is_old = micro_batch.sequences.log_probs_old is None and not run.has_stepped
            if is_old and outputs.log_probs is not None:
                _measure_mismatch(
                    run.meter, train_batch.role, micro_batch.sequences, outputs.log_probs
                )
            result = train_batch.recipe.loss(micro_batch, outputs, train_batch.settings)
            loss = result.total * (train_batch.weight / divisor)
            value = loss.detach()
            losses.append((value, train_batch, micro_batch.sequences.ids[:3]))
            if loss.requires_grad:
                self._states.backward(loss)
            run.meter.add(train_batch.role, "loss", value, 0.0)
            run.meter.add(train_batch.role, f"loss/{train_batch.port}", value, 0.0)
            run.show(train_batch, result)
            run.seen.note(train_batch, indices, micro_batch.sequences, result.tokens)
            run.advance(len(indices))
        return losses

    def _join_pass(self, train_batch: TrainBatch) -> None:
        """Take part in a pass for which this rank has no rows: the shortest row, with a gradient of
        zero."""
        shortest = min(range(train_batch.size), key=lambda row: train_batch.lengths[row])
        part = train_batch.batch.select([shortest]).to(self._tokens.device)
        outputs = self._tokens.outputs(part.sequences, train_batch.needs, node=train_batch.role)
        tensors = [
            *(outputs.log_probs, outputs.values, outputs.scores),
            *(outputs.steps, outputs.choices, outputs.divergence),
        ]
        zeros = [
            torch.where(torch.ones_like(numbers, dtype=torch.bool), 0.0, numbers).sum()
            for numbers in tensors
            if numbers is not None and numbers.requires_grad
        ]
        if zeros:
            self._states.backward(torch.stack(zeros).sum())

    def _check_step(
        self,
        losses: Sequence[_Loss],
        agree: Callable[[Sequence[bool]], list[bool]],
        *,
        is_stopped: bool,
        number: int,
    ) -> None:
        """Raises `StopRequested` or `UpdateFailed` on all ranks if one of them was stopped or has a
        loss that is not finite. `agree`: for each flag, whether it is set on any rank."""
        values = torch.stack([loss.float() for loss, _, _ in losses]) if losses else torch.zeros(1)
        is_not_finite = not bool(torch.isfinite(values).all())
        is_stopped, is_not_finite = agree([is_stopped, is_not_finite])
        if is_stopped:
            raise StopRequested(STOPPED)
        if not is_not_finite:
            return
        failed = [
            (train_batch.role, train_batch.port, float(loss), ids)
            for loss, train_batch, ids in losses
            if not torch.isfinite(loss)
        ]
        gathered = self._ranks.gathered(failed[:1])
        role, port, value, rows = next(first[0] for first in gathered if first)
        raise UpdateFailed(
            f"the loss of {role}.{port} is {value} in optimizer step {number} of update "
            f"{self.updates} of {self.group!r}, rows {', '.join(rows)}...; this step was skipped",
            role,
        )

    def _adapt_kl(self, run: _Run) -> None:
        for train_batch in run.train_batches:
            controller = self._kl.get(train_batch.name)
            measured = run.meter.mean(train_batch.role, "kl")
            if controller is not None and measured is not None:
                run.meter.add(train_batch.role, "kl/coefficient", controller.coefficient, 1.0)
                controller.observe(measured, train_batch.settings.kl, samples=train_batch.size)

    def _reply(self, run: _Run) -> LearnReply:
        rows, tokens = _counted(run.train_batches)
        taught = taught_rows(run.train_batches, run.shown)
        return LearnReply(metrics=run.meter.read(), samples=rows, tokens=tokens, taught=taught)


def _counted(train_batches: Iterable[TrainBatch]) -> tuple[int, int]:
    """Rows and trained tokens of an update; a row that several algorithms share counts once."""
    rows = tokens = 0
    known: dict[tuple[str, str], set[str]] = {}
    for train_batch in train_batches:
        seen = known.setdefault((train_batch.role, train_batch.port), set())
        ids = train_batch.batch.sequences.ids[: train_batch.size]
        new = [unit for unit, name in enumerate(ids) if name not in seen]
        seen.update(ids)
        rows += len(new)
        tokens += int(train_batch.batch.sequences.loss_mask[train_batch.sequences_of(new)].sum())
    return rows, tokens


_Loss = tuple[Tensor, TrainBatch, tuple[str, ...]]
"""The loss of one micro-batch, its batch, and ids of the first of its rows."""


class _Run:
    """Batches, progress and metrics of one update on this rank."""

    def __init__(
        self, train_batches: list[TrainBatch], steps: list[Step], hooks: Hooks, ranks: Ranks
    ) -> None:
        self.train_batches = train_batches
        self.steps = steps
        self.hooks = hooks
        self.meter = Meter()
        self.seen = SeenTokens()
        self.shown: Seen = {}
        self.has_stepped = False
        self._ranks = ranks
        self._rewarded = {
            train_batch.role for train_batch in train_batches if train_batch.port == "rewards"
        }
        self._done = 0
        self._total = sum(len(rows) for step in steps for rows in step)
        self._total += sum(train_batch.size for train_batch in self.to_prepare())

    def to_prepare(self) -> list[TrainBatch]:
        """Batches that must still be prepared. With a single optimizer step, the old policy is the
        current one, which needs no preparation."""
        is_one_step = len(self.steps) == 1
        return [
            train_batch
            for train_batch in self.train_batches
            if not train_batch.is_prepared and not (is_one_step and train_batch.needs.prepares_old)
        ]

    def show(self, train_batch: TrainBatch, output: LossOutput) -> None:
        """Add the metrics of one micro-batch. A role with rewards reports entropy and KL only for
        its rewarded texts, as alerts and KL controllers are about what it generates."""
        if train_batch.port != "rewards" and train_batch.role in self._rewarded:
            kept = {name: value for name, value in output.metrics.items() if name not in OF_WORDS}
            output = replace(output, metrics=kept)
        self.meter.add_output(train_batch.role, output)

    def roles(self) -> set[str]:
        return {train_batch.role for train_batch in self.train_batches}

    def combine(self, steps: int) -> None:
        """Combine the metrics of all ranks; losses without a count become means over steps."""
        if self._ranks.size == 1:
            self.shown = self.seen.told()
        else:
            parts = self._ranks.gathered((self.meter.told(), self.seen.told()))
            self.meter = Meter.whole(meter for meter, _ in parts)
            self.shown = together(seen for _, seen in parts)
        for role in self.roles():
            self.meter.add(role, "loss", 0.0, float(steps))
        for role, port in {
            (train_batch.role, train_batch.port) for train_batch in self.train_batches
        }:
            self.meter.add(role, f"loss/{port}", 0.0, float(steps))

    def check_stop(self, *, is_together: bool) -> None:
        """Raises `StopRequested` if a stop was requested and no step was taken yet. `is_together`:
        all ranks make this call, and all raise if one must."""
        if self.has_stepped:
            return
        is_asked = self.hooks.should_stop()
        if self._ranks.any(is_asked) if is_together else is_asked:
            raise StopRequested(STOPPED)

    def advance(self, rows: int) -> None:
        self._done += rows
        self.hooks.progress(self._done, self._total)


def _measure_mismatch(meter: Meter, role: str, batch: Batch, log_probs: Tensor) -> None:
    """Add the distance of the engine's log-probs from the trainer's, for the same weights."""
    if batch.log_probs_rollout is None:
        return
    mask, trainer = own_tokens(batch), log_probs.detach()
    kl = kl_divergence(batch.log_probs_rollout, trainer, estimator="k3")
    meter.add(role, "mismatch_kl", masked_sum(kl, mask), mask.sum())
    difference = torch.where(mask, (trainer - batch.log_probs_rollout).abs(), 0.0)
    meter.add_maximum(role, "mismatch/max", difference.max())


# By default only demonstrations are trained with dropout. Other losses compare log-probs with those
# of the engine, a reference or the old policy, which have no dropout (huggingface/trl #3500).

Mode = Literal["reads", "learns", "drops"]
"""`reads`: inference; `learns`: training without dropout; `drops`: training with dropout."""
DEMONSTRATIONS = "demonstrations"
_DROPOUT_MARKS = ("drop", "jitter")  # in the names of dropout and noise rates


def drops(port: str, training: Training) -> bool:
    """Whether the rows of a teaching port are trained with dropout."""
    return port == DEMONSTRATIONS if training.dropout is None else training.dropout


class Dropout:
    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._mode: Mode = "reads"
        self._kept: list[tuple[Any, str, float]] = []
        """Dropout rates that are 0 for now: owner, attribute and value."""

    def set(self, mode: Mode) -> None:
        if mode == self._mode:
            return
        for owner, name, value in self._kept:
            setattr(owner, name, value)
        self._kept = []
        set_training(self._model, mode == "drops")
        if mode == "learns":
            self._enable_checkpointing()
        self._mode = mode

    def _enable_checkpointing(self) -> None:
        """Set blocks with activation checkpointing to training mode, with dropout rates of 0."""
        modules = self._model.modules()
        blocks = [block for block in modules if getattr(block, "gradient_checkpointing", 0)]
        configs = {id(block.config): block.config for block in blocks if hasattr(block, "config")}
        for owner in (*blocks, *configs.values()):
            for name, value in _dropout_rates(owner):
                self._kept.append((owner, name, value))
                setattr(owner, name, 0.0)
        for module in blocks:
            object.__setattr__(module, "training", True)


def _dropout_rates(owner: object) -> Iterator[tuple[str, float]]:
    for name, value in list(vars(owner).items()):
        if isinstance(value, float) and value > 0 and any(mark in name for mark in _DROPOUT_MARKS):
            yield name, value
