"""Weights spread over ranks by torch's `fully_shard`, gathered around each use."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard

from coloop.models.waiting import Place, WeightsToCome
from coloop.plan.weight_buckets import weight_bucket_bytes
from coloop.workers.training.forward import Heads, TokenModel, blocks_of
from coloop.workers.training.ranks import DATA

Name = TypeVar("Name")


def spread(
    net: Heads,
    mesh: DeviceMesh,
    *,
    compute: torch.dtype | None,
    is_freed: bool | None,
    is_root_freed: bool | None = None,
) -> list[FSDPModule]:
    """One group for each block, the last for embedding, last norm and head; changed in place.

    Args:
        compute: type that weights are gathered in; None: as they are held.
        is_freed: gathered weights of a block are freed after its forward pass; None: they are.
        is_root_freed: the same of the last group; None: they stay for the backward pass.
    """
    policy = MixedPrecisionPolicy(
        param_dtype=compute,
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,  # temperatures stay as they are
    )
    options: dict[str, Any] = {"mesh": mesh[DATA], "mp_policy": policy}
    groups = [
        fully_shard(block, reshard_after_forward=is_freed, **options)
        for block in blocks_of(net.model)
    ]
    return [*groups, fully_shard(net, reshard_after_forward=is_root_freed, **options)]


def give(
    tokens: TokenModel,
    groups: list[FSDPModule],
    to_come: WeightsToCome,
    places: Mapping[str, Place],
    device: torch.device,
) -> None:
    """Give a model that was spread on `meta` its weights, of each this rank's part; collective.

    Args:
        groups: its blocks and itself, as `spread` returns them.
        places: by what weights are read by, as they were before the model was spread.
        device: of the parts.

    Raises `ValueError` where weights are missing or have another shape.
    """
    _fill(tokens.net, to_come, places, device)
    tokens.settle()
    let_go(groups)


@torch.no_grad()
def _fill(
    net: Heads, to_come: WeightsToCome, places: Mapping[str, Place], device: torch.device
) -> None:
    waiting = {name for name, weight in net.model.named_parameters() if weight.is_meta}
    settle: Any = net._apply
    settle(lambda weight: torch.empty_like(weight, device=device) if weight.is_meta else weight)
    named = dict(net.model.named_parameters())
    for name, weight in to_come.weights() if waiting else ():
        place = places.get(name)
        if place is None or place.name not in waiting:
            continue
        part = local_of(part_of(weight.detach(), named[place.name]))
        for dtype in place.types:
            part = part.to(dtype)
        local_of(named[place.name]).copy_(part)
        waiting.discard(place.name)
    if waiting:
        raise ValueError(f"{len(waiting)} weights are missing, such as {min(waiting)}")


def local_of(weight: Tensor) -> Tensor:
    """What a rank has of a weight."""
    return weight.to_local() if isinstance(weight, DTensor) else weight


def let_go(groups: list[FSDPModule]) -> None:
    """Drop what the last pass gathered: else the model has that in place of the parts."""
    for group in groups:
        group.reshard()


def whole(value: Any) -> Any:
    if not isinstance(value, DTensor):
        return value
    for dimension in range(value.device_mesh.ndim):  # rows' ranks first: they cut what was cut
        lies = (*[Replicate()] * (dimension + 1), *value.placements[dimension + 1 :])
        value = value.redistribute(placements=lies)
    return value.to_local()


def gathered(
    named: Iterable[tuple[Name, Any]], *, is_wanted: bool = True
) -> Iterator[tuple[Name, Any]]:
    """Tensors put together from every rank's parts, one portion at a time; collective. Works in
    inference mode, in which no DTensor can be detached. `is_wanted`: by this rank; else it gives
    its parts and gets nothing."""
    put = _gathered(named, is_wanted=is_wanted)
    while True:
        with torch.inference_mode(False), torch.no_grad():
            pair = next(put, None)
        if pair is None:
            return
        yield pair


def _gathered(named: Iterable[tuple[Name, Any]], *, is_wanted: bool) -> Iterator[tuple[Name, Any]]:
    for portion in _in_portions(named):
        first = portion[0][1]
        if len(portion) > 1 or _is_plain(first):
            yield from _put_together(portion, is_wanted=is_wanted)
            continue
        put = whole(first)
        if is_wanted:
            yield portion[0][0], put


def part_of(value: Any, held: Tensor) -> Any:
    """This rank's part of a whole tensor, spread as `held` is; only that goes to the device."""
    if not isinstance(held, DTensor) or not isinstance(value, Tensor) or value.dim() == 0:
        return value
    if value.shape != held.shape:
        raise ValueError(f"a weight has shape {tuple(value.shape)}, not {tuple(held.shape)}")
    mesh, part = held.device_mesh, value
    for dimension in reversed(range(mesh.ndim)):  # rows' ranks last, as in `whole`
        placement: Any = held.placements[dimension]
        if placement.is_replicate():
            continue
        parts = torch.chunk(part, mesh.size(dimension), dim=placement.dim)
        index = mesh.get_local_rank(dimension)
        part = parts[index] if index < len(parts) else part.narrow(placement.dim, 0, 0)
    local = part.to(held.device, copy=True).contiguous()
    return DTensor.from_local(
        local, mesh, held.placements, run_check=False, shape=held.shape, stride=held.stride()
    )


@torch.no_grad()
def replace_parts(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Whole weights, by name, in place of what ranks have parts of."""
    for name, weight in own.items():
        if name in given:
            weight.copy_(part_of(given[name], weight))


@torch.no_grad()
def blend(own: Mapping[str, Tensor], given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
    """own = ema * own + (1 - ema) * given of what this rank has of each weight; names of those not
    given."""
    missing = set(own)
    for name, weight in given:
        if name in missing:
            held = local_of(own[name])
            other = local_of(part_of(weight.detach(), own[name])).to(held.device, held.dtype)
            held.mul_(ema).add_(other, alpha=1.0 - ema)
            missing.discard(name)
    return missing


def _is_plain(value: Any) -> bool:
    return (
        isinstance(value, DTensor)
        and value.device_mesh.ndim == 1
        and value.device_mesh.size() > 1
        and type(value.placements[0]) is Shard
        and value.placements[0].dim == 0
    )


def _in_portions(named: Iterable[tuple[Name, Any]]) -> Iterator[list[tuple[Name, Any]]]:
    """Tensors that can be gathered in one turn, in their order; any other alone."""
    portion: list[tuple[Name, Any]] = []
    size, shared = 0, None
    for name, value in named:
        kind = (value.dtype, value.device_mesh) if _is_plain(value) else None
        own = value.numel() * value.element_size() if kind is not None else 0
        is_full = kind is not None and size + own > weight_bucket_bytes(value.device.type)
        if portion and (kind is None or kind != shared or is_full):
            yield portion
            portion, size = [], 0
        portion.append((name, value))
        size, shared = size + own, kind
        if kind is None:
            yield portion
            portion = []
    if portion:
        yield portion


@torch.no_grad()
def _put_together(
    portion: list[tuple[Name, Any]], *, is_wanted: bool
) -> Iterator[tuple[Name, Tensor]]:
    """One portion of tensors of which each rank has its rows, in one turn of all ranks."""
    mesh = portion[0][1].device_mesh
    ranks, own = mesh.size(), []
    for _, value in portion:
        local = value.to_local()
        missing = -(-value.shape[0] // ranks) - local.shape[0]
        own.append(local.reshape(-1))
        own.append(local.new_zeros(missing * (value.numel() // value.shape[0])))
    part = torch.cat(own)
    every = part.new_empty(ranks * len(part))
    dist.all_gather_into_tensor(
        every.view(torch.uint8), part.view(torch.uint8), group=mesh.get_group()
    )
    del own, part
    if not is_wanted:
        return
    by_rank, start = every.view(ranks, -1), 0
    for name, value in portion:
        rows = -(-value.shape[0] // ranks)
        length = rows * (value.numel() // value.shape[0])
        shape = (ranks * rows, *value.shape[1:])
        yield name, by_rank[:, start : start + length].reshape(shape)[: value.shape[0]]
        start += length
