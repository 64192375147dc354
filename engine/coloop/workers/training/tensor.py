"""Tensor parallelism: ranks that stand side by side share every layer of a model.

    q, k, v, gate, up   cut by columns: each rank has some heads, some of the inner width
    o, down             cut by rows: what the ranks say is summed
    norms of heads      whole on each; their gradients, of some heads each, are summed
    words, both ends    cut by the vocabulary
    other norms, score  whole on each, with the same gradient

The cuts follow a family's configuration in transformers. Weights are DTensors; modules compute with
plain tensors, because DTensor is slow on each new shape. Ranks of a group must pass the same rows.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)
from torch.utils._pytree import tree_map_only

from coloop.errors import BackendMissing
from coloop.workers.training.forward import Heads
from coloop.workers.training.fused import first_word, summed, summed_behind

WHOLE, BY_COLUMNS, BY_ROWS, OF_HEADS = "", "colwise", "rowwise", "replicated_with_grad_allreduce"
KNOWN = {BY_COLUMNS, BY_ROWS, OF_HEADS, "embedding_rowwise"}
"""What a family's plan may say of a module."""


def split_layers(net: Heads, mesh: DeviceMesh) -> None:
    """Cut a model's weights over the ranks of a mesh of one dimension, in place. Raises
    `BackendMissing` where its layers cannot be cut so."""
    model: Any = net.model
    _check_splits(net, mesh.size())
    words, head = model.get_input_embeddings(), model.get_output_embeddings()
    is_tied = head is not None and head.weight is words.weight
    sharing: set[str] = set()
    for name, module in _owners(model):
        how = _planned(name, model)
        if module is words:
            OwnWords(module, mesh)
        elif module is head:
            _spread(module, mesh, {"weight": Shard(0), "bias": Shard(0)})
        elif how == BY_COLUMNS:
            Own(module, mesh, {"weight": Shard(0), "bias": Shard(0)})
            sharing.add(name.rpartition(".")[0])
        elif how == BY_ROWS:
            OwnRows(module, mesh)
        elif how == OF_HEADS:
            Own(module, mesh, {}, learns=Partial())
        else:
            Own(module, mesh, {})
    if is_tied:
        head.weight = words.weight
    for name in sharing:
        shared = model.get_submodule(name)
        shared.register_forward_pre_hook(partial(_entered, mesh), with_kwargs=True)


class Own:
    """A module that computes with its rank's part of its weights. `lies`: by weight, how it is cut.
    `learns`: whether gradients of whole weights are alike on the ranks or parts of a sum."""

    def __init__(
        self,
        module: nn.Module,
        mesh: DeviceMesh,
        lies: dict[str, Placement],
        *,
        learns: Placement | None = None,
    ) -> None:
        self.mesh = mesh
        self._learns = learns or Replicate()
        self._held: dict[str, nn.Parameter | None] = {}
        _spread(module, mesh, lies)
        module.register_forward_pre_hook(self.enter)
        module.register_forward_hook(self.leave, always_call=True)

    def enter(self, module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Take the rank's part of each weight in place of the whole."""
        self._held = dict(module._parameters)
        own: dict[str, Any] = module._parameters
        for name, weight in self._held.items():
            if isinstance(weight, DTensor):
                own[name] = self.part(name, weight)
        return given

    def leave(self, module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        del given
        module._parameters.update(self._held)
        return output

    def part(self, name: str, weight: DTensor) -> Tensor:
        del name
        is_whole = isinstance(weight.placements[0], Replicate)
        return weight.to_local(grad_placements=[self._learns] if is_whole else None)


class OwnRows(Own):
    """A linear layer cut by what it reads: the ranks' results are summed, the bias comes once."""

    def __init__(self, module: nn.Module, mesh: DeviceMesh) -> None:
        super().__init__(module, mesh, {"weight": Shard(1)}, learns=Partial())

    def part(self, name: str, weight: DTensor) -> Tensor:
        own = super().part(name, weight)
        return own * float(self.mesh.get_local_rank() == 0) if name == "bias" else own

    def leave(self, module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        output = super().leave(module, given, output)
        return output if output is None else summed(output, self.mesh)


class OwnWords(Own):
    """An embedding cut by words: each rank looks up its own, and the results are summed."""

    def __init__(self, module: Any, mesh: DeviceMesh) -> None:
        words, padding = module.weight.shape[0], module.padding_idx
        super().__init__(module, mesh, {"weight": Shard(0)})
        self._first = first_word(words, mesh)
        self._size = module.weight.to_local().shape[0]
        self._is_own = torch.empty(0, dtype=torch.bool)
        if padding is not None:
            has_padding = self._first <= padding < self._first + self._size
            module.padding_idx = padding - self._first if has_padding else None

    def enter(self, module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        index = super().enter(module, given)[0] - self._first
        self._is_own = (index >= 0) & (index < self._size)
        return (torch.where(self._is_own, index, 0),)

    def leave(self, module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        output = super().leave(module, given, output)
        if output is None:
            return output
        return summed(torch.where(self._is_own[..., None], output, 0.0), self.mesh)


def _entered(mesh: DeviceMesh, module: nn.Module, args: Any, kwargs: Any) -> Any:
    """Where ranks begin to work on parts: gradients are summed once for all layers behind."""
    del module

    def enter(tensor: Tensor) -> Tensor:
        return summed_behind(tensor, mesh) if tensor.requires_grad else tensor

    return tree_map_only(Tensor, enter, (args, kwargs))


def _spread(module: nn.Module, mesh: DeviceMesh, lies: dict[str, Placement]) -> None:
    """Hold the weights of a module as DTensors; all ranks have them alike beforehand."""
    for name, weight in list(module.named_parameters(recurse=False)):
        how = [lies.get(name, Replicate())]
        held = distribute_tensor(weight.detach(), mesh, how, src_data_rank=None)
        module.register_parameter(name, nn.Parameter(held, weight.requires_grad))


def _owners(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, module in model.named_modules():
        if next(module.parameters(recurse=False), None) is not None:
            yield name, module


def _planned(name: str, model: Any) -> str:
    inner = name.removeprefix(f"{model.base_model_prefix}.")
    plan: dict[str, str] = model.config.base_model_tp_plan
    return next((how for pattern, how in plan.items() if fnmatchcase(inner, pattern)), WHOLE)


def _check_splits(net: Heads, degree: int) -> None:
    model: Any = net.model
    name, config = type(model).__name__, model.config
    plan = getattr(config, "base_model_tp_plan", None)
    if not plan or not set(plan.values()) <= KNOWN or not net.is_apart:
        raise BackendMissing(
            f"the layers of {name} cannot be split over ranks; set `training.tensor_parallel: 1`"
        )
    counts = {
        "heads": config.num_attention_heads,
        "heads for keys and values": config.num_key_value_heads,
        "numbers of the inner width": config.intermediate_size,
    }
    for what, count in counts.items():
        if count % degree:
            raise BackendMissing(
                f"`training.tensor_parallel: {degree}` does not divide the {count} {what} of {name}"
            )
