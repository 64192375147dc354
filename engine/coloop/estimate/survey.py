"""One loop seen with an estimator's eyes: machine, weights, engines and the values left open.

Everything that the memory and the time of a stage are computed from is gathered here once. Values
that the loop leaves to the compiler are decided here, each with its reason, except those that want
the whole picture (`decide`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coloop.estimate.architecture import Architecture, ParameterCount, count_parameters
from coloop.estimate.facts import Note, adapter_parameters, resolve_architecture
from coloop.estimate.flow import Flow
from coloop.estimate.machine import PoolShare, lay_out
from coloop.estimate.states import (
    ModelStates,
    Offload,
    Precision,
    Scheme,
    compute_states,
    resting_bytes_per_parameter,
)
from coloop.plan.unrolled import Unrolled, UnrolledPhase
from coloop.spec.dtypes import DTYPE_BYTES, resolve_dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import owner_of
from coloop.spec.nodes import ActorNode, VerifierNode, model_of
from coloop.spec.training import Training

WRITERS = (ActorNode, VerifierNode)
"""Kinds with a `rollout` section."""
SCORE_HEADS = ("critic", "reward")
"""Kinds whose model gives one number a position."""
DEFAULT_TRAINING = Training()
STEADY_ROWS = 256
"""Sequences that an engine writes at once unless the loop says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A value that the loop left open."""

    path: str
    value: Any
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A weights group whose architecture is known."""

    name: str
    members: tuple[str, ...]
    arch: Architecture
    count: ParameterCount
    total: int
    """All parameters, adapters and additional heads included."""
    trainable: int
    """0 where it is frozen."""
    has_logits: bool
    pool: PoolShare
    precision: Precision
    scheme: Scheme
    shards: int
    tensor_parallel: int
    pipeline_parallel: int
    context_parallel: int
    training: Training
    states: ModelStates

    @property
    def trains(self) -> bool:
        """Whether a teaching port of a member is connected and its weights may learn."""
        return self.trainable > 0

    @property
    def trains_all(self) -> bool:
        """False for adapters on a frozen base."""
        return self.trainable > self.total / 2

    @property
    def model_parallel(self) -> int:
        """GPUs that share one copy of everything before it is sharded."""
        return self.tensor_parallel * self.pipeline_parallel * self.context_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What writes with a group's weights in one pool."""

    weights: Weights
    pool: PoolShare
    writers: tuple[str, ...]
    kind: str
    tensor_parallel: int
    max_sequences: int
    utilization: float | None
    """Share of the GPU that it may hold; none: decided from what is left."""
    rows: float
    """Most rows that one writer asks for in a step."""
    length: int
    """Longest prompt and completion."""
    is_colocated: bool
    """Whether it takes turns with others in its pool."""

    @property
    def copies(self) -> int:
        """Engines of the pool, each with all the weights."""
        return max(self.pool.places // self.tensor_parallel, 1)


class Survey:
    """Machine, weights, engines, stages and row counts of a loop."""

    def __init__(
        self, spec: LoopSpec, root: Path | None = None, unrolled: Unrolled | None = None
    ) -> None:
        self.spec, self._root, self._unrolled = spec, root, unrolled
        self.machine, notes = lay_out(spec)
        self.notes: list[Note] = list(notes)
        self.decisions: dict[str, Decision] = {}
        self._dtypes = resolve_dtypes(spec, gpus=self.machine.preset.gpus)
        owned = {node: owner_of(spec, node) for node in spec.nodes}
        self.owners = {node: owner for node, owner in owned.items() if owner is not None}
        """Node to the owner of its weights."""
        self.weights: dict[str, Weights] = {}
        for owner in dict.fromkeys(self.owners[node] for node in spec.nodes if node in self.owners):
            found = self._weights(owner)
            if found is not None:
                self.weights[owner] = found
        vocabularies = [weights.arch.vocab_size for weights in self.weights.values()]
        self.flow = Flow(spec, min(vocabularies, default=None))
        self.engines = tuple(self._engines())
        self._probe_writers: dict[str, tuple[str, ...]] = {}
        self._engine_of = {node: engine for engine in self.engines for node in engine.writers}

    @cached_property
    def unrolled(self) -> Unrolled:
        """The loop's steps."""
        return self._unrolled if self._unrolled is not None else Unrolled(self.spec)

    @property
    def phases(self) -> tuple[UnrolledPhase, ...]:
        """The phases, each with its step."""
        return self.unrolled.phases

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """Every stage of every phase, and the evaluations."""
        named = dict.fromkeys(stage.name for phase in self.phases for stage in phase.step.stages)
        probes = [f"{n}.evaluate" for n, node in self.spec.nodes.items() if node.kind == "evaluate"]
        return (*named, *probes)

    def weights_of(self, node: str) -> Weights | None:
        """The weights that a node uses, where they are known."""
        return self.weights.get(self.owners.get(node, ""))

    def writes_elsewhere(self, node: str) -> bool:
        """Whether a remote engine writes for the node, with weights of its own."""
        rollout = getattr(self.spec.nodes[node], "rollout", None)
        return rollout is not None and rollout.engine == "remote"

    def engine_of(self, node: str) -> Engine | None:
        """What writes for a node."""
        return self._engine_of.get(node)

    def pool_of(self, stage: str) -> PoolShare | None:
        """Where a stage runs; none for the driver's."""
        node, verb = stage.rsplit(".", 1)
        if verb == "generate":
            engine = self.engine_of(node) or self.search_engine(node)
            return engine.pool if engine is not None else None
        if verb == "evaluate":
            return next(
                (e.pool for n in self.probe_writers(node) if (e := self.engine_of(n))), None
            )
        if verb in ("score", "learn", "sync") and (weights := self.weights_of(node)) is not None:
            judge = self.engine_of(node) if verb == "score" else None
            return judge.pool if judge is not None else weights.pool
        return None

    def search_engine(self, node: str) -> Engine | None:
        """What writes for the policies that a search drives."""
        for edge in self.spec.graph.edges_into(node, "policy"):
            if (engine := self.engine_of(edge.source.node)) is not None:
                return engine
        return None

    def probe_writers(self, node: str) -> tuple[str, ...]:
        """Writers that run for an evaluation in place of a dataset."""
        known = self._probe_writers.get(node)
        if known is None:
            known = self._probe_writers[node] = self._find_probe_writers(node)
        return known

    def _find_probe_writers(self, node: str) -> tuple[str, ...]:
        section: Any = self.spec.nodes[node]
        if section.instead_of is None or section.instead_of not in self.spec.nodes:
            return ()
        graph = self.spec.graph
        between = graph.upstream([node]) & graph.downstream([section.instead_of])
        return tuple(n for n in self.spec.nodes if n in between and self.engine_of(n))

    def decide(self, path: str, value: Any, reason: str) -> Any:
        """Notes a value that the loop left open, and gives it back."""
        self.decisions.setdefault(path, Decision(path=path, value=value, reason=reason))
        return value

    # Weights

    def _weights(self, owner: str) -> Weights | None:
        spec, machine = self.spec, self.machine
        members = (owner, *(n for n, o in self.owners.items() if o == owner and n != owner))
        arch, note = resolve_architecture(spec, owner, self._root)
        if arch is None:
            self.notes += [note] if note else []
            return None
        if not arch.is_exact:
            self.notes.append(
                Note(
                    message=f"models of type {arch.model_type!r} are counted as Llama-like",
                    node=owner,
                    field="model",
                )
            )
        has_logits = any(not self.has_score_head(node) for node in members)
        count = count_parameters(arch, "language_model" if has_logits else "score")
        learns = self._learns(members)
        total, trainable = self._sizes(owner, members, arch, count, has_logits, learns)
        training = self._training(owner)
        pool = machine.pool(spec.nodes[owner].pool)
        precision = self._precision(owner, count)
        scheme, tensor, pipeline, context = self._layout(owner, training, pool, learns, count)
        shards = max(pool.places // (tensor * pipeline * context), 1) if scheme != "single" else 1
        optimizer = training.optimizer
        offload: Offload = training.offload or "none"
        states = compute_states(
            total=total,
            trainable=trainable,
            scheme=scheme,
            shards=shards,
            precision=precision,
            optimizer=optimizer.name,
            momentum=optimizer.name != "sgd" or bool(optimizer.momentum),
            offload=offload if learns else "none",
            model_parallel=tensor * pipeline,
        )
        return Weights(
            name=owner,
            members=members,
            arch=arch,
            count=count,
            total=total,
            trainable=trainable,
            has_logits=has_logits,
            pool=pool,
            precision=precision,
            scheme=scheme,
            shards=shards,
            tensor_parallel=tensor,
            pipeline_parallel=pipeline,
            context_parallel=context,
            training=training,
            states=states,
        )

    def has_score_head(self, node: str) -> bool:
        """Whether a node reads one number a position instead of words."""
        section: Any = self.spec.nodes[node]
        if section.kind == "verifier":
            return bool(section.method == "discriminative")
        return section.kind in SCORE_HEADS

    def _learns(self, members: Iterable[str]) -> bool:
        model = model_of(self.spec.nodes[next(iter(members))])
        taught = any(self.spec.graph.teaching_ports(node) for node in members)
        return taught and getattr(model, "type", None) != "snapshot"

    def _sizes(
        self,
        owner: str,
        members: tuple[str, ...],
        arch: Architecture,
        count: ParameterCount,
        has_logits: bool,
        learns: bool,
    ) -> tuple[int, int]:
        heads = sum(has_logits and self.has_score_head(node) for node in members)
        extra = heads * arch.hidden_size
        adapters = 0
        for node in members:
            if (lora := getattr(model_of(self.spec.nodes[node]), "lora", None)) is not None:
                adapters += adapter_parameters(arch, lora)
        total = count.total + extra + adapters
        if not learns:
            return total, 0
        base_is_frozen = getattr(model_of(self.spec.nodes[owner]), "lora", None) is not None
        return total, (adapters + extra) if base_is_frozen else total

    def _training(self, owner: str) -> Training:
        found = getattr(self.spec.nodes[owner], "training", None)
        return found if found is not None else DEFAULT_TRAINING

    def _precision(self, owner: str, count: ParameterCount) -> Precision:
        dtypes = self._dtypes[owner]
        quantization = getattr(model_of(self.spec.nodes[owner]), "quantization", None)
        resting = resting_bytes_per_parameter(
            count, DTYPE_BYTES[dtypes.matrices], quantization, DTYPE_BYTES[dtypes.rest]
        )
        written = resting_bytes_per_parameter(
            count, DTYPE_BYTES[dtypes.engine], quantization, DTYPE_BYTES[dtypes.activations]
        )
        return Precision(
            compute_bytes=DTYPE_BYTES[dtypes.activations],
            master_bytes=DTYPE_BYTES[dtypes.matrices],
            frozen_bytes=resting,
            engine_bytes=written,
        )

    def _layout(
        self,
        owner: str,
        training: Training,
        pool: PoolShare,
        learns: bool,
        count: ParameterCount,
    ) -> tuple[Scheme, int, int, int]:
        path = f"nodes.{owner}.training"
        tensor = training.tensor_parallel or 1
        context = training.context_parallel or 1
        pipeline = training.pipeline_parallel or 1
        backend = training.backend
        if backend is None:
            if pool.gpus > 1:
                backend, reason = "fsdp2", f"{pool.gpus} GPUs share the states"
            else:
                backend, reason = "single", "one process has the pool to itself"
            if learns:
                self.decide(f"{path}.backend", backend, reason)
        if backend == "deepspeed":
            stage = training.zero_stage
            if stage is None:
                resting = (4 + 14 / max(pool.places, 1)) * count.total
                stage = 2 if resting < 0.4 * self.machine.usable_bytes(pool) else 3
                reason = (
                    "whole weights fit on each GPU" if stage == 2 else "weights are sharded too"
                )
                self.decide(f"{path}.zero_stage", stage, reason)
            return f"zero{stage}", tensor, 1, context  # type: ignore[return-value]
        if backend == "megatron":
            return "megatron", tensor, pipeline, context
        return ("fsdp2" if backend == "fsdp2" else "single"), tensor, 1, context

    # Engines

    def _engines(self) -> Iterable[Engine]:
        found: dict[tuple[str, str], list[str]] = {}
        for node, section in self.spec.nodes.items():
            rollout: Any = section.rollout if isinstance(section, WRITERS) else None
            if rollout is None or rollout.engine == "remote" or not self._is_used(node):
                continue
            weights = self.weights_of(node)
            if weights is not None:
                pool = self.machine.pool(rollout.pool or weights.pool.name)
                found.setdefault((weights.name, pool.name), []).append(node)
        for (owner, pool_name), writers in found.items():
            yield self._engine(self.weights[owner], self.machine.pool(pool_name), tuple(writers))

    def _is_used(self, node: str) -> bool:
        """Whether something reads what the node writes."""
        ports = ("rollouts", "policy", "scores", "step_scores", "check", "returns")
        out = self.spec.graph.edges_out_of(node)
        return any(edge.source.port in ports for edge in out) or "rewards" in (
            self.spec.graph.teaching_ports(node)
        )

    def _engine(self, weights: Weights, pool: PoolShare, writers: tuple[str, ...]) -> Engine:
        first = writers[0]
        section: Any = self.spec.nodes[first].rollout  # type: ignore[union-attr]
        path = f"nodes.{first}.rollout"
        kind = section.engine
        if kind is None:
            kind = "torch" if self.machine.is_cpu else "vllm"
            reason = "fastest for tiny models" if kind == "torch" else "GPUs are there"
            self.decide(f"{path}.engine", kind, reason)
        sizes = [self.flow.output(node, "rollouts") for node in writers]
        length = max((round(size.length_max) for size in sizes), default=0)
        rows = max((size.rows for size in sizes), default=0.0)
        tensor = section.tensor_parallel
        others = [w for w in self.weights.values() if w.pool.name == pool.name]
        is_colocated = weights.pool.name == pool.name and any(w.trains for w in others)
        if tensor is None:
            tensor = self._rollout_tensor_parallel(weights, pool, is_colocated)
            if not self.machine.is_cpu:
                fits = "the fewest GPUs on which the weights leave room for a cache"
                self.decide(f"{path}.tensor_parallel", tensor, fits)
        copies = max(pool.places // tensor, 1) if pool.gpus else 1
        sequences = section.max_num_seqs
        if sequences is None:
            wanted = max(1, -(-int(rows) // copies)) if rows else STEADY_ROWS
            sequences = min(STEADY_ROWS, wanted)
            self.decide(
                f"{path}.max_num_seqs", sequences, "the rows of a step, at most 256 at once"
            )
        return Engine(
            weights=weights,
            pool=pool,
            writers=writers,
            kind=kind,
            tensor_parallel=tensor,
            max_sequences=sequences,
            utilization=section.gpu_memory_utilization,
            rows=rows,
            length=max(length, 1),
            is_colocated=is_colocated,
        )

    def _rollout_tensor_parallel(
        self, weights: Weights, pool: PoolShare, is_colocated: bool
    ) -> int:
        if not pool.gpus:
            return 1
        room = (0.45 if is_colocated else 0.75) * self.machine.usable_bytes(pool)
        most = min(pool.gpus, self.machine.preset.gpus_per_node)
        resting = weights.precision.compute_bytes * weights.count.total
        degree = 1
        while degree * 2 <= most and resting / degree > room:
            degree *= 2
        return degree
