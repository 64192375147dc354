"""The home of a rollout engine with its copy of a group's weights.

The engine is built when something is first written, from the weights as they are then; afterwards
it has what a channel brings, be it while it writes. It knows nothing of who holds the weights, or
where.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import torch

from coloop.data.services.endpoint import Endpoint
from coloop.errors import WeightsNotUpdated
from coloop.models import LoadedModel, writing_part
from coloop.plan.settings.settings import Sleep
from coloop.spec.rollout import Engine
from coloop.workers.encoder import Encoder
from coloop.workers.messages import AtOnce, Observation, Pause, PromptRequest, Reply, Sampling
from coloop.workers.rollout import Post, Progress, RolloutEngine, ShouldStop, build_engine
from coloop.workers.sync import WeightChannel, WeightChecksum, WeightTransfer, checksum_of_engine
from coloop.workers.sync.checksums import Part, Probe
from coloop.workers.sync.protocol import Weights, completed
from coloop.workers.weights import Vocabulary
from coloop.workers.writing import Writing, for_a_moment


@dataclass(slots=True, kw_only=True)
class RolloutGenerator:
    """See the module."""

    name: str
    """The weights group."""
    kind: Engine
    dtype: torch.dtype
    """Of the engine's copy."""
    device: str
    max_num_seqs: int | None = None
    memory_share: float | None = None
    """vLLM on a GPU: the share of it that it may hold."""
    endpoint: Endpoint | None = None
    """Of the service that writes, for an engine that has its weights elsewhere."""
    sleep: Sleep | None = None
    """What the engine gives back while others work here; None: nothing."""
    _is_asleep: bool = False
    _built: RolloutEngine | None = None
    _vocabulary: Vocabulary | None = None
    _wanted: int = 0
    """Texts that were wanted of the engine last."""
    _post: Post | None = None
    _writings: dict[str, Writing] = field(default_factory=dict)
    """By node, what is written a moment at a time."""

    @property
    def version(self) -> int | None:
        """Version of the weights that the engine has; None before it is built."""
        return None if self._built is None else self._built.version

    @property
    def engine(self) -> RolloutEngine:
        if self._built is None:
            raise WeightsNotUpdated(f"the rollout engine of {self.name} has no weights yet")
        return self._built

    def encoder(self, node: str) -> Encoder:
        """The tokenizer of what it writes with."""
        assert self._vocabulary is not None
        return self._vocabulary.encoder(node)

    def build(self, loaded: LoadedModel, version: int) -> None:
        """Make the engine with these weights, which it copies."""
        self._vocabulary = Vocabulary(loaded.tokenizer)
        self._built = build_engine(
            self.kind,
            writing_part(loaded.model),
            tokenizer=loaded.tokenizer,
            max_num_seqs=self.max_num_seqs,
            device=self.device,
            dtype=self.dtype,
            version=version,
            **self._own_options(),
        )
        self._post = Post(self._built)

    def _own_options(self) -> dict[str, Any]:
        """What only an engine of this kind knows."""
        if self.endpoint is not None:
            return {"endpoint": self.endpoint}
        if self.kind != "vllm" or self.device == "cpu" or self.memory_share is None:
            return {}
        return {"memory_share": self.memory_share}

    def write(
        self,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        progress: Progress,
        should_stop: ShouldStop,
    ) -> list[Reply]:
        """What a writer wrote to each request, in order: submit all, collect all."""
        writing = self._new(node, requests, sampling)
        replies, pauses = writing.write(progress, should_stop)
        assert not pauses, "texts that pause are written a moment at a time"
        found = dict(replies)
        return [found[place] for place in range(len(requests))]

    def write_on(
        self,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        said: Sequence[Observation],
        progress: Progress,
        should_stop: ShouldStop,
    ) -> tuple[list[tuple[int, Reply]], list[Pause], int]:
        """Takes requests, or goes on with those that it has and with what was said to those that
        pause, and writes for a moment; the replies that became whole, by the places of their
        requests, what pauses since then, and how many texts are unfinished."""
        writing = self._writings.pop(node, None)
        if requests or writing is None:
            writing = self._new(node, requests, sampling)
        writing.hear(said)
        replies, pauses = writing.write(progress, should_stop, for_a_moment())
        if writing.unfinished:
            self._writings[node] = writing
        return replies, pauses, writing.unfinished

    def stop_writing(self) -> None:
        """Forgets what is unfinished."""
        while self._writings:
            self._writings.popitem()[1].give_up()

    def rest(self) -> None:
        """Others work here from now on: the engine gives back what it is to do without, unless
        texts are on their way through it. It wakes by itself when it is wanted."""
        engine = self._built
        if engine is None or self.sleep is None or self._is_asleep:
            return
        if not self._writings and not engine.unfinished:
            self._is_asleep = True  # also where it fails half-way
            engine.sleep(with_weights=self.sleep == "weights")

    def at_once(self) -> AtOnce | None:
        """How many texts were written at once when they were asked for last; None where fewer
        cannot be asked of the engine."""
        rows = self._built.rows_at_once() if self._built is not None else None
        return AtOnce(rows=min(rows, self._wanted)) if rows else None

    def narrow(self, at_once: AtOnce) -> None:
        """No more texts at once from here on; of an engine that is not built yet as well."""
        if self._built is None:
            self.max_num_seqs = min(at_once.rows, self.max_num_seqs or at_once.rows)
        else:
            self._built.write_fewer(at_once.rows)

    def receive(
        self, transfer: WeightTransfer, probe: Probe, channel: WeightChannel, *, part: Part = "all"
    ) -> WeightChecksum:
        """Load the weights of a transfer, and say what the engine holds then.

        Args:
            part: of what there is to say; `bits` alone where another rank is compared by more.
        """
        with closing(channel.receive(transfer)) as weights:
            given: Weights = completed(weights, self._awake()) if transfer.is_part else weights
            self.engine.load_weights(given, transfer.version)
        return checksum_of_engine(self._awake(), probe, part=part)

    def close(self) -> None:
        """Give back what the engine holds of this process."""
        if self._built is not None:
            self._built.close()
            self._built, self._is_asleep = None, False

    def _awake(self) -> RolloutEngine:
        if self._is_asleep:
            self.engine.wake()
            self._is_asleep = False
        return self.engine

    def _new(self, node: str, requests: Sequence[PromptRequest], sampling: Sampling) -> Writing:
        assert self._vocabulary is not None
        if not sampling.is_beside:
            self.stop_writing()
        writing = Writing(
            self._awake(),
            self._vocabulary.encoder(node),
            node,
            sampling,
            post=self._post,
            is_exact=self.device == "cpu" and sampling.on_sync == "finish",
        )
        writing.take(requests)
        self._wanted = writing.unfinished
        return writing
