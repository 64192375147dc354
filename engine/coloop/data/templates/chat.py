"""Renders the chat templates of models, with the limits of all templates.

The result is that of transformers, byte for byte: blocks are trimmed, None is `None`, undefined
values have no attributes, `break` and `continue` exist, `tojson` escapes nothing, `generation`
marks the assistant's text. Templates come with model folders and are not trusted.

A prompt with `strftime_now` depends on the current date.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from jinja2 import Template, TemplateError, Undefined, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.utils import pass_context

from coloop.data.templates.budget import LARGEST_TEXT, BudgetContext, LimitReached, extent, spelled
from coloop.data.templates.environment import (
    BoundedEnvironment,
    RenderProblem,
    compiled_in,
    parts_of,
)
from coloop.data.templates.filters import LARGEST_INDENT, check_numbers

LONGEST_DATE: Final = 200
"""Maximum characters of a date format."""
GENERATION: Final = "generation_of"
"""Internal name of the function that records a generation block."""


class Generation(Extension):
    """The tag `{% generation %}` around the assistant's text."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = nodes.Call(nodes.Name(GENERATION, "load"), [], [], None, None)
        return nodes.CallBlock(call, [], [], body, lineno=line).set_lineno(line)


class ChatEnvironment(BoundedEnvironment):
    written = staticmethod(spelled)
    written_inside = staticmethod(lambda value: value)

    def __init__(self) -> None:
        super().__init__(
            undefined=Undefined,
            keep_trailing_newline=False,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[Generation, loopcontrols],
        )
        own = {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
        self.globals.update({**own, GENERATION: _generation})
        self.filters["tojson"] = _tojson


def render_chat(
    source: str, messages: Sequence[Mapping[str, Any]], values: Mapping[str, Any]
) -> tuple[str, list[tuple[int, int]]]:
    """The text of a chat, and the offsets of assistant texts in it; raises `RenderProblem`.

    `values` are all other names: `add_generation_prompt`, `tools`, `bos_token`.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    names = {"tools": None, "documents": None, **values, "messages": messages}
    parts_of(_compiled(source), names, parts, spans)
    return "".join(parts), spans


def chat_template_problem(source: str) -> str | None:
    """Why a chat template cannot be compiled; None if it can."""
    try:
        _compiled(source)
    except RenderProblem as problem:
        return str(problem)
    return None


@lru_cache(maxsize=32)
def _compiled(source: str) -> Template:
    return compiled_in(_environment(), source)


@lru_cache(maxsize=1)
def _environment() -> ChatEnvironment:
    return ChatEnvironment()


@pass_context
def _tojson(
    context: BudgetContext,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    extent(value, LARGEST_TEXT)
    check_numbers(LARGEST_INDENT, (indent, *(separators or ())), {})
    return context.budget.text(
        json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )
    )


def _raise_exception(message: Any = "") -> None:
    raise TemplateError(spelled(message))


def _strftime_now(form: str) -> str:
    if len(form) > LONGEST_DATE:
        raise LimitReached(f"the format of a date is longer than {LONGEST_DATE} characters")
    return datetime.now().strftime(form)


@pass_context
def _generation(context: BudgetContext, caller: Macro) -> str:
    start = sum(map(len, context.parts))
    text: str = caller()
    context.spans.append((start, start + len(text)))
    return text
