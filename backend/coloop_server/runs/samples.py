"""Samples of a run: texts of the steps, from the small rows of events or the files beside them."""

from pathlib import Path
from typing import Any

from coloop_server.runs.folder import plain_json, read_text
from coloop_server.runs.schemas import SampleRow, Samples
from coloop_server.runs.watch import Watch


def read_samples(watch: Watch, *, step: int | None, node: str | None, limit: int) -> Samples:
    """Rows of the newest steps first; each step's rows in their own order."""
    events = sample_events(watch)
    steps = sorted({event["step"] for event in events if isinstance(event.get("step"), int)})
    rows: list[SampleRow] = []
    for event in reversed(events):
        if len(rows) >= limit:
            break
        if step is None or event.get("step") == step:
            found = event_rows(watch, event)
            rows += [row for row in found if node is None or row.node == node][: limit - len(rows)]
    return Samples(rows=rows, steps=steps)


def sample_events(watch: Watch) -> list[dict[str, Any]]:
    found = [text for seq in tuple(watch.sample_seqs) for _, text in watch.log.read(seq - 1, 1)]
    return [plain_json(text) for text in found]


def event_rows(watch: Watch, event: dict[str, Any]) -> list[SampleRow]:
    """A row names its own writer where one event tells of several."""
    path = watch.folder.inside(str(event.get("path", "")))
    rows = read_rows(path) if path is not None else event.get("rows")
    step = event["step"] if isinstance(event.get("step"), int) else None
    return [
        SampleRow.model_validate(
            {**row, "seq": event["seq"], "step": step, "node": event.get("node") or row.get("node")}
        )
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict)
    ]


def read_rows(path: Path) -> list[Any]:
    """A list in JSON, or an object a line."""
    text = read_text(path) or ""
    whole = plain_json(text)
    if isinstance(whole, list):
        return whole
    return [plain_json(line) for line in text.splitlines() if line.strip()]
