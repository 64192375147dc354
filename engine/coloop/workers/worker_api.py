"""What can be asked of the workers of a pool, and what the answers of its ranks make together.

    ask(pool, WorkerApi.learn, request) ──"learn", request──> every rank's worker
                                         <── first(answers) ──

Callers name a method by this class, so that the types of arguments and answer are checked; on the
wire it goes by its name. The class is light: whoever only asks loads no models.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Ids, Numbers
from coloop.data.files.marks import Mark
from coloop.spec.heads import Reading
from coloop.spec.model import ComputeDtype
from coloop.workers.answers import (
    Ends,
    agreed,
    agreed_ends,
    everywhere,
    finished,
    first,
    greatest,
    joined,
    seen,
    written,
)
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

Tick = Callable[[Poll | None], bool]
"""Called while an answer is waited for, with how far the call is; true asks the workers to give
up."""


class PoolCall(Protocol):
    """Calls a method of the workers of a pool."""

    def __call__(
        self,
        pool: str,
        method: Callable[Concatenate[Any, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        """The answers of all ranks put together; raises what one of them raised.

        Args:
            method: of `WorkerApi`.
            arguments: in their order; none goes by its name.
        """
        ...


MERGES: dict[str, Callable[[Sequence[Any]], Any]] = {}
"""By method, from the answers of ranks 0, 1, ... to that of the pool."""


def merged_by(
    merge: Callable[[Sequence[R]], R],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """What the answers to a method make together."""

    def noted(method: Callable[P, R]) -> Callable[P, R]:
        MERGES[method.__name__] = merge
        return method

    return noted


def is_heard(method: str, rank: int) -> bool:
    """Whether a rank's answer is part of the pool's."""
    return rank == 0 or MERGES[method] is not first


class WorkerApi(ABC):
    """Methods of a worker, in the order of a run."""

    # --- the pool begins

    @merged_by(first)
    @abstractmethod
    def open_meeting(self, seconds: float) -> int | None:
        """The port on which the pool's ranks meet, opened by rank 0; None where they need not know
        one another: a rank alone, and engines that write side by side.

        Args:
            seconds: that ranks may take to come.
        """

    @merged_by(first)
    @abstractmethod
    def join(self, place: str, seconds: float, wait_seconds: float) -> None:
        """Meet the other ranks of the pool.

        Args:
            place: where rank 0 has opened the meeting.
            seconds: that ranks may take to come.
            wait_seconds: longest wait for one of them later.
        """

    @merged_by(first)
    @abstractmethod
    def build(self) -> None:
        """Load or make the weights of every group that the pool holds."""

    # --- texts

    @merged_by(written)
    @abstractmethod
    def generate(
        self, group: str, node: str, requests: Sequence[PromptRequest], sampling: Sampling
    ) -> list[Reply]:
        """What was written to each request, in order. A rank writes its part of the texts and has
        none for what others write to."""

    @merged_by(finished)
    @abstractmethod
    def write(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        said: Sequence[Observation] = (),
    ) -> Finished:
        """`generate` a moment at a time: begins with these requests, or goes on where there are
        none, until nothing is unfinished. Texts that pause go on when something is said to them.
        Between two calls new weights may come. A rank writes to whole requests, so that it knows
        when a reply is."""

    @merged_by(first)
    @abstractmethod
    def stop_writing(self, group: str) -> None:
        """Forget what `write` has not finished."""

    @merged_by(first)
    @abstractmethod
    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        """Tokens of each text where it stands within another."""

    @merged_by(joined)
    @abstractmethod
    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        """For each completion the index of the token in which each of its steps ends; a rank says
        it of its part of them."""

    # --- scores and updates

    @merged_by(first)
    @abstractmethod
    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers | TooLong]:
        """Log-probs or values of each text's completion tokens, the numbers that a score head says
        of the text, or log-probs of its choices; of one that the model cannot read, how long it
        is."""

    @merged_by(first)
    @abstractmethod
    def score_pairs(
        self, group: str, node: str, pairs: Sequence[Pair]
    ) -> list[dict[str, Numbers] | TooLong]:
        """Log-probs of both sides of each pair, by `chosen` and `rejected`; of one that the model
        cannot read, how long its longer side is."""

    @merged_by(first)
    @abstractmethod
    def learn(self, order: LearnRequest) -> LearnReply:
        """One update of a group, while the engines of the pool sleep."""

    @merged_by(first)
    @abstractmethod
    def evaluate(self, order: LearnRequest) -> LearnReply:
        """Losses of the batches by the weights as they are."""

    @merged_by(first)
    @abstractmethod
    def reset_optimizer(self, group: str) -> None:
        """Its states are as before the first update."""

    @merged_by(first)
    @abstractmethod
    def has_changed(self, group: str) -> bool:
        """Whether the group's last request to learn changed its weights; of one that broke off as
        well."""

    @merged_by(first)
    @abstractmethod
    def version(self, group: str) -> int:
        """Of the group's weights."""

    # --- memory

    @merged_by(greatest)
    @abstractmethod
    def at_once(self, verb: str, group: str) -> AtOnce | None:
        """What the last call of this method held at once for a group; None where less cannot be
        asked."""

    @merged_by(first)
    @abstractmethod
    def narrow(self, verb: str, group: str, at_once: AtOnce) -> None:
        """No more at once in such calls from here on; memory that is free is given back."""

    # --- weights that go from one end to another

    @merged_by(agreed_ends)
    @abstractmethod
    def sync(self, group: str) -> Ends | None:
        """Bring the group's weights to its engine in this process; what both ends say then. None
        where the engine has this version, or gets its first weights when it is built."""

    @merged_by(first)
    @abstractmethod
    def send(
        self,
        group: str,
        places: Sequence[Path],
        dtype: ComputeDtype | None,
        is_adapter: bool = False,
    ) -> tuple[WeightTransfer | None, WeightChecksum]:
        """Put the group's weights on their way to another process. Rank 0 sends them; others give
        their part of each, and no transfer.

        Args:
            places: folders that both processes see, the best first.
            dtype: of the engine that gets them; None: as they are held.
            is_adapter: to who stands on the same frozen weights: the adapter is all that it gets.
        """

    @merged_by(agreed)
    @abstractmethod
    def receive(self, group: str, transfer: WeightTransfer, probe: Probe) -> WeightChecksum:
        """Bring weights that came from another process to the group's engine here; what it holds
        then."""

    @merged_by(first)
    @abstractmethod
    def invite(
        self, group: str, kind: str, ends: str, round: int, receivers: int, dtype: ComputeDtype
    ) -> tuple[WeightTransfer | None, Probe]:
        """Say where the group's weights will be given to other processes, by `deliver` here and
        `receive` there at the same time, and what who receives is to score.

        Args:
            kind: of the channel, one of `MEETINGS`.
            ends: name of all who meet.
            round: of their meetings; another one where a process is new.
            receivers: processes that will receive.
            dtype: of the engines that get them.
        """

    @merged_by(first)
    @abstractmethod
    def deliver(self, group: str, transfer: WeightTransfer, dtype: ComputeDtype) -> WeightChecksum:
        """Give what `invite` has announced; rank 0 does, others give their part of each weight.
        What the receivers must agree with."""

    @merged_by(agreed)
    @abstractmethod
    def take(self, group: str, source: str, transfer: WeightTransfer, ema: float) -> WeightChecksum:
        """Weights that came from another process in place of a group's own; what came."""

    @merged_by(first)
    @abstractmethod
    def follow(self, group: str, source: str, ema: float) -> None:
        """The weights of another group of this process in place of a group's own."""

    @merged_by(first)
    @abstractmethod
    def follow_folder(self, group: str, source: str, ema: float, folder: str) -> None:
        """The weights of another group, as a checkpoint folder has them, in place of a group's
        own."""

    # --- files of weights

    @merged_by(everywhere)
    @abstractmethod
    def can_use(self, folder: Path) -> bool:
        """Whether weights can come and go through a folder of the run."""

    @merged_by(first)
    @abstractmethod
    def own_places(self) -> list[Path]:
        """Folders of this process for weights that the driver carries, the best first."""

    @merged_by(first)
    @abstractmethod
    def own_place(self, size: int, version: int) -> Path:
        """The first of them with room for so many bytes of a version."""

    @merged_by(first)
    @abstractmethod
    def read_part(self, path: Path, start: int, size: int) -> NDArray[np.uint8]:
        """At most so many bytes of a file of this machine, from there on."""

    @merged_by(first)
    @abstractmethod
    def write_part(self, path: Path, start: int, part: NDArray[np.uint8]) -> None:
        """Bytes of a file of this machine, from there on; rank 0 writes for all."""

    @merged_by(first)
    @abstractmethod
    def forget(self, transfer: WeightTransfer) -> None:
        """Nobody wants a transfer any more that lies on this machine."""

    # --- checkpoints

    @merged_by(seen)
    @abstractmethod
    def see(self, folder: Path) -> Sight:
        """What this process sees of a folder in which the driver has left its word; where it sees
        that, it leaves its own."""

    @merged_by(first)
    @abstractmethod
    def save(self, folder: str, earlier: str | None = None) -> dict[str, Mark]:
        """Each group's weights in Hugging Face format, and what its trainer needs to go on; the
        mark of each file, by its path in the folder. Rank 0 writes for all.

        Args:
            earlier: a folder that was saved before; what it has already is not written again.
        """

    @merged_by(first)
    @abstractmethod
    def load(self, folder: str) -> None:
        """What `save` wrote."""
