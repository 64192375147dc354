"""The home of weights that learn: the model with its optimizer and schedule, in a backend."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coloop.arrays import Numbers
from coloop.batch import Sequence as TokenSequence
from coloop.hosts.weights import MODEL, HeldWeights
from coloop.sizing.settings import UpdateSettings
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import training_of
from coloop.spec.training import Training
from coloop.training import Hooks, TrainBackend


@dataclass(slots=True, kw_only=True)
class TrainerHome:
    """See the module."""

    weights: HeldWeights
    backend: TrainBackend
    update: UpdateSettings

    def training(self, spec: LoopSpec) -> Training:
        """The section as a spec has it at a moment, its open values as they were decided."""
        return self.update.fill(training_of(spec, self.weights.name))

    def score(
        self, sequences: Sequence[TokenSequence], *, temperature: float, hooks: Hooks
    ) -> list[Numbers]:
        """Log-probs of each sequence's tokens by the weights as they are; 0 outside of its loss
        mask."""
        return self.backend.score(sequences, temperature=temperature, hooks=hooks)

    def save(self, folder: Path, earlier: Path | None) -> None:
        """The weights in Hugging Face format, and what a resume needs besides them."""
        del earlier
        state = self.backend.state_dict()
        self.weights.save(folder)
        self.weights.save_state(
            folder, {"trainer": {name: value for name, value in state.items() if name != MODEL}}
        )

    def load(self, folder: Path) -> None:
        """What `save` wrote."""
        state = self.weights.saved_state(folder)
        self.backend.load_state_dict({MODEL: self.weights.saved(folder), **state["trainer"]})
        self.weights.version = state["version"]
