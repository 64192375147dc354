"""The `single` backend: one process, one device, plain torch; and what all backends do to a
model."""

import torch
from torch import nn

from coloop.errors import BackendMissing
from coloop.spec.dtypes import ON_CPU, ON_GPU, Dtypes, trained_dtypes
from coloop.spec.training import Training
from coloop.workers.training.adapters import Adapter, add_adapter
from coloop.workers.training.forward import (
    TOKENS_AT_ONCE,
    ForwardOptions,
    TokenModel,
    device_of,
    packing_on,
    recompute_blocks,
)
from coloop.workers.training.learner import Learner
from coloop.workers.training.ranks import ALONE, Ranks
from coloop.workers.training.states import ModelStates, autocast_of, check_trainable, place_weights


def token_model(
    model: nn.Module,
    training: Training,
    dtypes: Dtypes,
    *,
    backend: str,
    autocast: torch.dtype | None,
    tokens_at_once: int,
    is_packed: bool,
    adapter: Adapter | None,
    device: torch.device | None = None,
    waits: bool = False,
) -> TokenModel:
    """A model as a backend trains it: in its types, with its adapter; changed in place.

    Args:
        autocast: type of the matrix products; None: that of the weights.
        tokens_at_once: most tokens of a micro-batch if `training.micro_batch` is unset.
        is_packed: sequences share rows instead of being padded.
        adapter: what learns in place of the weights; None: they do.
    """
    check_trainable(dtypes, backend=backend)
    place_weights(model, dtypes)
    if adapter is not None:
        add_adapter(model, adapter)
    recompute_blocks(model, training)
    options = ForwardOptions(
        autocast=autocast,
        tokens_at_once=tokens_at_once,
        packing=packing_on(device or device_of(model), is_packed=is_packed),
    )
    return TokenModel(model.eval(), options, device=device, waits=waits)


class SingleBackend(Learner):
    def __init__(
        self,
        model: nn.Module,
        training: Training,
        *,
        group: str = "",
        dtypes: Dtypes | None = None,
        ranks: Ranks = ALONE,
        tokens_at_once: int = TOKENS_AT_ONCE,
        is_packed: bool = False,
        adapter: Adapter | None = None,
    ) -> None:
        if ranks.size > 1:
            raise BackendMissing(
                f"`single` trains {group!r} in one process, not in {ranks.size}; use `fsdp2`"
            )
        if dtypes is None:
            on_gpu = device_of(model).type == "cuda"
            dtypes = trained_dtypes(training, ON_GPU if on_gpu else ON_CPU)
        tokens = token_model(
            model,
            training,
            dtypes,
            backend="single",
            autocast=autocast_of(dtypes),
            tokens_at_once=tokens_at_once,
            is_packed=is_packed,
            adapter=adapter,
        )
        states = ModelStates(model, training.optimizer)
        super().__init__(tokens, states, adapter, group=group, ranks=ranks)
