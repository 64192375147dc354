"""From a source and the values of a row to a text, or the reason why there is none.

`None` and what is absent are empty. A final newline is kept. Each thread renders with a budget of
its own.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from jinja2 import Template, TemplateError, TemplateSyntaxError

from coloop.data.templates.budget import LARGEST_TEXT, Budget, BudgetContext, LimitReached
from coloop.data.templates.environment import BoundedEnvironment, environment

FAILURES: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TemplateError,
    TypeError,
    ValueError,
)
"""What a template can raise while it is rendered."""


LONGEST_REASON: Final = 1000
"""Most characters of a reason, which a template may have written."""


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
    """The text that a template gives with these values; RenderProblem says why it gives none."""
    return "".join(parts_of(compiled(source), values, []))


def parts_of(
    template: Template,
    values: Mapping[str, Any],
    parts: list[str],
    spans: list[tuple[int, int]] | None = None,
) -> list[str]:
    """The text in parts, put into the given list as they come.

    Args:
        spans: of what a chat template marks, put there as it is written.
    """
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
