"""One set of weights in a process: the model, its trainer where it learns, its rollout engine where
it writes.

Invariants: `version` counts the updates that changed the weights; the engine carries the version
that it was last given. A frozen holder has no trainer; a refresh gives its weights a new version as
well, so that its engine is brought up to date in the same way as a learner's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from coloop.batch import Sequence as TokenSequence
from coloop.errors import CheckpointError, ColoopError, StorageFull
from coloop.hosts.encoder import Encoder
from coloop.models import (
    DTYPES,
    LoadedModel,
    build_model,
    copy_model,
    positions_of,
    read_weights,
    save_hf,
    vocabulary_mark,
)
from coloop.plan.types import WeightsPlan
from coloop.rollout import ENGINES, RolloutEngine
from coloop.seeds import derive_seed
from coloop.spec.dtypes import Dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import training_of
from coloop.spec.nodes import model_of
from coloop.sync import CHANNELS, WeightChannel
from coloop.training import BACKENDS, Hooks, Scorer, TrainBackend
from coloop.training.precision import autocast_of, place_weights

TRAINER_FILE = "trainer.pt"


@dataclass(slots=True, kw_only=True)
class Holder:
    """See the module."""

    name: str
    loaded: LoadedModel
    backend: TrainBackend | None
    dtypes: Dtypes
    engine_name: str | None
    max_num_seqs: int | None = None
    device: str = "cpu"
    version: int = 0
    _engine: RolloutEngine | None = None
    _channel: WeightChannel | None = None
    _scorer: Scorer | None = None
    _mark: str | None = None

    def encoder(self, node: str) -> Encoder:
        """The tokenizer of these weights, for one of the nodes that use them."""
        if self._mark is None:
            self._mark = vocabulary_mark(self.loaded.tokenizer)
        return Encoder(self.loaded.tokenizer, node=node, mark=self._mark)

    @property
    def positions(self) -> int | None:
        """Most tokens of a row that these weights read; None: no limit is known."""
        return positions_of(self.loaded.model)

    def trainer(self) -> TrainBackend:
        if self.backend is None:
            raise ColoopError(f"weights {self.name} are frozen: they have no trainer")
        return self.backend

    def score(
        self, sequences: Sequence[TokenSequence], *, temperature: float, hooks: Hooks
    ) -> list[list[float]]:
        """Log-probs of each sequence's tokens by these weights; 0 outside of its loss mask."""
        if self.backend is not None:
            return self.backend.score(sequences, temperature=temperature, hooks=hooks)
        if self._scorer is None:
            self._scorer = Scorer(self.loaded.model, autocast=autocast_of(self.dtypes))
        return self._scorer.score(sequences, temperature=temperature, hooks=hooks)

    def engine(self) -> RolloutEngine:
        """The rollout engine with the weights of this version."""
        if self._engine is None:
            self._engine = ENGINES[self.engine_name or "torch"](
                self.loaded.model,
                tokenizer=self.loaded.tokenizer,
                max_num_seqs=self.max_num_seqs,
                device=self.device,
                dtype=DTYPES[self.dtypes.engine],
                version=self.version,
            )
            self._channel = CHANNELS["local"](autocast=autocast_of(self.dtypes))
        if self._engine.version != self.version:
            self.sync()
        return self._engine

    def sync(self) -> Mapping[str, float]:
        """Push the weights into the engine and prove that they arrived; an engine that was never
        asked for gets them when it is built."""
        if self._engine is None or self._channel is None or self._engine.version == self.version:
            return {}
        proof = self._channel.push(self.loaded.model, self._engine, version=self.version)
        return {"sync/difference": proof.difference}

    def take_weights(self, source: "Holder", *, ema: float, folder: Path | None) -> None:
        """new = ema * old + (1 - ema) * the source's, now or as a checkpoint folder holds them."""
        given = (
            dict(source.loaded.model.named_parameters())
            if folder is None
            else dict(read_weights(folder))
        )
        with torch.no_grad():
            for name, parameter in self.loaded.model.named_parameters():
                if name not in given:
                    raise CheckpointError(f"{self.name}: {source.name} has no weights {name}")
                other = given[name].detach().to(parameter.device, parameter.dtype)
                parameter.mul_(ema).add_(other, alpha=1.0 - ema)
        self.version += 1

    def save(self, folder: Path) -> None:
        """Hugging Face format, plus what a resume needs."""
        save_hf(folder, self.loaded.model, self.loaded.tokenizer)
        state: dict[str, Any] = {"version": self.version}
        if self.backend is not None:
            state["trainer"] = self.backend.state_dict()
        try:
            torch.save(state, folder / TRAINER_FILE)
        except (OSError, RuntimeError) as error:
            raise StorageFull(
                f"the trainer state of {self.name} was not written: {error}"
            ) from error

    def load(self, folder: Path) -> None:
        """What `save` wrote."""
        try:
            state = torch.load(folder / TRAINER_FILE, weights_only=True, map_location="cpu")
        except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
            raise CheckpointError(
                f"{folder}: the trainer state of {self.name} cannot be read: {error}"
            ) from error
        if self.backend is not None:
            self.backend.load_state_dict(state["trainer"])
        else:
            weights = dict(read_weights(folder))
            with torch.no_grad():
                for name, parameter in self.loaded.model.named_parameters():
                    parameter.copy_(weights[name])
        self.version = state["version"]


def build_holder(
    weights: WeightsPlan,
    *,
    spec: LoopSpec,
    source: LoadedModel | None,
    root: Path,
    seed: int,
    device: str,
) -> Holder:
    """Load or make the weights of a group; a copy or a snapshot starts from its source."""
    section = model_of(spec.nodes[weights.name])
    assert section is not None
    if source is not None:
        loaded = copy_model(source)
    else:
        own_seed = derive_seed(seed, weights.name, "weights")
        dtype = weights.dtypes.rest
        loaded = build_model(section, seed=own_seed, root=root, device=device, dtype=dtype)
    backend = None
    if weights.trains:
        training = training_of(spec, weights.name)
        backend = BACKENDS[weights.backend or "single"](
            loaded.model, training, group=weights.name, dtypes=weights.dtypes
        )
    else:
        place_weights(loaded.model, weights.dtypes).requires_grad_(False)
    rollouts = [getattr(spec.nodes[member], "rollout", None) for member in weights.members]
    sizes = [rollout.max_num_seqs for rollout in rollouts if rollout and rollout.max_num_seqs]
    return Holder(
        name=weights.name,
        loaded=loaded,
        backend=backend,
        dtypes=weights.dtypes,
        engine_name=weights.engine,
        max_num_seqs=max(sizes) if sizes else None,
        device=device,
    )
