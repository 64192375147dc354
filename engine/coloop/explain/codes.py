"""Help of one code, as the command line prints it and the service gives it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from coloop.explain.examples import Example, example_of
from coloop.explain.pages import all_codes, fixes_of, page_of, title_of
from coloop.spec.diagnostics import closest


class Explanation(BaseModel):
    """What a code means, why it matters and what to do."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    code: str
    title: str
    means: str
    matters: str
    """Why one should care."""
    fix: list[str]
    """What to do, most likely first."""
    example: Example | None
    """None for what no loop shows, such as a machine that went away."""
    source: str | None
    """A paper or a manual."""


class CodeEntry(BaseModel):
    """One code of the list."""

    model_config = ConfigDict(frozen=True)

    code: str
    title: str


def explain(code: str) -> Explanation | None:
    """The help of a code; None where there is none."""
    page = page_of(code)
    if page is None:
        return None
    return Explanation(
        code=code,
        title=title_of(code, page),
        means=page.means,
        matters=page.matters,
        fix=list(fixes_of(code, page)),
        example=example_of(page),
        source=page.source,
    )


def list_codes() -> list[CodeEntry]:
    """All codes that have help."""
    found = []
    for code in all_codes():
        page = page_of(code)
        assert page is not None
        found.append(CodeEntry(code=code, title=title_of(code, page)))
    return found


def near(word: str) -> list[str]:
    """Codes that look like a word, or that end with it."""
    codes = all_codes()
    ending = [code for code in codes if code.partition(".")[2] == word.rpartition(".")[2]]
    return list(dict.fromkeys([*ending, *closest(word, codes)]))[:3]
