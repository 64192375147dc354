"""Texts of a run for people: every so often the rows of a step, whole in a file, a few of them in
an event. Which steps are shown is a matter of time, but for the first and the last; what is shown
of a step is not."""

import json
import time
from pathlib import Path
from typing import Any

from coloop.events import SampleEvent
from coloop.runtime.calls import Unrolled
from coloop.runtime.storage import Storage
from coloop.tables import Row, Table

FOLDER = "samples"
ROWS_IN_EVENT = 6
ROWS_IN_FILE = 64
EVENT_TEXT = 400
INTERVAL_SECONDS = 2.0


class Samples:
    """Writes the samples folder of a run."""

    def __init__(self, folder: Path, storage: Storage | None = None) -> None:
        self._folder = folder
        self._storage = storage
        self._written_at = -INTERVAL_SECONDS
        self._left_out: tuple[int, Unrolled] | None = None
        """The last step, where it came too soon after another."""

    def of_step(self, step: int, unrolled: Unrolled) -> SampleEvent | None:
        """The step's rows, where some time has passed since the last ones."""
        is_soon = time.monotonic() - self._written_at < INTERVAL_SECONDS
        self._left_out = (step, unrolled) if is_soon else None
        return None if is_soon else self._shown(step, unrolled)

    def of_last(self) -> SampleEvent | None:
        """The rows of the last step, where they have not been shown: what a run ends with."""
        last, self._left_out = self._left_out, None
        return None if last is None else self._shown(*last)

    def _shown(self, step: int, unrolled: Unrolled) -> SampleEvent | None:
        rows = _rows(unrolled)
        if not rows:
            return None
        self._written_at = time.monotonic()
        path = self._folder / FOLDER / f"step-{step}.jsonl"
        path.parent.mkdir(exist_ok=True)
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if self._storage is not None:
            self._storage.put_samples(path)
        few = [_shortened(row) for row in _spread(rows, ROWS_IN_EVENT)]
        return SampleEvent(path=f"{FOLDER}/{path.name}", rows=few, step=step)


def _rows(unrolled: Unrolled) -> list[dict[str, Any]]:
    """Rows of every writer: with reward and advantage where it was credited."""
    writers = dict.fromkeys(node for node, port in unrolled.tables if port == "rollouts")
    scores = [table for table in unrolled.tables.values() if table.scores is not None]
    rows = []
    for node in writers:
        table = unrolled.tables.get((node, "credited")) or unrolled.tables[node, "rollouts"]
        written = [row for row in table.rows if row.writer == node]
        rows += [_row(node, row, scores) for row in written[:ROWS_IN_FILE]]
    return rows


def _row(node: str, row: Row, tables: list[Table]) -> dict[str, Any]:
    scores = {
        table.scorer: table.scores[row.id]
        for table in tables
        if table.scorer and table.scores and row.id in table.scores
    }
    prompt = row.scoped.get(f"{node}.prompt", row.columns.get("prompt"))
    found = {
        "id": row.id,
        "node": node,
        "prompt": prompt,
        "completion": row.columns.get("completion"),
        "target": row.columns.get("target", row.columns.get("answer")),
        "scores": {name: score for name, score in scores.items() if not isinstance(score, dict)},
        "reward": row.columns.get("reward"),
        "advantage": row.columns.get("advantage"),
        "group": row.group,
        "round": row.round if row.round > 1 else None,
        "finished": row.columns.get("finished"),
        "version": row.version,
    }
    return {name: value for name, value in found.items() if value is not None}


def _spread(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """A few rows from the whole list, so that every writer is among them."""
    stride = max(1, len(rows) // count)
    return rows[::stride][:count]


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value[:EVENT_TEXT] if isinstance(value, str) else value for name, value in row.items()
    }
