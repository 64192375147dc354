"""How a group learns: rows and lengths of an update, and the memory settings that the loop leaves
open.

Open settings are chosen so that the update fits into the memory that its pool leaves, those that
cost the least time first: fewer rows at once, then gradient checkpointing. Knows one group at a
time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil

from coloop.plan.settings.distillation import COMPARE_BYTES, compares_words
from coloop.plan.settings.settings import PLAIN_FAMILIES, UpdateSettings
from coloop.plan.settings.survey import PhaseLoad, Survey
from coloop.plan.settings.traced import Constant, named
from coloop.plan.settings.training import (
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
from coloop.spec.lean import record
from coloop.spec.table_sizes import TableSize, logits_at_once, loss_chunk
from coloop.spec.training import Checkpointing

Port = tuple[str, str]

SHOWN = ("labels", "pairs")
"""Teaching ports whose rows a judge in words reads as its template shows them."""
SPARE = 0.92
"""Share of the room that decisions may use; the rest covers errors of the estimate."""
FEW_ROWS = 4
"""Rows at once below which another way to save memory is faster."""


@record
class Update:
    """A group's learn stage: its rows and its settings."""

    weights: Weights
    settings: UpdateSettings
    rows_at_once: int
    """Rows of a micro-batch per data-parallel rank, if all are as long as the longest."""
    work: "UpdateWork"
    peak: Instant
    host_bytes: float
    """Layer inputs in host memory, per GPU."""


def plan_update(survey: Survey, weights: Weights, room: float) -> Update | None:
    """The update of a group with `room` bytes besides what is always resident; None if nothing
    teaches it."""
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
    )


def update_in(survey: Survey, update: Update, phase: PhaseLoad) -> Update:
    """The update in a phase, which may teach less than the largest one, with the same settings."""
    taught = _taught_in(survey, update.weights, phase)
    if not taught:
        return update
    work = UpdateWork(survey, update.weights, taught)
    return replace(update, work=work)


@record
class _Texts:
    prompt: float
    rest: float
    """Tokens after the prompt."""
    alike: float
    """Texts with a common prompt, which a micro-batch reads and keeps for the gradient once."""

    def tokens(self, texts: float) -> float:
        return ceil(texts / self.alike) * self.prompt + texts * self.rest


class UpdateWork:
    def __init__(self, survey: Survey, weights: Weights, taught: dict[Port, TableSize]) -> None:
        tables, training = list(taught.values()), weights.training
        rows = sum(table.rows for table in tables)
        self.sides = max(table.sides for table in tables)
        self.sequences = rows * self.sides
        """Texts, without repeats by epochs and updates."""
        texts = sum(t.rows * t.sides for t in tables)
        mean = sum(t.rows * t.sides * t.length for t in tables) / max(texts, 1.0)
        self.length = named("mean text", mean, "tokens")
        self.length_max = max(max(table.length_max for table in tables), 1.0)
        self.longest = _longest(survey, weights, tables)
        self.read = _read(survey, weights, tables)
        """Tokens read for one pass over the texts."""
        self.trained = sum(table.rows * table.sides * table.written for table in tables)
        """Tokens with a loss, without repeats by epochs and updates."""
        self.measured = _measured(survey, taught)
        """Tokens read once without gradient before the update."""
        updates = updates_of(survey.spec, {node for node, _ in taught})
        self.passes = float(training.epochs * updates)
        mini_batch = min(training.mini_batch or rows, rows) or 1.0
        self.mini_batches = max(rows / mini_batch, 1.0) * self.passes
        rescores = weights.implementation.rescores_stale or not survey.spec.schedule.max_staleness
        self.prepared = _prepared(taught) if rescores and self.mini_batches > 1 else 0.0
        """Tokens of completions whose log-probs are measured once before several optimizer
        steps."""
        self.per_place = max(ceil(mini_batch / weights.shards), 1)
        """Rows per optimizer step and rank."""
        self.compares_words = any(port == "reference" for _, port in taught) and compares_words(
            survey, weights
        )

    @property
    def tokens(self) -> float:
        """Tokens learned in one run of the stage, with repeats."""
        return self.sequences * self.length * self.passes


def _taught_in(survey: Survey, weights: Weights, phase: PhaseLoad) -> dict[Port, TableSize]:
    ports = [port for port in phase.live if survey.owners.get(port[0]) == weights.name]
    tables = {port: _update_of(survey, *port) for port in ports}
    return {port: table for port, table in tables.items() if table.rows}


def _taught(survey: Survey, weights: Weights) -> dict[Port, TableSize]:
    """The largest set of tables with which one phase teaches the group, by teaching port."""
    each = (_taught_in(survey, weights, phase) for phase in survey.phases)
    return max(
        each,
        key=lambda tables: sum(t.rows * t.sides * max(t.length_max, 1.0) for t in tables.values()),
        default={},
    )


def _update_of(survey: Survey, node: str, port: str) -> TableSize:
    """Rows that an update learns from at a port: those of a step, or those kept until there are
    enough."""
    table, rule = survey.counts.taught(node, port).mean, survey.spec.schedule.learn.get(node)
    if port in SHOWN and getattr(survey.spec.nodes[node], "rollout", None) is None:
        table = survey.counts.shown_to(node, table)
    if rule is None or rule.rows is None or not table.rows:
        return table
    return replace(table, rows=float(rule.rows))


def _read(survey: Survey, weights: Weights, tables: Iterable[TableSize]) -> float:
    """Tokens read of all texts. If the model can, it reads common prompts once, and nothing after
    the last trained token."""
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
    """Tokens of pairs, and of their answers under the prompts of other pairs, for algorithms that
    measure both."""
    return sum(
        2 * table.rows * table.sides * table.length
        for (node, port), table in taught.items()
        if any(map(measures_others, node_algorithms(survey.spec, node).get(port, ())))
    )


def _prepared(taught: dict[Port, TableSize]) -> float:
    return sum(
        table.rows * table.sides * table.length
        for (_, port), table in taught.items()
        if port in ("rewards", "reference", "returns")
    )


def _settle(
    survey: Survey, weights: Weights, work: UpdateWork, room: float
) -> tuple[UpdateSettings, int, Instant]:
    """(settings, rows at once, peak): the fastest settings that fit in `room` bytes, or those with
    the least memory if none do."""
    room *= SPARE
    fixed = weights.training.micro_batch
    filled, sides = survey.machine.tokens_at_once, work.sides
    most = fixed or _rows_in(work, filled)
    choices = _choices(weights)
    for index, checkpointing in enumerate(choices):
        is_last = index == len(choices) - 1
        least = fixed or (1 if is_last else min(most, FEW_ROWS))
        at_once = most
        while True:
            is_whole = fixed is not None or at_once == most
            settings = replace(
                weights.update,
                tokens_at_once=filled if is_whole else ceil(work.longest.tokens(at_once * sides)),
                gradient_checkpointing=checkpointing,
                loss_chunk=_chunk(survey, weights, work, at_once),
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
    """Most rows of an optimizer step within this number of tokens; at least one."""
    most = work.per_place
    while most > 1 and work.longest.tokens(most * work.sides) > tokens:
        most = min(most - 1, max(int(most * tokens / work.longest.tokens(most * work.sides)), 1))
    return most


def held_beside(weights: Weights, peak: Instant) -> float:
    """Bytes that the allocator holds beyond a group's peak while it learns."""
    if weights.pool.gpus:
        lasting = peak.gradients if weights.scheme == "megatron" else 0.0
        return fragmentation_bytes(peak.total - lasting, weights.implementation.allocator)
    return heap_bytes(peak.activations, has_adapter=not weights.trains_all)


def _choices(weights: Weights) -> tuple[Checkpointing, ...]:
    """Gradient checkpointing as in the loop, or else from fastest to least memory."""
    named = weights.training.gradient_checkpointing
    return (False, True) if named is None else (named,)


def _chunk(survey: Survey, weights: Weights, work: UpdateWork, rows: int) -> int:
    """Tokens whose logits are held at once: as in the loop, or else as its trainer does."""
    if weights.training.loss_chunk is not None:
        return weights.training.loss_chunk
    parts = weights.implementation.loss_parts
    if parts is None:
        return loss_chunk(weights.arch.vocab_size, on_cpu=survey.machine.is_cpu)
    return ceil(work.longest.tokens(rows * work.sides) / parts)


def _step(weights: Weights, settings: UpdateSettings, work: UpdateWork, rows: int) -> TrainingStep:
    """Inputs of the memory formulas for a group's update."""
    casts = weights.trains_all and weights.precision.master_bytes != weights.precision.compute_bytes
    # autocast on a GPU; embeddings stay as they are held, and so does the residual stream
    is_cast = casts and weights.scheme in WHOLE and bool(weights.pool.gpus)
    facts, compute = weights.implementation, weights.precision.compute_bytes
    texts = Constant(rows * work.sides, "texts at once", "as many as fill a pass, or as fit")
    tokens = named("tokens at once", ceil(work.longest.tokens(texts)), "tokens")
    own = tokens / settings.context_parallel
    is_cut = settings.loss_chunk is not None and settings.loss_chunk < own
    loss = facts.chunk_loss_bytes if is_cut else facts.loss_bytes
    return TrainingStep(
        arch=weights.arch,
        parameters=weights.count,
        states=weights.states,
        scheme="fsdp2" if weights.scheme in WHOLE and casts else weights.scheme,
        shards=weights.shards,
        tokens=tokens,
        settings=settings,
        compute_bytes=compute,
        has_logits=weights.has_logits,
        logits_bytes=COMPARE_BYTES if work.compares_words else loss[compute],
        has_frozen_head_gradient=facts.has_frozen_head_gradient,
        kernels=facts.kernels,
        routed_bytes=facts.routed_bytes,
        root="parts" if weights.scheme in WHOLE else facts.root,
        selective=facts.selective,
        has_sequence_parallel=facts.has_sequence_parallel,
        residual_bytes=4 if is_cast else _residual_bytes(weights),
        has_casts=is_cast,
        gathered_bytes=weights.precision.frozen_bytes if weights.is_quantized else None,
        trains_all=weights.trains_all,
        accumulates=work.per_place > rows,
        reduce_bytes=4 if facts.reduces_wide else weights.precision.master_bytes,
        sums_whole=facts.sums_whole,
        micro_batches=ceil(work.per_place / rows),
    )


def _residual_bytes(weights: Weights) -> int | None:
    """Bytes of an element of the residual stream; None: as wide as what is computed in."""
    if weights.trains_all:
        return None
    wide = weights.implementation.adapter_residual
    if weights.scheme not in WHOLE:
        return wide.get("sharded")
    return wide.get("quantized") if weights.is_quantized else None


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
        if weights.implementation.loss_parts is not None:
            reason = f"as {training.implementation} does"
        survey.decide(f"{path}.loss_chunk", settings.loss_chunk, reason)
