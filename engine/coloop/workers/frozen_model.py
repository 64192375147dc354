"""The home of weights that do not learn; they change only where they follow others."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from coloop.errors import CheckpointError
from coloop.models.folder import link_tree, written_aside
from coloop.models.waiting import outline_of
from coloop.workers.fingerprint import fingerprint
from coloop.workers.training import Scorer
from coloop.workers.training.adapters import FrozenAdapter, Spread
from coloop.workers.training.scorer import SpreadScorer
from coloop.workers.training.states import autocast_of
from coloop.workers.weights import HeldWeights


@dataclass(slots=True, kw_only=True)
class FrozenModel:
    weights: HeldWeights
    _scorer: Scorer | None = None
    """Who has the weights where they are spread; else it is made when something is scored."""

    @property
    def scorer(self) -> Scorer:
        if self._scorer is None:
            adapted, autocast = self.weights.adapted, autocast_of(self.weights.dtypes)
            loaded = self.weights.loaded.model
            model = adapted.model if isinstance(adapted, FrozenAdapter) else loaded
            self._scorer = Scorer(model, autocast=autocast, ranks=self.weights.ranks)
        return self._scorer

    @classmethod
    def spread(
        cls,
        weights: HeldWeights,
        device: torch.device | None = None,
        shared: Spread | None = None,
    ) -> "FrozenModel":
        """A home of weights that are split over the ranks of its pool. `shared`: the parts of
        frozen weights that several groups of the process stand on."""
        autocast, adapted = autocast_of(weights.dtypes), weights.adapted
        outline = outline_of(weights.loaded.model)
        if isinstance(adapted, FrozenAdapter):  # `loaded` is an outline already
            outline = weights.loaded.model
        scorer = SpreadScorer(
            adapted.model if isinstance(adapted, FrozenAdapter) else weights.loaded.model,
            autocast=autocast,
            ranks=weights.ranks,
            device=device,
            to_come=weights.loaded.to_come,
            shared=shared,
        )
        if isinstance(adapted, FrozenAdapter):
            adapted.spread(scorer.groups)
        weights.loaded = replace(weights.loaded, model=outline, to_come=None)
        weights.backend = scorer
        return cls(weights=weights, _scorer=scorer)

    def save(self, folder: Path, earlier: Path | None) -> None:
        """Hugging Face format and version; rank 0 writes what no earlier checkpoint has."""
        ranks, is_spread = self.weights.ranks, self.weights.backend is not None
        if not ranks.is_first and not is_spread:
            return
        mark = fingerprint(self.weights.given("adapter" if self.weights.adapted else "whole"))
        kept = earlier if earlier is not None and self._mark_of(earlier) == mark else None
        is_kept = ranks.is_first and kept is not None
        if is_spread:
            is_kept = ranks.any(is_kept)
        if not is_kept:
            self.weights.save(folder, earlier)
        elif ranks.is_first and kept is not None:
            with written_aside(folder) as aside:
                link_tree(kept, aside)
        self.weights.save_state(folder, {"fingerprint": mark})

    def load(self, folder: Path) -> None:
        adapted = self.weights.adapted
        if isinstance(adapted, FrozenAdapter):
            adapted.replace_adapter(self.weights.saved_adapter(folder)["adapter"])
        elif self.weights.backend is not None:
            self.weights.backend.replace_weights(self.weights.saved(folder))
        else:
            saved = self.weights.saved(folder)
            with torch.no_grad():
                for name, parameter in self.weights.loaded.model.named_parameters():
                    parameter.copy_(saved[name])
        self.weights.version = self.weights.saved_state(folder)["version"]

    def _mark_of(self, folder: Path) -> Any:
        try:
            return self.weights.saved_state(folder).get("fingerprint")
        except CheckpointError:
            return None
