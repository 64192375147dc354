"""A wrong and a right example of a code: what differs between two loops, two texts or two readings.

What is shown is cut out of the loops themselves, so nothing is shown that was not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from coloop.explain.edits import Document, Edit, changed, ends, split, touched_edges, touched_paths
from coloop.explain.pages import Page
from coloop.spec.text.emit import to_yaml

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
