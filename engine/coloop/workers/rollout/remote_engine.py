"""The rollout engine whose weights are elsewhere: a service writes for it.

It refuses what needs weights: new ones, scores, texts written in several requests (a service takes
one seed a request), scripts. Log-probs are what the service says.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from coloop.data.services.endpoint import Endpoint
from coloop.data.services.replies import Nonsense
from coloop.data.services.service import Service
from coloop.errors import RequestRefused, WeightsNotUpdated
from coloop.models.build import positions_of, vocabulary_of
from coloop.workers.rollout.engine import RolloutEngine
from coloop.workers.rollout.protocol import Generation, Reason
from coloop.workers.rollout.stops import StopTexts, end_tokens
from coloop.workers.rollout.texts import KeptTexts, takes_likeliest


class RemoteEngine(RolloutEngine):
    """A service that writes, as far as no weights are needed here."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        endpoint: Endpoint,
        version: int = 0,
        max_num_seqs: int | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
    ) -> None:
        """The model's weights may be missing. `max_num_seqs` and the device are the service's.
        Raises `ServiceFailed` where the service may not be called."""
        del max_num_seqs, device
        self._service = Service(endpoint)
        vocabulary = vocabulary_of(model)
        texts = RemoteTexts(
            self._service, tokenizer, end_tokens(model, tokenizer), StopTexts(tokenizer, vocabulary)
        )
        super().__init__(
            texts,
            KeptTexts(0),
            version=version,
            dtype=dtype or model.dtype,  # what the node says; the service has its own
            max_length=positions_of(model),
            vocabulary=vocabulary,
        )

    def submit(self, request: Generation) -> int:
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

    def _take_weights(self, weights: Iterable[tuple[str, Tensor]]) -> NoReturn:
        raise WeightsNotUpdated("a remote engine does not accept weights; the service has its own")

    def sleep(self, *, with_weights: bool = True) -> None:
        """Nothing: it holds no memory that others could use."""
        del with_weights
        assert not self.unfinished, "the engine is generating"

    def wake(self) -> None: ...

    def close(self) -> None:
        self._forget_all()
        self._service.close()


# Texts through a service that speaks OpenAI's completions with what vLLM adds. What a text ends
# with is read from its tokens here, and nothing of an answer is trusted: tokens, number, meaning.

MOMENT_SECONDS: Final = 0.05  # for so long a step waits for something to end
SEEDS: Final = 2**63 - 1
HINT: Final = (
    "it should answer as vLLM does with `return_token_ids` and `logprobs`: `choices[0]` with "
    "`token_ids` and `logprobs.token_logprobs`"
)

SAME_MODEL: Final = "name the service's model in the node's `model`: its tokenizer is used here"
ROUNDING: Final = 1e-3  # by so much a log-prob may be above 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    token_ids: list[int]
    log_probs: list[float]
    text: str | None


class RemoteTexts:
    def __init__(
        self, service: Service, tokenizer: PreTrainedTokenizerBase, is_end: Tensor, stops: StopTexts
    ) -> None:
        self._service = service
        self._tokenizer = tokenizer
        self._ends = frozenset(is_end.nonzero().flatten().tolist())
        self._vocabulary = len(is_end)
        self._stops = stops
        self._running: dict[Future[Drawn], Generation] = {}

    def __len__(self) -> int:
        return len(self._running)

    def texts(self) -> list[Generation]:
        return list(self._running.values())

    def written(self) -> int:
        """None of them: a text comes whole."""
        return 0

    def add(self, text: Generation) -> None:
        read = partial(read_completion, most=text.max_new_tokens)
        self._running[self._service.ask(body_of(text), read)] = text

    def step(self) -> list[Generation]:
        if not self._running:
            return []
        done, _ = wait(self._running, timeout=MOMENT_SECONDS, return_when=FIRST_COMPLETED)
        return [self._ended(future) for future in list(self._running) if future in done]

    def take_out(self, tickets: Collection[int]) -> tuple[list[Generation], list[Generation]]:
        cut = [future for future, text in self._running.items() if text.ticket in tickets]
        for future in cut:
            future.cancel()
        return [self._running.pop(future).ends("aborted") for future in cut], []

    def clear(self) -> None:
        for future in self._running:
            future.cancel()
        self._running.clear()

    def _ended(self, future: Future[Drawn]) -> Generation:
        text, drawn = self._running.pop(future), future.result()
        try:
            self._check(drawn)
        except Nonsense as nonsense:
            raise self._service.nonsense(nonsense) from None
        cut = self._cut(text, drawn.token_ids)
        text.token_ids, text.log_probs = drawn.token_ids[:cut], drawn.log_probs[:cut]
        reason: Reason = "length"
        if cut is not None:
            reason = "stop"
        elif text.token_ids[-1] in self._ends:
            reason = "eos"
        return text.ends(reason)

    def _cut(self, request: Generation, token_ids: list[int]) -> int | None:
        if not request.stop:
            return None
        return self._stops.first_end(self._stops.number_of(request.stop), token_ids, 0)

    def _check(self, drawn: Drawn) -> None:
        if max(drawn.token_ids) >= self._vocabulary:
            raise Nonsense(
                f"answered the token {max(drawn.token_ids)}, and the node's model has "
                f"{self._vocabulary}",
                SAME_MODEL,
            )
        if drawn.text is None:
            return
        own = self._tokenizer.decode(
            drawn.token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        if not _plain(str(own)).startswith(_plain(drawn.text)):
            raise Nonsense(
                f"answered tokens that are {str(own)[:60]!r} here and another text there",
                SAME_MODEL,
                drawn.text[:60],
            )


def body_of(request: Generation) -> dict[str, Any]:
    """A request of the completions of OpenAI, with what vLLM adds."""
    body: dict[str, Any] = {
        "prompt": list(request.prompt_ids),
        "max_tokens": request.max_new_tokens,
        "temperature": 0.0 if takes_likeliest(request) else request.temperature,
        "top_p": request.top_p,
        "seed": request.seed & SEEDS,
        "logprobs": 1,
        "n": 1,
        "return_token_ids": True,
        "skip_special_tokens": True,
        "include_stop_str_in_output": True,
    }
    if request.top_k is not None:
        body["top_k"] = request.top_k
    if request.stop:
        body["stop"] = list(request.stop)
    return body


def read_completion(answer: Any, *, most: int) -> Drawn:
    """The one completion of an answer; `Nonsense` says what is none.

    Args:
        most: tokens that were asked for.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise Nonsense("answered no completion", HINT)
    choice = choices[0]
    ids: Any = choice.get("token_ids")
    told = choice.get("logprobs")
    log_probs: Any = told.get("token_logprobs") if isinstance(told, dict) else None
    if not _are_ids(ids):
        raise Nonsense("answered no token ids", HINT)
    if not isinstance(log_probs, list) or not all(map(_is_log_prob, log_probs)):
        raise Nonsense("answered no log-probs of its tokens", HINT)
    if len(ids) != len(log_probs):
        raise Nonsense(f"answered {len(log_probs)} log-probs of {len(ids)} tokens", HINT)
    if not 1 <= len(ids) <= most:
        raise Nonsense(f"answered {len(ids)} tokens, but 1 to {most} were requested", HINT)
    text = choice.get("text")
    return Drawn(
        token_ids=ids,
        log_probs=[float(value) for value in log_probs],
        text=text if isinstance(text, str) else None,
    )


def _are_ids(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _is_log_prob(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value <= ROUNDING


def _plain(text: str) -> str:
    """A text without what decoders put otherwise: spaces, and the mark of half a character."""
    return "".join(text.replace("\ufffd", "").split())
