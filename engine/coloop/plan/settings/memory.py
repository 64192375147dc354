"""Memory on each GPU in each stage.

Nodes of a pool take turns, so a GPU's peak is the maximum over the stages of what is resident then:
permanent parts and those of the stage. All bytes belong to a node and a part with its stages; the
peak is exactly the sum of the parts of its stage.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

from coloop.plan.settings.architecture import Architecture
from coloop.plan.settings.cores import PACKED_BYTES, PACKED_TOKENS
from coloop.plan.settings.distillation import received_bytes, reported_bytes
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.learning import Update, held_beside, plan_update
from coloop.plan.settings.machine import PoolShare
from coloop.plan.settings.serving import (
    PREFILL_TOKENS,
    Serving,
    asleep_bytes,
    library_bytes,
    serve_from_budget,
    serve_static,
)
from coloop.plan.settings.settings import PLAIN_FAMILIES, Sleep
from coloop.plan.settings.survey import Survey
from coloop.plan.settings.traced import named
from coloop.plan.settings.training import (
    CPU_PROCESS_BYTES,
    SCORE_BYTES,
    forward_bytes,
    process_bytes,
)
from coloop.plan.settings.weights import Weights
from coloop.plan.weight_buckets import GPU_BYTES, gather_buffer_bytes
from coloop.spec.heads import head_of
from coloop.spec.lean import record
from coloop.spec.table_sizes import TableSize, loss_chunk

Part = Literal[
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "kv_cache",
    "transfer",
    "overhead",
]
GIB = 2**30
MIB = 2**20
LEAST_CACHE_BYTES = 64 * 2**20
"""Smallest CPU cache worth freeing: smaller blocks are not returned to the system at once."""
LEAST_WEIGHTS_SHARE = 0.05
"""Moving the torch engine's weights is worthwhile if they take at least this share of a GPU."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Bytes of one node on every GPU or process of a pool."""

    node: str
    part: Part
    bytes: float
    stages: tuple[str, ...]
    first_only: bool = False
    """Only on the pool's first rank."""


@record
class PoolMemory:
    pool: PoolShare
    stages: tuple[str, ...]
    claims: tuple[Claim, ...]


class Memory:
    """What is resident in each pool."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self.updates: dict[str, Update] = {}
        """By weights group."""
        self.servings: dict[str, Serving] = {}
        """By the first node that generates with an engine."""
        self.shares: dict[tuple[str, str], float] = {}
        """Share of a GPU for vLLM, by weights group and pool."""
        self.sleeps: dict[tuple[str, str], Sleep | None] = {}
        """What engines release while others work, by weights group and pool."""
        self._stages_of: dict[str, list[str]] = {name: [] for name in survey.machine.pools}
        for stage in survey.stages:
            if (pool := survey.pool_of(stage)) is not None:
                self._stages_of[pool.name].append(stage)
        self.pools = tuple(self._pool(pool) for pool in survey.machine.pools.values())
        self.host_bytes = self._host_bytes()
        """Host memory in use beside GPUs, over all ranks."""

    def _host_bytes(self) -> float:
        host = sum(
            weights.states.host * weights.shards * weights.model_parallel
            for weights in self._survey.weights.values()
        )
        host += sum(
            update.host_bytes * update.weights.shards * update.weights.model_parallel
            for update in self.updates.values()
        )
        host += sum(
            received_bytes(self._survey, weights)
            for weights in self._survey.weights.values()
            if weights.pool.gpus
        )
        return host + sum(
            engine.weight_bytes * engine.tensor_parallel * engine.copies
            for pool in self._survey.machine.pools.values()
            for engine in self._engines(pool)
            if self.sleeps[engine.weights.name, pool.name] == "weights"
        )

    def _pool(self, pool: PoolShare) -> PoolMemory:
        saved = [
            f"{held.name}.checkpoint" for held in self._weights(pool) if self._is_put_together(held)
        ]
        stages = (*self._stages_of[pool.name], *saved, *self._only_evaluated(pool))
        for engine in self._engines(pool):
            self.sleeps[engine.weights.name, pool.name] = self._sleep(engine)
        claims = [*self._process(pool, stages), *self._resting(pool, stages)]
        rest = sum(claim.bytes for claim in claims)
        for engine in self._engines(pool):
            claims += self._writing(engine, stages, rest)
        totals = totals_of(claims, stages, is_first=True)
        for weights in self._weights(pool):
            claims += self._learning(weights, totals.get(f"{weights.name}.learn", 0.0))
            claims += self._handing_on(weights)
            claims += self._scoring(weights, stages)
        return PoolMemory(
            pool=pool,
            stages=stages,
            claims=tuple(claim for claim in claims if claim.bytes >= 1 and claim.stages),
        )

    def _weights(self, pool: PoolShare) -> list[Weights]:
        return [w for w in self._survey.weights.values() if w.pool.name == pool.name]

    def _engines(self, pool: PoolShare) -> list[Engine]:
        """Engines with weights in this pool; a remote one holds them elsewhere."""
        engines = [e for e in self._survey.engines if e.kind != "remote"]
        return [engine for engine in engines if engine.pool.name == pool.name]

    # What rests

    def _process(self, pool: PoolShare, stages: tuple[str, ...]) -> Iterator[Claim]:
        """Memory of the process itself, counted for the first weights group of the pool."""
        owners = [w.name for w in self._weights(pool)] or [
            e.writers[0] for e in self._engines(pool)
        ]
        if not owners:
            return
        sizes = process_bytes(gpus=pool.gpus) if pool.gpus else (CPU_PROCESS_BYTES,)
        for size in sizes:
            yield Claim(owners[0], "overhead", size, stages)

    def _resting(self, pool: PoolShare, stages: tuple[str, ...]) -> Iterator[Claim]:
        for weights in self._weights(pool):
            name, states = weights.name, weights.states
            first = weights.scheme == "single" and weights.trains
            if weights.trains or self._is_scored_with(weights):
                yield Claim(name, "weights", states.weights, stages, first)
            if weights.trains:
                yield Claim(name, "optimizer", states.optimizer, stages, first)
        for engine in self._engines(pool):
            if self.sleeps[engine.weights.name, pool.name] != "weights":
                yield Claim(engine.writers[0], "weights", engine.weight_bytes, stages)

    def _is_scored_with(self, weights: Weights) -> bool:
        """Whether a member uses the weights without an engine, so that they are always resident."""
        survey = self._survey
        return any(
            survey.engine_of(node) is None and not survey.writes_elsewhere(node)
            for node in weights.members
        )

    # Writing

    def _sleep(self, engine: Engine) -> Sleep | None:
        """What an engine releases while others work in its pool; None: nothing."""
        if not engine.is_colocated:
            return None
        survey = self._survey
        cache = engine.at_once * engine.length * engine.token_bytes
        value: Sleep | None = "weights"
        reason = "GPU memory is used for learning meanwhile; its weights wait in host memory"
        if engine.kind == "vllm" and not engine.pool.gpus:
            value, reason = None, "the CPU build of vLLM keeps its memory"
        elif not engine.pool.gpus and cache < LEAST_CACHE_BYTES:
            value, reason = None, f"a cache of {cache / MIB:.0f} MiB is not worth freeing"
        elif not engine.pool.gpus:
            value, reason = "cache", f"{cache / MIB:.0f} MiB are free while its pool learns"
        elif engine.kind == "torch":
            share = engine.weight_bytes / survey.machine.usable_bytes(engine.pool)
            if share < LEAST_WEIGHTS_SHARE:
                value, reason = "cache", "its weights are too small to be worth moving"
        survey.decide(f"nodes.{engine.writers[0]}.sleep", value, reason)
        return value

    def _writing(self, engine: Engine, stages: tuple[str, ...], rest: float) -> Iterator[Claim]:
        survey, pool = self._survey, engine.pool
        written = self._written_stages(engine, stages)
        node = engine.writers[0]
        if engine.kind != "vllm":
            prompts = engine.at_once * engine.prompt
            is_whole = engine.weights.implementation.reads_whole_prompts
            serving = serve_static(
                engine,
                prefill_tokens=prompts if is_whole else min(PREFILL_TOKENS, prompts),
                has_graphs=bool(pool.gpus) and not is_whole,
            )
            self.servings[node] = serving
            sleep = self.sleeps[engine.weights.name, pool.name]
            if sleep == "weights":
                awake = self._awake(engine, written, stages)
                yield Claim(node, "weights", serving.weights, awake)
            held = stages if sleep is None else written
            yield Claim(node, "weights", packed_bytes(engine), held)
            yield Claim(node, "kv_cache", serving.kv_cache, held)
            yield Claim(node, "activations", serving.workspace, written)
            return
        visible = survey.machine.visible_bytes(pool)
        share = named("share of the GPU for vLLM", self._engine_share(engine, rest, visible))
        self.shares[engine.weights.name, pool.name] = share
        serving = serve_from_budget(engine, share * visible)
        self.servings[node] = serving
        tensor = engine.tensor_parallel
        if not engine.is_colocated:
            yield Claim(node, "kv_cache", serving.kv_cache, stages)
            yield Claim(node, "activations", serving.workspace, stages)
            yield Claim(node, "overhead", library_bytes(tensor), stages)
            return
        awake = self._awake(engine, written, stages)
        asleep = tuple(stage for stage in stages if stage not in awake)
        yield Claim(node, "weights", serving.weights, awake)
        yield Claim(node, "kv_cache", serving.kv_cache, written)
        yield Claim(node, "activations", serving.workspace, written)
        yield Claim(node, "overhead", library_bytes(tensor), awake)
        yield Claim(node, "overhead", asleep_bytes(tensor), asleep)

    def _awake(
        self, engine: Engine, written: tuple[str, ...], stages: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Stages in which an engine has its weights: generation, and syncs, in which it has no
        cache yet."""
        sync = f"{engine.weights.name}.sync"
        return (*written, sync) if sync in stages else written

    def _written_stages(self, engine: Engine, stages: tuple[str, ...]) -> tuple[str, ...]:
        survey = self._survey
        own = {f"{node}.{verb}" for node in engine.writers for verb in ("generate", "score")}
        for node, section in survey.spec.nodes.items():
            if section.kind == "search" and survey.search_engine(node) is engine:
                own.add(f"{node}.generate")
            if section.kind == "evaluate" and set(survey.probe_writers(node)) & set(engine.writers):
                own.add(f"{node}.evaluate")
        return tuple(stage for stage in stages if stage in own)

    def _engine_share(self, engine: Engine, rest: float, visible: int) -> float:
        """Share of a GPU for vLLM: as in the loop, or else what it needs and the pool leaves."""
        survey = self._survey
        if engine.utilization is not None:
            return engine.utilization
        cache = engine.max_sequences * engine.length * engine.token_bytes
        workspace = serve_from_budget(engine, 0.0).workspace
        needs = (
            engine.weight_bytes + workspace + library_bytes(engine.tensor_parallel) + 1.02 * cache
        )
        beside = rest if engine.is_colocated else rest - engine.weight_bytes
        usable = survey.machine.usable_bytes(engine.pool)
        percent = floor(100 * (usable - beside) / visible)
        if engine.is_colocated:
            percent = min(percent, ceil(100 * needs / visible))
        share = max(percent, 5) / 100
        reason = "what its rows need" if engine.is_colocated else "the pool only generates"
        survey.decide(f"nodes.{engine.writers[0]}.rollout.gpu_memory_utilization", share, reason)
        return share

    # Learning and scoring

    def _learning(self, weights: Weights, resting: float) -> Iterator[Claim]:
        stage = f"{weights.name}.learn"
        if not weights.trains:
            return
        room = self._survey.machine.usable_bytes(weights.pool) - resting
        update = plan_update(self._survey, weights, room)
        if update is None:
            return
        self.updates[weights.name] = update
        peak, first = update.peak, weights.scheme == "single"
        parts: tuple[tuple[Part, float], ...] = (
            ("gradients", peak.gradients),
            ("activations", peak.activations),
            ("logits", peak.logits),
            ("transfer", peak.transfer),
            ("optimizer", peak.temporary),
            ("overhead", held_beside(weights, peak)),
        )
        for part, size in parts:
            yield Claim(weights.name, part, size, (stage,), first)
        if not weights.pool.gpus:
            yield Claim(weights.name, "transfer", received_bytes(self._survey, weights), (stage,))

    def _handing_on(self, weights: Weights) -> Iterator[Claim]:
        """GPU memory to gather sharded weights bucket by bucket, for engines and for a
        checkpoint."""
        if not weights.pool.gpus:
            return
        gathered = gathered_bytes(weights) if self._is_put_together(weights) else 0.0
        sync = f"{weights.name}.sync"
        if weights.trains and sync in self._survey.stages:
            cast = weights.precision.engine_bytes * largest_weight(weights.arch)
            away = any(
                engine.pool.gpus and engine.pool.name != weights.pool.name
                for engine in self._survey.engines
                if engine.weights.name == weights.name
            )
            whole = weights.precision.engine_bytes * weights.count.total
            bucket = min(float(GPU_BYTES), whole) if away else 0.0
            size = gathered + max(cast, bucket)
            yield Claim(weights.name, "transfer", size, (sync,))
        saved = f"{weights.name}.checkpoint"
        yield Claim(weights.name, "transfer", gathered, (saved,))

    def _is_put_together(self, weights: Weights) -> bool:
        """Whether a group's weights are sharded over the GPUs of its pool."""
        is_held = weights.trains or self._is_scored_with(weights)
        return (
            is_held
            and bool(weights.pool.gpus)
            and weights.shards * weights.update.tensor_parallel > 1
        )

    def _only_evaluated(self, pool: PoolShare) -> list[str]:
        """Scorers with weights in this pool that only evaluations run."""
        survey = self._survey
        scored = (stage for load in survey.probes.values() for stage in load.stages)
        return [
            stage
            for stage in dict.fromkeys(scored)
            if stage not in survey.stages
            and stage.endswith(".score")
            and survey.pool_of(stage) is pool
        ]

    def _scored_rows(self, node: str) -> TableSize:
        """Rows of a step that a node scores, else those of an evaluation."""
        survey, stage = self._survey, f"{node}.score"
        if stage in survey.stages:
            return survey.counts.worked_on(node).mean
        evaluated = [name for name, load in survey.probes.items() if stage in load.stages]
        passes = (counts for name in evaluated for counts in survey.passes_of(name))
        tables = (counts.worked_on(node).mean for counts in passes)
        return max(tables, key=lambda table: table.rows * table.length_max)

    def _scoring(self, weights: Weights, stages: tuple[str, ...]) -> Iterator[Claim]:
        for node in weights.members:
            stage = f"{node}.score"
            if stage not in stages or self._survey.engine_of(node) is not None:
                continue
            table = self._scored_rows(node)
            shares = weights.pool.places if weights.scheme == "single" else weights.shards
            rows = max(table.rows * table.sides / max(shares, 1), 1.0)
            tokens = max(min(PREFILL_TOKENS, rows * table.length_max), table.length_max)
            activations = tokens * forward_bytes(
                weights.arch,
                compute_bytes=weights.precision.compute_bytes,
                tensor_parallel=weights.update.tensor_parallel,
            )
            logits = 0.0
            if head_of(self._survey.spec.nodes[node]) == "words":
                words, on_cpu = weights.arch.vocab_size, self._survey.machine.is_cpu
                logits = SCORE_BYTES * words * min(tokens, loss_chunk(words, on_cpu=on_cpu))
            gathered = weights.scheme in ("fsdp2", "zero3") and weights.shards > 1
            wide = weights.precision.compute_bytes if gathered else 0
            layers = 2.0 * weights.count.layer * wide
            if weights.implementation.root == "whole":  # gathered for the whole pass
                layers += wide * (weights.count.embedding + weights.count.head)
            yield Claim(node, "activations", activations, (stage,))
            yield Claim(node, "logits", logits, (stage,))
            yield Claim(node, "transfer", layers, (stage,))
            if not weights.pool.gpus:
                yield Claim(node, "transfer", reported_bytes(self._survey, node), (stage,))


def gathered_bytes(weights: Weights) -> float:
    """GPU memory besides the shard while a group's weights are gathered."""
    held: float = (
        weights.precision.master_bytes if weights.trains_all else weights.precision.frozen_bytes
    )
    largest = named("largest weight", held * largest_weight(weights.arch), "B")
    total = held * weights.count.total
    ranks = weights.shards * weights.update.tensor_parallel
    return gather_buffer_bytes(largest, total, "cuda", ranks)


def largest_weight(arch: Architecture) -> int:
    """Elements of the largest matrix: the embedding, or one of the feed-forward block, where all
    experts of a layer form one."""
    experts = 2 * arch.moe.experts * arch.moe.ffn if arch.moe is not None else 0
    return arch.hidden_size * max(arch.vocab_size, arch.ffn, experts)


def packed_bytes(engine: Engine) -> float:
    """Second copy of matrices that the torch engine packs on a CPU to generate long texts."""
    weights = engine.weights
    held = weights.precision.engine_bytes * weights.count.total
    is_worth = engine.kind == "torch" and not engine.pool.gpus and engine.new >= PACKED_TOKENS
    if not is_worth or held > PACKED_BYTES or weights.arch.model_type not in PLAIN_FAMILIES:
        return 0.0
    return weights.precision.engine_bytes * weights.count.decoded


def totals_of(
    claims: Iterable[Claim], stages: tuple[str, ...], *, is_first: bool
) -> dict[str, float]:
    everywhere, totals = 0.0, dict.fromkeys(stages, 0.0)
    for claim in claims:
        if claim.first_only and not is_first:
            continue
        if claim.stages is stages:
            everywhere += claim.bytes
        else:
            for stage in claim.stages:
                totals[stage] += claim.bytes
    return {stage: size + everywhere for stage, size in totals.items()}


def peak_of(memory: PoolMemory, *, is_first: bool) -> tuple[str, float]:
    """The stage with the most resident memory of a pool, and the amount."""
    totals = totals_of(memory.claims, memory.stages, is_first=is_first)
    stage = max(totals, key=lambda name: totals[name], default="")
    return stage, totals.get(stage, 0.0)
