"""Rows of a rehearsal: those of tasks and of files that are there; made ones for the others.

A made row has every column that the dataset's `columns` name and every one that the loop reads of
it by name; numbers, where the meaning of a column wants them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coloop.spec.data import FileSource, HubSource
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import DatasetNode, TemplateNode
from coloop.validate.text_names import names_in_function

COUNT = 8
NUMBERS = {"margin": 1.0, "probability": 0.75}
"""Columns whose meaning is a number."""
PLAIN = ("prompt", "target", "answer")
SIDES = ("chosen", "rejected")
MESSAGES = "messages"
"""A chat, by the name that data sets give it."""


def made_rows(spec: LoopSpec, document: dict[str, Any], root: Path | None) -> list[str]:
    """Put made rows in the place of what is not here; which, is told."""
    notes = []
    for name, node in spec.nodes.items():
        if not isinstance(node, DatasetNode) or _is_here(node, root):
            continue
        columns = list(_columns(spec, name, node))
        rows = [{column: _value(column, node, k) for column in columns} for k in range(COUNT)]
        document["nodes"][name]["source"] = {"type": "inline", "rows": rows}
        where = getattr(node.source, "path", "")
        names = ", ".join(columns)
        notes.append(f"`{name}`: {COUNT} made rows ({names}) in place of {where}")
    return notes


def _is_here(node: DatasetNode, root: Path | None) -> bool:
    match node.source:
        case HubSource():
            return False
        case FileSource():
            return root is not None and (root / node.source.path).exists()
    return True


def _columns(spec: LoopSpec, name: str, node: DatasetNode) -> Iterator[str]:
    """Columns of the source: those that the loop maps, those of its ports, those that it names."""
    wanted = dict.fromkeys(node.columns)
    outputs = {edge.source.port for edge in spec.graph.edges_out_of(name)}
    wanted |= dict.fromkeys(PLAIN)
    if "pairs" in outputs:
        wanted |= dict.fromkeys(SIDES)
    if node.unfold is not None:
        wanted[node.unfold] = None
    for edge in spec.graph.edges_out_of(name):
        reader = spec.nodes[edge.target.node]
        if isinstance(reader, TemplateNode) and reader.code is not None:
            wanted |= dict.fromkeys(names_in_function(reader.code, "write").parameters)
    for column in wanted:
        yield node.columns.get(column, column)


def _value(column: str, node: DatasetNode, k: int) -> Any:
    meaning = next((ours for ours, theirs in node.columns.items() if theirs == column), column)
    if meaning in NUMBERS:
        return NUMBERS[meaning]
    if meaning == node.unfold:
        return [f"{column} {k}.{place}" for place in range(2)]
    if meaning == MESSAGES:
        said = {"user": f"What is {k} + {k}?", "assistant": str(2 * k)}
        return [{"role": role, "content": text} for role, text in said.items()]
    if meaning == "prompt":
        return f"What is {k} + {k}?"
    if meaning in ("answer", "target", "chosen"):
        return str(2 * k)
    return f"{2 * k + 1}" if meaning == "rejected" else f"{column} {k}"
