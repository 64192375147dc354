"""The home of a rollout engine with its copy of a group's weights.

The engine is built when something is first written, from the weights as they are then; afterwards
it has what a channel brings. It knows nothing of who holds the weights, or where.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from coloop.arrays import Ids, ids_of
from coloop.errors import WeightsNotUpdated
from coloop.hosts.encoder import Encoder
from coloop.hosts.messages import AtOnce, PromptRequest, Sampling, TooLong, too_long
from coloop.hosts.weights import Vocabulary
from coloop.models import LoadedModel
from coloop.rollout import (
    Generation,
    GenerationRequest,
    Progress,
    RolloutEngine,
    ShouldStop,
    build_engine,
    generate,
)
from coloop.spec.rollout import Engine
from coloop.sync import CHANNELS, Evidence, Parcel, evidence_of_engine
from coloop.sync.evidence import Probe
from coloop.tables import Tokens


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
    _wanted: int = 0
    """Texts that were wanted of the engine last."""

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

    def write(
        self,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        progress: Progress,
        should_stop: ShouldStop,
    ) -> list[list[Tokens] | TooLong]:
        """What a writer wrote to each request, in order; for a prompt that leaves no room for what
        may be written, how long it is."""
        assert self._vocabulary is not None
        engine, encoder = self.engine, self._vocabulary.encoder(node)
        prompts = [encoder.prompt(request.prompt) for request in requests]
        refused = [
            too_long(len(prompt) + sampling.max_new_tokens, engine.max_length) for prompt in prompts
        ]
        wanted = [
            GenerationRequest(
                id=request.id,
                prompt_ids=prompt,
                seed=seed,
                max_new_tokens=sampling.max_new_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                stop=sampling.stop,
                greedy=sampling.temperature == 0,
            )
            for request, prompt, problem in zip(requests, prompts, refused, strict=True)
            if problem is None
            for seed in request.seeds
        ]
        self._wanted = len(wanted)
        written = iter(generate(engine, wanted, progress, should_stop))
        replies: list[list[Tokens] | TooLong] = []
        for request, prompt, problem in zip(requests, prompts, refused, strict=True):
            own = [] if problem is not None else list(islice(written, len(request.seeds)))
            shared = ids_of(prompt)
            texts = [_tokens(shared, one, encoder, sampling, node) for one in own]
            replies.append(texts if problem is None else problem)
        return replies

    def at_once(self) -> AtOnce | None:
        """How many texts were written at once when they were asked for last; None where fewer
        cannot be asked of the engine."""
        rows = self._built.rows_at_once() if self._built is not None else None
        return AtOnce(rows=min(rows, self._wanted)) if rows else None

    def narrow(self, at_once: AtOnce) -> None:
        """No more texts at once from here on."""
        self.engine.write_fewer(at_once.rows)

    def receive(self, parcel: Parcel, probe: Probe) -> Evidence:
        """Load the weights of a parcel, and say what the engine holds then."""
        engine = self.engine
        weights = CHANNELS[parcel.channel]().receive(parcel)
        engine.load_weights(weights, parcel.version)
        return evidence_of_engine(engine, probe)

    def close(self) -> None:
        """Give back what the engine holds of this process."""
        if self._built is not None:
            self._built.close()
            self._built = None


def _tokens(
    prompt_ids: Ids, written: Generation, encoder: Encoder, sampling: Sampling, node: str
) -> Tokens:
    return Tokens(
        prompt_ids=prompt_ids,
        token_ids=ids_of(written.token_ids),
        loss_mask=np.ones(len(written.token_ids), dtype=np.bool_),
        log_probs=np.array(written.log_probs, dtype=np.float32),
        temperature=sampling.temperature or 1.0,
        writer=node,
        tokenizer=encoder.mark,
        text=encoder.text(written.token_ids),
        finished=written.finished,
    )
