"""The `fsdp2` backend: ranks that learn together by torch's own means.

Where model states are whole on each rank (`replicas`), gradients are summed once a step. Where they
are spread over the ranks:

    forward   each block's weights are gathered, used and let go
    backward  gathered again; its gradient is summed over the ranks, each keeps its part
    step      each rank steps the part that it holds

torch's `fully_shard` with one group for each block and one for embedding, last norm and head. Where
ranks share layers (`tensor_parallel`), these are cut first (`tensor`), and what a rank has of them
is spread over those that have the same of them and other rows. What is saved is whole, under the
names and in the form that `single` uses, so either backend resumes from it, on any number of ranks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule

from coloop.errors import BackendMissing
from coloop.models import DTYPES, WeightsToCome
from coloop.spec.dtypes import Dtypes
from coloop.spec.training import Optimizer, Training
from coloop.workers.training.adapters import (
    AdaptedStates,
    Adapter,
    add_adapter,
    names_of,
    share_spread,
)
from coloop.workers.training.forward import (
    TOKENS_AT_ONCE,
    ForwardOptions,
    TokenModel,
    device_of,
    packing_on,
    recompute_blocks,
)
from coloop.workers.training.learner import Learner
from coloop.workers.training.optimizers import GroupOptimizer
from coloop.workers.training.ranks import ALONE, TENSOR, Ranks
from coloop.workers.training.shards import (
    blend_parts,
    gathered,
    give,
    let_go,
    part_of,
    spread,
    whole,
)
from coloop.workers.training.states import (
    Keep,
    ModelStates,
    WholeStates,
    autocast_of,
    check_trainable,
    everything,
    place_weights,
)
from coloop.workers.training.tensor import split_layers


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
        is_spread: bool = True,
        device: torch.device | None = None,
        to_come: WeightsToCome | None = None,
    ) -> None:
        """
        Args:
            model: whole and alike on every rank; one that is spread may be in the host's memory,
                from which it goes to the device block by block.
            tokens_at_once: most tokens of a micro-batch where `training.micro_batch` is open.
            is_packed: sequences share rows instead of being padded.
            adapter: what learns in place of the weights; None: they do.
            is_spread: each rank holds a part of the model states; else all of them.
            device: of these; None: where the model is.
            to_come: the weights of a model that is spread before it has them: each rank takes its
                part of one after the other. Where ranks share layers, it is of a family that says
                its head of the decoder's states. None: they are there.
        """
        device = device or device_of(model)
        check_trainable(dtypes, backend="fsdp2")
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
        place_weights(model, dtypes)
        if adapter is not None:
            add_adapter(model, adapter)
        recompute_blocks(model, training)
        model.eval()
        options = ForwardOptions(
            autocast=None if is_spread else autocast_of(dtypes),
            tokens_at_once=tokens_at_once,
            packing=packing_on(device, is_packed=is_packed),
        )
        tokens = TokenModel(model, options, device=device, waits=to_come is not None)
        before = {}  # who keeps them keeps them whole
        if adapter is not None and adapter.is_shared:
            before = dict(model.named_parameters(remove_duplicate=False))
        places = {} if to_come is None else to_come.places_in(model)
        if to_come is not None and ranks.tensor > 1:
            tokens.net.find_parts(is_known=True)  # cut before it could be seen by its weights
        groups: list[FSDPModule] = []
        states: ModelStates
        if is_spread:
            sharded = ShardedStates(tokens, training, dtypes, ranks, device)
            states, groups = sharded, sharded.groups
        else:
            states = ReplicaStates(model, training.optimizer, ranks)
        if adapter is not None:
            if is_spread:
                share_spread(model, before, adapter.spread)
            states = AdaptedStates(states, adapter, names_of(model))
        if to_come is not None:
            give(tokens, groups, to_come, places, device)
        super().__init__(tokens, states, group=group, ranks=ranks)


class ShardedStates:
    """See `ModelStates`."""

    is_in_step = True

    def __init__(
        self,
        tokens: TokenModel,
        training: Training,
        dtypes: Dtypes,
        ranks: Ranks,
        device: torch.device,
    ) -> None:
        """
        Args:
            device: on which the parts are to lie.
        """
        self._ranks = ranks
        self._model = tokens.model
        mesh = ranks.mesh(device.type)
        self._section = training.optimizer
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
        self._optimizer = GroupOptimizer(self._model, self._section)

    def backward(self, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def sum_up(self, flags: Sequence[bool]) -> list[bool]:
        return self._ranks.any_of(flags)

    def step(self, section: Optimizer, *, rate: float, clip: float | None) -> Tensor:
        trained = [p for p in self._model.parameters() if p.grad is not None]
        gradients = [p.grad for p in trained if p.grad is not None]
        norm = whole(torch.nn.utils.get_total_norm(gradients, foreach=True))
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
            self.groups[-1].reset_iter_state()
        self._optimizer.zero_grad()

    def reset_optimizer(self) -> None:
        let_go(self.groups)
        self._optimizer = GroupOptimizer(self._model, self._section)

    def weights(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        let_go(self.groups)
        named = self._model.named_parameters()
        yield from gathered((name, one.detach()) for name, one in named if keep(name))

    @torch.no_grad()
    def replace(self, weights: Mapping[str, Tensor]) -> None:
        let_go(self.groups)
        for name, parameter in self._model.named_parameters():
            if name in weights:
                parameter.copy_(part_of(weights[name], parameter))

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        let_go(self.groups)
        return blend_parts(dict(self._model.named_parameters()), given, ema)

    def state_dict(self, *, has_weights: bool = True) -> dict[str, Any]:
        weights = {"model": self._kept(self._model.state_dict())} if has_weights else {}
        return {**weights, "optimizer": self.optimizer_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        own = self._model.state_dict()
        weights = {name: part_of(weight, own[name]) for name, weight in state["model"].items()}
        self._model.load_state_dict(weights)
        self.load_optimizer_state(state["optimizer"])

    def optimizer_state(self) -> dict[str, Any]:
        return self._kept(self._optimizer.state_dict())  # type: ignore[no-any-return]

    def _kept(self, tree: Any) -> Any:
        """A tree of dicts and lists with each tensor whole on the CPU of the first rank; others
        give their parts and keep none."""
        let_go(self.groups)
        leaves = list(_leaves(tree))
        numbered = enumerate(leaves)
        is_first = self._ranks.is_first
        put = {
            number: one.to("cpu") if isinstance(one, Tensor) else one
            for number, one in gathered(numbered, is_wanted=is_first)
        }
        return _rebuilt(tree, iter([put.get(number) for number in range(len(leaves))]))

    def load_optimizer_state(self, state: Mapping[str, Any]) -> None:
        self._optimizer.load_state_dict(state, place=part_of)


def _leaves(tree: Any) -> Iterator[Any]:
    """What stands in a tree of dicts and lists, in its order."""
    if isinstance(tree, Mapping):
        tree = tree.values()
    elif not isinstance(tree, list | tuple):
        yield tree
        return
    for one in tree:
        yield from _leaves(one)


def _rebuilt(tree: Any, leaves: Iterator[Any]) -> Any:
    """The same tree with other leaves."""
    if isinstance(tree, Mapping):
        return {key: _rebuilt(one, leaves) for key, one in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)([_rebuilt(one, leaves) for one in tree])
    return next(leaves)


# Model states that every rank holds whole: each adds up the gradient of its own rows, and once an
# optimizer step the gradients of all are summed.
#
#     passes of a rank's own rows, as many as it has ──> sum over ranks ──> the same step on each
#
# A sum over ranks is the same number on all of them, bit for bit, and so is the step that each
# takes by it: weights need never be compared, gathered or sent. Nothing else is said between
# ranks while they learn; what they must agree on before the step travels with the sum.

NUMBERS_AT_ONCE = 1 << 24
"""Of a sum over ranks, which are there a second time meanwhile; a larger weight goes alone."""


class ReplicaStates(WholeStates):
    """See `ModelStates`."""

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
        is_any = [said > 0 for said in told.tolist()]
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
