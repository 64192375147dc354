"""What the answers of a pool's ranks make together, method by method.

    first       all ranks did the same: rank 0 speaks for them; others need not answer
    written     each rank wrote its part of the texts: request by request, in the order of ranks
    finished    the same of whole requests, while others are still written
    joined      each rank answered for its part of the texts: one list
    everywhere  a yes where all say yes
    greatest    how much any of them held at once
    seen        what a rank sees of a folder: of one that does not see it, where there is one
    agreed      what each rank's engine holds now: all must hold the same

The table is complete: a method that is not in it cannot be called on a pool.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from coloop.errors import WeightsNotUpdated
from coloop.workers.messages import AtOnce, Finished, Poll, TooLong
from coloop.workers.sync import WeightChecksum

Merge = Callable[[Sequence[Any]], Any]
"""From the answers of ranks 0, 1, ... to that of the pool."""


def first(answers: Sequence[Any]) -> Any:
    """What rank 0 says."""
    return answers[0]


def written(answers: Sequence[Any]) -> Any:
    """Texts of each request, each rank having written some of them."""
    return [together(parts) for parts in zip(*answers, strict=True)]


def finished(answers: Sequence[Any]) -> Any:
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


def together(parts: Sequence[Any]) -> Any:
    """What ranks wrote to one request, or why nothing can be written to it."""
    refused = next((part for part in parts if isinstance(part, TooLong)), None)
    return list(chain.from_iterable(parts)) if refused is None else refused


def joined(answers: Sequence[Any]) -> Any:
    """One list of what each rank found for its part."""
    return list(chain.from_iterable(answers))


def everywhere(answers: Sequence[Any]) -> Any:
    """Whether all ranks say yes."""
    return all(answers)


def greatest(answers: Sequence[Any]) -> Any:
    """The most that a rank held at once; None where nobody can be asked for less."""
    held = [one for one in answers if one is not None]
    if not held:
        return None
    return AtOnce(rows=max(one.rows for one in held), tokens=max(one.tokens for one in held))


def seen(answers: Sequence[Any]) -> Any:
    """What rank 0 sees, unless another one sees nothing, or something else."""
    return next((one for one in answers if one.word != answers[0].word), answers[0])


def agreed(answers: Sequence[Any]) -> Any:
    """What rank 0's engine holds; raises where another rank's holds something else."""
    _check_same(answers)
    return answers[0]


def agreed_ends(answers: Sequence[Any]) -> Any:
    """Both ends of rank 0's sync, the source's log-probs by whichever rank has measured them;
    raises where another rank's engine holds something else."""
    if answers[0] is None:
        return None
    _check_same([received for _, received in answers])
    sent, received = answers[0]
    if sent.scores is None:
        sent = replace(
            sent, scores=next(one.scores for one, _ in answers if one.scores is not None)
        )
    return sent, received


def _check_same(held: Sequence[WeightChecksum]) -> None:
    """Raises `WeightsNotUpdated` where a rank has other weights than rank 0."""
    for rank, one in enumerate(held):
        if (one.version, one.fingerprint) != (held[0].version, held[0].fingerprint):
            raise WeightsNotUpdated(
                f"rank {rank} of {len(held)} holds other weights than rank 0 after the transfer of "
                f"version {held[0].version}: version {one.version}, fingerprint "
                f"{one.fingerprint or 0:016x} for {held[0].fingerprint or 0:016x}"
            )


MERGES: Mapping[str, Merge] = {
    "open_meeting": first,
    "join": first,
    "build": first,
    "generate": written,
    "write": finished,
    "stop_writing": first,
    "lengths": first,
    "score": first,
    "score_pairs": first,
    "step_ends": joined,
    "learn": first,
    "evaluate": first,
    "sync": agreed_ends,
    "send": first,
    "invite": first,
    "deliver": first,
    "receive": agreed,
    "take": agreed,
    "can_use": everywhere,
    "own_places": first,
    "own_place": first,
    "read_part": first,
    "write_part": first,
    "forget": first,
    "follow": first,
    "follow_folder": first,
    "reset_optimizer": first,
    "has_changed": first,
    "at_once": greatest,
    "narrow": first,
    "see": seen,
    "version": first,
    "save": first,
    "load": first,
}
"""By the host's methods."""


def is_heard(method: str, rank: int) -> bool:
    """Whether a rank's answer is part of the pool's."""
    return rank == 0 or MERGES[method] is not first
