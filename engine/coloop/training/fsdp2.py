"""The `fsdp2` backend: weights, gradients and running means are spread over the ranks.

    forward   each block's weights are gathered, used and let go
    backward  gathered again; its gradient is summed over the ranks, each keeps its part
    step      each rank steps the part that it holds

torch's `fully_shard` with one group for each block and one for embedding, last norm and head. Where
ranks share layers (`tensor_parallel`), these are cut first (`tensor`), and what a rank has of them
is spread over those that have the same of them and other rows. What is saved is whole, under the
names and in the form that `single` uses, so either backend goes on from it, on any number of ranks.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor

from coloop.errors import BackendMissing
from coloop.models import DTYPES
from coloop.spec.dtypes import Dtypes
from coloop.spec.training import Optimizer, Training
from coloop.training.adapters import AdaptedStates, Adapter, add_adapter, names_of, share_spread
from coloop.training.forward import (
    TOKENS_AT_ONCE,
    ForwardOptions,
    Heads,
    TokenModel,
    blocks_of,
    device_of,
    packing_on,
    recompute_blocks,
)
from coloop.training.learner import Learner
from coloop.training.optimizers import GroupOptimizer
from coloop.training.precision import check_trainable, place_weights
from coloop.training.ranks import ALONE, DATA, TENSOR, Ranks
from coloop.training.states import Keep, ModelStates, everything
from coloop.training.tensor import split_layers


class Fsdp2Backend(Learner):
    """Owner of one weights group's training, over ranks; see `TrainBackend`."""

    def __init__(
        self,
        model: nn.Module,
        training: Training,
        *,
        dtypes: Dtypes,
        group: str = "",
        ranks: Ranks = ALONE,
        tokens_at_once: int = TOKENS_AT_ONCE,
        is_packed: bool = False,
        adapter: Adapter | None = None,
    ) -> None:
        """
        Args:
            model: whole and alike on every rank.
            tokens_at_once: most tokens of a micro-batch where `training.micro_batch` is open.
            is_packed: sequences share rows instead of being padded.
            adapter: what learns in place of the weights; None: they do.
        """
        check_trainable(dtypes, backend="fsdp2")
        ranks = replace(ranks, tensor=training.tensor_parallel or 1)
        if adapter is not None and ranks.tensor > 1:
            raise BackendMissing(
                "`fsdp2` does not train adapters (`model.lora`) with "
                f"`tensor_parallel: {ranks.tensor}`; it does with 1"
            )
        place_weights(model, dtypes)
        if adapter is not None:
            add_adapter(model, adapter)
        recompute_blocks(model, training)
        model.eval()
        options = ForwardOptions(
            tokens_at_once=tokens_at_once,
            packing=packing_on(device_of(model), is_packed=is_packed),
        )
        tokens = TokenModel(model, options)
        mesh = ranks.mesh(tokens.device.type)
        whole = dict(model.named_parameters(remove_duplicate=False))
        states: ModelStates = ShardedStates(tokens, training, dtypes, mesh)
        if adapter is not None:
            share_spread(model, whole, adapter.spread)
            states = AdaptedStates(states, adapter, names_of(model))
        super().__init__(tokens, states, group=group, ranks=ranks)


class ShardedStates:
    """See `ModelStates`."""

    def __init__(
        self, tokens: TokenModel, training: Training, dtypes: Dtypes, mesh: DeviceMesh
    ) -> None:
        self._model = tokens.model
        self._section = training.optimizer
        self._net = _shard(tokens.net, training, dtypes, mesh)
        self._optimizer = GroupOptimizer(self._model, self._section)

    def backward(self, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def step(self, section: Optimizer, *, rate: float, clip: float | None) -> Tensor:
        trained = [p for p in self._model.parameters() if p.grad is not None]
        gradients = [p.grad for p in trained if p.grad is not None]
        norm = _whole(torch.nn.utils.get_total_norm(gradients, foreach=True))
        if torch.isfinite(norm):
            limit = float("inf") if clip is None else clip
            torch.nn.utils.clip_grads_with_norm_(trained, limit, norm, foreach=True)
            self._optimizer.set_rate(section, rate)
            for optimizer in self._optimizer.ready():
                optimizer.step()
            self._optimizer.zero_grad()
        return norm  # type: ignore[no-any-return]

    def drop_gradient(self) -> None:
        with suppress(AttributeError):  # before its first pass it has nothing to forget
            self._net.reset_iter_state()
        self._optimizer.zero_grad()

    def reset_optimizer(self) -> None:
        self._let_go()
        self._optimizer = GroupOptimizer(self._model, self._section)

    def weights(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        self._let_go()
        for name, parameter in self._model.named_parameters():
            if keep(name):
                yield name, _whole(parameter.detach())

    @torch.no_grad()
    def replace(self, weights: Mapping[str, Tensor]) -> None:
        self._let_go()
        for name, parameter in self._model.named_parameters():
            if name in weights:
                parameter.copy_(_as(weights[name], parameter))

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": _mapped(self._model.state_dict(), _whole),
            "optimizer": self.optimizer_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        own = self._model.state_dict()
        weights = {name: _as(weight, own[name]) for name, weight in state["model"].items()}
        self._model.load_state_dict(weights)
        self.load_optimizer_state(state["optimizer"])

    def optimizer_state(self) -> dict[str, Any]:
        return _mapped(self._optimizer.state_dict(), _whole)  # type: ignore[no-any-return]

    def load_optimizer_state(self, state: Mapping[str, Any]) -> None:
        self._optimizer.load_state_dict(state, place=_as)

    def _let_go(self) -> None:
        """Drop what the last pass gathered: else the model has that in place of the parts."""
        for module in self._net.modules():  # type: ignore[attr-defined]
            if isinstance(module, FSDPModule):
                module.reshard()


def _shard(net: Heads, training: Training, dtypes: Dtypes, mesh: DeviceMesh) -> FSDPModule:
    policy = MixedPrecisionPolicy(
        param_dtype=DTYPES[dtypes.compute] if dtypes.casts else None,
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,  # temperatures stay as they are
    )
    if TENSOR in (mesh.mesh_dim_names or ()):
        split_layers(net, mesh[TENSOR])
    options: dict[str, Any] = {"mesh": mesh[DATA], "mp_policy": policy}
    kept = training.reshard_after_forward
    sharded = [
        fully_shard(block, reshard_after_forward=kept, **options) for block in blocks_of(net.model)
    ]
    sharded.append(fully_shard(net, **options))
    for module in sharded:
        # Losses are divided over all ranks beforehand: gradients are summed.
        module.set_gradient_divide_factor(1.0)
        module.set_force_sum_reduction_for_comms(True)
    return sharded[-1]


def _whole(value: Any) -> Any:
    """Every rank's part of a tensor put together."""
    if not isinstance(value, DTensor):
        return value
    for dimension in range(value.device_mesh.ndim):  # rows' ranks first: they cut what was cut
        lies = (*[Replicate()] * (dimension + 1), *value.placements[dimension + 1 :])
        value = value.redistribute(placements=lies)
    return value.to_local()


def _as(value: Any, held: Tensor) -> Any:
    """This rank's part of a whole tensor, spread as `held` is; numbers stay."""
    if not isinstance(held, DTensor) or not isinstance(value, Tensor) or value.dim() == 0:
        return value
    if value.shape != held.shape:
        raise ValueError(f"a weight has shape {tuple(value.shape)}, not {tuple(held.shape)}")
    whole = value.to(held.device)
    return distribute_tensor(whole, held.device_mesh, held.placements, src_data_rank=None)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A tree of dicts and lists with each leaf changed."""
    if isinstance(value, Mapping):
        return {key: _mapped(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(one, change) for one in value)
    return change(value)
