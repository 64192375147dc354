"""In which types a weights group is held, computes and generates, from the spec alone.

Weights that train are held as float32 master weights; frozen weights under an adapter in the type
that products use, unless `model.dtype` is float32. Frozen weights whose log-probs are compared with
those of a learner have exactly its types, so that equal weights give equal numbers. Only matrix
products, and matrices that do not train, are in fp8.
"""

from __future__ import annotations

from collections.abc import Mapping

from coloop.spec.adapters import standing_of
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import WeightsGroup, owner_of, training_of, weights_groups
from coloop.spec.lean import record
from coloop.spec.model import ComputeDtype, CopyModel, Dtype, SnapshotModel
from coloop.spec.nodes import model_of
from coloop.spec.training import Backend, Training

DTYPE_BYTES: dict[ComputeDtype, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1}


@record
class Dtypes:
    matrices: ComputeDtype
    """Stored linear weights."""
    rest: Dtype
    """Stored embeddings, norms and all other weights."""
    compute: ComputeDtype
    """Matrix products."""
    engine: ComputeDtype
    """The rollout engine's copy."""
    reason: str

    @property
    def casts(self) -> bool:
        """Whether products are computed in another type than weights are stored in."""
        return {self.matrices, self.rest} != {self.compute}

    @property
    def activations(self) -> Dtype:
        """Activations between the matrix products."""
        return beside(self.compute)


def beside(compute: ComputeDtype) -> Dtype:
    """The type of what is no matrix product: the same, or bfloat16 around products in fp8."""
    return "bfloat16" if compute == "fp8" else compute


def uniform(dtype: ComputeDtype, reason: str) -> Dtypes:
    return Dtypes(matrices=dtype, rest=beside(dtype), compute=dtype, engine=dtype, reason=reason)


@record
class Usual:
    """Default compute type where the loop sets none."""

    dtype: ComputeDtype
    reason: str


ON_GPU = Usual(dtype="bfloat16", reason="bfloat16 on a GPU")
ON_CPU = Usual(dtype="float32", reason="float32 on a CPU")


def trained_dtypes(
    training: Training,
    usual: Usual = ON_CPU,
    *,
    is_adapter: bool = False,
    is_alone: bool = True,
    base: Dtype | None = None,
) -> Dtypes:
    """Types of weights that train: master weights in float32 unless the spec forbids them.

    Args:
        is_adapter: the weights are frozen and an adapter trains.
        is_alone: they are held by one process; else whole models are computed in one type.
        base: `model.dtype` of an adapter's frozen weights; float32 stays whatever products use.
    """
    compute = training.dtype or usual.dtype
    why = "as set in `training`" if training.dtype else usual.reason
    if compute == "float32" or training.master_weights is False:
        held: Dtype = beside(compute)
        reason = why
    else:
        held = "float32"
        reason = f"{why}; float32 master weights, so that small updates are not rounded away"
        if is_adapter and base == "float32":
            reason = f"{why}; frozen weights in float32, as set in `model.dtype`"
        elif is_adapter and compute != "fp8":
            reason = f"{why}; frozen weights as they are used, the adapter's own in float32"
            rest: Dtype = held if is_alone else compute
            return Dtypes(
                matrices=compute, rest=rest, compute=compute, engine=compute, reason=reason
            )
    return Dtypes(matrices=held, rest=held, compute=compute, engine=compute, reason=reason)


def resolve_dtypes(
    spec: LoopSpec,
    *,
    gpus: int,
    backends: Mapping[str, Backend] | None = None,
    usual: Mapping[str, Usual] | None = None,
) -> dict[str, Dtypes]:
    """The types of every weights group, by its name.

    Args:
        gpus: of the whole hardware; 0 on a CPU.
        backends: by group that trains, its backend if that is decided.
        usual: by group, its default compute type; else that of any GPU or CPU.
    """
    groups = weights_groups(spec)
    otherwise = dict.fromkeys(groups, ON_GPU if gpus else ON_CPU) | dict(usual or {})
    types: dict[str, Dtypes] = {
        name: trained_dtypes(
            training_of(spec, name),
            otherwise[name],
            is_adapter=standing_of(spec, name) is not None,
            is_alone=_is_alone(spec, name, gpus, backends or {}),
            base=_base_dtype(spec, name),
        )
        for name, group in groups.items()
        if group.trainable
    }
    for name in groups:
        if name not in types:
            types[name] = _frozen(spec, groups[name], types, gpus, backends or {}, otherwise[name])
    return {name: types[name] for name in groups}


def _frozen(
    spec: LoopSpec,
    group: WeightsGroup,
    trained: dict[str, Dtypes],
    gpus: int,
    backends: Mapping[str, Backend],
    usual: Usual,
) -> Dtypes:
    model = model_of(spec.nodes[group.name])
    own = getattr(model, "dtype", None)
    if own is not None:
        return uniform(own, "as set in `model.dtype`")
    partner = _partner(spec, group, trained)
    if partner is None:
        return uniform(usual.dtype, usual.reason)
    theirs = trained[partner]
    if not _is_alone(spec, partner, gpus, backends):
        return uniform(theirs.compute, f"same as {partner}, with whose weights it is compared")
    keeps_average = isinstance(model, SnapshotModel) and model.ema > 0
    is_as_held = keeps_average or standing_of(spec, group.name) is not None  # on the same base
    return Dtypes(
        matrices=theirs.matrices if is_as_held else theirs.compute,
        rest=theirs.rest,
        compute=theirs.compute,
        engine=theirs.engine,
        reason="a moving average is not rounded at each refresh"
        if keeps_average
        else f"same as {partner}, so that equal weights give equal numbers",
    )


def _base_dtype(spec: LoopSpec, group: str) -> Dtype | None:
    """`model.dtype` of the section that loads the weights under an adapter."""
    standing = standing_of(spec, group)
    if standing is None:
        return None
    own = getattr(model_of(spec.nodes[group]), "dtype", None)
    return own or getattr(model_of(spec.nodes[standing.holder]), "dtype", None)


def _is_alone(spec: LoopSpec, group: str, gpus: int, backends: Mapping[str, Backend]) -> bool:
    """Whether weights train in one process; backends over several compute whole models in one
    type."""
    backend = backends.get(group) or training_of(spec, group).backend
    return backend == "single" or (backend is None and gpus <= 1)


def _partner(spec: LoopSpec, group: WeightsGroup, trained: dict[str, Dtypes]) -> str | None:
    """The group whose log-probs the frozen weights are compared with, else the trained group that
    they come from; None if there is neither."""
    given = (edge for member in group.members for edge in spec.graph.edges_out_of(member))
    for edge in sorted(given, key=spec.graph.place_of):
        learner = owner_of(spec, edge.target.node) if edge.target.node in spec.nodes else None
        if edge.target.port == "reference" and learner in trained:
            return learner
    seen = {group.name}
    model = model_of(spec.nodes[group.name])
    while isinstance(model, SnapshotModel | CopyModel) and model.of in spec.nodes:
        source = owner_of(spec, model.of)
        if source is None or source in seen:
            return None
        if source in trained:
            return source
        seen.add(source)
        model = model_of(spec.nodes[source])
    return None
