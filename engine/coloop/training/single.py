"""The `single` backend: one process, one device, plain torch."""

from torch import nn

from coloop.errors import BackendMissing
from coloop.spec.dtypes import Dtypes, trained_dtypes
from coloop.spec.training import Training
from coloop.training.forward import ForwardOptions, TokenModel, recompute_blocks
from coloop.training.learner import Learner
from coloop.training.precision import autocast_of, check_trainable, place_weights
from coloop.training.ranks import ALONE, Ranks
from coloop.training.states import WholeStates


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
    ) -> None:
        """
        Args:
            dtypes: how weights are held and computed with; None: as `training` and the device say.
        """
        if ranks.size > 1:
            raise BackendMissing(
                f"`single` trains {group!r} in one process, not in {ranks.size}; use `fsdp2`"
            )
        if dtypes is None:
            on_gpu = next(model.parameters()).device.type == "cuda"
            dtypes = trained_dtypes(training, has_gpu=on_gpu)
        check_trainable(dtypes, backend="single")
        place_weights(model, dtypes)
        recompute_blocks(model, training)
        model.eval()
        tokens = TokenModel(model, ForwardOptions(autocast=autocast_of(dtypes)))
        states = WholeStates(model, training.optimizer)
        super().__init__(tokens, states, group=group, ranks=ranks)
