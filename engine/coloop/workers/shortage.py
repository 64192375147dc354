"""Memory that is short in a host: its call is made once more with half of what it held at once.

    call ──short of memory──> how much at once? ──> half of it, from here on ──> the same call

Results are the same. An update that has changed weights is never made again. Where ranks wait for
the one whose memory is short their pool ends, and the run resumes from its checkpoint with half.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from traceback import clear_frames

from coloop.errors import StageStalled, WorkerDied
from coloop.workers.messages import AtOnce
from coloop.workers.worker_api import PoolCall, WorkerApi

OUT_OF_MEMORY = "run.out_of_memory"
MEMORY_ERRORS = ("MemoryError", "OutOfMemoryError")
"""Names of the classes by which Python and torch say that memory is short."""
MEMORY_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "alloc_cpu")
"""What torch says in a plain RuntimeError of a CPU."""

SIZE = "at_once"  # what such an error carries from its host

Tell = Callable[[str | None, str, str], None]
"""Told (node or none, code, message) of what a person should know; from any thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that may be short of memory."""

    pool: str
    verb: str
    group: str
    node: str = ""  # who needs it


def untold(node: str | None, code: str, message: str) -> None:
    del node, code, message


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short, by the error's class or by what it says."""
    names = {kind.__name__ for kind in type(error).__mro__}
    message = str(error).lower()
    return bool(names & set(MEMORY_ERRORS)) or (
        isinstance(error, RuntimeError) and any(words in message for words in MEMORY_WORDS)
    )


class Shortages:
    """What pools hold at once since memory was short, for the whole run."""

    def __init__(self) -> None:
        self._halves: dict[Call, AtOnce] = {}  # whoever needs the call

    def narrowed(self, error: Exception, ask: PoolCall, tell: Tell, call: Call) -> bool:
        """Whether the failed call may be made again, its host holding half at once from here on.
        Raises `WorkerDied`, `StageStalled` where the pool ended with it; its successors hold
        half."""
        if not is_out_of_memory(error):
            return False
        try:
            at_once = _at_once(ask, call)
            half = self._half(at_once, call)
            if at_once is None or half is None:
                return False
            clear_frames(error.__traceback__)  # what they hold is a part of what is short
            ask(call.pool, WorkerApi.narrow, call.verb, call.group, half)
        except (WorkerDied, StageStalled):
            at_once = vars(error).get(SIZE)
            if at_once is None or self._half(at_once, call) is None:
                return False
            tell(call.node, OUT_OF_MEMORY, _words(error, at_once, call))
            raise
        tell(call.node, OUT_OF_MEMORY, _words(error, at_once, call))
        return True

    def again(self, ask: PoolCall, pool: str | None = None) -> None:
        """Ask the processes of a pool, or of all, for what was asked of those before them."""
        for call, half in list(self._halves.items()):
            if pool in (None, call.pool):
                ask(call.pool, WorkerApi.narrow, call.verb, call.group, half)

    def _half(self, at_once: AtOnce | None, call: Call) -> AtOnce | None:
        """What is held from here on; None where it cannot be less."""
        if at_once is None or at_once.rows < 2:
            return None
        half = AtOnce(rows=at_once.rows // 2, tokens=at_once.tokens // 2)
        self._halves[replace(call, node="")] = half
        return half


def _words(error: Exception, at_once: AtOnce, call: Call) -> str:
    return (
        f"pool {call.pool} ran out of memory in {call.verb} of {call.node}, with {at_once.rows} "
        f"rows at once ({type(error).__name__}: {error}); it is retried with half of that, as are "
        f"later calls of {call.group}"
    )


@contextmanager
def sized(at_once: Callable[[], AtOnce | None]) -> Iterator[None]:
    """In a host: an error of short memory carries what was held at once."""
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            vars(error)[SIZE] = at_once()
        raise


def _at_once(ask: PoolCall, call: Call) -> AtOnce | None:
    if call.verb == "learn" and ask(call.pool, WorkerApi.has_changed, call.group):
        return None
    return ask(call.pool, WorkerApi.at_once, call.verb, call.group)
