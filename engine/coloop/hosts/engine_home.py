"""The home of a rollout engine with its copy of a group's weights.

The engine is built when something is first written, from the weights as they are then; afterwards
it has what a channel brings. It knows nothing of who holds the weights, or where.
"""

from dataclasses import dataclass

import torch

from coloop.errors import WeightsNotUpdated
from coloop.hosts.encoder import Encoder
from coloop.hosts.weights import Vocabulary
from coloop.models import LoadedModel
from coloop.rollout import RolloutEngine, build_engine
from coloop.spec.rollout import Engine
from coloop.sync import CHANNELS, Evidence, Parcel, evidence_of_engine
from coloop.sync.evidence import Probe


@dataclass(slots=True, kw_only=True)
class EngineHome:
    """See the module."""

    name: str
    """The weights group."""
    kind: Engine
    dtype: torch.dtype
    """Of the engine's copy."""
    device: str
    max_num_seqs: int | None = None
    _built: RolloutEngine | None = None
    _vocabulary: Vocabulary | None = None

    @property
    def version(self) -> int | None:
        """Version of the weights that the engine has; None before it is built."""
        return None if self._built is None else self._built.version

    @property
    def engine(self) -> RolloutEngine:
        if self._built is None:
            raise WeightsNotUpdated(f"the rollout engine of {self.name} has no weights yet")
        return self._built

    def build(self, loaded: LoadedModel, version: int) -> None:
        """Make the engine with these weights, which it copies."""
        self._vocabulary = Vocabulary(loaded.tokenizer)
        self._built = build_engine(
            self.kind,
            loaded.model,
            tokenizer=loaded.tokenizer,
            max_num_seqs=self.max_num_seqs,
            device=self.device,
            dtype=self.dtype,
            version=version,
        )

    def encoder(self, node: str) -> Encoder:
        """The engine's tokenizer, for one of its writers."""
        assert self._vocabulary is not None
        return self._vocabulary.encoder(node)

    def receive(self, parcel: Parcel, probe: Probe) -> Evidence:
        """Load the weights of a parcel, and say what the engine holds then."""
        engine = self.engine
        weights = CHANNELS[parcel.channel]().receive(parcel)
        engine.load_weights(weights, parcel.version)
        return evidence_of_engine(engine, probe)
