"""The home of weights that do not learn: what scores by them, and what snapshots and rollout
engines are made from. They change only where they follow other weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.errors import CheckpointError
from coloop.models import ONLY, link_folder, outline_of
from coloop.spec.heads import Reading
from coloop.workers.messages import AtOnce
from coloop.workers.training import Hooks, Scorer
from coloop.workers.training.frozen_adapters import FrozenAdapter
from coloop.workers.training.scorer import SpreadScorer
from coloop.workers.training.states import autocast_of
from coloop.workers.weights import HeldWeights


@dataclass(slots=True, kw_only=True)
class FrozenModel:
    """Weights that do not learn, for scoring, snapshots and rollout engines."""

    weights: HeldWeights
    _scorer: Scorer | None = None
    """Who has the weights where they are spread; else it is made when something is scored."""

    def score(
        self,
        sequences: Sequence[TokenSequence],
        reading: Reading,
        *,
        temperature: float,
        hooks: Hooks,
        node: str = ONLY,
    ) -> list[Numbers]:
        """Log-probs or values of each sequence's tokens, 0 outside of its loss mask; or its
        score, as a node reads it."""
        return self._ready().score(
            sequences, reading, temperature=temperature, hooks=hooks, node=node
        )

    def _ready(self) -> Scorer:
        """Made when it is wanted first."""
        if self._scorer is None:
            autocast = autocast_of(self.weights.dtypes)
            self._scorer = Scorer(self._model, autocast=autocast, ranks=self.weights.ranks)
        return self._scorer

    @classmethod
    def spread(cls, weights: HeldWeights, device: torch.device | None = None) -> "FrozenModel":
        """A home of weights that lie over the ranks of its pool: each holds a part of them.

        Args:
            device: of the parts; None: where the weights are.
        """
        autocast = autocast_of(weights.dtypes)
        outline = outline_of(weights.loaded.model)
        scorer = SpreadScorer(
            weights.loaded.model,
            autocast=autocast,
            ranks=weights.ranks,
            device=device,
            to_come=weights.loaded.to_come,
        )
        weights.loaded = replace(weights.loaded, model=outline, to_come=None)
        weights.backend = scorer
        return cls(weights=weights, _scorer=scorer)

    def at_once(self) -> AtOnce | None:
        """What its passes held at once when it scored last."""
        found = self._scorer.at_once() if self._scorer is not None else None
        return None if found is None else AtOnce(rows=found[0], tokens=found[1])

    def narrow(self, at_once: AtOnce) -> None:
        """No more in a pass from here on."""
        self._ready().narrow(at_once.rows, at_once.tokens)

    def save(self, folder: Path, earlier: Path | None) -> None:
        """Hugging Face format, and the version; where the weights are those of an earlier
        checkpoint they are not written again. Rank 0 writes."""
        ranks, is_spread = self.weights.ranks, self.weights.backend is not None
        if not ranks.is_first and not is_spread:
            return
        mark = self.weights.bits("whole" if self.weights.adapted is None else "adapter").fingerprint
        kept = earlier if earlier is not None and self._mark_of(earlier) == mark else None
        is_kept = ranks.is_first and kept is not None
        if is_spread:
            is_kept = ranks.any(is_kept)
        if not is_kept:
            self.weights.save(folder, earlier)
        elif ranks.is_first and kept is not None:
            link_folder(kept, folder)
        self.weights.save_state(folder, {"fingerprint": mark})

    def load(self, folder: Path) -> None:
        """What `save` wrote."""
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

    @property
    def _model(self) -> nn.Module:
        adapted = self.weights.adapted
        return adapted.model if isinstance(adapted, FrozenAdapter) else self.weights.loaded.model

    def _mark_of(self, folder: Path) -> Any:
        """The fingerprint of the weights in a checkpoint's folder, where it can be told."""
        try:
            return self.weights.saved_state(folder).get("fingerprint")
        except CheckpointError:
            return None
