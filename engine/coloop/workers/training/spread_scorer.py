"""A frozen model that scores while its weights lie spread over ranks, gathered block by block."""

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

from coloop.models import WeightsToCome
from coloop.workers.training.forward import device_of
from coloop.workers.training.ranks import Ranks
from coloop.workers.training.scorer import Scorer
from coloop.workers.training.shards import blend_parts, gathered, give, let_go, part_of, spread


class SpreadScorer(Scorer):
    """See the module. All ranks call alike."""

    def __init__(
        self,
        model: nn.Module,
        *,
        autocast: torch.dtype | None = None,
        ranks: Ranks,
        device: torch.device | None = None,
        to_come: WeightsToCome | None = None,
    ) -> None:
        """
        Args:
            model: whole and alike on every rank; it holds parts afterwards. It may be in the host's
                memory.
            device: of the parts; None: where the model is.
            to_come: the weights of a model that is spread before it has them; None: they are there.
        """
        device = device or device_of(model)
        waits = to_come is not None
        super().__init__(model, autocast=autocast, ranks=ranks, device=device, waits=waits)
        places = {} if to_come is None else to_come.places_in(model)
        mesh = ranks.mesh(device.type)
        self._groups = spread(
            self._tokens.net, mesh, compute=None, is_freed=True, is_root_freed=True
        )
        if to_come is not None:
            give(self._tokens, self._groups, to_come, places, device)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, by its Hugging Face name, a portion at a time in memory."""
        let_go(self._groups)
        named = self._tokens.model.named_parameters()
        yield from gathered((name, one.detach()) for name, one in named)

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        """See `ModelStates`."""
        let_go(self._groups)
        return blend_parts(dict(self._tokens.model.named_parameters()), given, ema)

    @torch.no_grad()
    def replace_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Whole weights, by their names, in place of those that are held."""
        let_go(self._groups)
        for name, parameter in self._tokens.model.named_parameters():
            if name in weights:
                parameter.copy_(part_of(weights[name], parameter))
