"""One update of a weights group, wherever its model states lie.

    update: prepare loads -> plan steps -> (what recipes ask of the whole batch, if the rows do not
            bring them from `prepare`) -> each step:
                each load, each micro-batch: forward, loss / divisor, backward
                are all losses finite? -> clip -> optimizer step

Each rank knows the whole order and learns from its own rows.

Invariants:
- The divisor of a load is taken over a whole optimizer step, so micro-batches change nothing.
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
"""Between the seeds of two parts, whose rows want dropout of their own."""


class UpdateFailed(NodeFailed):
    """A loss or gradient is not finite; the weights are as they were before that optimizer step."""

    code = "training.not_finite"


class Learner(ScoresTexts):
    """A training backend: one group's model, optimizer, schedule and counters over model states.
    Each rank has one; all are called alike with everything and give the same answer."""

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
        if adapter is not None:
            self.adapted = LearningAdapter(states, adapter, names_of(self.model))
        """The adapter that learns, and what it stands on; None: all weights learn."""
        self.updates = 0  # updates done since the weights began
        self.has_stepped = False
        """Whether the last update changed the weights; of one that broke off as well."""
        self._states = states
        self._held = self.adapted or states
        self._dropout = Dropout(self.model)
        self._kl: dict[str, KlController] = {}
        self._phase_done = 0
        self._phase_total: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the model that it was given still holds all weights, for others to read."""
        return self.adapted is None and self._states.is_whole

    def begin_phase(self, total_updates: int | None) -> None:
        """A phase's entry starts: warm-up and decay of the learning rate span its updates."""
        self._phase_done, self._phase_total = 0, total_updates

    def prepare(
        self,
        loads: Sequence[TrainBatch],
        training: Training,
        *,
        seed: int,
        hooks: Hooks | None = None,
    ) -> list[TrainBatch]:
        """The loads with what recipes ask of the whole batch (`Needs.prepares`) by today's weights.
        Raises `StopRequested`; nothing has changed then."""
        self._follow(training)
        return [self._with_prepared(load, training, seed, hooks or Hooks()) for load in loads]

    def update(
        self,
        loads: Sequence[TrainBatch],
        training: Training,
        *,
        seed: int,
        hooks: Hooks | None = None,
    ) -> LearnReply:
        """Learn from all loads; the policy before is the old one of rows that were not prepared.
        Raises `StopRequested` before the first optimizer step (nothing has changed; afterwards the
        update is completed), `UpdateFailed` on a loss that is not finite."""
        self.has_stepped = False
        prepared = self._prepare(loads)
        if not prepared:
            return LearnReply(metrics={}, samples=0, tokens=0)
        rate = learning_rate(training.optimizer, done=self._phase_done, total=self._phase_total)
        steps = plan_steps(
            [load.size for load in prepared],
            mini_batch=training.mini_batch,
            epochs=training.epochs,
            seed=seed,
        )
        run = _Run(prepared, steps, hooks or Hooks(), self._ranks)
        self._follow(training)
        with self._learning(seed):
            self._prepare_all(run, training, seed)
            norms = []
            for number, step in enumerate(steps):
                norms.append(self._take_step(run, number, step, training, rate))
        run.put_together(len(steps))
        for role in run.roles():
            for norm in norms:
                run.meter.add(role, "grad_norm", norm, 1.0)
        for load in prepared:
            run.meter.add(load.role, "lr", rate, 1.0)
            run.meter.add(load.role, "optimizer_steps", len(steps), 1.0)
        self.updates += 1
        self._phase_done += 1
        self._adapt_kl(run)
        return self._reply(run)

    def evaluate(
        self, loads: Sequence[TrainBatch], training: Training, *, hooks: Hooks | None = None
    ) -> LearnReply:
        prepared = self._prepare(loads)
        everything: Step = [list(range(load.size)) for load in prepared]
        run = _Run(prepared, [everything], hooks or Hooks(), self._ranks)
        self._follow(training)
        self._prepare_all(run, training, seed=0)
        with torch.no_grad():
            losses, is_stopped = self._learn_step(run, everything, training)
        self._check_step(losses, self._ranks.any_of, is_stopped=is_stopped, number=0)
        run.put_together(1)
        return self._reply(run)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, by its Hugging Face name, one at a time in memory."""
        return self._held.weights()

    def replace_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take these by name; running means and counters stay, an adapter begins anew."""
        self._held.replace(weights)

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        """own = ema * own + (1 - ema) * given, a weight at a time; names that were not given."""
        return self._held.blend(given, ema)

    def reset_optimizer(self) -> None:
        """Forget the optimizer's running means; weights and counters stay."""
        self._states.reset_optimizer()

    def state_dict(self, *, has_weights: bool = True) -> dict[str, Any]:
        """All that a resume needs, on the first rank, in every backend's form. `has_weights`: else
        these are saved in files of their own."""
        return {
            "version": STATE_VERSION,
            **self._held.state_dict(has_weights=has_weights),
            "updates": self.updates,
            "phase_done": self._phase_done,
            "phase_total": self._phase_total,
            "kl": {name: controller.state() for name, controller in self._kl.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """What any backend's `state_dict` gave; raises `CheckpointError` where it does not fit."""
        if state.get("version") != STATE_VERSION:
            raise CheckpointError(
                f"trainer state of `{self.group}` has version {state.get('version')}, "
                f"expected {STATE_VERSION}"
            )
        try:
            self._held.load_state_dict(state)
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

    def _follow(self, training: Training) -> None:
        self._tokens.options = replace(self._tokens.options, loss_chunk=training.loss_chunk)

    def _prepare(self, loads: Sequence[TrainBatch]) -> list[TrainBatch]:
        every = (collated(load, self._kl) for load in loads)
        return [load for load in every if load.size]

    @contextmanager
    def _learning(self, seed: int) -> Iterator[None]:
        """Training mode and random numbers of an update; a failure drops the gradient."""
        devices = [self._tokens.device] if self._tokens.device.type == "cuda" else []
        own = seed + self._ranks.part * SEED_STRIDE
        try:
            with torch.random.fork_rng(devices=devices):
                if devices:
                    torch.manual_seed(own)
                else:  # which where no GPU was used keeps a stack for each call
                    torch.default_generator.manual_seed(own)
                yield
        finally:
            self._states.drop_gradient()
            self._dropout.set("reads")

    def _with_prepared(
        self, load: TrainBatch, training: Training, seed: int, hooks: Hooks
    ) -> TrainBatch:
        ready = collated(load, self._kl)
        if not ready.size or ready.is_prepared:
            return load
        run = _Run([ready], [[list(range(ready.size))]], hooks, self._ranks)
        self._prepare_whole(run, ready, training, seed)
        return replace(load, rows=ready.rows_with_prepared())

    def _prepare_all(self, run: _Run, training: Training, seed: int) -> None:
        """What recipes prepare, before the first of several steps; and the engine's mismatch."""
        for load in run.to_prepare():
            self._prepare_whole(run, load, training, seed)
        for load in run.loads:
            old = load.batch.sequences.log_probs_old
            if old is not None:
                _measure_mismatch(run.meter, load.role, load.batch.sequences, old)

    def _prepare_whole(self, run: _Run, load: TrainBatch, training: Training, seed: int) -> None:
        """Give a load what its recipe asks of the whole batch."""
        recipe: Any = load.recipe  # one that prepares, as it says itself
        passes = self._passes(load, range(load.size), training)
        outputs = self._measure(
            load.batch.sequences,
            load.needs,
            [load.sequences_of(units) for units in passes],
            temperature_of=load.temperature_of,
            before_each=partial(run.check_stop, is_together=True),
            after_each=lambda rows: run.advance(rows // load.sides),
            node=load.role,
        )
        if load.extra is not None:
            split = partial(self._tokens.split, rows=training.micro_batch)
            lengths = load.extra.lengths()
            extra = self._measure(
                load.extra,
                load.needs,
                passes_of(self._ranks, range(load.extra.size), lengths, split),
                temperature_of=lambda rows: 1.0,
                before_each=partial(run.check_stop, is_together=True),
                after_each=lambda rows: None,
                node=load.role,
            )
            outputs = replace(outputs, extra=extra)
        generator = torch.Generator().manual_seed(derive_seed(seed, load.name, "prepare"))
        load.give(recipe.prepare(load.batch, outputs, load.settings, generator))

    def _passes(
        self,
        load: TrainBatch,
        rows: Sequence[int],
        training: Training,
        *,
        is_in_step: bool = True,
    ) -> list[list[int]]:
        split = partial(self._tokens.split, rows=training.micro_batch)
        batch = load.batch if isinstance(load.batch, Batch) else None  # of pairs sides are apart
        return passes_of(self._ranks, rows, load.lengths, split, batch, is_in_step=is_in_step)

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
        """Add a step's gradient; each pass's loss, and whether this rank was stopped."""
        losses: list[_Loss] = []
        try:
            for load, rows in zip(run.loads, step, strict=True):
                if rows:
                    losses += self._learn_load(run, load, rows, training)
        except StopRequested:
            return [], True
        return losses, False

    def _learn_load(
        self, run: _Run, load: TrainBatch, rows: list[int], training: Training
    ) -> list[_Loss]:
        """Add the gradient of one load's share of an optimizer step; the loss of each pass."""
        whole = load.batch.select(rows)
        divisor = load.recipe.count(whole, load.settings)
        if divisor <= 0:
            return []
        if torch.is_grad_enabled():
            self._dropout.set("drops" if drops(load.port, training) else "learns")
        losses = []
        is_in_step = self._states.is_in_step
        for places in self._passes(load, rows, training, is_in_step=is_in_step):
            run.check_stop(is_together=is_in_step)
            if not places:
                self._pass_nothing(load)
                continue
            is_all = len(places) == len(rows)
            places = rows if is_all else places
            part = (whole if is_all else load.batch.select(places)).to(self._tokens.device)
            outputs = self._tokens.outputs(
                part.sequences, load.needs, temperature=load.temperature_of(places), node=load.role
            )
            if part.sequences.log_probs_old is None and outputs.log_probs is not None:
                _measure_mismatch(run.meter, load.role, part.sequences, outputs.log_probs)
            result = load.recipe.loss(part, outputs, load.settings)
            loss = result.total * (load.weight / divisor)
            value = loss.detach()
            losses.append((value, load, part.sequences.ids[:3]))
            if loss.requires_grad:
                self._states.backward(loss)
            run.meter.add(load.role, "loss", value, 0.0)
            run.meter.add(load.role, f"loss/{load.port}", value, 0.0)
            run.show(load, result)
            run.seen.note(load, places, part.sequences, result.tokens)
            run.advance(len(places))
        return losses

    def _pass_nothing(self, load: TrainBatch) -> None:
        """Take part in a pass of the other ranks: the shortest row, for a gradient of zero."""
        shortest = min(range(load.size), key=lambda row: load.lengths[row])
        part = load.batch.select([shortest]).to(self._tokens.device)
        outputs = self._tokens.outputs(part.sequences, load.needs, node=load.role)
        read = [
            *(outputs.log_probs, outputs.values, outputs.scores),
            *(outputs.steps, outputs.choices),
        ]
        nothing = [
            torch.where(torch.ones_like(numbers, dtype=torch.bool), 0.0, numbers).sum()
            for numbers in read
            if numbers is not None and numbers.requires_grad
        ]
        if nothing:
            self._states.backward(torch.stack(nothing).sum())

    def _check_step(
        self,
        losses: Sequence[_Loss],
        agree: Callable[[Sequence[bool]], list[bool]],
        *,
        is_stopped: bool,
        number: int,
    ) -> None:
        """Raises on all ranks `StopRequested` or `UpdateFailed` where it is so on any. `agree`: of
        each flag whether it is so on any rank."""
        values = torch.stack([loss.float() for loss, _, _ in losses]) if losses else torch.zeros(1)
        is_bad = not bool(torch.isfinite(values).all())
        is_stopped, is_bad = agree([is_stopped, is_bad])
        if is_stopped:
            raise StopRequested(STOPPED)
        if not is_bad:
            return
        bad = [
            (load.role, load.port, float(loss), ids)
            for loss, load, ids in losses
            if not torch.isfinite(loss)
        ]
        gathered = self._ranks.gathered(bad[:1])
        role, port, value, rows = next(first[0] for first in gathered if first)
        raise UpdateFailed(
            f"the loss of {role}.{port} is {value} in optimizer step {number} of update "
            f"{self.updates} of {self.group!r}, rows {', '.join(rows)}...; this step was skipped",
            role,
        )

    def _adapt_kl(self, run: _Run) -> None:
        for load in run.loads:
            controller = self._kl.get(load.name)
            measured = run.meter.mean(load.role, "kl")
            if controller is not None and measured is not None:
                run.meter.add(load.role, "kl/coefficient", controller.coefficient, 1.0)
                controller.observe(measured, load.settings.kl, samples=load.size)

    def _reply(self, run: _Run) -> LearnReply:
        rows, tokens = _counted(run.loads)
        taught = taught_rows(run.loads, run.shown)
        return LearnReply(metrics=run.meter.read(), samples=rows, tokens=tokens, taught=taught)


def _counted(loads: Iterable[TrainBatch]) -> tuple[int, int]:
    """Rows and trained tokens of an update; what several algorithms learn at one port is there
    once."""
    rows = tokens = 0
    known: dict[tuple[str, str], set[str]] = {}
    for load in loads:
        seen = known.setdefault((load.role, load.port), set())
        ids = load.batch.sequences.ids[: load.size]
        fresh = [unit for unit, name in enumerate(ids) if name not in seen]
        seen.update(ids)
        rows += len(fresh)
        tokens += int(load.batch.sequences.loss_mask[load.sequences_of(fresh)].sum())
    return rows, tokens


_Loss = tuple[Tensor, TrainBatch, tuple[str, ...]]
"""The loss of one micro-batch, its batch, and ids of the first of its rows."""


class _Run:
    def __init__(
        self, loads: list[TrainBatch], steps: list[Step], hooks: Hooks, ranks: Ranks
    ) -> None:
        self.loads = loads
        self.steps = steps
        self.hooks = hooks
        self.meter = Meter()
        self.seen = SeenTokens()
        self.shown: Seen = {}
        self.has_stepped = False
        self._ranks = ranks
        self._rewarded = {load.role for load in loads if load.port == "rewards"}
        self._done = 0
        self._total = sum(len(rows) for step in steps for rows in step)
        self._total += sum(load.size for load in self.to_prepare())

    def to_prepare(self) -> list[TrainBatch]:
        """Loads whose recipes ask for what nobody has prepared yet; one step alone is its own old
        policy."""
        is_one_step = len(self.steps) == 1
        return [
            load
            for load in self.loads
            if not load.is_prepared and not (is_one_step and load.needs.prepares_old)
        ]

    def show(self, load: TrainBatch, output: LossOutput) -> None:
        """What a recipe shows of one micro-batch. Of a role that learns from scores, entropy and KL
        are those of the texts that are scored: alerts and controllers look at what it writes."""
        if load.port != "rewards" and load.role in self._rewarded:
            kept = {name: value for name, value in output.metrics.items() if name not in OF_WORDS}
            output = replace(output, metrics=kept)
        self.meter.add_output(load.role, output)

    def roles(self) -> set[str]:
        return {load.role for load in self.loads}

    def put_together(self, steps: int) -> None:
        """What all ranks saw, in one reduction; losses without a count are means over steps."""
        if self._ranks.size == 1:
            self.shown = self.seen.told()
        else:
            parts = self._ranks.gathered((self.meter.told(), self.seen.told()))
            self.meter = Meter.whole(meter for meter, _ in parts)
            self.shown = together(seen for _, seen in parts)
        for role in self.roles():
            self.meter.add(role, "loss", 0.0, float(steps))
        for role, port in {(load.role, load.port) for load in self.loads}:
            self.meter.add(role, f"loss/{port}", 0.0, float(steps))

    def check_stop(self, *, is_together: bool) -> None:
        """Stop while nothing has changed; `is_together`: all ranks ask, and all stop."""
        if self.has_stepped:
            return
        is_asked = self.hooks.should_stop()
        if self._ranks.any(is_asked) if is_together else is_asked:
            raise StopRequested(STOPPED)

    def advance(self, rows: int) -> None:
        self._done += rows
        self.hooks.progress(self._done, self._total)


def _measure_mismatch(meter: Meter, role: str, batch: Batch, log_probs: Tensor) -> None:
    """How far the engine's log-probs are from the trainer's, of texts by these weights."""
    if batch.log_probs_rollout is None:
        return
    mask, trainer = own_tokens(batch), log_probs.detach()
    kl = kl_divergence(batch.log_probs_rollout, trainer, estimator="k3")
    meter.add(role, "mismatch_kl", masked_sum(kl, mask), mask.sum())
    difference = torch.where(mask, (trainer - batch.log_probs_rollout).abs(), 0.0)
    meter.add_maximum(role, "mismatch/max", difference.max())


# Only what is taught by texts alone is learned with dropout: other log-probs are compared with
# those of the engine, a reference or the policy before, which have none (huggingface/trl #3500).

Mode = Literal["reads", "learns", "drops"]
"""A model that only reads; that learns as it reads; that learns and drops at random."""
TEXTS = "demonstrations"  # the teaching port of texts
_MARKS = ("drop", "jitter")  # parts of the names of shares that are dropped or disturbed at random


def drops(port: str, training: Training) -> bool:
    """Whether what a teaching port brings is learned with dropout."""
    return port == TEXTS if training.dropout is None else training.dropout


class Dropout:
    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._mode: Mode = "reads"
        self._kept: list[tuple[Any, str, float]] = []
        """Shares that are 0 in the meantime: of what, their names and values."""

    def set(self, mode: Mode) -> None:
        if mode == self._mode:
            return
        for owner, name, value in self._kept:
            setattr(owner, name, value)
        self._kept = []
        set_training(self._model, mode == "drops")
        if mode == "learns":
            self._recompute()
        self._mode = mode

    def _recompute(self) -> None:
        """Blocks with recomputed activations, which would drop by themselves in training mode."""
        modules = self._model.modules()
        blocks = [block for block in modules if getattr(block, "gradient_checkpointing", 0)]
        configs = {id(block.config): block.config for block in blocks if hasattr(block, "config")}
        for owner in (*blocks, *configs.values()):
            for name, value in _shares(owner):
                self._kept.append((owner, name, value))
                setattr(owner, name, 0.0)
        for module in blocks:
            object.__setattr__(module, "training", True)


def _shares(owner: object) -> Iterator[tuple[str, float]]:
    for name, value in list(vars(owner).items()):
        if isinstance(value, float) and value > 0 and any(mark in name for mark in _MARKS):
            yield name, value
