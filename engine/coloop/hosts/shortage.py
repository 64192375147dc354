"""Memory that is short in a host: its call is made once more with half of what it held at once.

    call ──short of memory──> how much at once? ──> half of it, from here on ──> the same call

How many rows share a pass, and how many texts are written at once, changes neither loss nor
gradient nor draws: what comes out is the same. An update that has changed weights is never made
again.
"""

from collections.abc import Callable
from traceback import clear_frames
from typing import Any

from coloop.hosts.messages import AtOnce

OUT_OF_MEMORY = "run.out_of_memory"
"""Code of the alert."""
MEMORY_ERRORS = ("MemoryError", "OutOfMemoryError")
"""Names of the classes by which Python and torch say that memory is short."""
MEMORY_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "alloc_cpu")
"""What torch says in a plain RuntimeError of a CPU."""

Ask = Callable[..., Any]
"""Calls a method of a pool's host."""
Tell = Callable[[str | None, str, str], None]
"""Told (node or none, code, message) of what a person should know; from any thread."""


def untold(node: str | None, code: str, message: str) -> None:
    """Nobody wants to know."""
    del node, code, message


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short, by the error's class or by what it says."""
    names = {kind.__name__ for kind in type(error).__mro__}
    said = str(error).lower()
    return bool(names & set(MEMORY_ERRORS)) or (
        isinstance(error, RuntimeError) and any(words in said for words in MEMORY_WORDS)
    )


def narrowed(
    error: Exception, ask: Ask, tell: Tell, pool: str, verb: str, group: str, node: str
) -> bool:
    """Whether the call that broke may be made once more, for its host holds half at once from here
    on."""
    at_once = _at_once(ask, pool, verb, group) if is_out_of_memory(error) else None
    if at_once is None or at_once.rows < 2:
        return False
    clear_frames(error.__traceback__)  # what they hold is a part of what is short
    half = AtOnce(rows=at_once.rows // 2, tokens=at_once.tokens // 2)
    ask(pool, "narrow", verb, group, half)
    tell(
        node,
        OUT_OF_MEMORY,
        f"pool {pool} ran out of memory in {verb} of {node}, with {at_once.rows} rows at once "
        f"({type(error).__name__}: {error}); it is done once more with half of that, as are later "
        f"calls of {group}",
    )
    return True


def _at_once(ask: Ask, pool: str, verb: str, group: str) -> AtOnce | None:
    """What the call held at once; None where it cannot be made again."""
    if verb == "learn" and ask(pool, "has_changed", group):
        return None
    found: AtOnce | None = ask(pool, "at_once", verb, group)
    return found
