"""The filters and tests of texts: those of Jinja that are in the tables here, each measured.

Every one takes the context first, which also keeps Jinja from working it out while it compiles.
Texts are plain: `escape`, `safe` and `tojson` give a text like any other.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, cast

from jinja2.filters import FILTERS, make_attrgetter
from jinja2.tests import TESTS
from jinja2.utils import _PassArg, pass_context

from coloop.data.templates.budget import (
    LARGEST_COMPARED,
    LARGEST_TEXT,
    PLAIN,
    BudgetContext,
    LimitReached,
    extent,
    too_long,
    written,
)
from coloop.data.templates.operators import (
    joined,
    measure_format,
    measure_indent,
    measure_method,
    measure_replace,
    measure_search,
)

Filter = Callable[..., Any]

LONGEST_SLOW: Final = 100_000
"""Most characters for filters that look at each character several times."""

LONGEST_ATTRIBUTE: Final = 200
LARGEST_PRECISION: Final = 100
LARGEST_INDENT: Final = 16

PASSING: Final = (
    *("abs", "attr", "count", "d", "default", "filesizeformat", "first", "float", "int", "last"),
    *("length", "round"),
)
"""Filters that give something of the value, or a number."""
LISTING: Final = ("items", "list", "reverse")
"""Filters that give the same items anew."""
WRITING: Final = (
    *("capitalize", "center", "e", "escape", "forceescape", "format", "indent", "lower"),
    *("replace", "string", "striptags", "title", "tojson", "trim", "truncate", "upper"),
    *("urlencode",),
)
"""Filters that write the value."""
SLOW: Final = frozenset({"striptags", "title", "urlencode", "truncate"})
COMPARING: Final = ("dictsort", "groupby", "max", "min", "sort", "unique")
"""Filters that compare the items of a list."""
STEPPING: Final = ("map", "reject", "rejectattr", "select", "selectattr")
"""Filters that go through a list when their items are asked for."""

PLAIN_TESTS: Final = (
    *("boolean", "callable", "defined", "false", "filter", "float", "integer", "iterable"),
    *("mapping", "none", "number", "sameas", "sequence", "string", "test", "true", "undefined"),
)
COMPARING_TESTS: Final = (
    *("!=", "<", "<=", "==", ">", ">=", "eq", "equalto", "ge", "greaterthan", "gt", "in", "le"),
    *("lessthan", "lower", "lt", "ne", "upper"),
)
NUMBER_TESTS: Final = ("divisibleby", "even", "odd")
"""Tests that divide, which for a text would be a format."""

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
    """What of the context a filter of Jinja wants before its value."""
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
        found = plain(context, value, *args, **kwargs)
        return context.budget.text(found if type(found) is str else str(found))

    return writing


def _measure_writing(
    name: str, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    values = [*args, *kwargs.values()]
    if name == "format":
        return measure_format(written(value), kwargs or args)
    for one in values:
        if type(one) is not str and type(one) not in PLAIN:
            extent(one, LARGEST_TEXT)
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
    """A value as its environment writes it."""
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
    found = start
    for item in _listed_items(context, iterable, attribute):
        found = environment.call_binop(context, "+", found, item)
    return found


def _listed_items(context: BudgetContext, values: Any, attribute: Any) -> Iterable[Any]:
    """What a filter goes through: the items, or an attribute of each."""
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
        for one in (value, *args):
            compared(context, one)
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
    """The same value, which may be compared: no list that would take long."""
    if type(value) is not str and type(value) not in PLAIN:
        extent(value, LARGEST_COMPARED, is_written=False)
    context.budget.look()
    return value


def check_numbers(most: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Numbers, and texts by their length, that say how much is written."""
    for one in (*args, *kwargs.values()):
        if (isinstance(one, int) and abs(one) > most) or (isinstance(one, str) and len(one) > most):
            raise LimitReached(f"{str(one)[:40]!r} is larger than {most}")


def _check_base(value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    base = kwargs.get("base", args[1] if len(args) > 1 else 10)
    if base != 10 and isinstance(value, str) and len(value) > LONGEST_ATTRIBUTE:
        raise LimitReached(
            f"a number of base {base} has up to {LONGEST_ATTRIBUTE} digits, found {len(value):,}"
        )


def _check_attribute(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Names that are followed for every item."""
    for one in (*args[:1], kwargs.get("attribute")):
        if isinstance(one, str) and len(one) > LONGEST_ATTRIBUTE:
            raise LimitReached(f"the attribute {one[:40]!r} is longer than {LONGEST_ATTRIBUTE}")
