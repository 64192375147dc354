"""The `single` backend: one process, one device, plain torch."""

from torch import nn

from coloop.errors import BackendMissing
from coloop.spec.dtypes import ON_CPU, ON_GPU, Dtypes, trained_dtypes
from coloop.spec.training import Training
from coloop.workers.training.adapters import AdaptedStates, Adapter, add_adapter, names_of
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
from coloop.workers.training.states import (
    ModelStates,
    WholeStates,
    autocast_of,
    check_trainable,
    place_weights,
)


class SingleBackend(Learner):
    """Owner of one weights group's training; see `TrainBackend`."""

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
        """
        Args:
            dtypes: how weights are held and computed with; None: as `training` and the device say.
            tokens_at_once: most tokens of a micro-batch where `training.micro_batch` is open.
            is_packed: sequences share rows instead of being padded.
            adapter: what learns in place of the weights; None: they do.
        """
        if ranks.size > 1:
            raise BackendMissing(
                f"`single` trains {group!r} in one process, not in {ranks.size}; use `fsdp2`"
            )
        if dtypes is None:
            on_gpu = device_of(model).type == "cuda"
            dtypes = trained_dtypes(training, ON_GPU if on_gpu else ON_CPU)
        check_trainable(dtypes, backend="single")
        place_weights(model, dtypes)
        if adapter is not None:
            add_adapter(model, adapter)
        recompute_blocks(model, training)
        model.eval()
        options = ForwardOptions(
            autocast=autocast_of(dtypes),
            tokens_at_once=tokens_at_once,
            packing=packing_on(device_of(model), is_packed=is_packed),
        )
        tokens = TokenModel(model, options)
        states: ModelStates = WholeStates(model, training.optimizer)
        if adapter is not None:
            states = AdaptedStates(states, adapter, names_of(model))
        super().__init__(tokens, states, group=group, ranks=ranks)
