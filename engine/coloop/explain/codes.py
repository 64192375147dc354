"""Help of one code, as the command line prints it and the service gives it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from coloop.explain.pages import Page, all_codes, fixes_of, page_of, title_of
from coloop.spec.diagnostics import closest
from coloop.spec.text.emit import to_yaml
from coloop.spec.text.reader import data_of

# A wrong and a right example of a code: what differs between two loops, two texts or two
# readings.
#
# What is shown is cut out of the loops themselves, so nothing is shown that was not checked.

# Loops to explain with, and ways to change them.
#
# A change is written as data, so that it can stand in a file: `[set, path, value]`, `[del,
# path]`, `[add, edge]`, `[cut, edge]`, `[edge, edge, options]`; an option that is null is taken
# away.

LOOPS = Path(__file__).parent / "loops"

Edit = Sequence[Any]
Document = dict[str, Any]


@cache
def _load(name: str) -> Document:
    loaded: Document = data_of((LOOPS / f"{name}.yaml").read_text("utf-8"))
    return loaded


def ends(edge: Any) -> str:
    """An edge without its options, `node.port -> node.port`."""
    if isinstance(edge, str):
        return " -> ".join(side.strip() for side in edge.split("->"))
    return f"{edge['from']} -> {edge['to']}"


def split(path: str) -> list[str]:
    """Parts of a path; a quoted part (`set."nodes.a.b"`) is one."""
    parts: list[str] = []
    for index, chunk in enumerate(path.split('"')):
        parts += [chunk] if index % 2 else [part for part in chunk.split(".") if part]
    return parts


def changed(loop: str, *edits: Edit) -> Document:
    """A loop of `loops/` with changes."""
    document = copy.deepcopy(_load(loop))
    for edit in edits:
        _apply(document, *edit)
    return document


def _apply(document: Document, what: str, where: Any, value: Any = None) -> None:
    edges = document["edges"]
    match what:
        case "add":
            edges.append(where)
        case "cut":
            edges.remove(edges[_place(edges, where)])
        case "edge":
            place = _place(edges, where)
            edges[place] = _with_options(edges[place], value)
        case _:
            owner, key = _owner(document, where)
            if what == "del":
                del owner[key]
            else:
                owner[key] = copy.deepcopy(value)


def _place(edges: Sequence[Any], wanted: str) -> int:
    found = next((i for i, edge in enumerate(edges) if ends(edge) == wanted), None)
    assert found is not None, f"no edge {wanted}"
    return found


def _with_options(edge: Any, options: Document) -> Document:
    source, target = ends(edge).split(" -> ")
    old = edge if isinstance(edge, dict) else {"from": source, "to": target}
    return {key: value for key, value in {**old, **options}.items() if value is not None}


def _owner(document: Any, path: str) -> tuple[Any, Any]:
    """The mapping or list that holds the last part of a path, and that part."""
    here, parts = document, split(path)
    for part in parts[:-1]:
        here = here[int(part)] if isinstance(here, list) else here.setdefault(part, {})
    last: Any = parts[-1]
    return here, int(last) if isinstance(here, list) else last


def touched_edges(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Ends of the edges that changes name, as they were and as they are."""
    found: list[str] = []
    for what, where, *rest in edits:
        if what in ("add", "cut", "edge"):
            old = ends(where) if "->" in str(where) or isinstance(where, dict) else str(where)
            found.append(old)
            if what == "edge":
                found.append(ends(_with_options(where, rest[0])))
    return tuple(dict.fromkeys(found))


def touched_paths(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Paths of the values that changes name."""
    return tuple(edit[1] for edit in edits if edit[0] in ("set", "del"))


WITHOUT = "# the loop without them"


class Example(BaseModel):
    """The two sides, as a person reads them."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    language: Literal["yaml", "readings"]
    """`readings` are numbers of a run, a line each."""
    wrong: str
    right: str


def example_of(page: Page) -> Example | None:
    """The example of a page; None for what no loop shows, such as a worker that died."""
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
    return {**page.files, **{name: f"{one.shown}\n" for name, one in page.files_of.items()}}


def _of_loop(page: Page, edits: tuple[Edit, ...], files: Mapping[str, str]) -> str:
    assert page.loop is not None
    document = changed(page.loop, *edits)
    both = (*page.wrong, *page.right)
    kept = _values(document, touched_paths(both))
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


def _values(document: Document, paths: tuple[str, ...]) -> Document:
    """The touched values with the kind of their node, and the keys above them."""
    kept: Document = {}
    for path in paths:
        parts = split(path)
        if parts[0] == "nodes":
            node = document["nodes"].get(parts[1])
            if node is not None:
                own = kept.setdefault("nodes", {}).setdefault(parts[1], {})
                _keep(own, node, parts[2:] or list(node))
        elif parts[0] == "schedule":
            # Phases stand in a list: one alone would say nothing of its place.
            kept["schedule"] = document["schedule"]
        elif parts[0] in document:
            kept[parts[0]] = document[parts[0]]
    return kept


def _keep(own: Document, node: Document, rest: list[str]) -> None:
    own["kind"] = node.get("kind")
    names = rest[:1] if len(rest) > 1 and rest[0] in node else rest
    if rest == list(node):
        names = rest
    for name in names:
        if name in node:
            own[name] = node[name]


def _edges(document: Document, wanted: tuple[str, ...]) -> list[str]:
    lines = []
    there: dict[str, list[Any]] = {}
    for edge in document["edges"]:
        key = ends(edge) if isinstance(edge, dict) or "->" in edge else edge
        there.setdefault(key, []).append(edge)
    for key in wanted:
        lines += [f"  - {_edge_text(edge)}" for edge in there.get(key, ())]
    return lines


def _edge_text(edge: Any) -> str:
    if isinstance(edge, str):
        return edge
    return "{" + ", ".join(f"{key}: {value}" for key, value in edge.items()) + "}"


def _numbers(readings: Any) -> str:
    return "\n".join(f"{name} {value:g}" for name, value in readings.items())


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
