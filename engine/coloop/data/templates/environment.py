"""The Jinja environment of templates: the allowed globals, attributes, calls and operators.

Values have the methods and attributes in METHODS; the globals are `range`, `dict` and `namespace`.
An undefined value is empty and false, and so are its attributes.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from jinja2 import (
    ChainableUndefined,
    Template,
    TemplateError,
    TemplateRuntimeError,
    TemplateSyntaxError,
    nodes,
)
from jinja2.lexer import TokenStream
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, pass_context

from coloop.data.templates import grammar
from coloop.data.templates.budget import (
    LARGEST_LIST,
    LARGEST_RANGE,
    LARGEST_TEXT,
    PLAIN,
    Budget,
    BudgetContext,
    LimitReached,
    extent,
    too_long,
    too_many,
    written,
    written_inside,
)
from coloop.data.templates.filters import (
    STRING_METHODS,
    build_filters,
    build_tests,
    compared,
    concatenated,
    joined,
    measure_method,
    measure_operation,
    shown,
)
from coloop.data.templates.grammar import NodeView, ScoredView

METHODS: Final[dict[type, frozenset[str]]] = {
    str: STRING_METHODS,
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    list: frozenset({"copy", "count", "index"}),
    tuple: frozenset({"count", "index", "grouper", "list"}),
    range: frozenset({"count", "index", "start", "step", "stop"}),
    float: frozenset({"is_integer"}),
    LoopContext: frozenset(
        """
        changed cycle depth depth0 first index index0 last length nextitem previtem revindex
        revindex0
        """.split()  # noqa: SIM905
    ),
    Macro: frozenset({"arguments", "name"}),
}
"""Allowed attributes by type; other types have those that are texts or numbers."""

FROM_JINJA: Final = ("_loop_vars", "_block_vars")
"""Arguments that Jinja adds to calls in loops; they are dropped."""

Shown = str | int | float | bool | None


class Absent(ChainableUndefined):
    """A name that has no value in the row."""


class Notes(Namespace):
    """Jinja's namespace with a fixed repr, because it may contain itself."""

    def __repr__(self) -> str:
        return "<namespace>"


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """A Jinja environment in which everything is on an allowlist and counts against a budget."""

    context_class = BudgetContext
    written = staticmethod(written)
    """Converts an output value to text."""
    written_inside = staticmethod(written_inside)
    """Converts the arguments of a format."""
    intercepted_binops = frozenset(["*", "**", "%", "+", "-"])

    def __init__(self, **options: Any) -> None:
        """
        Args:
            options: of Jinja's environment; replace the defaults for texts of a loop.
        """
        own = {"undefined": Absent, "keep_trailing_newline": True, "finalize": shown}
        super().__init__(autoescape=False, **{**own, **options})
        self.globals.clear()
        self.globals.update(range=_bounded_range, namespace=_notes, dict=_dict)
        self.filters.clear()
        self.filters.update(build_filters())
        self.filters.update(
            {
                grammar.JOIN: concatenated,
                grammar.LOOP: _looped,
                grammar.SHOWN: shown,
                grammar.PASS: _passed,
                grammar.COMPARE: compared,
                grammar.MADE: _made,
                grammar.TAKEN: _taken,
            }
        )
        self.tests.clear()
        self.tests.update(build_tests())

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        grammar.check_source(source)
        try:
            tree = super()._parse(source, name, filename)
        except (RecursionError, ValueError, OverflowError) as error:
            raise TemplateSyntaxError(_unread(error), 1) from None
        grammar.check_tree(tree)
        return tree

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        tokens = super()._tokenize(source, name, filename, state)
        return TokenStream(grammar.limited(tokens), name, filename)

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,
    ) -> str:
        guarded: nodes.Template = grammar.Guarded().visit(source)
        guarded.set_environment(self)
        return super()._generate(guarded, name, filename, defer_init)

    def _compile(self, source: str, filename: str) -> Any:
        try:
            return super()._compile(source, filename)
        except (SyntaxError, RecursionError, ValueError, OverflowError, MemoryError) as error:
            raise TemplateSyntaxError(_unread(error), 1) from None

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, NodeView | ScoredView):
            if attribute in obj.known:
                return obj.known[attribute]
            return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def wrap_str_format(self, value: Any) -> None:
        """None: `str.format` is not allowed, because its widths cannot be measured."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, Namespace):
            return not attr.startswith("_")
        for kind, known in METHODS.items():
            if isinstance(obj, kind):
                return attr in known
        return isinstance(value, Shown) and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        assert isinstance(context, BudgetContext)
        for name in FROM_JINJA:
            kwargs.pop(name, None)
        for value in (*args, *kwargs.values()) if kwargs else args:
            if type(value) is not str and type(value) not in PLAIN:
                extent(value)
        if type(obj) is Macro:
            # What it writes is counted part by part, and each call at its beginning.
            return _checked(context.call(obj, *args, **kwargs))
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, str):
            return _call_text_method(context.budget, obj, owner, args, kwargs)
        if isinstance(owner, list | tuple | LoopContext):
            for value in (owner, *args):
                compared(context, value)
        return context.budget.made(super().call(context, obj, *args, **kwargs))

    def call_filter(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Called by `map` with the name of a filter; refuses those that `Guarded` inserts."""
        if name in grammar.OWN_FILTERS:
            raise TemplateRuntimeError(f"No filter named {name!r}.")
        return super().call_filter(name, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            right = self.written_inside(right)
        measure_operation(operator, left, right)
        budget: Budget = context.budget  # type: ignore[attr-defined]
        return budget.made(self.binop_table[operator](left, right))


def _checked(text: Any) -> Any:
    if len(text) > LARGEST_TEXT:
        raise too_long(len(text))
    return text


def _call_text_method(
    budget: Budget, method: Any, owner: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    name = method.__name__
    measure_method(name, owner, args, kwargs)
    if name == "join" and len(args) == 1:
        return budget.text(joined(map(_only_text, budget.counted(args[0])), owner))
    result = method(*args, **kwargs)
    if isinstance(result, list | tuple):
        if len(result) > LARGEST_LIST:
            raise too_many()
        budget.take(2 * owner.__sizeof__())
    return budget.taken(result)


def _only_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(
            f"`join` of a text needs texts, found {type(value).__name__}; the filter `join` takes "
            "any values"
        )
    return value


def _unread(error: Exception) -> str:
    return f"it cannot be read: {error or type(error).__name__}"


def _bounded_range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > LARGEST_RANGE:
        raise LimitReached(f"a range of {len(numbers):,} is longer than {LARGEST_RANGE:,}")
    return numbers


@pass_context
def _dict(context: BudgetContext, /, *given: Any, **named: Any) -> dict[Any, Any]:
    """`dict`, with a time check at each entry, because the hashes of keys may all collide."""
    if len(given) > 1:
        raise TypeError(f"dict takes at most one value, found {len(given)}")
    entries: dict[Any, Any] = {}
    for value in given:
        pairs = value.items() if isinstance(value, dict) else value
        for pair in context.budget.counted(pairs):
            entries.update([pair])
    return {**entries, **named}


@pass_context
def _notes(context: BudgetContext, /, *given: Any, **named: Any) -> Notes:
    return Notes(_dict(context, *given, **named))


@pass_context
def _looped(context: BudgetContext, value: Any) -> Any:
    context.budget.look()
    return value


@pass_context
def _passed(context: BudgetContext, size: int) -> None:
    context.budget.take(size)


@pass_context
def _taken(context: BudgetContext, value: Any) -> Any:
    return context.budget.taken(value)


@pass_context
def _made(context: BudgetContext, value: Any) -> Any:
    return context.budget.made(value)


@lru_cache(maxsize=1)
def environment() -> BoundedEnvironment:
    return BoundedEnvironment()


FAILURES: Final = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError),
    *(TemplateError, TypeError, ValueError),
)


LONGEST_REASON: Final = 1000
"""Maximum characters of an error message, which a template may have written."""


class RenderProblem(ValueError):
    """A template that cannot be compiled or rendered; the message says why."""


@lru_cache(maxsize=512)
def compiled(source: str) -> Template:
    return compiled_in(environment(), source)


def compiled_in(own: BoundedEnvironment, source: str) -> Template:
    try:
        return own.from_string(source)
    except TemplateSyntaxError as error:
        raise RenderProblem(f"line {error.lineno}: {error.message}") from None
    except (TemplateError, RecursionError) as error:
        raise RenderProblem(str(error) or type(error).__name__) from None


def render_text(source: str, values: Mapping[str, Any]) -> str:
    """Render a template, keeping a final newline; raises RenderProblem."""
    return "".join(parts_of(compiled(source), values, []))


def parts_of(
    template: Template,
    values: Mapping[str, Any],
    parts: list[str],
    spans: list[tuple[int, int]] | None = None,
) -> list[str]:
    """Render into `parts`, and the offsets that a chat template marks into `spans`; raises
    RenderProblem."""
    context = template.new_context(dict(values))
    assert isinstance(context, BudgetContext)
    context.budget, context.parts = Budget(), parts
    context.spans = [] if spans is None else spans
    size = 0
    try:
        for part in template.root_render_func(context):
            size += len(part)
            if size > LARGEST_TEXT:
                raise LimitReached(
                    f"it generates more than {LARGEST_TEXT:,} characters, the limit for one text; "
                    "write fewer items, or parts of them"
                )
            parts.append(part)
    except FAILURES as error:
        raise RenderProblem(_told(error)) from None
    return parts


def _told(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its macros call each other endlessly"
    return (str(error) or type(error).__name__)[:LONGEST_REASON]
