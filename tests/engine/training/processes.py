"""Processes that train together, for tests: each call has its own, from one server that has
imported what they need."""

import os
import pickle
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from tests.forked import context

from coloop.workers.training import Ranks, leave
from coloop.workers.training.ranks import join

DEADLINE_SECONDS = 120.0


def on_ranks(size: int, function: Callable[..., Any], folder: Path, *given: Any) -> list[Any]:
    """What `function(ranks, *given)` gives on each of so many ranks, in their order.

    A rank's exception is raised here, with its own traceback as a note.
    """
    meeting = f"file://{folder}/ranks-{len(os.listdir(folder))}"
    started = []
    for rank in range(size):
        ours, theirs = context().Pipe(duplex=False)
        process = context().Process(
            target=_enter, args=(theirs, rank, size, meeting, function, given), daemon=True
        )
        process.start()
        theirs.close()
        started.append((process, ours))
    answers = []
    try:
        for rank, (_, pipe) in enumerate(started):
            assert pipe.poll(DEADLINE_SECONDS), f"rank {rank} of {size} did not answer"
            answers.append(pickle.loads(pipe.recv_bytes()))
    finally:
        for process, pipe in started:
            pipe.close()
            process.join(1.0 if len(answers) == size else 0.0)
            process.kill()
    for answer, told in answers:
        if isinstance(answer, BaseException):
            answer.add_note(told)
            raise answer
    return [answer for answer, _ in answers]


def _enter(
    pipe: Connection,
    rank: int,
    size: int,
    meeting: str,
    function: Callable[..., Any],
    given: tuple[Any, ...],
) -> None:
    torch.set_num_threads(1)
    ranks = Ranks(rank=rank, size=size)
    try:
        join(ranks, rendezvous=meeting, timeout_seconds=DEADLINE_SECONDS / 2)
        answer: Any = function(ranks, *given)
        told = ""
    except Exception as error:
        answer, told = error, f"on rank {rank}: {traceback.format_exc()}"
    pipe.send_bytes(pickle.dumps((answer, told)))
    pipe.close()
    leave()
