"""Limits on the time and memory of a rendering, and on the size of values.

A value is measured by its text: an object that it contains twice counts twice, so nested lists of
one list cannot hide their size.
"""

from collections.abc import Iterable, Iterator
from time import monotonic, thread_time
from typing import Any, Final

from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Undefined

from coloop.data.chats import written_value
from coloop.data.templates.grammar import NodeView, ScoredView

SECONDS: Final = 1.0
"""CPU time limit of one text; CPU time, because a busy machine must not make a text fail."""

LARGEST_TEXT: Final = 1_000_000
"""Maximum characters of a text, including intermediate ones."""

LARGEST_LIST: Final = 100_000
"""Maximum items of a list, nested ones included."""

LARGEST_RANGE: Final = 10_000
LARGEST_NUMBER_BITS: Final = 256

LARGEST_COMPARED: Final = 8_000_000
"""Maximum characters of a list that is sorted or compared."""

LARGEST_MADE: Final = 64 * 2**20
"""Maximum bytes of all texts and lists made by one rendering."""

DEEPEST_VALUE: Final = 50
ITEM_BYTES: Final = 64
"""Assumed bytes of a list item besides its text."""

PLAIN: Final = frozenset({int, float, bool, type(None)})
VIEWS: Final[frozenset[type]] = frozenset(map(type, ({}.keys(), {}.values(), {}.items())))


class LimitReached(SecurityError):
    """A template exceeds a limit; the message names it and what to change."""


class Budget:
    """The remaining time and bytes of a rendering."""

    __slots__ = ("began", "is_second", "left", "soonest")

    def __init__(self) -> None:
        self.left = LARGEST_MADE
        self.is_second = False
        self._begin_half()

    def _begin_half(self) -> None:
        self.began = thread_time()
        self.soonest = monotonic() + SECONDS / 2

    def look(self) -> None:
        """Raise `LimitReached` after the time limit."""
        if monotonic() > self.soonest:
            self._count_computing()

    def _count_computing(self) -> None:
        # CPU time is at most wall-clock time, and slower to read, so it is checked last.
        if thread_time() - self.began <= SECONDS / 2:
            return
        # A single pause, such as a garbage collection, may take a whole half of the time.
        if not self.is_second:
            self.is_second = True
            self._begin_half()
            return
        raise LimitReached(
            f"it takes more than {SECONDS:g} seconds of computing, the limit for one text; loop "
            "over fewer items, or use `code`"
        )

    def take(self, size: int) -> None:
        """Count new bytes, and check the time."""
        self.left -= size
        if self.left < 0:
            raise LimitReached(
                f"it creates more than {LARGEST_MADE // 2**20} MiB of texts and lists, the limit "
                "for one text; write inside the loop instead of adding to a text"
            )
        if monotonic() > self.soonest:
            self._count_computing()

    def text(self, value: str) -> str:
        """Count a new text and return it; raises `LimitReached` if it is too long."""
        if len(value) > LARGEST_TEXT:
            raise too_long(len(value))
        self.take(value.__sizeof__())
        return value

    def made(self, value: Any) -> Any:
        """Check the size of a new value, with everything in it, then as `taken`."""
        if isinstance(value, list | tuple | dict):
            extent(value)
        return self.taken(value)

    def taken(self, value: Any) -> Any:
        """Count a new value and return it: a text or container by its own size, an iterator as one
        that checks each item."""
        if type(value) is str:
            return self.text(value)
        if isinstance(value, list | tuple | dict):
            self.take(ITEM_BYTES * len(value))
        elif isinstance(value, Iterator):
            return self.counted(value)
        else:
            self.look()
        return value

    def counted(self, values: Iterable[Any]) -> Iterator[Any]:
        """The items; checks the time at each, and that there are at most LARGEST_LIST."""
        for index, value in enumerate(values):
            if index >= LARGEST_LIST:
                raise too_many()
            self.look()
            yield value

    def listed(self, values: Any) -> Any:
        """An iterator as a list; other values unchanged."""
        return list(self.counted(values)) if isinstance(values, Iterator) else values


class BudgetContext(Context):
    budget: Budget
    parts: list[str]
    """Output so far at the top level."""
    spans: list[tuple[int, int]]
    """Offsets of the assistant's texts, as a chat template marks them."""


def extent(value: Any, most: int | None = None, *, is_written: bool = True) -> int:
    """Approximate length of a value as text; raises `LimitReached` above `most`, LARGEST_LIST
    items or DEEPEST_VALUE levels.

    Args:
        most: characters; None: unlimited, as the value is not written now.
        is_written: with `most`, `TypeError` for non-text values, such as a function in a list.
    """
    level, characters, items, depth = [value], 0, 0, 0
    while level:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                characters += len(item) + 4
                continue
            held = _held(item)
            if held is None:
                if is_written and most is not None and type(item) not in PLAIN:
                    _check_text(item)
                characters += 24 + (item.bit_length() // 3 if isinstance(item, int) else 0)
                continue
            items += len(held)
            if items > LARGEST_LIST:
                raise too_many()
            inner += held
        if most is not None and characters > most:
            raise too_long(characters, most)
        level, depth = inner, depth + 1
        if depth > DEEPEST_VALUE:
            raise LimitReached(f"lists are nested deeper than {DEEPEST_VALUE}")
    return characters


def _held(value: Any) -> list[Any] | None:
    """Items of a container; None for other values."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, NodeView | ScoredView):
        return list(value.known.values())
    if type(value) in VIEWS:
        view: Iterable[Any] = value
        return list(view)
    return None


def written(value: Any) -> str:
    """A value as text: None is empty, a chat as by `written_chat`, other containers are JSON.
    Raises `LimitReached` before it builds a text that is too long."""
    if isinstance(value, dict | list | tuple):
        extent(value, LARGEST_TEXT)
        return written_value(value)
    return "" if value is None else spelled(value)


def written_inside(value: Any) -> Any:
    """The arguments of a format (`%`), with lists and mappings among them as text."""
    match value:
        case dict():
            return {name: _as_text(item) for name, item in value.items()}
        case tuple():
            return tuple(map(_as_text, value))
    return _as_text(value)


def _as_text(value: Any) -> Any:
    return written(value) if isinstance(value, dict | list | tuple) else value


def spelled(value: Any) -> str:
    """A value as text as plain Jinja writes it, so None is `None`; raises `LimitReached`."""
    if type(value) is str:
        return value
    if type(value) not in PLAIN:
        extent(value, LARGEST_TEXT)
    return str(value)


def _check_text(value: Any) -> None:
    if isinstance(value, Iterator) or (callable(value) and not isinstance(value, Undefined)):
        raise TypeError(
            f"a {type(value).__name__} is not a text; `| list` and `| join` take the items of a "
            "filter, `()` calls a function"
        )


def too_long(size: int, most: int = LARGEST_TEXT) -> LimitReached:
    return LimitReached(
        f"a text grows to {size:,} characters or more, the limit is {most:,}; "
        "take a part of it first, such as `text[:1000]`"
    )


def too_many() -> LimitReached:
    return LimitReached(
        f"a list grows beyond {LARGEST_LIST:,} items, those of the lists in it included; "
        "take a part of it first, such as `items[:1000]`"
    )
