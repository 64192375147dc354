"""The pages of help, read from the files beside this module: one page a code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from ruamel.yaml import YAML

from coloop.runtime.health.symptoms import BY_CODE
from coloop.spec.diagnostics import CODES

FOLDER = Path(__file__).parent
OTHER_FAMILIES = "failures"
"""The file of the families that have none of their own."""


class Repeated(BaseModel):
    """A text that is too long to be written out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: str = ""
    repeat: str
    times: int
    then: str = ""
    after: str = ""

    @property
    def whole(self) -> str:
        return self.before + self.repeat * self.times + self.then * self.times + self.after

    @property
    def shown(self) -> str:
        """The beginning, and how it goes on."""
        return f"{self.before}{self.repeat}\n# ... {self.times} times"


class Page(BaseModel):
    """What is written of one code; how its example is made up is for `examples`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = ""
    """Empty: what `CODES` says."""
    means: str
    matters: str
    fix: tuple[str, ...] = ()
    """Of a symptom of the learning doctor its hint comes first."""
    source: str | None = None

    loop: str | None = None
    wrong: tuple[tuple[Any, ...], ...] = ()
    right: tuple[tuple[Any, ...], ...] = ()
    """Empty: the loop as it is."""
    files: Mapping[str, str] = {}
    files_of: Mapping[str, Repeated] = {}
    right_files: Mapping[str, str] = {}
    confined: bool = False
    """Checked as a service does that may read this folder only."""

    text: str | None = None
    text_of: Repeated | None = None
    fixed: str | None = None

    readings: Mapping[str, float] = {}
    first: Mapping[str, float] = {}
    best: Mapping[str, float] = {}
    sound: Mapping[str, float] = {}


@cache
def _file(name: str) -> dict[str, Page]:
    path = FOLDER / f"{name}.yaml"
    if not path.exists():
        return {}
    loaded = YAML(typ="safe").load(path.read_text("utf-8"))
    return {code: Page.model_validate(page) for code, page in loaded.items()}


def page_of(code: str) -> Page | None:
    """The page of a code; None where there is none."""
    family = code.partition(".")[0]
    return _file(family).get(code) or _file(OTHER_FAMILIES).get(code)


def title_of(code: str, page: Page) -> str:
    return page.title or CODES[code]


def fixes_of(code: str, page: Page) -> tuple[str, ...]:
    symptom = BY_CODE.get(code)
    if symptom is None:
        return page.fix
    hint = symptom.hint
    return (f"{hint[0].upper()}{hint[1:]}.", *page.fix)


def all_codes() -> tuple[str, ...]:
    """Every code that has a page, in the order of the files."""
    names = [path.stem for path in sorted(FOLDER.glob("*.yaml"))]
    return tuple(code for name in names for code in _file(name))
