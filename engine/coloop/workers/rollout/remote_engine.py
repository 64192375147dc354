"""The rollout engine whose weights are elsewhere: a service writes for it.

It holds a tokenizer and the sizes of the model, and no weights. So it cannot do what wants them
here, and refuses it: new weights, scores of texts, texts written in several requests (draws belong
to positions, and a service takes one seed a request), a script. What a text's company there does to
it is the service's; log-probs are those that the service tells, of its own distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from coloop.data.services.endpoint import Endpoint
from coloop.data.services.service import Service
from coloop.errors import RequestRefused, WeightsNotUpdated
from coloop.models import positions_of, vocabulary_of
from coloop.workers.rollout.kept import KeptTexts
from coloop.workers.rollout.protocol import GenerationRequest
from coloop.workers.rollout.remote_texts import RemoteTexts
from coloop.workers.rollout.stops import StopTexts, end_tokens
from coloop.workers.rollout.text_engine import TextEngine


class RemoteEngine(TextEngine):
    """Implements `RolloutEngine`, as far as no weights are wanted for it."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        endpoint: Endpoint,
        version: int = 0,
        max_num_seqs: int | None = None,
        max_length: int | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
    ) -> None:
        """The model's weights may be missing. `max_num_seqs` and the device are the service's.

        Raises `ServiceFailed` where the service may not be called.
        """
        del max_num_seqs, device
        self._dtype = dtype or model.dtype
        self._service = Service(endpoint)
        vocabulary = vocabulary_of(model)
        texts = RemoteTexts(
            self._service,
            tokenizer,
            end_tokens(model, tokenizer),
            StopTexts(tokenizer, vocabulary),
        )
        limits = [limit for limit in (positions_of(model), max_length) if limit]
        super().__init__(
            texts,
            KeptTexts(0),
            version=version,
            max_length=min(limits, default=None),
            vocabulary=vocabulary,
        )

    @property
    def dtype(self) -> torch.dtype:
        """What the node says; the service has its own."""
        return self._dtype

    def submit(self, request: GenerationRequest) -> int:
        """Takes a request and gives its ticket."""
        if request.continues is not None or request.keep or request.script:
            raise RequestRefused(
                f"row {request.id}: a remote engine generates a text in one request; turns, "
                "continued rounds and scripts need `engine: torch` or `vllm`"
            )
        return super().submit(request)

    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]:
        """Refused: log-probs of given texts want the weights."""
        del sequences, temperature
        raise RequestRefused("a remote engine generates; it cannot return log-probs of given texts")

    def held_weights(self) -> Iterable[tuple[str, Tensor]]:
        """None are here."""
        return ()

    def fingerprint(self) -> None:
        """None: no weights are here."""

    def _take_weights(self, weights: Iterable[tuple[str, Tensor]]) -> NoReturn:
        raise WeightsNotUpdated("a remote engine does not accept weights; the service has its own")

    def sleep(self, *, with_weights: bool = True) -> None:
        """Nothing: it holds no memory that others could use."""
        del with_weights
        assert not self.unfinished, "the engine is generating"

    def wake(self) -> None:
        """Nothing: see `sleep`."""

    def max_concurrency(self) -> None:
        """None: the service looks after its memory."""

    def limit_concurrency(self, rows: int) -> None:
        """Nothing: see `max_concurrency`."""

    def close(self) -> None:
        """Takes back what is unfinished and ends the connections."""
        self._forget_all()
        self._service.close()
