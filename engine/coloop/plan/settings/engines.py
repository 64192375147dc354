"""The rollout engine of each weights group in each pool: type, degree, rows at once, channel. Its
memory is computed elsewhere."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from coloop.plan.settings.architecture import Architecture, kv_bytes_per_token, shares_heads
from coloop.plan.settings.machine import Outline, PoolShare
from coloop.plan.settings.settings import ROWS_AT_ONCE, Channel, EnginePlan
from coloop.plan.settings.traced import named
from coloop.plan.settings.weights import Weights
from coloop.spec.adapters import standing_of
from coloop.spec.groups import is_generation_read, writing_pools
from coloop.spec.lean import record
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.rollout import Engine as EngineKind

NO_VLLM = (
    "vLLM, which generates faster with large models, is not installed on this machine: pip install "
    "'coloop[vllm]' installs it"
)


BESIDE, ALONE = 0.4, 0.68
"""Share of a GPU's memory that the weights of an engine may take, beside a learner and alone in its
pool. Not of the budget, so that an engine has the same GPUs under any."""
NARROW = 0.75
"""Weights of fewer bytes than this share of what is computed in are quantized."""
FP8_GAIN = 1.8
"""Speed-up of fp8 products over bfloat16 in engines; their peak is twice as high."""


@record
class Engine:
    weights: Weights
    pool: PoolShare
    writers: tuple[str, ...]
    kind: str
    tensor_parallel: int
    max_sequences: int
    utilization: float | None
    """Share of the GPU; None: what is left over."""
    rows: float
    """Most rows that one node generates per step."""
    length: int
    """Longest prompt and completion."""
    prompt: int
    """Longest prompt."""
    new: int
    """Most tokens per completion."""
    is_colocated: bool
    """Whether it takes turns with others in its pool."""
    is_eager: bool = False
    """Whether kernels are launched one by one, without CUDA graphs."""
    quantized_cache_bytes: int | None = None
    """Of an element of the cache, if it is narrower than what is computed in."""
    gain: float = 1.0
    """Speed-up of products over 16 bits."""
    machines: int = 1
    """Machines over which one copy is spread."""
    network: float = 1.0
    """Bytes per second of the network card of one of its GPUs."""

    @property
    def copies(self) -> int:
        return max(self.pool.places // self.tensor_parallel, 1)

    @property
    def weight_bytes(self) -> float:
        weights = self.weights
        whole = weights.precision.engine_bytes * weights.count.total
        return named("weights of the engine", whole / self.tensor_parallel, "B")

    @property
    def token_bytes(self) -> float:
        """Cache bytes per token and GPU."""
        width = self.cache_bytes
        each = kv_bytes_per_token(self.weights.arch, width, self.tensor_parallel, self.length)
        return named("cache of a token", each, "B")

    @property
    def cache_bytes(self) -> int:
        """Bytes of an element of the cache."""
        return self.quantized_cache_bytes or self.weights.precision.compute_bytes

    @property
    def at_once(self) -> int:
        """Sequences held at most: torch allocates for the actual number only."""
        if self.kind == "vllm" or not self.rows:
            return self.max_sequences
        return min(self.max_sequences, ceil(self.rows / self.copies))


@record
class Engines:
    outline: Outline
    weights: Mapping[str, Weights]
    """By group, if the architecture is known."""
    counts: RowCounts

    def settle(self) -> Iterator[tuple[tuple[str, str], EnginePlan]]:
        for owner, group in self.outline.groups.items():
            for name, writers in writing_pools(self.outline.spec, group).items():
                pool = self.outline.machine.pool(name)
                yield (owner, pool.name), self._settle(owner, pool, writers)

    def known(self, settled: Mapping[tuple[str, str], EnginePlan]) -> Iterator[Engine]:
        for (group, _), settings in settled.items():
            weights = self.weights.get(group)
            writers = tuple(
                node for node in settings.writers if is_generation_read(self.outline.spec, node)
            )
            if weights is not None and writers and settings.engine != "remote":
                yield self._engine(weights, settings, writers)

    def _settle(self, owner: str, pool: PoolShare, writers: tuple[str, ...]) -> EnginePlan:
        path = f"nodes.{writers[0]}.rollout"
        kind = self._kind(writers, path)
        tensor = self._tensor(owner, pool, kind, writers, path)
        return EnginePlan(
            pool=pool.name,
            writers=writers,
            engine=kind,
            tensor_parallel=tensor,
            max_num_seqs=self._max_concurrency(kind, max(pool.places // tensor, 1), writers, path),
            channel=self._channel(owner, pool, f"nodes.{writers[0]}"),
        )

    def _rollouts(self, writers: tuple[str, ...]) -> list[Any]:
        return [self.outline.spec.nodes[node].rollout for node in writers]  # type: ignore[union-attr]

    def _kind(self, writers: tuple[str, ...], path: str) -> EngineKind:
        named: EngineKind | None
        named = next(
            (rollout.engine for rollout in self._rollouts(writers) if rollout.engine), None
        )
        if named is not None:
            return named
        kind: EngineKind = "vllm"
        reason = "paged attention and CUDA graphs"
        if self.outline.machine.is_cpu:
            kind, reason = "torch", "the fastest for small models, and exact log-probs"
        elif self.outline.conditions.lacks_vllm:
            kind, reason = "torch", NO_VLLM
        return self.outline.decide(f"{path}.engine", kind, reason)

    def _tensor(
        self, owner: str, pool: PoolShare, kind: str, writers: tuple[str, ...], path: str
    ) -> int:
        rollouts = self._rollouts(writers)
        named = next(
            (rollout.tensor_parallel for rollout in rollouts if rollout.tensor_parallel), None
        )
        weights = self.weights.get(owner)
        if named is not None or weights is None or kind != "vllm":
            return named or 1
        degree = self._degree(weights, pool)
        if not self.outline.machine.is_cpu:
            fits = "the fewest GPUs on which the weights leave room for a cache"
            self.outline.decide(f"{path}.tensor_parallel", degree, fits)
        return degree

    def _degree(self, weights: Weights, pool: PoolShare) -> int:
        if not pool.gpus:
            return 1
        machine = self.outline.machine
        share = BESIDE if self._is_colocated(weights.name, pool) else ALONE
        room = share * machine.visible_bytes(pool)
        resting = weights.precision.compute_bytes * weights.count.total
        degrees = engine_degrees(weights.arch, pool.gpus, machine.preset.gpus_per_node)
        return next((degree for degree in degrees if resting / degree <= room), degrees[-1])

    def _max_concurrency(
        self, kind: EngineKind, copies: int, writers: tuple[str, ...], path: str
    ) -> int:
        rollouts = self._rollouts(writers)
        written: list[int] = [rollout.max_num_seqs for rollout in rollouts if rollout.max_num_seqs]
        if written:
            return max(written)
        value, reason = ROWS_AT_ONCE, f"{ROWS_AT_ONCE} at most: more at once is no faster"
        rows = max((self.counts.of(node, "rollouts").mean.rows for node in writers), default=0)
        if kind == "vllm" and rows:
            value = min(ROWS_AT_ONCE, max(1, ceil(rows / copies)))
            reason = f"the rows of a step, at most {ROWS_AT_ONCE}"
        if kind != "remote":
            self.outline.decide(f"{path}.max_num_seqs", value, reason)
        return value

    def _channel(self, owner: str, pool: PoolShare, path: str) -> Channel:
        """How new weights get from their group to an engine in a pool."""
        home = self.outline.home_of(owner)
        if home.name == pool.name:
            return "local"
        value: Channel = "nccl" if home.gpus and pool.gpus else "files"
        reason = "memory that both pools share, or a disk; otherwise the driver carries them"
        if value == "nccl":
            reason = "from GPU to GPU, without host memory and the driver"
        return self.outline.decide(f"{path}.channel", value, reason)

    def _is_colocated(self, owner: str, pool: PoolShare) -> bool:
        holding = self.weights[owner].pool.name
        others = [other for other in self.weights.values() if other.pool.name == pool.name]
        return holding == pool.name and any(other.trains for other in others)

    def _engine(self, weights: Weights, settings: EnginePlan, writers: tuple[str, ...]) -> Engine:
        machine, facts = self.outline.machine, weights.implementation
        pool = machine.pool(settings.pool)
        is_narrow = weights.precision.engine_bytes < NARROW * weights.precision.compute_bytes
        has_adapter = standing_of(self.outline.spec, weights.name) is not None
        sizes = [self.counts.of(node, "rollouts").mean for node in writers]
        new = max((rollout.max_new_tokens for rollout in self._rollouts(writers)), default=0)
        shares = (rollout.gpu_memory_utilization for rollout in self._rollouts(writers))
        return Engine(
            weights=weights,
            pool=pool,
            writers=writers,
            kind=settings.engine,
            tensor_parallel=settings.tensor_parallel,
            max_sequences=settings.max_num_seqs,
            utilization=next((share for share in shares if share is not None), None),
            rows=max((size.rows for size in sizes), default=0.0),
            length=max((new, *(round(size.length_max) for size in sizes))) or 1,
            prompt=max((round(size.prompt_max) for size in sizes), default=0),
            new=new,
            is_colocated=self._is_colocated(weights.name, pool),
            is_eager=facts.is_eager == "always" or (facts.is_eager == "adapters" and has_adapter),
            quantized_cache_bytes=facts.quantized_cache_bytes if is_narrow else None,
            gain=_gain(weights),
            machines=ceil(settings.tensor_parallel / (machine.preset.gpus_per_node or 1)),
            network=machine.network(),
        )


def engine_degrees(arch: Architecture, gpus: int, gpus_per_node: int) -> list[int]:
    """Numbers of GPUs over which an engine of a pool can be spread, in one machine: 1, 2, 4 ..."""
    doubled = [2**power for power in range(min(gpus, gpus_per_node).bit_length())]
    return [degree for degree in doubled if gpus % degree == 0 and shares_heads(arch, degree)]


def _gain(weights: Weights) -> float:
    precision = weights.precision
    if precision.has_fp8_products:
        return FP8_GAIN
    is_4_bit = precision.engine_bytes < NARROW / 2 * precision.compute_bytes
    return weights.implementation.fp4_gain if is_4_bit else 1.0
