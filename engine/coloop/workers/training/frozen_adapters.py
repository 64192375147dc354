"""An adapter that does not learn: what a snapshot of a learner with an adapter is, and how it
follows that learner."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import torch
from torch import Tensor
from transformers import PreTrainedModel

from coloop.models.adapter_folder import is_moved, is_own, merged, plain_name
from coloop.workers.training.adapters import Adapter, add_adapter, check_fits, is_second


class FrozenAdapter:
    """A model with an adapter that does not learn: what a snapshot of a learner with an adapter
    is. It stands on the learner's frozen weights. See `Adapted`."""

    replaced = 0

    def __init__(self, model: PreTrainedModel, adapter: Adapter) -> None:
        add_adapter(model, adapter)
        model.requires_grad_(False)
        self.model = model
        self._scale = adapter.scale
        self._show()

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, as a model without an adapter has it."""
        return merged(self.model.named_parameters(), self._scale)

    def moved(self) -> Iterator[tuple[str, Tensor]]:
        """Of `weights` those that the adapter changes."""
        named = self.model.named_parameters()
        return merged(((name, one) for name, one in named if is_moved(name)), self._scale)

    def unmoved(self) -> Iterator[tuple[str, Tensor]]:
        """The others of `weights`."""
        named = self.model.named_parameters()
        return ((plain_name(name), one) for name, one in named if not is_moved(name))

    def adapter(self) -> dict[str, Tensor]:
        """The small matrices."""
        return {name: one for name, one in self.model.named_parameters() if is_own(name)}

    def base(self) -> Iterator[tuple[str, Tensor]]:
        """What they stand on, by the names of `weights`."""
        named = self.model.named_parameters()
        return ((plain_name(name), one) for name, one in named if not is_own(name))

    @torch.no_grad()
    def replace_adapter(self, given: Mapping[str, Tensor]) -> None:
        """Others in their place, by name. Raises `KeyError`, `ValueError` where they do not fit."""
        held = self.adapter()
        check_fits(held, given)
        for name, weight in given.items():
            held[name].copy_(weight)
        self._show()

    def _show(self) -> None:
        """An adapter that changes nothing costs nothing: the model is its base."""
        changes = any(bool(one.any()) for name, one in self.adapter().items() if is_second(name))
        for module in self.model.modules():
            enable: Callable[[bool], None] | None = getattr(module, "enable_adapters", None)
            if enable is not None and hasattr(module, "lora_A"):
                enable(changes)
        self.model.requires_grad_(False)


def blended(
    own: Mapping[str, Tensor], given: Iterable[tuple[str, Tensor]], ema: float
) -> dict[str, Tensor]:
    """ema * own + (1 - ema) * given, each matrix for itself."""
    return {
        name: own[name].mul(ema).add(weight.to(own[name].device, own[name].dtype), alpha=1.0 - ema)
        for name, weight in given
    }
