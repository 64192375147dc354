"""Refuses a request that an engine cannot serve, before it is begun."""

from __future__ import annotations

import math

from coloop.errors import RequestRefused
from coloop.workers.rollout.kept import KeptTexts
from coloop.workers.rollout.protocol import GenerationRequest


def check_request(
    request: GenerationRequest, max_length: int | None, vocabulary: int, kept: KeptTexts
) -> None:
    """Raises where the request cannot be served; the message names its row."""
    problem = _problem(request, max_length, vocabulary) or kept.problem(request)
    if problem:
        raise RequestRefused(f"row {request.id}: {problem}")


def _problem(request: GenerationRequest, max_length: int | None, vocabulary: int) -> str | None:
    length = len(request.prompt_ids)
    if not length:
        return "its prompt has no tokens; begin it with the tokenizer's start token"
    if request.max_new_tokens < 1:
        return f"max_new_tokens is {request.max_new_tokens}, at least 1 is expected"
    if max_length is not None and length + request.max_new_tokens > max_length:
        return (
            f"its prompt has {length} tokens and {request.max_new_tokens} may be written,"
            f" {length + request.max_new_tokens} in all; the limit is {max_length}."
            " Shorten the prompt or lower rollout.max_new_tokens"
        )
    if not math.isfinite(request.temperature) or request.temperature < 0:
        return f"temperature is {request.temperature}, 0 or more is expected"
    if not 0 < request.top_p <= 1:
        return f"top_p is {request.top_p}, a number above 0 and up to 1 is expected"
    if request.top_k is not None and request.top_k < 1:
        return f"top_k is {request.top_k}, at least 1 is expected"
    if any(not text for text in request.stop):
        return "an empty stop text would end every completion at once"
    if not 0 <= min(request.prompt_ids) <= max(request.prompt_ids) < vocabulary:
        return f"its prompt has token ids outside of 0 to {vocabulary - 1}"
    for name, place in (("seed_from", request.seed_from), ("stop_from", request.stop_from)):
        if place is not None and not 0 <= place <= length:
            return f"{name} is {place}, a position in the {length} tokens of its prompt is expected"
    return None
