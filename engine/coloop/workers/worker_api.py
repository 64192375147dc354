"""The calls that a pool's workers answer, and how the answers of its ranks are merged.

    ask(pool, WorkerApi.learn, request) ──"learn", request──> every rank's worker
                                         <── rank 0's answer ──

Callers name a method by this class, so that types are checked; it loads no models.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Ids, Numbers
from coloop.data.distributions import Teacher, Words
from coloop.data.files.marks import Mark
from coloop.errors import WeightsNotUpdated
from coloop.spec.heads import Reading
from coloop.spec.model import ComputeDtype
from coloop.workers.messages import (
    AtOnce,
    Finished,
    LearnReply,
    LearnRequest,
    Observation,
    Poll,
    PromptRequest,
    Reply,
    Sampling,
    Sight,
    TooLong,
)
from coloop.workers.sync import WeightChecksum, WeightTransfer
from coloop.workers.sync.checksums import Probe

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Ends = tuple[WeightChecksum, WeightChecksum]  # checksums of both ends of a sync: sender, receiver
Tick = Callable[[Poll | None], bool]
"""Called during a wait with the call's progress; true asks the workers to give up."""


class PoolCall(Protocol):
    def __call__(
        self,
        pool: str,
        method: Callable[Concatenate[Any, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        """The merged answer of all ranks; raises what one of them raised."""


def written(answers: Sequence[list[Reply]]) -> list[Reply]:
    """Texts of each request in the order of ranks, or why nothing can be written to it."""
    return [_together(parts) for parts in zip(*answers, strict=True)]


def _together(parts: Sequence[Reply]) -> Reply:
    texts = []
    for part in parts:
        if isinstance(part, TooLong):
            return part
        texts += part
    return texts


def finished(answers: Sequence[Finished]) -> Finished:
    """What ranks have finished, each of requests of its own."""
    replies = chain.from_iterable(answer.replies for answer in answers)
    return Finished(
        replies=tuple(sorted(replies, key=lambda reply: reply[0])),
        unfinished=sum(answer.unfinished for answer in answers),
        poll=merged([answer.poll for answer in answers]),
        pauses=tuple(chain.from_iterable(answer.pauses for answer in answers)),
    )


def merged(polls: Sequence[Poll]) -> Poll:
    """Progress of all ranks; each knows how much there is for all."""
    return replace(
        polls[0],
        done=sum(poll.done for poll in polls),
        total=max(poll.total for poll in polls),
        unit=next((poll.unit for poll in polls if poll.unit), ""),
        rss_bytes=sum(poll.rss_bytes or 0 for poll in polls),
        held_bytes=max((poll.held_bytes or 0 for poll in polls), default=0) or None,
    )


def joined(answers: Sequence[list[T]]) -> list[T]:
    """Each rank answered for its part of the texts: one list."""
    return list(chain.from_iterable(answers))


def greatest(answers: Sequence[AtOnce | None]) -> AtOnce | None:
    """The most that a rank held at once; None where no rank can be asked for less."""
    held = [answer for answer in answers if answer is not None]
    if not held:
        return None
    return AtOnce(
        rows=max(answer.rows for answer in held), tokens=max(answer.tokens for answer in held)
    )


def seen(answers: Sequence[Sight]) -> Sight:
    """What rank 0 sees of a folder, unless another rank sees nothing, or something else."""
    return next((sight for sight in answers if sight.word != answers[0].word), answers[0])


def agreed(answers: Sequence[WeightChecksum]) -> WeightChecksum:
    """What rank 0's engine holds; raises `WeightsNotUpdated` where another rank's differs."""
    expected = answers[0]
    for rank, held in enumerate(answers):
        if (held.version, held.fingerprint) != (expected.version, expected.fingerprint):
            raise WeightsNotUpdated(
                f"rank {rank} of {len(answers)} has other weights than rank 0 after the transfer "
                f"of version {expected.version}: version {held.version}, fingerprint "
                f"{held.fingerprint or 0:016x} instead of {expected.fingerprint or 0:016x}"
            )
    return expected


def agreed_ends(answers: Sequence[Ends | None]) -> Ends | None:
    """Both ends of rank 0's sync, with the log-probs of the rank that measured them. Raises
    `WeightsNotUpdated` where another rank's engine holds something else."""
    every = [ends for ends in answers if ends is not None]
    if not every:
        return None
    received = agreed([received for _, received in every])
    sent = every[0][0]
    if sent.scores is None:
        scores = next(other.scores for other, _ in every if other.scores is not None)
        sent = replace(sent, scores=scores)
    return sent, received


MERGES: dict[str, Callable[[Sequence[Any]], Any]] = {}
"""By method, from the answers of ranks 0, 1, ... to that of the pool; else all ranks do the same,
rank 0 answers for them, and others need not answer."""


def merged_by(merge: Callable[[Sequence[R]], R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A method whose answers are merged so."""

    def noted(method: Callable[P, R]) -> Callable[P, R]:
        MERGES[method.__name__] = merge
        return method

    return noted


def is_heard(method: str, rank: int) -> bool:
    """Whether a rank's answer is part of the pool's."""
    return rank == 0 or method in MERGES


class WorkerApi(Protocol):
    """Methods of a worker, in the order of a run."""

    # --- the pool starts

    def open_meeting(self, seconds: float) -> int | None:
        """The port of the rendezvous, opened by rank 0; None where ranks need none."""

    def join(self, place: str, seconds: float, wait_seconds: float) -> None:
        """Meet the other ranks of the pool.

        Args:
            seconds: limit for ranks to join.
            wait_seconds: longest wait for one of them later.
        """

    def build(self) -> None:
        """Load or create the weights of every group that the pool holds."""

    # --- texts

    @merged_by(written)
    def generate(
        self, group: str, node: str, requests: Sequence[PromptRequest], sampling: Sampling
    ) -> list[Reply]:
        """Completions of each request, in order; none for those that other ranks write."""

    @merged_by(finished)
    def write(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        said: Sequence[Observation] = (),
    ) -> Finished:
        """`generate` for a slice of time, so that new weights may come between two calls: starts
        with these requests, or continues if there are none. A rank writes whole requests."""

    def stop_writing(self, group: str) -> None: ...

    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        """Tokens of each text inside another one: without special tokens."""

    @merged_by(joined)
    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        """The last token of each step, for each completion of this rank's part."""

    # --- scores and updates

    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers | TooLong]:
        """Log-probs, values, scores or choices of each text; the length of one that is too long."""

    def tokenizer(self, group: str, node: str) -> tuple[str, int]:
        """A mark that is equal for tokenizers in which each id has the same token, and their
        number."""

    def distributions(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        words: Words,
    ) -> list[Teacher | TooLong]:
        """What a node says of the trained tokens of each text, and of other words there."""

    def score_pairs(
        self, group: str, node: str, pairs: Sequence[Pair]
    ) -> list[dict[str, Numbers] | TooLong]:
        """Log-probs of each pair's sides; the longer length if it is too long for the model."""

    def learn(self, order: LearnRequest) -> LearnReply:
        """One update of a group, while the engines of the pool sleep."""

    def evaluate(self, order: LearnRequest) -> LearnReply: ...

    def reset_optimizer(self, group: str) -> None: ...

    def has_changed(self, group: str) -> bool:
        """Whether the group's last request to learn changed its weights, also if it failed."""

    def version(self, group: str) -> int: ...

    # --- memory

    @merged_by(greatest)
    def at_once(self, verb: str, group: str) -> AtOnce | None:
        """What this method's last call held at once for a group; None where it cannot hold less."""

    def narrow(self, verb: str, group: str, at_once: AtOnce) -> None:
        """Hold no more at once in such calls from now on, and free unused memory."""

    # --- weight transfer

    @merged_by(agreed_ends)
    def sync(self, group: str) -> Ends | None:
        """Copy a group's weights to its engine here; both ends' checksums, None if it has them."""

    def send(
        self,
        group: str,
        places: Sequence[Path],
        dtype: ComputeDtype | None,
        is_adapter: bool = False,
    ) -> tuple[WeightTransfer | None, WeightChecksum]:
        """Send the group's weights to another process; rank 0 sends, others give their parts.

        Args:
            places: folders that both processes see, the best first.
            dtype: of the receiving engine; None: as they are held.
            is_adapter: the adapter alone, to a receiver with the same frozen weights.
        """

    @merged_by(agreed)
    def receive(self, group: str, transfer: WeightTransfer, probe: Probe) -> WeightChecksum:
        """Load a transfer into the group's engine here; the checksum of what it holds then."""

    def invite(
        self, group: str, kind: str, ends: str, round: int, receivers: int, dtype: ComputeDtype
    ) -> tuple[WeightTransfer | None, Probe]:
        """Announce a transfer (`deliver` here, `receive` there at the same time) and its probe.

        Args:
            kind: of the channel, one of `MEETINGS`.
            ends: name of all participants.
            round: of their meetings; another one where a process is new.
            receivers: number of receiving processes.
            dtype: of the receiving engines.
        """

    def deliver(self, group: str, transfer: WeightTransfer, dtype: ComputeDtype) -> WeightChecksum:
        """Transfer what `invite` has announced; the checksum that the receivers must match."""

    @merged_by(agreed)
    def take(self, group: str, source: str, transfer: WeightTransfer, ema: float) -> WeightChecksum:
        """Blend weights of another process into a group's own; the checksum of what came."""

    def follow(self, group: str, source: str, ema: float) -> None:
        """Blend the weights of another group of this process into a group's own."""

    def follow_folder(self, group: str, source: str, ema: float, folder: str) -> None:
        """Blend the weights of another group, from a checkpoint folder, into a group's own."""

    # --- files of weights

    @merged_by(all)
    def can_use(self, folder: Path) -> bool:
        """Whether weights can be transferred through a folder of the run."""

    def own_places(self) -> list[Path]:
        """Folders of this process for weights that the driver carries, the best first."""

    def own_place(self, size: int, version: int) -> Path:
        """The first of them with room for so many bytes of a version."""

    def read_part(self, path: Path, start: int, size: int) -> NDArray[np.uint8]:
        """At most `size` bytes of a file of this machine, from `start` on."""

    def write_part(self, path: Path, start: int, part: NDArray[np.uint8]) -> None:
        """Write bytes to a file of this machine, from `start` on; rank 0 writes for all."""

    def forget(self, transfer: WeightTransfer) -> None: ...

    # --- checkpoints

    @merged_by(seen)
    def see(self, folder: Path) -> Sight:
        """The driver's word in a folder, if this process sees it; then it leaves its own."""

    def save(self, folder: str, earlier: str | None = None) -> dict[str, Mark]:
        """Save each group's weights in Hugging Face format and its trainer state; each file's mark.
        `earlier`: a folder saved before, whose files are not written again. Rank 0 writes."""

    def load(self, folder: str) -> None: ...
