"""What one node writes, on its way through an engine: prompts in, texts out while others go on."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from coloop.arrays import Ids, ids_of
from coloop.hosts.encoder import Encoder
from coloop.hosts.messages import PromptRequest, Reply, Sampling, too_long
from coloop.rollout import (
    Batch,
    Generation,
    GenerationRequest,
    IsEnough,
    Progress,
    RolloutEngine,
    ShouldStop,
)
from coloop.tables import Tokens

SLICE_SECONDS = 0.25
"""For so long an engine writes on before it is asked again."""
SOON_SECONDS = 0.05
"""For so long where something has finished meanwhile."""


def for_a_moment() -> IsEnough:
    """Ends a call after a slice of time."""
    began = time.monotonic()

    def is_enough(finished: int) -> bool:
        return time.monotonic() - began >= (SOON_SECONDS if finished else SLICE_SECONDS)

    return is_enough


@dataclass(slots=True)
class _Asked:
    """A request on its way."""

    prompt_ids: Ids
    wanted: int
    texts: dict[int, Tokens] = field(default_factory=dict)
    """Those that are finished, by the place of their seed."""


class Writing:
    """Requests of one node, each a prompt with the seeds of its completions."""

    def __init__(
        self, engine: RolloutEngine, encoder: Encoder, node: str, sampling: Sampling
    ) -> None:
        self._batch = Batch(engine)
        self._limit = engine.max_length
        self._encoder = encoder
        self._node = node
        self._sampling = sampling
        self._taken = 0
        self._asked: dict[int, _Asked] = {}
        """By the place of the request among all that were taken."""
        self._texts: dict[int, tuple[int, int]] = {}
        """(place of the request, place of the seed) of each unfinished text, by its number."""
        self._ready: list[tuple[int, Reply]] = []
        """Of requests for which nothing is to be written."""

    @property
    def unfinished(self) -> int:
        """Texts that are still to be written."""
        return self._batch.unfinished

    def take(self, requests: Sequence[PromptRequest]) -> None:
        """Requests join those on their way; where one is refused, all are given up."""
        try:
            for request in requests:
                self._take(request)
        except BaseException:
            self.give_up()
            raise

    def write(
        self,
        progress: Progress,
        should_stop: ShouldStop,
        is_enough: IsEnough | None = None,
    ) -> list[tuple[int, Reply]]:
        """Writes until nothing is unfinished, or it is enough for now; the replies that became
        whole meanwhile, by the places of their requests."""
        found, self._ready = self._ready, []
        for number, written in self._batch.write(progress, should_stop, is_enough):
            place, k = self._texts.pop(number)
            asked = self._asked[place]
            asked.texts[k] = self._tokens(asked.prompt_ids, written)
            if len(asked.texts) == asked.wanted:
                del self._asked[place]
                found.append((place, [asked.texts[k] for k in range(asked.wanted)]))
        return sorted(found, key=lambda one: one[0])

    def give_up(self) -> None:
        """Forgets what is unfinished."""
        self._batch.give_up()

    def _take(self, request: PromptRequest) -> None:
        prompt, sampling, place = self._encoder.prompt(request.prompt), self._sampling, self._taken
        self._taken += 1
        problem = too_long(len(prompt) + sampling.max_new_tokens, self._limit)
        if problem is not None or not request.seeds:
            self._ready.append((place, [] if problem is None else problem))
            return
        self._asked[place] = _Asked(ids_of(prompt), len(request.seeds))
        for k, seed in enumerate(request.seeds):
            number = self._batch.submit(
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
                    on_load=sampling.on_sync,
                )
            )
            self._texts[number] = (place, k)

    def _tokens(self, prompt_ids: Ids, written: Generation) -> Tokens:
        return Tokens(
            prompt_ids=prompt_ids,
            token_ids=ids_of(written.token_ids),
            loss_mask=np.ones(len(written.token_ids), dtype=np.bool_),
            log_probs=np.array(written.log_probs, dtype=np.float32),
            temperature=self._sampling.temperature or 1.0,
            writer=self._node,
            tokenizer=self._encoder.mark,
            text=self._encoder.text(written.token_ids),
            finished=written.finished,
            version=written.version,
            switches=written.switches,
        )
