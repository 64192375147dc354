"""Texts in Jinja, rendered in its sandbox with limits on time and size.

An absent value is empty and false, at any depth: `{{ critic.completion }}` is nothing where no
critic wrote. `None` is absent too. A final newline is kept.

What the sandbox lacks is added here, so that a template cannot hold a run:
- every loop and every call looks at the clock (SECONDS for one text);
- no text, number or range grows past a bound: `*`, `**`, `%`, `replace`, `join` and widths are
  measured before they are carried out;
- strings have the methods of STRING_METHODS only; the globals are range, dict and namespace.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from jinja2 import ChainableUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from coloop.data.names import NodeView, ScoredView

SECONDS: Final = 2.0
"""Longest time for one text: of computing, so that a busy machine ends no run."""

LARGEST_TEXT: Final = 1_000_000
"""Most characters of a text, on the way and at the end."""

LARGEST_RANGE: Final = 10_000
LARGEST_NUMBER_BITS: Final = 256

STRING_METHODS: Final = frozenset(
    """
    capitalize casefold center count endswith find index isalnum isalpha isascii isdecimal isdigit
    islower isnumeric isspace istitle isupper join ljust lower lstrip partition removeprefix
    removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith
    strip swapcase title upper zfill
    """.split()  # noqa: SIM905
)
GROWING_FILTERS: Final = ("center", "format", "indent", "join", "replace")
REMOVED_FILTERS: Final = ("batch", "pprint", "random", "slice", "urlize", "wordwrap", "xmlattr")
WIDE_FORMAT: Final = re.compile(r"%[^a-zA-Z%]*(?:\d{5,}|\*)")


FAILURES: Final = (
    ArithmeticError,
    LookupError,
    MemoryError,
    RecursionError,
    TemplateError,
    TypeError,
    ValueError,
)
"""What a template can raise while it is rendered."""


class RenderProblem(ValueError):
    """A template that cannot be compiled or rendered; the message says why."""


class Clock(threading.local):
    """The time that the text being rendered may still take, in each thread its own."""

    def __init__(self) -> None:
        self.began = 0.0
        self.soonest = float("inf")

    def start(self) -> None:
        self.began = time.thread_time()
        self.soonest = time.monotonic() + SECONDS

    def check(self) -> None:
        # What was not running took no time of its own: computing is asked about last, for it costs.
        if time.monotonic() < self.soonest:
            return
        if time.thread_time() - self.began > SECONDS:
            raise SecurityError(f"it takes more than {SECONDS:g} seconds")


class Absent(ChainableUndefined):
    """What a name stands for that has no value in this row."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with a clock and measures; see the module."""

    intercepted_binops = frozenset(["*", "**", "%", "+"])

    def __init__(self) -> None:
        super().__init__(
            undefined=Absent, keep_trailing_newline=True, autoescape=False, finalize=_shown
        )
        self.clock = Clock()
        self.globals.clear()
        self.globals.update(range=_bounded_range, namespace=Namespace, dict=dict)
        for name in REMOVED_FILTERS:
            self.filters.pop(name, None)
        for name in GROWING_FILTERS:
            self.filters[name] = _measured_filter(name, self.filters[name])
        self.filters["in_time"] = self._in_time

    def _in_time(self, values: Iterable[Any]) -> Iterator[Any]:
        """The same values, looking at the clock before each."""
        for value in values:
            self.clock.check()
            yield value

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "in_time", [], [], None, None)
        tree.set_environment(self)
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, NodeView | ScoredView):
            if attribute in obj.known:
                return obj.known[attribute]
            return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def wrap_str_format(self, value: Any) -> None:
        """`str.format` is no safe attribute here; its widths cannot be measured."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str) and attr not in STRING_METHODS:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        self.clock.check()
        owner, name = getattr(obj, "__self__", None), getattr(obj, "__name__", "")
        if isinstance(owner, str):
            _measure_call(name, owner, args, kwargs)
        return _within(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self.clock.check()
        _measure_operation(operator, left, right)
        return _within(super().call_binop(context, operator, left, right))


def _shown(value: Any) -> Any:
    return "" if value is None else value


def _bounded_range(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > LARGEST_RANGE:
        raise SecurityError(f"a range of {len(found)} is longer than {LARGEST_RANGE}")
    return found


def _within(value: Any) -> Any:
    if isinstance(value, str | list | tuple) and len(value) > LARGEST_TEXT:
        raise _too_large()
    return value


def _too_large() -> SecurityError:
    return SecurityError(f"a text or list grows beyond {LARGEST_TEXT:,} characters or items")


def _measure_operation(operator: str, left: Any, right: Any) -> None:
    match operator, left, right:
        case "*", (str() | list() | tuple()), int():
            size = len(left) * right
        case "*", int(), (str() | list() | tuple()):
            size = len(right) * left
        case "**", (int() | float()), (int() | float()):
            if abs(right) > LARGEST_NUMBER_BITS or _bits(left) * abs(right) > LARGEST_NUMBER_BITS:
                raise SecurityError("a power is too large")
            return
        case "*", int(), int():
            if _bits(left) + _bits(right) > LARGEST_NUMBER_BITS:
                raise SecurityError("a product is too large")
            return
        case "%", str(), _:
            if WIDE_FORMAT.search(left):
                raise _too_large()
            return
        case "+", (str() | list() | tuple()), (str() | list() | tuple()):
            size = len(left) + len(right)
        case _:
            return
    if size > LARGEST_TEXT:
        raise _too_large()


def _bits(number: float) -> int:
    return int(abs(number)).bit_length() if abs(number) < 2.0**1000 else 1000


def _measure_call(method: str, owner: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    values = [*args, *kwargs.values()]
    if any(isinstance(value, int) and abs(value) > LARGEST_TEXT for value in values):
        raise _too_large()
    if method == "replace" and len(values) >= 2:
        _measure_replace(owner, str(values[0]), str(values[1]))
    if method == "join" and values:
        _measure_join(owner, values[0])


def _measure_replace(text: str, old: str, new: str) -> None:
    if len(text) + text.count(old) * max(0, len(new) - len(old)) > LARGEST_TEXT:
        raise _too_large()


def _measure_join(separator: str, values: Any) -> None:
    if isinstance(values, list | tuple):
        size = sum(len(str(value)) + len(separator) for value in values)
        if size > LARGEST_TEXT:
            raise _too_large()


def _measured_filter(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of Jinja that measures what it is about to write."""

    def measured(*args: Any, **kwargs: Any) -> Any:
        # Some filters get their context as a first argument.
        given = args[1:] if hasattr(plain, "jinja_pass_arg") else args
        value, rest = given[0], given[1:]
        if name == "format" and WIDE_FORMAT.search(str(value)):
            raise _too_large()
        if name == "join":
            _measure_join(str(rest[0]) if rest else str(kwargs.get("d", "")), value)
        elif name == "indent" and rest and isinstance(rest[0], int):
            if (str(value).count("\n") + 1) * rest[0] > LARGEST_TEXT:
                raise _too_large()
        else:
            _measure_call(name, str(value), rest, kwargs)
        return _within(plain(*args, **kwargs))

    vars(measured).update(vars(plain))
    return measured


@lru_cache(maxsize=1)
def environment() -> BoundedEnvironment:
    """The one environment of this process; rendering is not shared between threads."""
    return BoundedEnvironment()


@lru_cache(maxsize=512)
def compiled(source: str) -> Template:
    """A template by its source, compiled once."""
    try:
        return environment().from_string(source)
    except TemplateSyntaxError as error:
        raise RenderProblem(f"line {error.lineno}: {error.message}") from None
    except (TemplateError, RecursionError) as error:
        raise RenderProblem(str(error) or type(error).__name__) from None


def render_text(source: str, values: Mapping[str, Any]) -> str:
    """The text that a template gives with these values; RenderProblem says why it gives none."""
    template = compiled(source)
    clock = environment().clock
    clock.start()
    parts: list[str] = []
    size = 0
    try:
        for part in template.generate(values):
            clock.check()
            size += len(part)
            if size > LARGEST_TEXT:
                raise SecurityError(f"it writes more than {LARGEST_TEXT:,} characters")
            parts.append(part)
    except FAILURES as error:
        raise RenderProblem(_told(error)) from None
    return "".join(parts)


def _told(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its macros call each other without end"
    return str(error) or type(error).__name__
