"""What the weights of one group are: parameters, types, how they are spread, and their bytes.

Knows one group at a time, and its settings as they were decided elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coloop.plan.settings.architecture import Architecture, ParameterCount, count_parameters
from coloop.plan.settings.facts import adapter_parameters
from coloop.plan.settings.machine import PoolShare
from coloop.plan.settings.outline import Outline
from coloop.plan.settings.settings import UpdateSettings
from coloop.plan.settings.states import (
    ModelStates,
    Precision,
    Scheme,
    compute_states,
    resting_bytes_per_parameter,
    sum_states,
)
from coloop.spec.adapters import standing_of
from coloop.spec.dtypes import DTYPE_BYTES, Dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import holding_pool, training_of, weights_groups
from coloop.spec.heads import classes_of, head_of_group, scorers_of
from coloop.spec.model import Lora
from coloop.spec.nodes import model_of
from coloop.spec.training import Backend, Training

# Which adapters stand on the same frozen weights, and who of them holds these in each pool.
#
# Weights can be used by several where they lie in the same process, in the same types, and spread
# in the same way; elsewhere they are there again.


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    lora: Lora
    holder: str
    """The group that brings it."""
    beside: str | None
    """The group that has it in memory for this one; None: this one has."""


def bases_of(
    spec: LoopSpec, dtypes: Mapping[str, Dtypes], backends: Mapping[str, Backend]
) -> dict[str, Base]:
    """The base of each weights group that is an adapter.

    Args:
        dtypes: of every group.
        backends: of those that train.
    """
    groups = weights_groups(spec)
    asked = {name: standing_of(spec, name) for name in groups}
    standings = {name: one for name, one in asked.items() if one is not None}
    holders = {one.holder: 0 for one in standings.values()}
    steps = {**holders, **{name: one.steps for name, one in standings.items()}}
    keepers: dict[tuple[str, ...], str] = {}
    found: dict[str, Base] = {}
    for name in sorted(steps, key=lambda name: steps[name]):
        holder = standings[name].holder if name in standings else name
        how = backends.get(name, "single")
        spread = f"{how} of {name}" if how == "deepspeed" else how
        held = dtypes[name].matrices, dtypes[name].rest
        place = holder, holding_pool(spec, groups[name]), *held, spread
        keeper = keepers.setdefault(place, name)
        if name in standings:
            beside = None if keeper == name else keeper
            found[name] = Base(lora=standings[name].lora, holder=holder, beside=beside)
    return found


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
    """Places that have rows of their own."""
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
    def state_shards(self) -> int:
        """Places over which states are spread: those that share a text hold parts of them too."""
        return self.shards * self.context_parallel

    @property
    def model_parallel(self) -> int:
        """GPUs that share one copy of everything before it is sharded."""
        return self.tensor_parallel * self.pipeline_parallel * self.context_parallel


def weigh(
    outline: Outline,
    owner: str,
    arch: Architecture,
    *,
    update: UpdateSettings,
    dtypes: Dtypes,
    base: Base | None,
) -> Weights:
    """The weights of a group.

    Args:
        update: backend and degrees; of frozen weights, how they are spread over their pool.
        base: what they stand on, where they are an adapter.
    """
    group, training = outline.groups[owner], training_of(outline.spec, owner)
    has_logits = head_of_group(outline.spec, group.members) == "words"
    count = count_parameters(arch, "language_model" if has_logits else "score")
    total, trainable = _sizes(outline, owner, arch, count, has_logits, base)
    precision = _precision(outline, owner, count, dtypes, is_adapter=base is not None)
    scheme, pool = _scheme_of(update), outline.home_of(owner)
    tensor, pipeline = update.tensor_parallel, update.pipeline_parallel
    context = update.context_parallel
    shards = max(pool.places // (tensor * pipeline * context), 1) if scheme != "single" else 1
    optimizer = training.optimizer
    is_elsewhere = base is not None and base.beside is not None
    beside = count.total - _own_head(count, has_logits) if is_elsewhere else 0
    held = precision
    if base is not None and not group.trainable:
        held = _with_adapter(precision, total - beside, adapter_parameters(arch, base.lora))
    experts = update.expert_parallel * pipeline if update.expert_parallel > 1 else 0
    routed = count.routed if experts and trainable > total / 2 else 0
    blocks = [(total - beside - routed, trainable - routed, tensor * pipeline)]
    if routed:
        blocks.append((routed, routed, experts))
    states = sum_states(
        compute_states(
            total=whole,
            trainable=learned,
            scheme=scheme,
            shards=1 if scheme == "single" else max(pool.places // parts, 1),
            precision=held,
            optimizer=optimizer.name,
            momentum=optimizer.name != "sgd" or bool(optimizer.momentum),
            offload=update.offload if group.trainable else "none",
            model_parallel=parts,
        )
        for whole, learned, parts in blocks
    )
    return Weights(
        name=owner,
        members=group.members,
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
    outline: Outline,
    owner: str,
    arch: Architecture,
    count: ParameterCount,
    has_logits: bool,
    base: Base | None,
) -> tuple[int, int]:
    """All parameters of a group, and those that learn."""
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
    outline: Outline, owner: str, count: ParameterCount, dtypes: Dtypes, *, is_adapter: bool
) -> Precision:
    quantization = getattr(model_of(outline.spec.nodes[owner]), "quantization", None)
    resting = resting_bytes_per_parameter(
        count, DTYPE_BYTES[dtypes.matrices], quantization, DTYPE_BYTES[dtypes.rest]
    )
    written = resting_bytes_per_parameter(
        count, DTYPE_BYTES[dtypes.engine], quantization, DTYPE_BYTES[dtypes.activations]
    )
    return Precision(
        compute_bytes=DTYPE_BYTES[dtypes.activations],
        master_bytes=DTYPE_BYTES["float32" if is_adapter else dtypes.matrices],
        frozen_bytes=resting,
        engine_bytes=written,
        has_fp8_products=dtypes.engine == "fp8" or quantization == "fp8",
    )


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
