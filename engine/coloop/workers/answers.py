"""What the answers of a pool's ranks make together, method by method.

    first       all ranks did the same: rank 0 speaks for them; others need not answer
    written     each rank wrote its part of the texts: request by request, in the order of ranks
    finished    the same of whole requests, while others are still written
    joined      each rank answered for its part of the texts: one list
    everywhere  a yes where all say yes
    greatest    how much any of them held at once
    seen        what a rank sees of a folder: of one that does not see it, where there is one
    agreed      what each rank's engine holds now: all must hold the same

Each method of `worker_api` says which of these is its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from coloop.errors import WeightsNotUpdated
from coloop.workers.messages import AtOnce, Finished, Poll, Reply, Sight, TooLong
from coloop.workers.sync import WeightChecksum

T = TypeVar("T")
Ends = tuple[WeightChecksum, WeightChecksum]
"""What both ends of a sync say: who sent, and who received."""


def first(answers: Sequence[T]) -> T:
    """What rank 0 says."""
    return answers[0]


def written(answers: Sequence[list[Reply]]) -> list[Reply]:
    """Texts of each request, each rank having written some of them."""
    return [together(parts) for parts in zip(*answers, strict=True)]


def finished(answers: Sequence[Finished]) -> Finished:
    """What ranks have finished, each of requests of its own."""
    replies = sorted(chain.from_iterable(one.replies for one in answers), key=lambda one: one[0])
    return Finished(
        replies=tuple(replies),
        unfinished=sum(one.unfinished for one in answers),
        poll=merged([one.poll for one in answers]),
        pauses=tuple(chain.from_iterable(one.pauses for one in answers)),
    )


def merged(polls: Sequence[Poll]) -> Poll:
    """How far ranks are together; each knows how much there is for all."""
    return replace(
        polls[0],
        done=sum(poll.done for poll in polls),
        total=max(poll.total for poll in polls),
        unit=next((poll.unit for poll in polls if poll.unit), ""),
        rss_bytes=sum(poll.rss_bytes or 0 for poll in polls),
        held_bytes=max((poll.held_bytes or 0 for poll in polls), default=0) or None,
    )


def together(parts: Sequence[Reply]) -> Reply:
    """What ranks wrote to one request, or why nothing can be written to it."""
    texts = []
    for part in parts:
        if isinstance(part, TooLong):
            return part
        texts += part
    return texts


def joined(answers: Sequence[list[T]]) -> list[T]:
    """One list of what each rank found for its part."""
    return list(chain.from_iterable(answers))


def everywhere(answers: Sequence[bool]) -> bool:
    """Whether all ranks say yes."""
    return all(answers)


def greatest(answers: Sequence[AtOnce | None]) -> AtOnce | None:
    """The most that a rank held at once; None where nobody can be asked for less."""
    held = [one for one in answers if one is not None]
    if not held:
        return None
    return AtOnce(rows=max(one.rows for one in held), tokens=max(one.tokens for one in held))


def seen(answers: Sequence[Sight]) -> Sight:
    """What rank 0 sees, unless another one sees nothing, or something else."""
    return next((one for one in answers if one.word != answers[0].word), answers[0])


def agreed(answers: Sequence[WeightChecksum]) -> WeightChecksum:
    """What rank 0's engine holds; raises where another rank's holds something else."""
    _check_same(answers)
    return answers[0]


def agreed_ends(answers: Sequence[Ends | None]) -> Ends | None:
    """Both ends of rank 0's sync, the source's log-probs by whichever rank has measured them;
    raises where another rank's engine holds something else."""
    every = [ends for ends in answers if ends is not None]
    if not every:
        return None
    _check_same([received for _, received in every])
    sent, received = every[0]
    if sent.scores is None:
        scores = next(other.scores for other, _ in every if other.scores is not None)
        sent = replace(sent, scores=scores)
    return sent, received


def _check_same(held: Sequence[WeightChecksum]) -> None:
    """Raises `WeightsNotUpdated` where a rank has other weights than rank 0."""
    for rank, one in enumerate(held):
        if (one.version, one.fingerprint) != (held[0].version, held[0].fingerprint):
            raise WeightsNotUpdated(
                f"rank {rank} of {len(held)} has other weights than rank 0 after the transfer of "
                f"version {held[0].version}: version {one.version}, fingerprint "
                f"{one.fingerprint or 0:016x} instead of {held[0].fingerprint or 0:016x}"
            )
