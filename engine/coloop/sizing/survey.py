"""One loop seen with an estimator's eyes: machine, weights, engines and the values left open.

Everything that the memory and the time of a stage are computed from is gathered here once. Values
that the loop leaves to the compiler are decided here, each with its reason, except those that want
the whole picture (`decide`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

from coloop.sizing.architecture import Architecture, ParameterCount, count_parameters
from coloop.sizing.bases import bases_of
from coloop.sizing.conditions import Conditions, conditions_here
from coloop.sizing.facts import Note, adapter_parameters, resolve_architecture
from coloop.sizing.flow import Flow
from coloop.sizing.machine import PoolShare, lay_out
from coloop.sizing.precision import usual_dtypes
from coloop.sizing.settings import (
    ROWS_AT_ONCE,
    Channel,
    Decision,
    EngineSettings,
    States,
    UpdateSettings,
)
from coloop.sizing.states import (
    ModelStates,
    Precision,
    Scheme,
    compute_states,
    resting_bytes_per_parameter,
)
from coloop.sizing.threads import with_threads
from coloop.spec.adapters import standing_of
from coloop.spec.dtypes import DTYPE_BYTES, resolve_dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import owner_of, training_of, weights_groups
from coloop.spec.heads import head_of, head_of_group
from coloop.spec.homes import holding_pool, writing_pools
from coloop.spec.nodes import ActorNode, VerifierNode, model_of
from coloop.spec.rollout import Engine as EngineKind
from coloop.spec.training import Backend, Offload, Training

WRITERS = (ActorNode, VerifierNode)
"""Kinds with a `rollout` section."""
DEFAULT_TRAINING = Training()
GIB = 2**30
FULL = Precision(compute_bytes=4, master_bytes=4, frozen_bytes=4, engine_bytes=4)
ROOM_FOR_STATES = 0.5
"""Of what a process may hold: engines and passes want the rest."""
PACKED_FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
"""Model types whose layers keep texts apart that lie end to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLoad:
    """What a phase teaches and runs."""

    live: tuple[tuple[str, str], ...]
    """Teaching ports (node, port)."""
    stages: tuple[str, ...]
    """Names of its stages."""
    steps: int = 1
    """That are to be expected of it over the whole run."""


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
    update: UpdateSettings
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

    @property
    def at_once(self) -> int:
        """Sequences that it ever holds: torch makes no room for more than there are."""
        if self.kind == "vllm" or not self.rows:
            return self.max_sequences
        return min(self.max_sequences, ceil(self.rows / self.copies))


class Survey:
    """Machine, weights, engines, stages and row counts of a loop."""

    def __init__(
        self,
        spec: LoopSpec,
        root: Path | None = None,
        phases: Sequence[PhaseLoad] = (),
        probes: Mapping[str, Sequence[str]] | None = None,
        conditions: Conditions | None = None,
        workers: int = 1,
    ) -> None:
        """
        Args:
            workers: processes on a CPU where the loop names no pools.
        """
        conditions = conditions or conditions_here()
        self.spec, self._root, self.phases = spec, root, tuple(phases)
        self._probes = probes or {}
        bare, notes = lay_out(spec, conditions.processor, workers)
        self.machine, threads = with_threads(spec, bare, conditions, root)
        self.notes: list[Note] = list(notes)
        self.decisions: dict[str, Decision] = {one.path: one for one in threads}
        owned = {node: owner_of(spec, node) for node in spec.nodes}
        self.owners = {node: owner for node, owner in owned.items() if owner is not None}
        """Node to the owner of its weights."""
        self._groups = weights_groups(spec)
        self._backends = {
            name: self._backend(name) for name, group in self._groups.items() if group.trainable
        }
        self._states = {name: self._settle_states(name) for name in self._backends}
        held: dict[str, Backend] = {
            name: "single" if self._states[name] == "whole" else backend
            for name, backend in self._backends.items()
        }
        self.dtypes = resolve_dtypes(
            spec,
            gpus=self.machine.preset.gpus,
            backends=held,
            usual=usual_dtypes(spec, conditions, root) if self.machine.is_cpu else None,
        )
        """Of every weights group."""
        self.bases = bases_of(spec, self.dtypes, held)
        """Of the groups that are adapters."""
        self.updates: dict[str, UpdateSettings] = {}
        """Of the groups that train; what depends on memory is not in it."""
        self.weights: dict[str, Weights] = {}
        for owner in self._groups:
            found = self._weights(owner)
            if found is not None:
                self.weights[owner] = found
        vocabularies = [weights.arch.vocab_size for weights in self.weights.values()]
        self.flow = Flow(spec, min(vocabularies, default=None))
        self.settings = tuple(self._engine_settings())
        """Of every engine that a group writes with."""
        self.engines = tuple(self._engines())
        """Those of which memory and time are known."""
        self._engine_of = {node: engine for engine in self.engines for node in engine.writers}

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """Every stage of every phase, and the evaluations."""
        named = dict.fromkeys(stage for phase in self.phases for stage in phase.stages)
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
        """Writers that run for an evaluation on rows of its own."""
        return tuple(one for one in self._probes.get(node, ()) if self.engine_of(one) is not None)

    def decide(self, path: str, value: Any, reason: str) -> Any:
        """Notes a value that the loop left open, and gives it back."""
        self.decisions.setdefault(path, Decision(path=path, value=value, reason=reason))
        return value

    # Weights

    def _weights(self, owner: str) -> Weights | None:
        spec, machine = self.spec, self.machine
        members = self._groups[owner].members
        learns = self._groups[owner].trainable
        training = training_of(spec, owner)
        pool = machine.pool(holding_pool(spec, self._groups[owner]))
        arch, note = resolve_architecture(spec, owner, self._root)
        if arch is None:
            self.notes += [note] if note else []
            if learns:
                self.updates[owner] = self._update(owner, training, pool, None, None)
            return None
        if not arch.is_exact:
            self.notes.append(
                Note(
                    message=f"models of type {arch.model_type!r} are counted as Llama-like",
                    node=owner,
                    field="model",
                )
            )
        has_logits = head_of_group(spec, members) == "words"
        count = count_parameters(arch, "language_model" if has_logits else "score")
        total, trainable = self._sizes(owner, members, arch, count, has_logits, learns)
        precision = self._precision(owner, count)
        update = self._update(owner, training, pool, arch, count)
        if learns:
            self.updates[owner] = update
        scheme = _scheme_of(update)
        tensor, pipeline = update.tensor_parallel, update.pipeline_parallel
        context = update.context_parallel
        shards = max(pool.places // (tensor * pipeline * context), 1) if scheme != "single" else 1
        optimizer = training.optimizer
        base = self.bases.get(owner)
        is_elsewhere = base is not None and base.beside is not None
        beside = count.total - _own_head(count, has_logits) if is_elsewhere else 0
        held = precision
        if base is not None and not learns:
            held = _with_adapter(precision, total - beside, adapter_parameters(arch, base.lora))
        states = compute_states(
            total=total - beside,
            trainable=trainable,
            scheme=scheme,
            shards=shards,
            precision=held,
            optimizer=optimizer.name,
            momentum=optimizer.name != "sgd" or bool(optimizer.momentum),
            offload=update.offload if learns else "none",
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
            update=update,
            states=states,
        )

    def _sizes(
        self,
        owner: str,
        members: tuple[str, ...],
        arch: Architecture,
        count: ParameterCount,
        has_logits: bool,
        learns: bool,
    ) -> tuple[int, int]:
        heads = sum(has_logits and head_of(self.spec.nodes[node]) == "score" for node in members)
        extra = heads * arch.hidden_size
        base = self.bases.get(owner)
        adapter = adapter_parameters(arch, base.lora) if base is not None else 0
        total = count.total + extra + adapter
        if not learns:
            return total, 0
        return total, total if base is None else adapter + extra + _own_head(count, has_logits)

    def _precision(self, owner: str, count: ParameterCount) -> Precision:
        dtypes = self.dtypes[owner]
        quantization = getattr(model_of(self.spec.nodes[owner]), "quantization", None)
        resting = resting_bytes_per_parameter(
            count, DTYPE_BYTES[dtypes.matrices], quantization, DTYPE_BYTES[dtypes.rest]
        )
        written = resting_bytes_per_parameter(
            count, DTYPE_BYTES[dtypes.engine], quantization, DTYPE_BYTES[dtypes.activations]
        )
        return Precision(
            compute_bytes=DTYPE_BYTES[dtypes.activations],
            master_bytes=DTYPE_BYTES["float32" if owner in self.bases else dtypes.matrices],
            frozen_bytes=resting,
            engine_bytes=written,
        )

    def _backend(self, owner: str) -> Backend:
        """What runs the updates of a group."""
        named = training_of(self.spec, owner).backend
        if named is not None:
            return named
        pool = self.machine.pool(holding_pool(self.spec, self._groups[owner]))
        path = f"nodes.{owner}.training.backend"
        if pool.places > 1:
            kind = "GPUs" if pool.gpus else "processes"
            reason = f"the {pool.places} {kind} of its pool learn together"
            return self.decide(path, "fsdp2", reason)  # type: ignore[no-any-return]
        return self.decide(path, "single", "one process")  # type: ignore[no-any-return]

    def _settle_states(self, owner: str) -> States:
        """Where the model states of a group that learns lie."""
        backend = self._backends[owner]
        if backend != "fsdp2":
            return "whole" if backend == "single" else "spread"
        training = training_of(self.spec, owner)
        pool = self.machine.pool(holding_pool(self.spec, self._groups[owner]))
        size = self._whole_bytes(owner)
        value: States = "spread"
        if not self.machine.is_cpu:
            reason = f"{pool.places} GPUs have the memory of all of them"
        elif (training.tensor_parallel or 1) > 1:
            reason = "processes that share layers have a part of each"
        elif training.reshard_after_forward is not None:
            reason = "`reshard_after_forward` is about weights that are gathered"
        elif size > self._room_for_states(pool):
            reason = f"whole they would take {size / GIB:.1f} GiB in each process"
        else:
            value, reason = "whole", "nothing is gathered, and gradients are summed once a step"
        return self.decide(f"nodes.{owner}.states", value, reason)  # type: ignore[no-any-return]

    def _whole_bytes(self, owner: str) -> float:
        """Model states of a group, all of them in one process, in float32; 0: not known."""
        arch, _ = resolve_architecture(self.spec, owner, self._root)
        if arch is None:
            return 0.0
        has_logits = head_of_group(self.spec, self._groups[owner].members) == "words"
        count = count_parameters(arch, "language_model" if has_logits else "score")
        is_adapter = standing_of(self.spec, owner) is not None
        return compute_states(
            total=count.total,
            trainable=0 if is_adapter else count.total,
            scheme="replicas",
            shards=1,
            precision=FULL,
            optimizer=training_of(self.spec, owner).optimizer.name,
        ).total

    def _room_for_states(self, pool: PoolShare) -> float:
        """Memory of a process for one group that learns in it."""
        learning = (holding_pool(self.spec, self._groups[name]) for name in self._backends)
        sharing = sum(self.machine.pool(name) is pool for name in learning)
        return ROOM_FOR_STATES * self.machine.usable_bytes(pool) / sharing

    def _update(
        self,
        owner: str,
        training: Training,
        pool: PoolShare,
        arch: Architecture | None,
        count: ParameterCount | None,
    ) -> UpdateSettings:
        """Backend and degrees; of frozen weights, how they are spread over their pool."""
        backend = self._backends.get(owner) or self.spreads_frozen(owner) or "single"
        return UpdateSettings(
            backend=backend,
            states=self._states.get(owner, "spread" if backend == "fsdp2" else "whole"),
            zero_stage=self._zero_stage(owner, training, pool, count)
            if backend == "deepspeed"
            else None,
            tensor_parallel=self._tensor(owner, training, pool, backend),
            pipeline_parallel=(training.pipeline_parallel or 1) if backend == "megatron" else 1,
            context_parallel=training.context_parallel or 1,
            expert_parallel=training.expert_parallel or 1,
            micro_batch=training.micro_batch,
            tokens_at_once=self.machine.tokens_at_once,
            gradient_checkpointing=training.gradient_checkpointing or False,
            loss_chunk=training.loss_chunk,
            packing=self._packing(owner, training, arch),
            offload=self._offload(owner, training),
            reshard_after_forward=self._reshard(owner, training, backend),
        )

    def spreads_frozen(self, owner: str) -> Backend | None:
        """What spreads weights that do not learn over the GPUs of their pool; None: they are whole
        in each process, as is what an adapter that does not learn stands on, whoever holds it."""
        carried = {base.beside for name, base in self.bases.items() if name not in self._backends}
        if owner in self.bases or owner in carried:
            return None
        pool = self.machine.pool(holding_pool(self.spec, self._groups[owner]))
        return "fsdp2" if pool.gpus > 1 else None

    def _tensor(self, owner: str, training: Training, pool: PoolShare, backend: Backend) -> int:
        """Ranks that share each layer while they learn; engines have whole copies beside them."""
        if owner not in self._backends:
            return 1
        if training.tensor_parallel is None and backend == "fsdp2" and pool.places > 1:
            path = f"nodes.{owner}.training.tensor_parallel"
            reason = "ranks that have whole layers talk least; engines write with whole copies"
            return self.decide(path, 1, reason)  # type: ignore[no-any-return]
        return training.tensor_parallel or 1

    def _packing(self, owner: str, training: Training, arch: Architecture | None) -> bool:
        """Packing adds nothing to what padded rows need, so memory does not ask for it."""
        if training.packing is not None or owner not in self._backends:
            return bool(training.packing)
        path = f"nodes.{owner}.training.packing"
        if self.machine.is_cpu:
            reason = "rows of like length are padded to each other: a mask over several costs more"
            return self.decide(path, False, reason)  # type: ignore[no-any-return]
        if arch is None or arch.model_type not in PACKED_FAMILIES:
            reason = "how models of this family see several texts in one row is not known"
            return self.decide(path, False, reason)  # type: ignore[no-any-return]
        if self.dtypes[owner].compute != "bfloat16":
            reason = "the kernel for texts of different lengths wants 16 bits"
            return self.decide(path, False, reason)  # type: ignore[no-any-return]
        return self.decide(path, True, "no token is padding")  # type: ignore[no-any-return]

    def _offload(self, owner: str, training: Training) -> Offload:
        if training.offload is not None or self.machine.is_cpu or owner not in self._backends:
            return training.offload or "none"
        path = f"nodes.{owner}.training.offload"
        return self.decide(path, "none", "the fastest: `fit` offers what saves memory")  # type: ignore[no-any-return]

    def _reshard(self, owner: str, training: Training, backend: Backend) -> bool:
        if training.reshard_after_forward is not None:
            return training.reshard_after_forward
        if backend == "fsdp2" and self._states.get(owner) == "spread":
            path = f"nodes.{owner}.training.reshard_after_forward"
            self.decide(path, True, "gathered weights of a layer are freed after it")
        return True

    def _zero_stage(
        self, owner: str, training: Training, pool: PoolShare, count: ParameterCount | None
    ) -> int:
        if training.zero_stage is not None:
            return training.zero_stage
        path = f"nodes.{owner}.training.zero_stage"
        resting = (4 + 14 / max(pool.places, 1)) * count.total if count is not None else 0.0
        if resting < 0.4 * self.machine.usable_bytes(pool):
            return self.decide(path, 2, "whole weights fit on each GPU")  # type: ignore[no-any-return]
        return self.decide(path, 3, "weights are sharded too")  # type: ignore[no-any-return]

    # Engines

    def _engine_settings(self) -> Iterator[EngineSettings]:
        """Each group and each pool in which members of it write."""
        for owner, group in self._groups.items():
            for name, writers in writing_pools(self.spec, group).items():
                yield self._settle_engine(owner, self.machine.pool(name), writers)

    def _settle_engine(
        self, owner: str, pool: PoolShare, writers: tuple[str, ...]
    ) -> EngineSettings:
        rollouts: list[Any] = [self.spec.nodes[node].rollout for node in writers]  # type: ignore[union-attr]
        path = f"nodes.{writers[0]}.rollout"
        named: EngineKind | None = next((one.engine for one in rollouts if one.engine), None)
        kind: EngineKind = named or ("torch" if self.machine.is_cpu else "vllm")
        if named is None:
            reason = "paged attention and CUDA graphs"
            if kind == "torch":
                reason = "the fastest for small models, and exact log-probs"
            self.decide(f"{path}.engine", kind, reason)
        tensor = next((one.tensor_parallel for one in rollouts if one.tensor_parallel), None)
        weights = self.weights.get(owner)
        if tensor is None and weights is not None:
            tensor = self._rollout_tensor_parallel(weights, pool, self._is_colocated(owner, pool))
            if not self.machine.is_cpu:
                fits = "the fewest GPUs on which the weights leave room for a cache"
                self.decide(f"{path}.tensor_parallel", tensor, fits)
        tensor = tensor or 1
        sequences = max((one.max_num_seqs for one in rollouts if one.max_num_seqs), default=None)
        if sequences is None:
            sequences = ROWS_AT_ONCE
            reason = f"{ROWS_AT_ONCE} at most: more at once make nothing faster"
            rows = max((self.flow.output(node, "rollouts").rows for node in writers), default=0)
            if kind == "vllm" and rows:
                copies = max(pool.places // tensor, 1)
                sequences = min(ROWS_AT_ONCE, max(1, ceil(rows / copies)))
                reason = f"the rows of a step, {ROWS_AT_ONCE} at most"
            if kind != "remote":
                self.decide(f"{path}.max_num_seqs", sequences, reason)
        return EngineSettings(
            group=owner,
            pool=pool.name,
            writers=writers,
            engine=kind,
            tensor_parallel=tensor,
            max_num_seqs=sequences,
            channel=self._channel(owner, pool, path.removesuffix(".rollout")),
        )

    def _channel(self, owner: str, pool: PoolShare, path: str) -> Channel:
        """How new weights go from where a group is held to an engine in a pool."""
        home = self.machine.pool(holding_pool(self.spec, self._groups[owner]))
        if home.name == pool.name:
            return "local"
        value: Channel = "nccl" if home.gpus and pool.gpus else "files"
        reason = "memory that both pools see, or a disk; else the driver carries them"
        if value == "nccl":
            reason = "from GPU to GPU, past the memory of hosts and the driver"
        self.decide(f"{path}.channel", value, reason)
        return value

    def _is_colocated(self, owner: str, pool: PoolShare) -> bool:
        """Whether an engine takes turns with updates in its pool."""
        holding = self.weights[owner].pool.name
        others = [one for one in self.weights.values() if one.pool.name == pool.name]
        return holding == pool.name and any(one.trains for one in others)

    def _engines(self) -> Iterator[Engine]:
        for settings in self.settings:
            weights = self.weights.get(settings.group)
            writers = tuple(node for node in settings.writers if self._is_used(node))
            if weights is not None and writers and settings.engine != "remote":
                yield self._engine(weights, settings, writers)

    def _is_used(self, node: str) -> bool:
        """Whether something reads what the node writes."""
        ports = ("rollouts", "policy", "scores", "step_scores", "check", "returns")
        out = self.spec.graph.edges_out_of(node)
        return any(edge.source.port in ports for edge in out) or "rewards" in (
            self.spec.graph.teaching_ports(node)
        )

    def _engine(
        self, weights: Weights, settings: EngineSettings, writers: tuple[str, ...]
    ) -> Engine:
        pool = self.machine.pool(settings.pool)
        rollouts: list[Any] = [self.spec.nodes[node].rollout for node in writers]  # type: ignore[union-attr]
        sizes = [self.flow.output(node, "rollouts") for node in writers]
        shares = (one.gpu_memory_utilization for one in rollouts)
        return Engine(
            weights=weights,
            pool=pool,
            writers=writers,
            kind=settings.engine,
            tensor_parallel=settings.tensor_parallel,
            max_sequences=settings.max_num_seqs,
            utilization=next((share for share in shares if share is not None), None),
            rows=max((size.rows for size in sizes), default=0.0),
            length=max((round(size.length_max) for size in sizes), default=0) or 1,
            is_colocated=self._is_colocated(weights.name, pool),
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


def _own_head(count: ParameterCount, has_logits: bool) -> int:
    """Parameters of a score head, which no two groups share."""
    return 0 if has_logits else count.head


def _with_adapter(precision: Precision, total: int, adapter: int) -> Precision:
    """Of frozen weights an adapter among them is as wide as one that learns, which it follows."""
    frozen = precision.frozen_bytes * (total - adapter) + precision.master_bytes * adapter
    return replace(precision, frozen_bytes=frozen / max(total, 1))


def _scheme_of(update: UpdateSettings) -> Scheme:
    """The backend in the terms of the memory formulas."""
    if update.backend == "fsdp2" and update.states == "whole":
        return "replicas"
    if update.backend == "deepspeed":
        return f"zero{update.zero_stage}"  # type: ignore[return-value]
    return update.backend
