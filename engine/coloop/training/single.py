"""The `single` backend: one process, one device, plain torch.

    update: prepare loads -> plan steps -> (old log-probs, if more than one step and the rows do not
            bring them from `prepare`) -> each step:
                each load, each micro-batch: forward, loss / divisor, backward
                clip -> optimizer step
Knows token sequences and recipes; no rows, edges, phases or events. The dropout of a model draws
from a generator seeded by the update, so a resumed run draws what the whole run would have drawn.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from coloop.algos.kl import kl_divergence
from coloop.algos.masks import masked_sum
from coloop.batch import Batch, split_units
from coloop.batch import Sequence as TokenSequence
from coloop.errors import CheckpointError, StopRequested
from coloop.recipes.kl_control import KlController
from coloop.spec.dtypes import Dtypes, trained_dtypes
from coloop.spec.training import Training
from coloop.training.forward import (
    TOKENS_AT_ONCE,
    ForwardOptions,
    TokenModel,
    score_sequences,
)
from coloop.training.loads import PreparedLoad, prepare_load
from coloop.training.meter import Meter
from coloop.training.minibatches import Step, plan_steps
from coloop.training.optimizers import GroupOptimizer
from coloop.training.precision import autocast_of, check_trainable, place_weights
from coloop.training.protocol import Hooks, TeachingLoad, UpdateFailed, UpdateReport
from coloop.training.rates import learning_rate

STATE_VERSION = 1


class SingleBackend:
    """Owner of one weights group's training; see `TrainBackend`."""

    def __init__(
        self,
        model: nn.Module,
        training: Training,
        *,
        group: str = "",
        dtypes: Dtypes | None = None,
    ) -> None:
        """
        Args:
            dtypes: how weights are held and computed with; None: as `training` and the device say.
        """
        self.group = group
        if dtypes is None:
            on_gpu = next(model.parameters()).device.type == "cuda"
            dtypes = trained_dtypes(training, has_gpu=on_gpu)
        check_trainable(dtypes)
        self.model = place_weights(model, dtypes)
        self._autocast = autocast_of(dtypes)
        if training.gradient_checkpointing:
            model.gradient_checkpointing_enable(  # type: ignore[operator]
                gradient_checkpointing_kwargs={"use_reentrant": False}
            )
        self.model.eval()
        self._section = training.optimizer
        self._optimizer = GroupOptimizer(self.model, training.optimizer)
        self._tokens = TokenModel(self.model, self._options(training))
        self._kl: dict[str, KlController] = {}
        self._updates = 0
        self._phase_done = 0
        self._phase_total: int | None = None
        self._has_stepped = False

    @property
    def has_stepped(self) -> bool:
        """Whether the last update changed the weights; of one that broke off as well."""
        return self._has_stepped

    @property
    def updates(self) -> int:
        """Updates done since the weights began."""
        return self._updates

    def begin_phase(self, total_updates: int | None) -> None:
        self._phase_done, self._phase_total = 0, total_updates

    def prepare(
        self, loads: Sequence[TeachingLoad], training: Training, *, hooks: Hooks | None = None
    ) -> list[TeachingLoad]:
        self._tokens.options = self._options(training)
        return [self._with_old_log_probs(load, training, hooks or Hooks()) for load in loads]

    def update(
        self,
        loads: Sequence[TeachingLoad],
        training: Training,
        *,
        seed: int,
        hooks: Hooks | None = None,
    ) -> UpdateReport:
        self._has_stepped = False
        prepared, skipped = self._prepare(loads)
        if not prepared:
            return UpdateReport(metrics={}, rows=0, tokens=0, optimizer_steps=0, skipped=skipped)
        rate = learning_rate(training.optimizer, done=self._phase_done, total=self._phase_total)
        steps = plan_steps(
            [load.size for load in prepared],
            mini_batch=training.mini_batch,
            epochs=training.epochs,
            seed=seed,
        )
        run = _Run(prepared, steps, hooks or Hooks())
        self._tokens.options = self._options(training)
        with self._learning(seed):
            self._compare_with_old(run, training)
            self._optimizer.set_rate(training.optimizer, rate)
            for number, step in enumerate(steps):
                self._take_step(run, number, step, training)
        for load in prepared:
            run.meter.add(load.role, "lr", rate, 1.0)
            run.meter.add(load.role, "optimizer_steps", len(steps), 1.0)
        self._updates += 1
        self._phase_done += 1
        self._adapt_kl(run)
        return self._report(run, len(steps), skipped)

    def evaluate(
        self, loads: Sequence[TeachingLoad], training: Training, *, hooks: Hooks | None = None
    ) -> UpdateReport:
        prepared, skipped = self._prepare(loads)
        everything: Step = [list(range(load.size)) for load in prepared]
        run = _Run(prepared, [everything], hooks or Hooks())
        self._tokens.options = self._options(training)
        with torch.no_grad():
            for load, rows in zip(prepared, everything, strict=True):
                self._learn_load(run, load, rows, training, number=0)
        run.close_step()
        return self._report(run, 0, skipped)

    def score(
        self,
        sequences: Sequence[TokenSequence],
        *,
        temperature: float = 1.0,
        hooks: Hooks | None = None,
    ) -> list[list[float]]:
        return score_sequences(self._tokens, sequences, temperature=temperature, hooks=hooks)

    def reset_optimizer(self) -> None:
        self._optimizer = GroupOptimizer(self.model, self._section)

    def state_dict(self) -> dict[str, Any]:
        return {
            "version": STATE_VERSION,
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "updates": self._updates,
            "phase_done": self._phase_done,
            "phase_total": self._phase_total,
            "kl": {name: controller.state() for name, controller in self._kl.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state.get("version") != STATE_VERSION:
            raise CheckpointError(
                f"trainer state of {self.group!r} has version {state.get('version')}, "
                f"expected {STATE_VERSION}"
            )
        try:
            self.model.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimizer"])
        except (KeyError, ValueError, RuntimeError) as error:
            raise CheckpointError(
                f"trainer state does not fit weights group {self.group!r}: {error}"
            ) from error
        self._updates = state["updates"]
        self._phase_done = state["phase_done"]
        self._phase_total = state["phase_total"]
        self._kl = {name: KlController.from_state(kl) for name, kl in state["kl"].items()}

    def _options(self, training: Training) -> ForwardOptions:
        return ForwardOptions(loss_chunk=training.loss_chunk, autocast=self._autocast)

    def _prepare(self, loads: Sequence[TeachingLoad]) -> tuple[list[PreparedLoad], dict[str, int]]:
        prepared = []
        skipped: dict[str, int] = {}
        for load in loads:
            ready, left_out = prepare_load(load, self._kl)
            skipped[load.role] = skipped.get(load.role, 0) + left_out
            if ready is not None:
                prepared.append(ready)
        return prepared, skipped

    @contextmanager
    def _learning(self, seed: int) -> Iterator[None]:
        """Training mode; on any failure the gradient is dropped, and weights stay as they are."""
        devices = [self._tokens.device] if self._tokens.device.type == "cuda" else []
        self.model.train()
        try:
            with torch.random.fork_rng(devices=devices):
                torch.manual_seed(seed)
                yield
        finally:
            self._optimizer.zero_grad()
            self.model.eval()

    def _with_old_log_probs(
        self, load: TeachingLoad, training: Training, hooks: Hooks
    ) -> TeachingLoad:
        ready, _ = prepare_load(load, self._kl)
        if ready is None or not ready.needs.log_probs_old:
            return load
        run = _Run([ready], [[list(range(ready.size))]], hooks)
        measured = iter(self._measure_old(run, ready, training).tolist())
        rows = [
            replace(row, log_probs_old=next(measured)[: len(row.token_ids)])
            if isinstance(row, TokenSequence) and any(row.loss_mask)
            else row
            for row in load.rows
        ]
        return replace(load, rows=rows)  # type: ignore[arg-type]

    def _compare_with_old(self, run: "_Run", training: Training) -> None:
        """Give the loads that compare with it the policy before the first of several steps, as it
        writes, without dropout; and tell how far the engine is from it."""
        self.model.eval()
        for load in run.to_measure():
            load.set_log_probs_old(self._measure_old(run, load, training))
        for load in run.loads:
            old = load.batch.sequences.log_probs_old
            if old is not None:
                _measure_mismatch(run.meter, load.role, load.batch.sequences, old)
        self.model.train()

    def _measure_old(self, run: "_Run", load: PreparedLoad, training: Training) -> Tensor:
        """Log-probs of the load's rows by the weights as they are. (B, T)."""
        old = torch.zeros(load.batch.sequences.token_ids.shape)
        for rows in _micro_batches(load, range(load.size), training):
            run.check_stop()
            part = load.batch.select(rows).sequences.to(self._tokens.device)
            with torch.no_grad():
                outputs = self._tokens.outputs(part, temperature=load.temperature_of(rows))
            log_probs = outputs.log_probs.cpu()
            old[rows, : log_probs.shape[1]] = log_probs
            run.advance(len(rows))
        return old

    def _take_step(self, run: "_Run", number: int, step: Step, training: Training) -> None:
        for load, rows in zip(run.loads, step, strict=True):
            if rows:
                self._learn_load(run, load, rows, training, number=number)
        norm = self._gradient_norm(training.gradient_clip)
        if not torch.isfinite(norm):
            raise UpdateFailed(
                f"the gradient of {self.group!r} is {float(norm)} in optimizer step {number} of "
                f"update {self._updates}; this step was not taken",
                self.group,
                step=number,
            )
        run.has_stepped = self._has_stepped = True
        self._optimizer.step()
        self._optimizer.zero_grad()
        for role in run.roles():
            run.meter.add(role, "grad_norm", norm, 1.0)
        run.close_step()

    def _learn_load(
        self, run: "_Run", load: PreparedLoad, rows: list[int], training: Training, *, number: int
    ) -> None:
        """Add the gradient of one load's share of an optimizer step."""
        whole = load.batch.select(rows)
        divisor = load.recipe.count(whole, load.settings)
        if divisor <= 0:
            return
        parts = _micro_batches(load, rows, training)
        for places in parts:
            run.check_stop()
            part = (whole if len(parts) == 1 else load.batch.select(places)).to(self._tokens.device)
            outputs = self._tokens.outputs(
                part.sequences, temperature=load.temperature_of(places), entropy=load.entropy
            )
            if part.sequences.log_probs_old is None:
                _measure_mismatch(run.meter, load.role, part.sequences, outputs.log_probs)
            result = load.recipe.loss(part, outputs, load.settings)
            loss = result.total * (load.weight / divisor)
            value = loss.detach()
            if not torch.isfinite(value):
                raise UpdateFailed(
                    f"the loss of {load.role}.{load.port} is {float(value)} in optimizer step "
                    f"{number} of update {self._updates} of {self.group!r}, rows "
                    f"{', '.join(part.sequences.ids[:3])}...; this step was not taken",
                    self.group,
                    load.role,
                    load.port,
                    number,
                )
            if loss.requires_grad:
                loss.backward()  # type: ignore[no-untyped-call]
            run.meter.add(load.role, "loss", value, 0.0)
            run.meter.add(load.role, f"loss/{load.port}", result.total.detach() / divisor, 0.0)
            run.meter.add_output(load.role, result)
            run.advance(len(places))

    def _gradient_norm(self, clip: float | None) -> Tensor:
        trained = [p for p in self.model.parameters() if p.grad is not None]
        limit = float("inf") if clip is None else clip
        return torch.nn.utils.clip_grad_norm_(trained, limit, foreach=True)

    def _adapt_kl(self, run: "_Run") -> None:
        for load in run.loads:
            controller = self._kl.get(load.name)
            measured = run.meter.mean(load.role, "kl")
            if controller is not None and measured is not None:
                controller.observe(measured, load.settings.kl, samples=load.size)
                run.meter.add(load.role, "kl/coefficient", controller.coefficient, 1.0)

    def _report(self, run: "_Run", steps: int, skipped: Mapping[str, int]) -> UpdateReport:
        return UpdateReport(
            metrics=run.meter.read(),
            rows=sum(load.size for load in run.loads),
            tokens=sum(int(load.batch.sequences.loss_mask.sum()) for load in run.loads),
            optimizer_steps=steps,
            skipped=skipped,
        )


class _Run:
    """What one update carries along."""

    def __init__(self, loads: list[PreparedLoad], steps: list[Step], hooks: Hooks) -> None:
        self.loads = loads
        self.steps = steps
        self.hooks = hooks
        self.meter = Meter()
        self.has_stepped = False
        self._done = 0
        self._total = sum(len(rows) for step in steps for rows in step)
        self._total += sum(load.size for load in self.to_measure())

    def to_measure(self) -> list[PreparedLoad]:
        """Loads that compare with an old policy which nobody has measured yet; one step alone is
        its own old policy."""
        if len(self.steps) == 1:
            return []
        return [
            load
            for load in self.loads
            if load.needs.log_probs_old and load.batch.sequences.log_probs_old is None
        ]

    def roles(self) -> set[str]:
        return {load.role for load in self.loads}

    def close_step(self) -> None:
        """Losses were added without a count; they are means over optimizer steps."""
        for role in self.roles():
            self.meter.add(role, "loss", 0.0, 1.0)
        for role, port in {(load.role, load.port) for load in self.loads}:
            self.meter.add(role, f"loss/{port}", 0.0, 1.0)

    def check_stop(self) -> None:
        """Stop while nothing has changed yet; a begun update is completed."""
        if not self.has_stepped and self.hooks.should_stop():
            raise StopRequested("stopped before the first optimizer step of an update")

    def advance(self, rows: int) -> None:
        self._done += rows
        self.hooks.progress(self._done, self._total)


def _micro_batches(load: PreparedLoad, rows: Sequence[int], training: Training) -> list[list[int]]:
    lengths = [load.lengths[row] for row in rows]
    tokens = TOKENS_AT_ONCE if training.micro_batch is None else None
    parts = split_units(lengths, rows=training.micro_batch, tokens=tokens)
    return [[rows[place] for place in part] for part in parts]


def _measure_mismatch(meter: Meter, role: str, batch: Batch, log_probs: Tensor) -> None:
    """How far the engine's log-probs are from the trainer's, by the same weights or older ones."""
    if batch.log_probs_rollout is None:
        return
    mask, trainer = batch.loss_mask, log_probs.detach()
    kl = kl_divergence(batch.log_probs_rollout, trainer, estimator="k3")
    meter.add(role, "mismatch_kl", masked_sum(kl, mask), mask.sum())
    difference = torch.where(mask, (trainer - batch.log_probs_rollout).abs(), 0.0)
    meter.add_maximum(role, "mismatch/max", difference.max())
