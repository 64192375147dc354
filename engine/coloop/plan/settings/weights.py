"""Weights of a group: parameters, dtypes, sharding and bytes. Settings are decided elsewhere."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Literal

from coloop.plan.settings.architecture import Architecture, ParameterCount, count_parameters
from coloop.plan.settings.facts import adapter_parameters
from coloop.plan.settings.implementations import NF4, implementation_of
from coloop.plan.settings.machine import Outline
from coloop.plan.settings.settings import UpdateSettings
from coloop.plan.settings.traced import Constant
from coloop.spec.adapters import standing_of
from coloop.spec.dtypes import DTYPE_BYTES, Dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import holding_pool, source_of, training_of, weights_groups
from coloop.spec.heads import classes_of, head_of_group, scorers_of
from coloop.spec.lean import record
from coloop.spec.model import Lora
from coloop.spec.nodes import model_of
from coloop.spec.training import Backend, Offload

# Model states: how many bytes a parameter costs, by optimizer, precision and sharding.
#
# Pure arithmetic over plain numbers. Does not know roles, stages or activations.

Scheme = Literal["single", "replicas", "fsdp2", "zero0", "zero1", "zero2", "zero3", "megatron"]
WHOLE: tuple[Scheme, ...] = ("single", "replicas")
"""Schemes without shards; with `replicas` each process has everything."""

OPTIMIZER_STATES = {
    "adamw": Constant(2.0, "states a parameter", "torch.optim"),
    "adamw8bit": Constant(0.51, "states a parameter", "bitsandbytes"),
    "muon": Constant(1.0, "states a parameter", "torch.optim"),
    "lion": Constant(1.0, "states a parameter", "torch.optim"),
    "sgd": Constant(1.0, "states a parameter", "torch.optim"),
    "rmsprop": Constant(1.0, "states a parameter", "torch.optim"),
}
"""States per parameter in its own dtype (8-bit: two bytes and block scales)."""

COPIED_AT_STEP = ("adamw", "rmsprop")
"""Optimizers whose `foreach` form holds the square roots of a whole state while it steps."""

QUANTIZED_BYTES = {"int8": 1.0, "fp8": 1.0, "mxfp4": 0.5 + 1 / 32}
"""Bytes of a quantized parameter with its scales; embeddings and heads stay 16-bit. mxfp4: 4 bits
and an 8-bit scale for each 32, of experts only if there are any (gpt-oss). nf4 differs by
implementation."""


@record
class Precision:
    compute_bytes: int
    """Of weights and activations in use."""
    master_bytes: int
    """Of the weights that the optimizer updates."""
    frozen_bytes: float
    engine_bytes: float
    """Of a rollout engine's copy."""
    has_fp8_products: bool = False


@record
class ModelStates:
    """Bytes per GPU of a trained group, without activations."""

    weights: float
    gradients: float
    optimizer: float
    step_temporary: float
    """Extra memory of the optimizer step: one more copy for AdamW, fp32 gradients for ZeRO."""
    host: float
    """Offloaded to host memory, per GPU."""

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.step_temporary


def resting_bytes_per_parameter(
    count: ParameterCount,
    compute_bytes: int,
    quantization: str | None = None,
    embedding_bytes: int | None = None,
    nf4_bytes: float = NF4,
) -> float:
    """Mean bytes of a frozen parameter; embeddings may be wider."""
    if quantization is None:
        wider = (embedding_bytes or compute_bytes) - compute_bytes
        return compute_bytes + wider * count.embedding / count.total
    wide = (count.embedding + count.head) / count.total
    if quantization == "mxfp4" and count.routed:
        wide = 1 - count.routed / count.total
    narrow = nf4_bytes if quantization == "nf4" else QUANTIZED_BYTES[quantization]
    return narrow * (1 - wide) + 2 * wide


def compute_states(
    *,
    total: int,
    trainable: int,
    scheme: Scheme,
    shards: int,
    precision: Precision,
    optimizer: str = "adamw",
    momentum: bool = True,
    offload: Offload = "none",
    model_parallel: int = 1,
    has_fused_step: bool = False,
) -> ModelStates:
    """States of `total` parameters, of which `trainable` learn, over `shards` GPUs (data and
    context parallel). `model_parallel` divides everything first: tensor times pipeline degree,
    for experts expert times pipeline degree. `has_fused_step`: AdamW makes no copies."""
    trainable_here, frozen_here = trainable / model_parallel, (total - trainable) / model_parallel
    per_state = OPTIMIZER_STATES.get(optimizer, 2.0)
    if optimizer in ("sgd", "rmsprop") and not momentum:
        per_state = 0.0 if optimizer == "sgd" else 1.0
    master = precision.master_bytes
    if scheme in (*WHOLE, "fsdp2"):
        n = shards if scheme == "fsdp2" else 1
        weights = (master * trainable_here + precision.frozen_bytes * frozen_here) / n
        gradients = master * trainable_here / n
        kept = per_state * (4 if optimizer == "adamw8bit" else master)
        optimizer_bytes = kept * trainable_here / n
        copies = optimizer in COPIED_AT_STEP and not (optimizer == "adamw" and has_fused_step)
        temporary = master * trainable_here / n if copies else 0.0
    elif scheme == "megatron":
        weights = 2 * trainable_here + precision.frozen_bytes * frozen_here
        gradients = 4 * trainable_here
        optimizer_bytes = (4 + 4 * per_state) * trainable_here / shards
        temporary = 0.0
    else:
        weights, gradients, optimizer_bytes, temporary = _zero(
            int(scheme[-1]), trainable_here, frozen_here, shards, per_state, precision
        )
    host = 0.0
    if offload != "none":
        host += optimizer_bytes + max(temporary, gradients)  # the step is taken there
        optimizer_bytes = temporary = 0.0
    if offload == "all":
        host += weights + gradients
        weights = gradients = 0.0
    return ModelStates(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer_bytes,
        step_temporary=temporary,
        host=host,
    )


def sum_states(parts: Iterable[ModelStates]) -> ModelStates:
    """Sum over several blocks of a model on the same GPU."""
    blocks = list(parts)
    names = [field.name for field in fields(ModelStates)]
    return ModelStates(**{name: sum(getattr(block, name) for block in blocks) for name in names})


def _zero(
    stage: int,
    trainable: float,
    frozen: float,
    shards: int,
    per_state: float,
    precision: Precision,
) -> tuple[float, float, float, float]:
    """DeepSpeed: 16-bit weights and gradients, fp32 master weights and moments, and gradients of
    the step."""
    weights = 2 * trainable + precision.frozen_bytes * frozen
    gradients = 2 * trainable
    states = (4 + 4 * per_state) * trainable
    return (
        weights / shards if stage == 3 else weights,
        gradients / shards if stage >= 2 else gradients,
        states / shards if stage >= 1 else states,
        4 * trainable / (shards if stage >= 1 else 1),
    )


# Which adapters share frozen base weights, and which group holds these in each pool.
#
# Groups share base weights in the same process, with the same dtypes and the same sharding;
# otherwise there is another copy.


@record
class Base:
    lora: Lora
    holder: str
    """The group that has the frozen weights."""
    beside: str | None
    """The group that holds them in memory for this one; None: this one does."""


def bases_of(
    spec: LoopSpec,
    dtypes: Mapping[str, Dtypes],
    backends: Mapping[str, Backend],
    frozen: Mapping[str, Backend],
) -> dict[str, Base]:
    """The base of each adapter group, from the dtypes of all groups and the backends of trained
    and of frozen ones."""
    groups = weights_groups(spec)
    asked = {name: standing_of(spec, name) for name in groups}
    standings = {name: standing for name, standing in asked.items() if standing is not None}
    holders = {standing.holder: 0 for standing in standings.values()}
    steps = {**holders, **{name: standing.steps for name, standing in standings.items()}}
    learners = {standings[name].holder: name for name in standings if name in backends}
    keepers: dict[tuple[str, ...], str] = {}
    bases: dict[str, Base] = {}
    for name in sorted(steps, key=lambda name: steps[name]):
        holder = standings[name].holder if name in standings else name
        like = learners.get(holder, name) if name not in backends else name
        if not _shares_reference(spec, like, backends):
            like = name
        how = backends[like] if like in backends else frozen[like]
        spread = f"{how} of {like}" if how == "deepspeed" else how
        held = dtypes[like].matrices, dtypes[like].rest
        base = holder, holding_pool(spec, groups[name]), *held, spread
        keeper = keepers.setdefault(base, name)
        if name in standings:
            beside = None if keeper == name else keeper
            bases[name] = Base(lora=standings[name].lora, holder=holder, beside=beside)
    return bases


def _shares_reference(spec: LoopSpec, learner: str, backends: Mapping[str, Backend]) -> bool:
    """Whether a frozen adapter on a learner's base is the learner with its own adapter off."""
    if learner not in backends:
        return False
    training = training_of(spec, learner)
    return implementation_of(training.implementation, backends[learner]).shares_reference


@record
class Block:
    """Parameters that are divided alike."""

    parameters: int
    learned: int
    """Of them."""
    ranks: int
    """Over which they are divided before sharding: tensor, or expert, times pipeline degree."""


class Weights:
    """A weights group with a known architecture."""

    def __init__(
        self,
        outline: Outline,
        owner: str,
        arch: Architecture,
        *,
        update: UpdateSettings,
        dtypes: Dtypes,
        base: Base | None,
    ) -> None:
        """
        Args:
            update: backend and degrees; for frozen weights, how they are sharded over their pool.
            base: the frozen base weights of an adapter; None: not an adapter.
        """
        group, training = outline.groups[owner], training_of(outline.spec, owner)
        self.name, self.members, self.arch = owner, group.members, arch
        self.training, self.update = training, update
        taught = training_of(outline.spec, source_of(outline.spec, owner))
        self.implementation = implementation_of(taught.implementation, update.backend)
        has_logits, count = count_of(outline, owner, arch)
        self.has_logits, self.count = has_logits, count
        total, trainable = _sizes(outline, owner, arch, count, has_logits, base)
        self.total = total
        """All parameters, including adapters and additional heads."""
        self.trainable = trainable
        """0 if frozen."""
        precision = _precision(
            outline,
            owner,
            count,
            dtypes,
            is_adapter=base is not None,
            nf4_bytes=self.implementation.nf4_bytes,
        )
        scheme, pool = _scheme_of(update), outline.home_of(owner)
        self.precision, self.scheme, self.pool = precision, scheme, pool
        tensor, pipeline = update.tensor_parallel, update.pipeline_parallel
        places = max(pool.places // self.model_parallel, 1)
        self.shards = places if scheme != "single" else 1
        """Data-parallel ranks."""
        is_elsewhere = base is not None and base.beside is not None
        beside = count.total - _own_head(count, has_logits) if is_elsewhere else 0
        held = precision
        if base is not None and not group.trainable:
            # An adapter among frozen weights is as wide as one that learns, which it follows.
            adapter, here = adapter_parameters(arch, base.lora), total - beside
            frozen = precision.frozen_bytes * (here - adapter) + precision.master_bytes * adapter
            held = replace(precision, frozen_bytes=frozen / max(here, 1))
        experts = update.expert_parallel * pipeline if update.expert_parallel > 1 else 0
        routed = count.routed if experts and not is_elsewhere else 0
        learned = routed if trainable > total / 2 else 0
        blocks = [(total - beside - routed, trainable - learned, tensor * pipeline)]
        if routed:
            blocks.append((routed, learned, experts))
        self.blocks = tuple(
            Block(parameters=whole, learned=own, ranks=parts) for whole, own, parts in blocks
        )
        self.held = held
        self.is_learner = group.trainable
        self.states = self.compute_states()

    def compute_states(self) -> ModelStates:
        optimizer = self.training.optimizer
        return sum_states(
            compute_states(
                total=block.parameters,
                trainable=block.learned,
                scheme=self.scheme,
                shards=1 if self.scheme == "single" else max(self.pool.places // block.ranks, 1),
                precision=self.held,
                optimizer=optimizer.name,
                momentum=optimizer.name != "sgd" or bool(optimizer.momentum),
                offload=self.update.offload if self.is_learner else "none",
                model_parallel=block.ranks,
                has_fused_step=self.implementation.has_fused_step,
            )
            for block in self.blocks
        )

    @property
    def trains(self) -> bool:
        """Whether a teaching port of a member is connected and its weights may learn."""
        return self.trainable > 0

    @property
    def trains_all(self) -> bool:
        """False for adapters on a frozen base."""
        return self.trainable > self.total / 2

    @property
    def is_quantized(self) -> bool:
        """Whether frozen weights lie in fewer bits than they are computed in."""
        return self.precision.frozen_bytes < self.precision.compute_bytes

    @property
    def state_shards(self) -> int:
        """Ranks over which states are sharded, including context-parallel ones."""
        return self.shards * self.update.context_parallel

    @property
    def model_parallel(self) -> int:
        """GPUs that share one copy before sharding."""
        update = self.update
        return update.tensor_parallel * update.pipeline_parallel * update.context_parallel


def count_of(outline: Outline, owner: str, arch: Architecture) -> tuple[bool, ParameterCount]:
    """Whether a group's model has a language-model head, and its parameters."""
    has_logits = head_of_group(outline.spec, outline.groups[owner].members) == "words"
    return has_logits, count_parameters(arch, "language_model" if has_logits else "score")


def _sizes(
    outline: Outline,
    owner: str,
    arch: Architecture,
    count: ParameterCount,
    has_logits: bool,
    base: Base | None,
) -> tuple[int, int]:
    """All parameters of a group, and trained ones."""
    group = outline.groups[owner]
    rows = sum(classes_of(outline.spec, node) for node in scorers_of(outline.spec, group.members))
    counted = 0 if has_logits else 1  # by `count`
    extra = (rows - counted) * arch.hidden_size
    adapter = adapter_parameters(arch, base.lora) if base is not None else 0
    total = count.total + extra + adapter
    if not group.trainable:
        return total, 0
    return total, total if base is None else adapter + extra + _own_head(count, has_logits)


def _precision(
    outline: Outline,
    owner: str,
    count: ParameterCount,
    dtypes: Dtypes,
    *,
    is_adapter: bool,
    nf4_bytes: float,
) -> Precision:
    quantization = getattr(model_of(outline.spec.nodes[owner]), "quantization", None)
    held = DTYPE_BYTES[dtypes.matrices], quantization, DTYPE_BYTES[dtypes.rest]
    written = DTYPE_BYTES[dtypes.engine], quantization, DTYPE_BYTES[dtypes.activations]
    return Precision(
        compute_bytes=DTYPE_BYTES[dtypes.activations],
        master_bytes=DTYPE_BYTES["float32" if is_adapter else dtypes.matrices],
        frozen_bytes=resting_bytes_per_parameter(count, *held, nf4_bytes),
        engine_bytes=resting_bytes_per_parameter(count, *written, nf4_bytes),
        has_fp8_products=dtypes.engine == "fp8" or quantization == "fp8",
    )


def _own_head(count: ParameterCount, has_logits: bool) -> int:
    """Parameters of a score head, which each group has for itself."""
    return 0 if has_logits else count.head


def _scheme_of(update: UpdateSettings) -> Scheme:
    """Scheme of the memory formulas for these settings."""
    if update.backend == "fsdp2" and update.states == "whole":
        return "replicas"
    if update.backend == "deepspeed":
        return f"zero{update.zero_stage}"  # type: ignore[return-value]
    return update.backend
