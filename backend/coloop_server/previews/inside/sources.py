"""Rows of dataset nodes and of runs, as tables of the loop."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coloop.data.sources import Source, open_source, unfolded
from coloop.data.tables import Row
from coloop.data.tables.row import child_row, root_row
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import DatasetNode
from coloop_server.previews.inside.walk import NotHere


def dataset_of(spec: LoopSpec, node: str) -> DatasetNode:
    section = spec.nodes.get(node)
    if isinstance(section, DatasetNode):
        return section
    problem = "there is no such node" if section is None else f"it is of kind {section.kind}"
    raise NotHere(f"`{node}` is no dataset of the loop: {problem}")


def opened(spec: LoopSpec, node: str, root: Path) -> Source:
    return open_source(dataset_of(spec, node), node_id=node, root=root)


def rows_of(
    spec: LoopSpec, node: str, root: Path, *, offset: int, count: int, source: Source | None = None
) -> list[Row]:
    """Rows of a dataset from an offset on, in source order."""
    section = dataset_of(spec, node)
    dataset = source if source is not None else opened(spec, node, root)
    rows = [
        root_row(node, f"0.{index}", dataset.row(index))
        for index in range(offset, min(offset + count, len(dataset)))
    ]
    if section.unfold is None:
        return rows
    return [
        child_row(node, row, k, columns)
        for row in rows
        for k, columns in enumerate(unfolded(row.columns, section.unfold, node=node))
    ]


class EarlierRows:
    """Dataset rows from which a run's samples descend, by the samples' ids."""

    def __init__(self, spec: LoopSpec, root: Path) -> None:
        self._spec = spec
        self._root = root
        self._sources: dict[str, Source | None] = {}
        names = [name for name, node in spec.nodes.items() if isinstance(node, DatasetNode)]
        either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self._place = re.compile(rf"(?:^|:)({either}):(\d+)\.(\d+)") if names else None

    def of(self, row_id: str) -> Row | None:
        """The dataset row from which a sample descends; None if its id does not name one."""
        match = self._place.search(row_id) if self._place is not None else None
        if match is None:
            return None
        node, epoch, index = match[1], match[2], int(match[3])
        source = self._source(node)
        if source is None or index >= len(source):
            return None
        return root_row(node, f"{epoch}.{index}", source.row(index))

    def _source(self, node: str) -> Source | None:
        if node not in self._sources:
            try:
                self._sources[node] = opened(self._spec, node, self._root)
            except Exception:  # its data may be gone since; the samples say what they can
                self._sources[node] = None
        return self._sources[node]


def texts_of(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Texts of these columns, one after another; of chats the texts of the messages."""
    return "\n".join(part for name in columns for part in _parts(row.get(name)))


def _parts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for part in value:
                content = part.get("content") if isinstance(part, Mapping) else part
                yield from _parts(content)
        case None:
            return
        case _:
            yield str(value)
