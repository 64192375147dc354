"""Which part of a stage's texts a rank of a pool works on.

Every rank is given the whole stage and finds its part by itself: texts in their order, cut where
the expected lengths add up to equal parts. A prompt's completions stay together but where a cut
falls between them, so a prompt is read by one rank; and a rank without a part does nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from coloop.algorithms.batch import Prompt
from coloop.workers.messages import PromptRequest
from coloop.workers.training import Ranks


def own_requests(
    requests: Sequence[PromptRequest],
    max_new_tokens: int,
    ranks: Ranks,
    *,
    is_whole: bool = False,
) -> dict[int, PromptRequest]:
    """What this rank writes: requests by their places, with the seeds of its own completions.

    Args:
        is_whole: all completions of a request belong to one rank.
    """
    every = list(enumerate(requests))
    if ranks.size == 1:
        return dict(every)
    if is_whole:
        lengths = [
            len(one.seeds) * (characters_of(one.prompt) + max_new_tokens) for one in requests
        ]
        return dict(every[own_part(lengths, ranks)])
    texts = [(place, seed) for place, one in enumerate(requests) for seed in one.seeds]
    lengths = [characters_of(one.prompt) + max_new_tokens for one in requests for _ in one.seeds]
    seeds: dict[int, list[int]] = {}
    for place, seed in texts[own_part(lengths, ranks)]:
        seeds.setdefault(place, []).append(seed)
    return {place: replace(requests[place], seeds=tuple(own)) for place, own in seeds.items()}


def own_part(lengths: Sequence[int], ranks: Ranks) -> slice:
    """This rank's texts among those of these expected lengths, one part beside the other.

    A text belongs to the part in which its middle lies.
    """
    total = sum(lengths)
    ends = accumulate(lengths)
    owners = [
        min((2 * end - length) * ranks.size // (2 * total), ranks.size - 1) if total else 0
        for length, end in zip(lengths, ends, strict=True)
    ]
    first = sum(owner < ranks.rank for owner in owners)
    return slice(first, first + owners.count(ranks.rank))


def characters_of(prompt: Prompt) -> int:
    """Characters of a prompt: hardly fewer than its tokens, and known without encoding it."""
    if isinstance(prompt, str):
        return len(prompt)
    return sum(len(str(message.get("content", ""))) for message in prompt)
