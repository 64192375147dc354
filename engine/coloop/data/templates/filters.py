"""The filters and tests of templates: Jinja's, as far as they are listed here, each measured.

They take the context first, which also keeps Jinja from evaluating them when it compiles.
Results are plain `str`, also those of `escape`, `safe` and `tojson`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, cast

from jinja2.filters import FILTERS, make_attrgetter
from jinja2.tests import TESTS
from jinja2.utils import _PassArg, pass_context

from coloop.data.templates.budget import (
    LARGEST_COMPARED,
    LARGEST_LIST,
    LARGEST_NUMBER_BITS,
    LARGEST_TEXT,
    PLAIN,
    VIEWS,
    BudgetContext,
    LimitReached,
    extent,
    too_long,
    too_many,
    written,
)

Filter = Callable[..., Any]

LONGEST_SLOW: Final = 100_000
"""Maximum characters of a text for the filters in SLOW."""

LONGEST_ATTRIBUTE: Final = 200
LARGEST_PRECISION: Final = 100
LARGEST_INDENT: Final = 16

PASSING: Final = (
    *("abs", "attr", "count", "d", "default", "filesizeformat", "first", "float", "int", "last"),
    *("length", "round"),
)
"""Filters that create nothing large: they return a part of the value, or a number."""
LISTING: Final = ("items", "list", "reverse")
"""Filters that return the same items."""
WRITING: Final = (
    *("capitalize", "center", "e", "escape", "forceescape", "format", "indent", "lower"),
    *("replace", "string", "striptags", "title", "tojson", "trim", "truncate", "upper"),
    *("urlencode",),
)
SLOW: Final = frozenset({"striptags", "title", "urlencode", "truncate"})
COMPARING: Final = ("dictsort", "groupby", "max", "min", "sort", "unique")
STEPPING: Final = ("map", "reject", "rejectattr", "select", "selectattr")
"""Filters that return iterators."""

PLAIN_TESTS: Final = (
    *("boolean", "callable", "defined", "false", "filter", "float", "integer", "iterable"),
    *("mapping", "none", "number", "sameas", "sequence", "string", "test", "true", "undefined"),
)
COMPARING_TESTS: Final = (
    *("!=", "<", "<=", "==", ">", ">=", "eq", "equalto", "ge", "greaterthan", "gt", "in", "le"),
    *("lessthan", "lower", "lt", "ne", "upper"),
)
NUMBER_TESTS: Final = ("divisibleby", "even", "odd")
"""Tests that use `%`, which would format a text."""

WORD: Final = re.compile(r"\w+")


def build_filters() -> dict[str, Filter]:
    given: dict[str, Filter] = {name: _passing(name) for name in PASSING}
    given |= {name: _listing(name) for name in LISTING}
    given |= {name: _writing(name) for name in WRITING}
    given |= {name: _comparing(name) for name in COMPARING}
    given |= {name: _stepping(name) for name in STEPPING}
    given |= {"join": _join, "sum": _sum, "wordcount": _wordcount, "safe": shown}
    return given


def build_tests() -> dict[str, Filter]:
    given: dict[str, Filter] = {
        name: pass_context(_with_context(TESTS[name])) for name in PLAIN_TESTS
    }
    given |= {name: _comparing_test(name) for name in COMPARING_TESTS}
    return given | {name: _number_test(name) for name in NUMBER_TESTS}


def _given_first(plain: Any) -> Callable[[Any], Any] | None:
    """Returns from the context what a Jinja filter takes before its value; None if nothing."""
    match _PassArg.from_obj(plain):
        case _PassArg.context:
            return lambda context: context
        case _PassArg.eval_context:
            return attrgetter("eval_ctx")
        case _PassArg.environment:
            return attrgetter("environment")
    return None


def _with_context(plain: Any) -> Filter:
    given_first = _given_first(plain)
    if given_first is None:
        return lambda context, value, *args, **kwargs: plain(value, *args, **kwargs)
    return lambda context, value, *args, **kwargs: plain(
        given_first(context), value, *args, **kwargs
    )


def _passing(name: str) -> Filter:
    plain = _with_context(FILTERS[name])

    @pass_context
    def passing(context: BudgetContext, value: Any, *args: Any, **kwargs: Any) -> Any:
        context.budget.look()
        if name == "round":
            check_numbers(LARGEST_PRECISION, args, kwargs)
        elif name == "int":
            _check_base(value, args, kwargs)
        elif name == "attr":
            return context.environment.getattr(value, *args, **kwargs)
        return plain(context, value, *args, **kwargs)

    return passing


def _listing(name: str) -> Filter:
    plain = _with_context(FILTERS[name])

    @pass_context
    def listing(context: BudgetContext, value: Any) -> Any:
        if name == "list" and isinstance(value, str):
            context.budget.text(value)
        return context.budget.taken(plain(context, context.budget.listed(value)))

    return listing


def _writing(name: str) -> Filter:
    plain = _with_context(FILTERS[name])
    most = LONGEST_SLOW if name in SLOW else LARGEST_TEXT

    @pass_context
    def writing(context: BudgetContext, value: Any, *args: Any, **kwargs: Any) -> Any:
        length = len(value) if type(value) is str else extent(value, most)
        if length > most:
            raise too_long(length, most)
        own: Any = context.environment
        if name == "format":
            args, kwargs = own.written_inside(args), own.written_inside(kwargs)
        if args or kwargs:
            _measure_writing(name, value, args, kwargs)
        if name != "tojson" and isinstance(value, dict | list | tuple):
            value = own.written(value)
        text = plain(context, value, *args, **kwargs)
        return context.budget.text(text if type(text) is str else str(text))

    return writing


def _measure_writing(
    name: str, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    values = [*args, *kwargs.values()]
    if name == "format":
        return measure_format(written(value), kwargs or args)
    for argument in values:
        if type(argument) is not str and type(argument) not in PLAIN:
            extent(argument, LARGEST_TEXT)
    if name == "center":
        measure_method("center", written(value), args, kwargs)
    elif name == "indent":
        measure_indent(written(value), kwargs.get("width", args[0] if args else 4))
    elif name == "replace":
        old, new = (
            kwargs.get(key, args[at] if len(args) > at else "")
            for at, key in enumerate(("old", "new"))
        )
        measure_replace(written(value), written(old), written(new))
    elif name == "trim":
        measure_search(written(value), written(values[0]))
    elif name == "tojson":
        check_numbers(LARGEST_INDENT, args, kwargs)
    return None


def _comparing(name: str) -> Filter:
    plain = _with_context(FILTERS[name])

    @pass_context
    def comparing(context: BudgetContext, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = context.budget
        _check_attribute(args, kwargs)
        value = budget.listed(value)
        budget.take(extent(value, LARGEST_COMPARED, is_written=False))
        return budget.made(plain(context, value, *args, **kwargs))

    return comparing


def _stepping(name: str) -> Filter:
    plain = _with_context(FILTERS[name])

    @pass_context
    def stepping(context: BudgetContext, value: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        _check_attribute(args, kwargs)
        return context.budget.counted(plain(context, value, *args, **kwargs))

    return stepping


@pass_context
def shown(context: BudgetContext, value: Any) -> str:
    """A value as text, by the `written` of its environment."""
    own: Any = context.environment
    return context.budget.text(value if type(value) is str else own.written(value))


@pass_context
def concatenated(context: BudgetContext, *values: Any) -> str:
    own: Any = context.environment
    return context.budget.text(joined(values, "", own.written))


@pass_context
def _join(context: BudgetContext, value: Any, d: Any = "", attribute: Any = None) -> str:
    own: Any = context.environment
    items = _listed_items(context, value, attribute)
    return context.budget.text(joined(items, own.written(d), own.written))


@pass_context
def _sum(context: BudgetContext, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    environment: Any = context.environment
    total = start
    for item in _listed_items(context, iterable, attribute):
        total = environment.call_binop(context, "+", total, item)
    return total


def _listed_items(context: BudgetContext, values: Any, attribute: Any) -> Iterable[Any]:
    """The items of a value, or one attribute of each."""
    _check_attribute((attribute,), {})
    items = context.budget.listed(values)
    if attribute is None:
        return cast(Iterable[Any], items)
    return map(make_attrgetter(context.environment, attribute), context.budget.counted(items))


@pass_context
def _wordcount(context: BudgetContext, s: Any) -> int:
    return sum(1 for _ in WORD.finditer(context.budget.text(written(s))))


def _comparing_test(name: str) -> Filter:
    plain: Any = TESTS[name]

    @pass_context
    def test(context: BudgetContext, value: Any, *args: Any) -> Any:
        for side in (value, *args):
            compared(context, side)
        return plain(value, *args)

    return test


def _number_test(name: str) -> Filter:
    plain: Any = TESTS[name]

    @pass_context
    def test(context: BudgetContext, value: Any, *args: Any) -> Any:
        if isinstance(value, str):
            raise TypeError(f"`{name}` needs a number, found a text; convert it with `int`")
        return plain(value, *args)

    return test


@pass_context
def compared(context: BudgetContext, value: Any) -> Any:
    """The value unchanged; raises `LimitReached` if it is too large to be compared."""
    if type(value) is not str and type(value) not in PLAIN:
        extent(value, LARGEST_COMPARED, is_written=False)
    context.budget.look()
    return value


def check_numbers(most: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise `LimitReached` for a number above `most`, or a text longer than that."""
    for argument in (*args, *kwargs.values()):
        if (isinstance(argument, int) and abs(argument) > most) or (
            isinstance(argument, str) and len(argument) > most
        ):
            raise LimitReached(f"{str(argument)[:40]!r} is larger than {most}")


def _check_base(value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    base = kwargs.get("base", args[1] if len(args) > 1 else 10)
    if base != 10 and isinstance(value, str) and len(value) > LONGEST_ATTRIBUTE:
        raise LimitReached(
            f"a number of base {base} has up to {LONGEST_ATTRIBUTE} digits, found {len(value):,}"
        )


def _check_attribute(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise `LimitReached` if an attribute name is too long."""
    for argument in (*args[:1], kwargs.get("attribute")):
        if isinstance(argument, str) and len(argument) > LONGEST_ATTRIBUTE:
            raise LimitReached(
                f"the attribute {argument[:40]!r} is longer than {LONGEST_ATTRIBUTE}"
            )


# Measures taken before an operator, a format or a method of a text: each refuses by `LimitReached`
# what would write or look through too much.

LARGEST_SEARCH: Final = 100_000_000
"""Maximum character comparisons of a search from the end or a strip."""

LARGEST_OFFSET: Final = 10**18
LONGEST_WIDTH: Final = 4
"""Maximum digits of a width or precision in `%`."""

CONVERSION: Final = re.compile(
    r"%(?:\((?P<name>[^()]*)\))?[-#0 +]*(?P<width>\*|\d*)"
    r"(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<kind>.)",
    re.DOTALL,
)
STRING_METHODS: Final = frozenset(
    """
    capitalize casefold center count endswith find index isalnum isalpha isascii isdecimal isdigit
    islower isnumeric isspace istitle isupper join ljust lower lstrip partition removeprefix
    removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith
    strip swapcase title upper zfill
    """.split()  # noqa: SIM905
)
PROBING_METHODS: Final = frozenset({"count", "endswith", "find", "index", "startswith"})
"""Methods that accept texts of any length, because they create none."""
FROM_THE_END: Final = frozenset({"rfind", "rindex", "rpartition", "rsplit"})
STRIPS: Final = frozenset({"lstrip", "rstrip", "strip"})
PADS: Final = frozenset({"center", "ljust", "rjust", "zfill"})


def measure_operation(operator: str, left: Any, right: Any) -> None:
    match operator, left, right:
        case "*", (str() | list() | tuple()), int():
            _measure_repeat(left, right)
        case "*", int(), (str() | list() | tuple()):
            _measure_repeat(right, left)
        case "**", (int() | float()), (int() | float()):
            if abs(right) > LARGEST_NUMBER_BITS or _bits(left) * abs(right) > LARGEST_NUMBER_BITS:
                raise LimitReached(f"a power has more than {LARGEST_NUMBER_BITS} bits")
        case "*", int(), int():
            if _bits(left) + _bits(right) > LARGEST_NUMBER_BITS:
                raise LimitReached(f"a product has more than {LARGEST_NUMBER_BITS} bits")
        case "%", str(), _:
            measure_format(left, right)
        case "-", _, _ if type(left) in VIEWS or type(right) in VIEWS:
            raise TypeError(
                "the keys of a dict do not support `-`; `reject('in', ...)` removes some"
            )
        case "+", str(), str():
            _check_length(len(left) + len(right))
        case "+", (list() | tuple()), (list() | tuple()):
            if len(left) + len(right) > LARGEST_LIST:
                raise too_many()


def _measure_repeat(value: str | list[Any] | tuple[Any, ...], times: int) -> None:
    size = len(value) * max(0, times)
    if isinstance(value, str):
        _check_length(size)
    elif size > LARGEST_LIST:
        raise too_many()


def _bits(number: float) -> int:
    return int(abs(number)).bit_length() if abs(number) < 2.0**1000 else 1000


def measure_format(text: str, values: Any) -> None:
    """Raise `LimitReached` if `text % values` would be too long."""
    size, is_written_whole = len(text), not isinstance(values, Mapping)
    for conversion in CONVERSION.finditer(text):
        for digits in (conversion["width"], conversion["precision"] or ""):
            if conversion["kind"] == "(" or digits == "*" or len(digits) > LONGEST_WIDTH:
                raise LimitReached(
                    f"the width in {conversion[0][:40]!r} is not a number of up to {LONGEST_WIDTH} "
                    "digits"
                )
            size += int(digits or 0)
        if conversion["name"] is None:
            is_written_whole = True
        elif isinstance(values, Mapping):
            size += extent(values.get(conversion["name"]), LARGEST_TEXT)
        _check_length(size)
    if is_written_whole:
        _check_length(size + extent(values, LARGEST_TEXT))


def measure_method(name: str, owner: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if len(owner) > LARGEST_TEXT and name not in PROBING_METHODS:
        raise too_long(len(owner))
    values = [*args, *kwargs.values()]
    for value in values:
        if isinstance(value, int) and abs(value) > LARGEST_OFFSET:
            raise LimitReached("a position or a width is too large")
    first = values[0] if values else None
    if name in PADS and isinstance(first, int):
        _check_length(first)
    elif name == "replace" and len(values) >= 2:
        measure_replace(owner, values[0], values[1])
    elif (name in FROM_THE_END or name in STRIPS) and isinstance(first, str):
        measure_search(owner, first)


def measure_search(text: str, wanted: str) -> None:
    """Raise `LimitReached` if a search from the end, in quadratic time, would take too long."""
    if len(text) * len(wanted) > LARGEST_SEARCH:
        raise LimitReached(
            f"a search for {len(wanted):,} characters in {len(text):,} is too long; "
            "search from the start, or in a part of the text"
        )


def measure_replace(text: Any, old: Any, new: Any) -> None:
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return
    if len(new) > len(old):
        _check_length(len(text) + text.count(old) * (len(new) - len(old)))


def measure_indent(text: str, width: object) -> None:
    if isinstance(width, int):
        _check_length(width)
    deep = len(width) if isinstance(width, str) else width if isinstance(width, int) else 0
    if deep > 0 and len(text) * deep > LARGEST_TEXT:
        _check_length(len(text) + len(text.splitlines()) * deep)


def joined(values: Iterable[Any], separator: str, write: Callable[[Any], str] = written) -> str:
    """The values joined to a text; raises `LimitReached` as soon as it is too long."""
    parts: list[str] = []
    size = -len(separator)
    for value in values:
        part = value if type(value) is str else write(value)
        size += len(part) + len(separator)
        if size > LARGEST_TEXT:
            raise too_long(size)
        parts.append(part)
    return separator.join(parts)


def _check_length(size: int) -> None:
    if size > LARGEST_TEXT:
        raise too_long(size)
