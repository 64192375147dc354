"""How a group learns: rows and lengths of an update, and the memory settings the loop leaves open.

An open setting is decided so that the update fits into the room that its pool leaves, in the order
of what it costs in time: rows at once, then gradient checkpointing. Logits are counted for as many
tokens as the update holds at once. Knows one group at a time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from coloop.plan.settings.settings import PLAIN_FAMILIES, UpdateSettings
from coloop.plan.settings.survey import PhaseLoad, Survey
from coloop.plan.settings.training import (
    LOSS_BYTES,
    Instant,
    TrainingStep,
    fragmentation_bytes,
    heap_bytes,
    offloaded_bytes,
    peak_instant,
)
from coloop.plan.settings.weights import WHOLE, Weights
from coloop.spec.algorithm import measures_others, node_algorithms
from coloop.spec.groups import updates_of
from coloop.spec.table_sizes import TableSize, logits_at_once, loss_chunk
from coloop.spec.training import Checkpointing

Port = tuple[str, str]

SPARE = 0.92
"""Share of the room that decisions may use: an estimate is no measurement."""
DENSE_SHARE = 0.5
"""From such a part of the tokens that fill a pass on, it is as fast as in pre-training."""
FEW_ROWS = 4
"""Rows at once below which saving memory elsewhere is faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One learn stage of a group: what it learns and its settings."""

    weights: Weights
    settings: UpdateSettings
    rows_at_once: int
    """On one data-parallel place, all of them as long as the longest."""
    work: "UpdateWork"
    peak: Instant
    host_bytes: float
    """Inputs of layers that rest in the host's memory, for one GPU."""
    is_dense: bool
    """Full rows of one length, as in pre-training; rollouts are short and of all lengths."""


def plan_update(survey: Survey, weights: Weights, room: float) -> Update | None:
    """The update of a group with `room` bytes beside what rests; none where nothing reaches it."""
    taught = _taught(survey, weights)
    if not taught:
        return None
    work = UpdateWork(survey, weights, taught)
    settings, rows, peak = _settle(survey, weights, work, room)
    return Update(
        weights=weights,
        settings=settings,
        rows_at_once=rows,
        work=work,
        peak=peak,
        host_bytes=offloaded_bytes(_step(weights, settings, work, rows)),
        is_dense=_is_dense(survey, rows, work),
    )


def update_in(survey: Survey, update: Update, phase: PhaseLoad) -> Update:
    """The update of a phase, which may teach less than the greatest does, with its settings."""
    taught = _taught_in(survey, update.weights, phase)
    if not taught:
        return update
    work = UpdateWork(survey, update.weights, taught)
    return replace(update, work=work, is_dense=_is_dense(survey, update.rows_at_once, work))


def _is_dense(survey: Survey, rows: int, work: "UpdateWork") -> bool:
    filled = rows * work.sides * work.length_max
    return work.is_even and filled >= DENSE_SHARE * survey.machine.tokens_at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """The longest texts of a micro-batch."""

    prompt: float
    """Tokens that each begins with."""
    rest: float
    """Tokens of each that follow and are read."""
    alike: float
    """Texts that begin alike: what they begin with is read, and kept for the gradient, once for
    those in a micro-batch together."""

    def tokens(self, texts: float) -> float:
        """Tokens that so many of them take."""
        return ceil(texts / self.alike) * self.prompt + texts * self.rest


class UpdateWork:
    """What an update learns in one run of its stage."""

    def __init__(self, survey: Survey, weights: Weights, taught: dict[Port, TableSize]) -> None:
        tables, training = list(taught.values()), weights.training
        rows = sum(table.rows for table in tables)
        self.sides = max(table.sides for table in tables)
        """Texts of one row."""
        self.sequences = rows * self.sides
        """Texts, repeats of epochs and updates apart."""
        texts = sum(t.rows * t.sides for t in tables)
        self.length = sum(t.rows * t.sides * t.length for t in tables) / max(texts, 1.0)
        """Their mean length in tokens."""
        self.length_max = max(max(table.length_max for table in tables), 1.0)
        self.longest = _longest(survey, weights, tables)
        self.read = _read(survey, weights, tables)
        """Tokens that are read to learn each of them once."""
        self.trained = sum(table.rows * table.sides * table.written for table in tables)
        """Tokens with a loss of their own, each once: what a run counts."""
        self.measured = _measured(survey, taught)
        """Tokens that are read once before anything is learned from them, without a gradient."""
        updates = updates_of(survey.spec, {node for node, _ in taught})
        self.passes = float(training.epochs * updates)
        """How often each text is learned."""
        mini_batch = min(training.mini_batch or rows, rows) or 1.0
        self.mini_batches = max(rows / mini_batch, 1.0) * self.passes
        """Optimizer steps."""
        self.per_place = max(ceil(mini_batch / weights.shards), 1)
        """Rows of an optimizer step on each place."""
        self.is_even = all(port != "rewards" for _, port in taught)
        """Whether no row was written by a model just now: those are of all lengths."""

    @property
    def tokens(self) -> float:
        """Tokens learned in one run of the stage."""
        return self.sequences * self.length * self.passes


def _taught_in(survey: Survey, weights: Weights, phase: PhaseLoad) -> dict[Port, TableSize]:
    """The tables that a phase teaches a group with, by its teaching ports."""
    ports = [port for port in phase.live if survey.owners.get(port[0]) == weights.name]
    tables = {port: _update_of(survey, *port) for port in ports}
    return {port: table for port, table in tables.items() if table.rows}


def _taught(survey: Survey, weights: Weights) -> dict[Port, TableSize]:
    """The greatest set of tables that one phase teaches the group with, by its teaching ports."""
    each = (_taught_in(survey, weights, phase) for phase in survey.phases)
    return max(
        each,
        key=lambda tables: sum(t.rows * t.sides * max(t.length_max, 1.0) for t in tables.values()),
        default={},
    )


def _update_of(survey: Survey, node: str, port: str) -> TableSize:
    """What an update learns at a port: rows of a step, or those that are kept until there are as
    many."""
    table, rule = survey.counts.taught(node, port).mean, survey.spec.schedule.learn.get(node)
    if rule is None or rule.rows is None or not table.rows:
        return table
    return replace(table, rows=float(rule.rows))


def _read(survey: Survey, weights: Weights, tables: Iterable[TableSize]) -> float:
    """Tokens of all texts; where blocks can, what several begin with is read once, and nothing
    behind the last trained token."""
    is_shared = _reads_shared(survey, weights)
    return sum(
        t.rows * t.sides * (t.prompt / t.alike + max(t.written - 1, 0.0) if is_shared else t.length)
        for t in tables
    )


def _reads_shared(survey: Survey, weights: Weights) -> bool:
    return (
        survey.machine.is_cpu
        and weights.trains_all
        and weights.scheme in WHOLE
        and weights.arch.model_type in PLAIN_FAMILIES
        and not weights.update.packing
    )


def _longest(survey: Survey, weights: Weights, tables: Sequence[TableSize]) -> _Texts:
    if not _reads_shared(survey, weights):
        return _Texts(
            prompt=0.0, rest=max(max(table.length_max for table in tables), 1.0), alike=1.0
        )
    return _Texts(
        prompt=max(table.prompt_max for table in tables),
        rest=max(max(table.written_max for table in tables) - 1.0, 1.0),
        alike=min(table.alike for table in tables),
    )


def _measured(survey: Survey, taught: dict[Port, TableSize]) -> float:
    """Tokens of pairs, and of their answers under the prompts of other pairs, for who measures
    both."""
    return sum(
        2 * table.rows * table.sides * table.length
        for (node, port), table in taught.items()
        if any(map(measures_others, node_algorithms(survey.spec, node).get(port, ())))
    )


def _settle(
    survey: Survey, weights: Weights, work: UpdateWork, room: float
) -> tuple[UpdateSettings, int, Instant]:
    """The fastest settings that fit, or the smallest where none does; with the rows at once and the
    peak."""
    room *= SPARE
    fixed = weights.training.micro_batch
    filled, sides = survey.machine.tokens_at_once, work.sides
    most = fixed or _rows_in(work, filled)
    choices = _choices(weights, on_cpu=survey.machine.is_cpu)
    for index, (checkpointing, chunk) in enumerate(choices):
        is_last = index == len(choices) - 1
        least = fixed or (1 if is_last else min(most, FEW_ROWS))
        at_once = most
        while True:
            is_whole = fixed is not None or at_once == most
            settings = replace(
                weights.update,
                tokens_at_once=filled if is_whole else ceil(work.longest.tokens(at_once * sides)),
                gradient_checkpointing=checkpointing,
                loss_chunk=chunk,
            )
            peak = peak_instant(_step(weights, settings, work, at_once))
            if peak.total + held_beside(weights, peak) <= room or (is_last and at_once <= least):
                _note_decisions(survey, weights, settings)
                return settings, at_once, peak
            if at_once <= least:
                break
            at_once = max(at_once // 2, least)
    raise AssertionError("the last choice is always used")


def _rows_in(work: UpdateWork, tokens: int) -> int:
    """Most rows of an optimizer step that take no more tokens than this; at least one."""
    most = work.per_place
    while most > 1 and work.longest.tokens(most * work.sides) > tokens:
        most = min(most - 1, max(int(most * tokens / work.longest.tokens(most * work.sides)), 1))
    return most


def held_beside(weights: Weights, peak: Instant) -> float:
    """Bytes that the allocator holds on top of a group's peak while it learns."""
    if weights.pool.gpus:
        return fragmentation_bytes(peak.total)
    return heap_bytes(peak.activations, has_adapter=not weights.trains_all)


def _choices(weights: Weights, *, on_cpu: bool) -> list[tuple[Checkpointing, int]]:
    """Gradient checkpointing and loss chunk, as the loop says or from fast to small."""
    training = weights.training
    flags: tuple[Checkpointing, ...] = (False, True)
    if training.gradient_checkpointing is not None:
        flags = (training.gradient_checkpointing,)
    chunk = training.loss_chunk or loss_chunk(weights.arch.vocab_size, on_cpu=on_cpu)
    return [(flag, chunk) for flag in flags]


def _step(weights: Weights, settings: UpdateSettings, work: UpdateWork, rows: int) -> TrainingStep:
    """A group's update in the terms of the memory formulas."""
    casts = weights.trains_all and weights.precision.master_bytes != weights.precision.compute_bytes
    return TrainingStep(
        arch=weights.arch,
        parameters=weights.count,
        states=weights.states,
        scheme="fsdp2" if weights.scheme in WHOLE and casts else weights.scheme,
        shards=weights.shards,
        tokens=ceil(work.longest.tokens(rows * work.sides)),
        settings=settings,
        compute_bytes=weights.precision.compute_bytes,
        has_logits=weights.has_logits,
        logits_bytes=LOSS_BYTES[weights.precision.compute_bytes],
        trains_all=weights.trains_all,
        accumulates=work.per_place > rows,
    )


def _note_decisions(survey: Survey, weights: Weights, settings: UpdateSettings) -> None:
    training, path = weights.training, f"nodes.{weights.name}.training"
    if training.micro_batch is None:
        reason = "as many rows as fill them: more at once is no faster"
        if settings.tokens_at_once < survey.machine.tokens_at_once:
            reason = "as many rows as fit next to everything else in the pool"
        survey.decide(f"{path}.micro_batch", f"{settings.tokens_at_once} tokens", reason)
    if training.gradient_checkpointing is None:
        reason = "all activations fit"
        if settings.gradient_checkpointing:
            reason = "activations would not fit next to everything else in the pool"
        flag = settings.gradient_checkpointing
        survey.decide(f"{path}.gradient_checkpointing", flag, reason)
    if training.loss_chunk is None:
        size = 4 * logits_at_once(on_cpu=survey.machine.is_cpu) >> 20
        reason = f"{size} MiB of logits at a time" if size < 1024 else "1 GiB of logits at a time"
        survey.decide(f"{path}.loss_chunk", settings.loss_chunk, reason)
