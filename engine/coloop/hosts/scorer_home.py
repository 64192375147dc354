"""The home of weights that do not learn: what scores by them, and what snapshots and rollout
engines are made from. They change only where they follow other weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from coloop.batch import Sequence as TokenSequence
from coloop.hosts.weights import HeldWeights
from coloop.models import read_weights
from coloop.training import Hooks, Scorer
from coloop.training.precision import autocast_of


@dataclass(slots=True, kw_only=True)
class ScorerHome:
    """See the module."""

    weights: HeldWeights
    _scorer: Scorer | None = None

    def score(
        self, sequences: Sequence[TokenSequence], *, temperature: float, hooks: Hooks
    ) -> list[list[float]]:
        """Log-probs of each sequence's tokens; 0 outside of its loss mask."""
        if self._scorer is None:
            autocast = autocast_of(self.weights.dtypes)
            self._scorer = Scorer(self.weights.loaded.model, autocast=autocast)
        return self._scorer.score(sequences, temperature=temperature, hooks=hooks)

    def save(self, folder: Path) -> None:
        """Hugging Face format, plus the version."""
        self.weights.save(folder, {})

    def load(self, folder: Path) -> None:
        """What `save` wrote."""
        state = self.weights.saved_state(folder)
        saved = dict(read_weights(folder))
        with torch.no_grad():
            for name, parameter in self.weights.loaded.model.named_parameters():
                parameter.copy_(saved[name])
        self.weights.version = state["version"]
