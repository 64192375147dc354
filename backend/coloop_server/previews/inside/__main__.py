"""The process from which previews stem: `python -m coloop_server.previews.inside <socket>`.

    service --(job file, answer file)--> fork server --fork--> child: limits itself, does it, ends
            <-(descriptor of the child)-

It loads the engine once. A child does one job: it reads it from one file, writes what came of it
into the other, and ends. Whoever has its descriptor may end it at any time; nothing outlives the
service: a fork server whose socket closes ends, and its children with it.
"""

import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import traceback

from coloop.errors import ColoopError, SpecProblem
from coloop.sandbox.process import available_isolation
from coloop.spec.graph import LoopSpec
from coloop.spec.io import dump, parse
from coloop_server.previews.inside.overlap import overlap_of
from coloop_server.previews.inside.rollouts import rolled_out
from coloop_server.previews.inside.rows import page_of
from coloop_server.previews.inside.scores import scores_of
from coloop_server.previews.inside.tokens import tokens_of
from coloop_server.previews.schemas import (
    AskOverlap,
    AskRows,
    AskScores,
    AskTokens,
    DatasetPage,
    Done,
    Job,
    Limits,
    Overlap,
    RolledOutRows,
    Scores,
    TokenizedRows,
)

PR_SET_PDEATHSIG = 1
LONGEST_ORDER = 4096


def main(orders: socket.socket) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: their ends are seen
    try:
        available_isolation()
    except Exception:
        traceback.print_exc()  # it is tried again where code is run
    gc.collect()
    gc.freeze()
    orders.sendall(b"ready")
    while True:
        order, files, _, _ = socket.recv_fds(orders, LONGEST_ORDER, 2)
        if not order:
            return
        child = os.fork()
        if child == 0:
            orders.close()
            do(Limits.model_validate_json(order), *files)
        handle = os.pidfd_open(child)
        socket.send_fds(orders, [b"begun"], [handle])
        for number in (handle, *files):
            os.close(number)


def do(limits: Limits, job: int, answer: int) -> None:
    """Run one job in the child; never returns."""
    code = 1
    try:
        die_with_parent()
        os.setsid()
        os.nice(10)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        limit(limits)
        with os.fdopen(job, "rb") as reading:
            given = reading.read()
        told = answer_to(given)
        with os.fdopen(answer, "wb") as writing:
            writing.write(told)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:
        os._exit(1)


def limit(limits: Limits) -> None:
    """Limits of a job: its memory, CPU time, and the size of each file."""
    for which, most in (
        (resource.RLIMIT_DATA, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(which)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (least, least))


def answer_to(given: bytes) -> bytes:
    """The answer of a job; errors that the user can cause are part of it."""
    try:
        answer = answer_of(Job.model_validate_json(given))
        done = Done(answer=answer.model_dump(mode="json"))
    except MemoryError:
        done = Done(code="preview.memory", message="the preview took more memory than it may")
    except ColoopError as error:
        detail = {name: getattr(error, name) for name in ("node", "field") if hasattr(error, name)}
        done = Done(code=error.code, message=str(error), detail=detail)
    except Exception as error:
        traceback.print_exc()
        done = Done(code="preview.fault", message=f"{type(error).__name__}: {error}")
    return done.model_dump_json().encode()


def answer_of(job: Job) -> Scores | DatasetPage | TokenizedRows | Overlap:
    asked = job.asked
    spec = spec_of(asked.yaml)
    match asked:
        case AskScores(rows=RolledOutRows() as wanted):
            samples = rolled_out(job, spec, wanted, asked.learner)
            told = {"samples": samples, "sampled_by": dump(spec), "sampled_in": job.root}
            return scores_of(job.model_copy(update=told), spec)
        case AskScores():
            return scores_of(job, spec)
        case AskRows():
            return page_of(job, spec)
        case AskTokens():
            return tokens_of(job, spec)
        case AskOverlap():
            return overlap_of(job, spec)


def spec_of(text: str) -> LoopSpec:
    parsed = parse(text)
    if parsed.spec is None:
        raise SpecProblem("the loop cannot be read", parsed.diagnostics)
    return parsed.spec


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
