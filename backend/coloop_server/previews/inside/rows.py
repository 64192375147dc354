"""Rows of a dataset as the loop sees them, and which nodes read their columns."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import DatasetNode, Node, RewardNode, TemplateNode
from coloop.validate.columns import RESERVED
from coloop.validate.texts import codes_of, names_in_function, names_in_text, texts_of
from coloop_server.previews.inside.sources import dataset_of, opened, rows_of
from coloop_server.previews.inside.walk import as_json
from coloop_server.previews.schemas import AskRows, ColumnFound, ColumnUse, DatasetPage, Job

LONGEST_TEXT = 20_000
AT_PORTS: Mapping[str, Mapping[str, str]] = {
    "prompts": {"prompt": "what it writes to"},
    "demonstrations": {"prompt": "what comes before", "target": "what is imitated"},
    "pairs": {
        "prompt": "what is answered",
        "chosen": "the better answer",
        "rejected": "the worse answer",
        "margin": "by how much",
        "probability": "how sure it is",
    },
    "labels": {"prompt": "what is judged", "target": "the text that is judged"},
}
"""By port, the columns that its node reads."""


def page_of(job: Job, spec: LoopSpec) -> DatasetPage:
    asked = job.asked
    assert isinstance(asked, AskRows)
    root = Path(job.root)
    section = dataset_of(spec, asked.node)
    source = opened(spec, asked.node, root)
    rows = rows_of(spec, asked.node, root, offset=asked.offset, count=asked.count, source=source)
    shown = [{name: as_json(short(value)) for name, value in row.columns.items()} for row in rows]
    used = uses_of(spec, asked.node)
    names = dict.fromkeys(name for row in shown for name in row)
    return DatasetPage(
        total=len(source),
        columns=[_column(name, section, shown, used.get(name, [])) for name in names],
        rows=shown,
        unread=sorted(name for name in used if shown and name not in names and used[name]),
    )


def short(value: Any) -> Any:
    return value[:LONGEST_TEXT] if isinstance(value, str) else value


def _column(
    name: str, section: DatasetNode, rows: list[dict[str, Any]], used: list[ColumnUse]
) -> ColumnFound:
    values = [row[name] for row in rows if row.get(name) is not None]
    return ColumnFound(
        name=name,
        source=section.columns.get(name, name),
        is_mapped=name in section.columns,
        type=_type(values[0]) if values else "empty",
        used=used,
    )


def _type(value: Any) -> str:
    match value:
        case bool():
            return "yes or no"
        case int() | float():
            return "number"
        case str():
            return "text"
        case [{"role": _}, *_]:
            return "chat"
        case list():
            return "list"
    return "object"


def uses_of(spec: LoopSpec, dataset: str) -> dict[str, list[ColumnUse]]:
    """By column, the readers of a dataset's rows."""
    uses: dict[str, list[ColumnUse]] = {}
    for node in _below(spec, dataset):
        for column, reads in _read_by(spec, node, spec.nodes[node]):
            use = ColumnUse(node=node, reads=reads)
            if use not in uses.setdefault(column, []):
                uses[column].append(use)
    return uses


def _below(spec: LoopSpec, dataset: str) -> list[str]:
    reached = spec.graph.downstream([dataset])
    return [name for name in spec.nodes if name in reached and name != dataset]


def _read_by(spec: LoopSpec, name: str, node: Node) -> Iterator[tuple[str, str]]:
    for edge in spec.graph.edges_into(name):
        carries = AT_PORTS.get(edge.target.port, {})
        if isinstance(spec.nodes[edge.source.node], DatasetNode):
            yield from carries.items()
    if isinstance(node, RewardNode) and node.source.type == "builtin":
        column = getattr(node.source, "column", None)
        if isinstance(column, str):
            yield column, "what a right answer is held against"
        if node.source.name == "task":
            yield "task", "which checker looks at the answer"
    for place in texts_of(node):
        what = "named in its text" if isinstance(node, TemplateNode) else f"named in {place.field}"
        for word in sorted(names_in_text(place.content).bare - spec.nodes.keys()):
            yield word, what
    for place in codes_of(node):
        function = place.function or ""
        asked = names_in_function(place.content, function).parameters
        for word in asked:
            if word not in RESERVED.get(function, frozenset()) and word not in spec.nodes:
                yield word, f"a parameter of {function}()"
