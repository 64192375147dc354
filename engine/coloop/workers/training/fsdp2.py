"""The `fsdp2` backend: ranks that learn together by torch's own means.

Where model states are whole on each rank (`replicas`), gradients are summed once a step. Where they
are spread over the ranks:

    forward   each block's weights are gathered, used and let go
    backward  gathered again; its gradient is summed over the ranks, each keeps its part
    step      each rank steps the part that it holds

By torch's `fully_shard`; with `tensor_parallel` layers are cut first (`tensor`), and each cut is
spread over the ranks that have it. What is saved has the form of `single`, for any number of ranks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.utils._pytree import tree_flatten, tree_unflatten

from coloop.errors import BackendMissing
from coloop.models.build import DTYPES
from coloop.models.waiting import WeightsToCome
from coloop.spec.dtypes import Dtypes
from coloop.spec.training import Optimizer, Training
from coloop.workers.training.adapters import Adapter, share_spread
from coloop.workers.training.forward import TOKENS_AT_ONCE, TokenModel, device_of
from coloop.workers.training.learner import Learner
from coloop.workers.training.ranks import ALONE, TENSOR, Ranks
from coloop.workers.training.shards import gathered, give, let_go, part_of, spread, whole
from coloop.workers.training.single import token_model
from coloop.workers.training.states import Keep, ModelStates, autocast_of, everything
from coloop.workers.training.tensor import split_layers


class Fsdp2Backend(Learner):
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
        is_spread: bool = True,
        device: torch.device | None = None,
        to_come: WeightsToCome | None = None,
    ) -> None:
        """See `token_model`.

        Args:
            model: whole and alike on every rank; one to be spread may be in the host's memory.
            is_spread: each rank holds a part of the model states; else all of them.
            to_come: the weights of a spread model, taken one by one; where ranks share layers its
                family says its head of the decoder's states. None: they are there.
        """
        device = device or device_of(model)
        ranks = replace(ranks, tensor=training.tensor_parallel or 1)
        if adapter is not None and ranks.tensor > 1:
            raise BackendMissing(
                "`fsdp2` does not train adapters (`model.lora`) with "
                f"`tensor_parallel: {ranks.tensor}`; it does with 1"
            )
        if not is_spread and ranks.tensor > 1:
            raise BackendMissing(
                f"ranks that share layers (`tensor_parallel: {ranks.tensor}`) hold parts of weights"
            )
        tokens = token_model(
            model,
            training,
            dtypes,
            backend="fsdp2",
            autocast=None if is_spread else autocast_of(dtypes),
            tokens_at_once=tokens_at_once,
            is_packed=is_packed,
            adapter=adapter,
            device=device,
            waits=to_come is not None,
        )
        before = {}  # who keeps them keeps them whole
        if adapter is not None and adapter.is_shared:
            before = dict(model.named_parameters(remove_duplicate=False))
        places = {} if to_come is None else to_come.places_in(model)
        if to_come is not None and ranks.tensor > 1:
            tokens.net.find_parts(is_known=True)  # cut before it could be seen by its weights
        groups: list[FSDPModule] = []
        states: ModelStates
        if is_spread:
            states = sharded = ShardedStates(tokens, training, dtypes, ranks, device)
            groups = sharded.groups
        else:
            states = ReplicaStates(model, training.optimizer, ranks)
        if adapter is not None and is_spread:
            share_spread(model, before, adapter.spread)
        if to_come is not None:
            give(tokens, groups, to_come, places, device)
        super().__init__(tokens, states, adapter, group=group, ranks=ranks)


class ShardedStates(ModelStates):
    """Each rank holds a part of every weight."""

    is_whole = False

    def __init__(
        self,
        tokens: TokenModel,
        training: Training,
        dtypes: Dtypes,
        ranks: Ranks,
        device: torch.device,
    ) -> None:
        """`device`: on which the parts are to lie."""
        self._ranks = ranks
        mesh = ranks.mesh(device.type)
        if TENSOR in (mesh.mesh_dim_names or ()):
            split_layers(tokens.net, mesh[TENSOR])
        self.groups = spread(
            tokens.net,
            mesh,
            compute=DTYPES[dtypes.compute] if dtypes.casts else None,
            is_freed=training.reshard_after_forward,
        )
        for group in self.groups:
            # Losses are divided over all ranks beforehand: gradients are summed.
            group.set_gradient_divide_factor(1.0)
            group.set_force_sum_reduction_for_comms(True)
        super().__init__(tokens.model, training.optimizer)

    def sum_up(self, flags: Sequence[bool]) -> list[bool]:
        return self._ranks.any_of(flags)

    def _norm(self, gradients: list[Tensor]) -> Tensor:
        norm: Tensor = whole(torch.nn.utils.get_total_norm(gradients, foreach=True))
        return norm

    def drop_gradient(self) -> None:
        with suppress(AttributeError):  # before its first pass it has nothing to forget
            self.groups[-1].reset_iter_state()
        super().drop_gradient()

    def reset_optimizer(self) -> None:
        let_go(self.groups)
        super().reset_optimizer()

    def weights(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        let_go(self.groups)
        yield from gathered(super().weights(keep))

    def replace(self, weights: Mapping[str, Tensor]) -> None:
        let_go(self.groups)
        super().replace(weights)

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        let_go(self.groups)
        return super().blend(given, ema)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        own = self._model.state_dict()
        weights = {name: part_of(weight, own[name]) for name, weight in state["model"].items()}
        self._model.load_state_dict(weights)
        self.load_optimizer_state(state["optimizer"])

    def _kept(self, tree: Any) -> Any:
        """A tree with each tensor whole on the first rank's CPU; other ranks keep none."""
        let_go(self.groups)
        leaves, layout = tree_flatten(tree)
        numbered, is_first = enumerate(leaves), self._ranks.is_first
        put = {
            number: leaf.to("cpu") if isinstance(leaf, Tensor) else leaf
            for number, leaf in gathered(numbered, is_wanted=is_first)
        }
        return tree_unflatten([put.get(number) for number in range(len(leaves))], layout)

    def load_optimizer_state(self, state: Mapping[str, Any]) -> None:
        self._optimizer.load_state_dict(state, place=part_of)


NUMBERS_AT_ONCE = 1 << 24
"""Of a sum over ranks, which are there a second time meanwhile; a larger weight goes alone."""


class ReplicaStates(ModelStates):
    """Every rank holds all states; gradients are summed once per step. A sum over ranks has the
    same bits on all of them, so weights never need to be compared."""

    is_in_step = False

    def __init__(self, model: nn.Module, section: Optimizer, ranks: Ranks) -> None:
        super().__init__(model, section)
        self._ranks = ranks
        trained = (weight for weight in model.parameters() if weight.requires_grad)
        self._parts = list(_in_parts(trained))

    @torch.no_grad()
    def sum_up(self, flags: Sequence[bool]) -> list[bool]:
        if self._ranks.size == 1:
            return list(flags)
        trained = [weight for part in self._parts for weight in part]
        has_learned = [weight.grad is not None for weight in trained]
        told = torch.tensor([*flags, *has_learned], dtype=torch.float32, device=trained[0].device)
        for number, part in enumerate(self._parts):
            sizes = [weight.numel() for weight in part]
            gradients = [_gradient(weight) for weight in part]
            whole = torch.cat([*gradients, *([] if number else [told])])
            del gradients
            dist.all_reduce(whole)
            *sums, rest = whole.split_with_sizes([*sizes, len(whole) - sum(sizes)])
            for weight, total in zip(part, sums, strict=True):
                weight.grad = total.view_as(weight).to(weight.dtype)
            told = told if number else rest
        is_any = [count > 0 for count in told.tolist()]
        for weight, is_learned in zip(trained, is_any[len(flags) :], strict=True):
            if not is_learned:
                weight.grad = None
        return is_any[: len(flags)]


def _gradient(weight: Tensor) -> Tensor:
    """(numel,) what this rank has learned of a weight."""
    if weight.grad is None:
        return torch.zeros(weight.numel(), dtype=torch.float32, device=weight.device)
    return weight.grad.flatten().float()


def _in_parts(weights: Iterator[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """The weights in their order, a sum's worth at a time."""
    part: list[nn.Parameter] = []
    size = 0
    for weight in weights:
        if part and size + weight.numel() > NUMBERS_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(weight)
        size += weight.numel()
    yield part
