"""Backend, dtypes, degrees and packing of each group's updates, as far as memory does not decide
them."""

from collections.abc import Iterator

from coloop.plan.settings.architecture import Architecture, count_parameters
from coloop.plan.settings.facts import resolve_architecture
from coloop.plan.settings.machine import Outline, Value
from coloop.plan.settings.settings import PLAIN_FAMILIES, States, UpdateSettings
from coloop.plan.settings.weights import Precision, bases_of, compute_states, count_of
from coloop.spec.adapters import standing_of
from coloop.spec.dtypes import Usual, resolve_dtypes
from coloop.spec.groups import WeightsGroup, rollout_of, training_of
from coloop.spec.training import Backend, Offload

# The backend of each trained group, and whether its model states are replicated or sharded.
#
# On a CPU they are replicated if they fit: nothing is gathered, and gradients are summed once per
# step. Otherwise each process has a shard.

GIB = 2**30
FULL = Precision(compute_bytes=4, master_bytes=4, frozen_bytes=4, engine_bytes=4)
ROOM_FOR_STATES = 0.5
"""Share of the usable memory for model states; engines and passes need the rest."""


class Updates:
    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        learning = [name for name, group in outline.groups.items() if group.trainable]
        self.backends = {name: self._backend(name) for name in learning}
        """Of trained groups."""
        self.states = {name: self._states(name) for name in learning}
        held: dict[str, Backend] = {  # whole weights lie in a process as those of one by itself
            name: "single" if self.states[name] == "whole" else backend
            for name, backend in self.backends.items()
        }
        self.dtypes = resolve_dtypes(
            outline.spec,
            gpus=outline.machine.preset.gpus,
            backends=held,
            usual=_usual_dtypes(outline) if outline.machine.is_cpu else None,
        )
        """Of all weights groups."""
        frozen: dict[str, Backend] = {
            name: "fsdp2" if outline.home_of(name).gpus > 1 else "single"
            for name in outline.groups
            if name not in held
        }
        self.bases = bases_of(outline.spec, self.dtypes, held, frozen)
        """Of adapter groups."""

    def _backend(self, owner: str) -> Backend:
        named = training_of(self.outline.spec, owner).backend
        if named is not None:
            return named
        pool = self.outline.home_of(owner)
        if pool.places > 1:
            kind = "GPUs" if pool.gpus else "processes"
            reason = f"the {pool.places} {kind} of its pool learn together"
            return self._decide(owner, "backend", "fsdp2", reason)
        return self._decide(owner, "backend", "single", "one process")

    def _states(self, owner: str) -> States:
        """Whether the model states of a trained group are replicated or sharded."""
        backend, outline = self.backends[owner], self.outline
        if backend != "fsdp2":
            return "whole" if backend == "single" else "spread"
        training, pool = training_of(outline.spec, owner), outline.home_of(owner)
        size = self._whole_bytes(owner)
        sharing = sum(outline.home_of(name) is pool for name in self.backends)
        room = ROOM_FOR_STATES * outline.machine.usable_bytes(pool) / sharing
        value: States = "spread"
        if not outline.machine.is_cpu:
            reason = f"{pool.places} GPUs together have enough memory"
        elif (training.tensor_parallel or 1) > 1:
            reason = "processes that split layers hold a part of each"
        elif training.reshard_after_forward is not None:
            reason = "`reshard_after_forward` applies to gathered weights"
        elif size > room:
            reason = f"unsharded they would take {size / GIB:.1f} GiB in each process"
        else:
            value = "whole"
            reason = "nothing is gathered, and gradients are all-reduced once a step"
        return outline.decide(f"nodes.{owner}.states", value, reason)

    def _whole_bytes(self, owner: str) -> float:
        """Model states of a group in one process, in float32; 0: unknown."""
        spec = self.outline.spec
        arch, _ = resolve_architecture(spec, owner, self.outline.root)
        if arch is None:
            return 0.0
        _, count = count_of(self.outline, owner, arch)
        is_adapter = standing_of(spec, owner) is not None
        return compute_states(
            total=count.total,
            trainable=0 if is_adapter else count.total,
            scheme="replicas",
            shards=1,
            precision=FULL,
            optimizer=training_of(spec, owner).optimizer.name,
        ).total

    def settle(self, owner: str, arch: Architecture | None) -> UpdateSettings:
        """Backend and degrees of a group; for frozen weights, how they are sharded."""
        training = training_of(self.outline.spec, owner)
        backend = self.backends.get(owner) or self.spreads_frozen(owner) or "single"
        frozen: States = "spread" if backend == "fsdp2" else "whole"
        return UpdateSettings(
            backend=backend,
            states=self.states.get(owner, frozen),
            zero_stage=self._zero_stage(owner, arch) if backend == "deepspeed" else None,
            tensor_parallel=self._tensor(owner, backend),
            pipeline_parallel=(training.pipeline_parallel or 1) if backend == "megatron" else 1,
            context_parallel=training.context_parallel or 1,
            expert_parallel=training.expert_parallel or 1,
            micro_batch=training.micro_batch,
            tokens_at_once=self.outline.machine.tokens_at_once,
            gradient_checkpointing=training.gradient_checkpointing or False,
            loss_chunk=training.loss_chunk,
            packing=self._packing(owner, arch),
            offload=self._offload(owner),
            reshard_after_forward=self._reshard(owner, backend),
        )

    def spreads_frozen(self, owner: str) -> Backend | None:
        """Backend that shards frozen weights, adapters included, over the GPUs of their pool; None
        if each process has all of them."""
        base = self.bases.get(owner)
        if base is not None and base.beside in self.backends:
            return self.backends[base.beside] if self.states[base.beside] == "spread" else None
        return "fsdp2" if self.outline.home_of(owner).gpus > 1 else None

    def _decide(self, owner: str, field: str, value: Value, reason: str) -> Value:
        return self.outline.decide(f"nodes.{owner}.training.{field}", value, reason)

    def _tensor(self, owner: str, backend: Backend) -> int:
        """Tensor-parallel degree for training; engines have complete copies."""
        if owner not in self.backends:
            return 1
        written = training_of(self.outline.spec, owner).tensor_parallel
        if written is None and backend == "fsdp2" and self.outline.home_of(owner).places > 1:
            reason = "ranks with whole layers communicate least; engines generate with whole copies"
            return self._decide(owner, "tensor_parallel", 1, reason)
        return written or 1

    def _packing(self, owner: str, arch: Architecture | None) -> bool:
        """Packing needs no more memory than padded rows, so memory does not decide it."""
        written = training_of(self.outline.spec, owner).packing
        if written is not None or owner not in self.backends:
            return bool(written)
        value = False
        if self.outline.machine.is_cpu:
            reason = (
                "rows of similar length are padded to each other: a mask over several rows costs "
                "more"
            )
        elif arch is None or arch.model_type not in PLAIN_FAMILIES:
            reason = "it is not known how models of this family handle several texts in one row"
        elif self.dtypes[owner].compute != "bfloat16":
            reason = "the kernel for texts of different lengths needs 16 bits"
        else:
            value, reason = True, "no token is padding"
        return self._decide(owner, "packing", value, reason)

    def _offload(self, owner: str) -> Offload:
        written = training_of(self.outline.spec, owner).offload
        is_open = written is None and owner in self.backends
        if not is_open or self.outline.machine.is_cpu:
            return written or "none"
        value: Offload = "none"
        reason = "the fastest; offloading is for GPUs that are too small"
        return self._decide(owner, "offload", value, reason)

    def _reshard(self, owner: str, backend: Backend) -> bool:
        written = training_of(self.outline.spec, owner).reshard_after_forward
        if written is not None:
            return written
        if backend == "fsdp2" and self.states.get(owner) == "spread":
            reason = "gathered weights of a layer are freed after it"
            self._decide(owner, "reshard_after_forward", True, reason)
        return True

    def _zero_stage(self, owner: str, arch: Architecture | None) -> int:
        spec, pool = self.outline.spec, self.outline.home_of(owner)
        written = training_of(spec, owner).zero_stage
        if written is not None:
            return written
        resting = 0.0
        if arch is not None:
            _, count = count_of(self.outline, owner, arch)
            resting = (4 + 14 / max(pool.places, 1)) * count.total
        if resting < 0.4 * self.outline.machine.usable_bytes(pool):
            return self._decide(owner, "zero_stage", 2, "whole weights fit on each GPU")
        return self._decide(owner, "zero_stage", 3, "weights are sharded too")


# The default compute dtype on a CPU.
#
# Training in bfloat16 with float32 master weights is as good as float32 (held-out accuracy over
# five seeds differs by +0.006 ± 0.041, tests/bench/README.md) and takes 0.6 of its time, if the CPU
# has native instructions and products dominate.

LEAST_PARAMETERS = 200_000
"""Active parameters from which bfloat16 always helps: with 0.2M an update and its generation take
0.68 to 0.86 of the CPU time of float32, with 0.1M 0.75 to 1.04 (tests/bench)."""


def _usual_dtypes(outline: Outline) -> dict[str, Usual]:
    """Default compute dtype on a CPU, by weights group."""
    conditions = outline.conditions
    begun = dict(conditions.begun.dtypes) if conditions.begun is not None else {}
    usual: dict[str, Usual] = {}
    for name, group in outline.groups.items():
        if name in begun:
            usual[name] = Usual(dtype=begun[name], reason="as at the start of the run")
        elif (against := next(_against(outline, group), None)) is not None:
            usual[name] = Usual(dtype="float32", reason=f"float32: {against}")
        else:
            reason = f"bfloat16: {conditions.processor.reason}"
            usual[name] = Usual(dtype="bfloat16", reason=reason)
    return usual


def _against(outline: Outline, group: WeightsGroup) -> Iterator[str]:
    """Reasons why a group does not compute in bfloat16."""
    arch, _ = resolve_architecture(outline.spec, group.name, outline.root)
    if arch is None:
        yield "the size of the model is not known here"
        return
    size = count_parameters(arch).active
    if size < LEAST_PARAMETERS:
        yield f"a model of {size / 1e6:.2g}M parameters gains little from bfloat16"
    for node in group.members:
        rollout = rollout_of(outline.spec, node)
        if rollout is not None and rollout.engine == "vllm":
            yield "log-probs of vLLM in bfloat16 differ by about 0.01 from those of a learner"
    if not outline.conditions.processor.has_bf16:
        yield outline.conditions.processor.reason
