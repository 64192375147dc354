"""Help for the code of a finding or alert, for the command line and the service.

Texts are in `pages/`, one file per family of codes. The wrong and the right example are the parts
in which two loops differ (`loops/` with the changes in the page), or two texts, or two sets of
metrics. They come from complete loops, so that tests can check them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from coloop.runtime.health.symptoms import BY_CODE
from coloop.spec.base import FrozenRecord, load_yaml
from coloop.spec.changes import apply_change, as_edge, locate
from coloop.spec.diagnostics import CODES, Change, closest
from coloop.spec.documents import join_path, look_along, split_path
from coloop.spec.text.emit import to_yaml
from coloop.spec.text.reader import data_of

PAGES = Path(__file__).parent / "pages"
"""One file per family of codes; `failures.yaml` has the small families."""


class Repeated(FrozenRecord, extra="forbid"):
    """A long text, as a part that is repeated."""

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
        """The start, and a comment on how often it is repeated."""
        return f"{self.before}{self.repeat}\n# ... {self.times} times"


class Page(FrozenRecord, extra="forbid"):
    """The page of a code; `example_of` makes its example."""

    title: str = ""
    """Empty: the title in `CODES`."""
    means: str
    matters: str
    fix: tuple[str, ...] = ()
    """For a symptom of the health checks, its hint comes first."""
    source: str | None = None

    loop: str | None = None
    wrong: tuple[tuple[Any, ...], ...] = ()
    right: tuple[tuple[Any, ...], ...] = ()
    """Changes to `loop`; empty: the loop unchanged."""
    files: Mapping[str, str] = {}
    files_of: Mapping[str, Repeated] = {}
    right_files: Mapping[str, str] = {}
    confined: bool = False
    """Whether only a service reports it, because it may read certain folders only."""

    text: str | None = None
    text_of: Repeated | None = None
    fixed: str | None = None

    readings: Mapping[str, float] = {}
    first: Mapping[str, float] = {}
    best: Mapping[str, float] = {}
    sound: Mapping[str, float] = {}


@cache
def _pages() -> dict[str, Page]:
    files = (load_yaml(path) for path in sorted(PAGES.glob("*.yaml")))
    return {code: Page.model_validate(page) for pages in files for code, page in pages.items()}


def page_of(code: str) -> Page | None:
    return _pages().get(code)


def _fixes_of(code: str, page: Page) -> tuple[str, ...]:
    symptom = BY_CODE.get(code)
    if symptom is None:
        return page.fix
    hint = symptom.hint
    return (f"{hint[0].upper()}{hint[1:]}.", *page.fix)


def all_codes() -> tuple[str, ...]:
    return tuple(_pages())


LOOPS = Path(__file__).parent / "loops"
"""Loops for examples."""

Edit = Sequence[Any]
"""A change in a page: `[set, path, value]`, `[del, path]`, `[add, edge]`, `[cut, edge]`,
`[edge, edge, options]`; a null option is removed."""
Document = dict[str, Any]


@cache
def _load(name: str) -> Document:
    loaded: Document = data_of((LOOPS / f"{name}.yaml").read_text("utf-8"))
    return loaded


def changed(loop: str, *edits: Edit) -> Document:
    """A loop of `loops/` after changes."""
    document = copy.deepcopy(_load(loop))
    for what, where, *rest in edits:
        value = rest[0] if rest else None
        match what:
            case "add":
                change = Change(op="add_edge", path="edges", value=where)
            case "cut":
                change = Change(op="remove_edge", path="edges", value=where)
            case "edge":
                parts = locate(document, f"edges.{where}")
                new = {**as_edge(look_along(document, parts)), **(value or {})}
                kept = {key: option for key, option in new.items() if option is not None}
                change = Change(op="set", path=join_path(parts), value=kept)
            case _:
                op: Literal["set", "remove"] = "remove" if what == "del" else "set"
                change = Change(op=op, path=where, value=value)
        document = apply_change(document, change)
    return document


def ends(edge: Any) -> str:
    """An edge as `node.port -> node.port`."""
    edge = as_edge(edge)
    return f"{edge['from']} -> {edge['to']}" if isinstance(edge, dict) else str(edge)


def touched_edges(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Edges named by the changes, in old and new form."""
    names: list[str] = []
    for what, where, *rest in edits:
        if what in ("add", "cut", "edge"):
            names.append(ends(where))
        if what == "edge":
            names.append(ends({**as_edge(where), **rest[0]}))
    return tuple(dict.fromkeys(names))


WITHOUT = "# the loop without them"


class Example(FrozenRecord):
    """A wrong example and its correction."""

    language: Literal["yaml", "readings"]
    """`yaml`: part of a loop. `readings`: metrics of a run, one per line."""
    wrong: str
    right: str


def example_of(page: Page) -> Example | None:
    """The example of a page; None if no loop shows it, such as a lost worker."""
    if page.loop is not None:
        wrong = _of_loop(page, page.wrong, _files(page))
        right = _of_loop(page, page.right, page.right_files)
        wrong = "# the loop without it" if wrong == WITHOUT else wrong
        return Example(language="yaml", wrong=wrong, right=right)
    if page.fixed is not None:
        wrong = page.text if page.text is not None else ""
        wrong = page.text_of.shown if page.text_of is not None else wrong
        return Example(language="yaml", wrong=wrong.rstrip("\n"), right=page.fixed.rstrip("\n"))
    if page.readings:
        return Example(
            language="readings", wrong=_numbers(page.readings), right=_numbers(page.sound)
        )
    return None


def _files(page: Page) -> Mapping[str, str]:
    return {**page.files, **{name: f"{text.shown}\n" for name, text in page.files_of.items()}}


def _of_loop(page: Page, edits: tuple[Edit, ...], files: Mapping[str, str]) -> str:
    assert page.loop is not None
    document = changed(page.loop, *edits)
    both = (*page.wrong, *page.right)
    kept = _values(document, [edit[1] for edit in both if edit[0] in ("set", "del")])
    lines = _edges(document, touched_edges(both))
    parts = [to_yaml(kept).rstrip("\n")] if kept else []
    if lines:
        parts.append("edges:\n" + "\n".join(lines))
    if not parts:
        return WITHOUT
    parts += [f"# the file {name}\n{text.rstrip()}" for name, text in files.items()]
    if page.files != page.right_files and not files:
        parts.append("# and no such file")
    return "\n".join(parts)


def _values(document: Document, paths: Iterable[str]) -> Document:
    """The values at these paths, within the keys above them and with the kind of their node."""
    kept: Document = {}
    for path in paths:
        parts = split_path(path)
        if parts[0] == "nodes":
            node = document["nodes"].get(parts[1])
            if node is not None:
                own = kept.setdefault("nodes", {}).setdefault(parts[1], {})
                own["kind"] = node.get("kind")
                names = parts[2:3] if parts[2:] and parts[2] in node else parts[2:] or node
                own |= {name: node[name] for name in names if name in node}
        elif parts[0] == "schedule":
            # Phases are a list: a single one would not show its position.
            kept["schedule"] = document["schedule"]
        elif parts[0] in document:
            kept[parts[0]] = document[parts[0]]
    return kept


def _edges(document: Document, wanted: tuple[str, ...]) -> list[str]:
    edges = document["edges"]
    return [f"  - {_edge_text(edge)}" for key in wanted for edge in edges if ends(edge) == key]


def _edge_text(edge: Any) -> str:
    if isinstance(edge, str):
        return edge
    return "{" + ", ".join(f"{key}: {value}" for key, value in edge.items()) + "}"


def _numbers(readings: Any) -> str:
    return "\n".join(f"{name} {value:g}" for name, value in readings.items())


class Explanation(FrozenRecord):
    """What a code means, why it matters and what to do."""

    code: str
    title: str
    means: str
    matters: str
    """Why it matters."""
    fix: list[str]
    """What to do, most likely first."""
    example: Example | None
    """Null if no loop can show it, e.g. for a lost worker."""
    source: str | None
    """Paper or manual; null if there is none."""


class CodeEntry(FrozenRecord):
    """A code that has help."""

    code: str
    title: str


def explain(code: str) -> Explanation | None:
    page = page_of(code)
    if page is None:
        return None
    return Explanation(
        code=code,
        title=page.title or CODES[code],
        means=page.means,
        matters=page.matters,
        fix=list(_fixes_of(code, page)),
        example=example_of(page),
        source=page.source,
    )


def list_codes() -> list[CodeEntry]:
    pages = _pages().items()
    return [CodeEntry(code=code, title=page.title or CODES[code]) for code, page in pages]


def near(word: str) -> list[str]:
    """Codes similar to a word, or ending with it."""
    codes = all_codes()
    ending = [code for code in codes if code.partition(".")[2] == word.rpartition(".")[2]]
    return list(dict.fromkeys([*ending, *closest(word, codes)]))[:3]
