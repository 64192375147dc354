"""Results of a bench: tables, goals and verbatim text; printed, kept as JSON, gathered in a page.

bench -> Result -> the terminal
                -> .coloop/bench/<name>.json   (never committed)
all JSON of this folder -> README.md           (`--write-notes`)

Subsections of the page (`### `) are written by hand and stay where their section is written anew.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.machine import ROOT

STORE = ROOT / ".coloop" / "bench"
NOTES = Path(__file__).with_name("README.md")
_NAMED = re.compile(r"^`([\w-]+)` on ", re.MULTILINE)
BEGIN, END = "<!-- figures: written by --write-notes -->", "<!-- end of the figures -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a head."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What was wanted, and what was found."""

    wanted: str
    found: str
    is_reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one bench found."""

    title: str
    tables: tuple[Table, ...] = ()
    goals: tuple[Goal, ...] = ()
    text: str = ""
    """Output of a script, shown as it is."""
    data: Any = None
    """Raw numbers behind the tables, for whoever wants to draw them."""


def show(result: Result) -> str:
    """The result for a terminal."""
    lines = [result.title, "=" * len(result.title)]
    for table in result.tables:
        lines += ["", table.title, *_aligned((table.head, *table.rows))]
    if result.text:
        lines += ["", result.text.rstrip()]
    if result.goals:
        lines += ["", *(_goal(goal) for goal in result.goals)]
    return "\n".join(lines)


def keep(name: str, result: Result, machine: dict[str, object], described: str) -> None:
    STORE.mkdir(parents=True, exist_ok=True)
    record = {"machine": machine, "described": described, "result": asdict(result)}
    path = STORE / f"{name}.json"
    path.write_text(json.dumps(record, indent=1), encoding="utf-8")


def write_notes(names: Sequence[str]) -> None:
    """Put the kept figures of these benches between the marks of the page; of one without any the
    page keeps what it has."""
    text = NOTES.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    middle, _, after = rest.partition(END)
    written = _written(middle)
    sections = []
    for name in names:
        path = STORE / f"{name}.json"
        if path.exists():
            section = _section(name, json.loads(path.read_text(encoding="utf-8")))
            sections.append(section + _by_hand(written.get(name, "")))
        elif name in written:
            sections.append(written[name])
    middle = "\n\n".join(sections)
    NOTES.write_text(f"{before}{BEGIN}\n\n{middle}\n\n{END}{after}", encoding="utf-8")


def _written(middle: str) -> dict[str, str]:
    """The sections of the page, by bench."""
    sections = (f"## {one.strip()}" for one in middle.split("\n## ")[1:])
    return {found[1]: one for one in sections if (found := _NAMED.search(one)) is not None}


def _by_hand(section: str) -> str:
    _, mark, rest = section.partition("\n\n### ")
    return mark + rest


def _section(name: str, record: dict[str, Any]) -> str:
    result = record["result"]
    lines = [f"## {result['title']}", "", f"`{name}` on {record['described']}."]
    for table in result["tables"]:
        lines += ["", f"{table['title']}", "", _cells(table["head"])]
        lines += ["|" + " --- |" * len(table["head"]), *(_cells(row) for row in table["rows"])]
    if result["text"]:
        lines += ["", "```", result["text"].rstrip(), "```"]
    if result["goals"]:
        lines += ["", *(f"- {_goal(Goal(**goal))}" for goal in result["goals"])]
    return "\n".join(lines)


def _goal(goal: Goal) -> str:
    verdict = "reached" if goal.is_reached else "MISSED"
    return f"{goal.wanted}: {goal.found}, {verdict}"


def _cells(row: Sequence[str]) -> str:
    return "| " + " | ".join(row) + " |"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
