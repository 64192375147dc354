"""Samples of a run: texts of the steps, from the small rows of events or the files beside them.

An index of places knows where in the event file the samples of each step are told of, so that
reading one step costs the lines and files of that step, however long the run is.
"""

import threading
from bisect import bisect_left, insort
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from coloop_server.runs.eventlog import Entry, EventLog, parse_event
from coloop_server.runs.folder import RunFolder, is_shallow, plain_json, read_text
from coloop_server.runs.schemas import SampleRow, SampleTokens


class Place(NamedTuple):
    start: int
    size: int


class SampleIndex:
    """By step, the positions of its sample events. If a step was repeated, the later attempt
    counts.

    Attempts follow one another in the file: the first sample of a later one discards the samples of
    its step and of all later steps. Thread-safe.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.attempt = 0
        self.steps: list[int] = []
        self.places: dict[int | None, list[Place]] = {}

    def add(self, entry: Entry) -> None:
        step = entry.step
        with self.lock:
            if entry.attempt > self.attempt:
                self.attempt = entry.attempt
                self.undo(step)
            if step is not None and step not in self.places:
                insort(self.steps, step)
            self.places.setdefault(step, []).append(Place(entry.start, entry.size))

    def undo(self, step: int | None) -> None:
        if step is None:
            return
        first = bisect_left(self.steps, step)
        for undone in self.steps[first:]:
            del self.places[undone]
        del self.steps[first:]

    def all_steps(self) -> list[int]:
        with self.lock:
            return list(self.steps)

    def of_step(self, step: int | None) -> list[Place]:
        with self.lock:
            return list(self.places.get(step, ()))

    def keep(self) -> dict[str, Any]:
        with self.lock:
            places = [[step, *place] for step, held in self.places.items() for place in held]
            return {"attempt": self.attempt, "places": places}

    def recall(self, kept: dict[str, Any]) -> None:
        with self.lock:
            self.attempt = kept["attempt"]
            self.places = {}
            for step, start, size in kept["places"]:
                self.places.setdefault(step, []).append(Place(start, size))
            self.steps = sorted(step for step in self.places if step is not None)


class SampleReader:
    """Reads sample rows through the index."""

    def __init__(self, folder: RunFolder, log: EventLog, index: SampleIndex) -> None:
        self.folder = folder
        self.log = log
        self.index = index

    def read(self, *, step: int | None, node: str | None, limit: int) -> list[SampleRow]:
        """Rows of the newest steps first, in order within a step; `step` selects a single one."""
        steps: list[int | None] = [step]
        if step is None:
            steps = [*reversed(self.index.all_steps()), None]
        rows: list[SampleRow] = []
        for each in steps:
            for event in self.events_of(each):
                if len(rows) >= limit:
                    return rows
                of_event = self.rows_in(event, each) if event["type"] == "sample" else []
                wanted = [row for row in of_event if node is None or row.node == node]
                rows += wanted[: limit - len(rows)]
        return rows

    def events_of(self, step: int | None) -> Iterator[dict[str, Any]]:
        for line in self.index.of_step(step):
            parsed = parse_event(self.log.line_at(*line))
            if parsed is not None:
                yield parsed[2]

    def rows_in(self, event: dict[str, Any], step: int | None) -> list[SampleRow]:
        """Rows of an event; each names its writer if there are several."""
        path = self.folder.inside(str(event.get("path", "")))
        rows = read_rows(path) if path is not None else event.get("rows")
        return [
            SampleRow.model_validate(
                {**row, "seq": event["seq"], "step": step, "node": writer_of(event, row)}
            )
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict) and is_shallow(row)
        ]

    def tokens_of(self, step: int, row: str | None) -> list[SampleTokens]:
        """Kept tokens of one row, or of all rows of a step."""
        tokens = []
        for event in self.events_of(step):
            named = event.get("tokens")
            path = self.folder.inside(named) if isinstance(named, str) else None
            for line in read_rows(path) if path is not None else ():
                if isinstance(line, dict) and row in (None, line.get("id")):
                    with suppress(ValidationError):
                        tokens.append(SampleTokens.model_validate(line))
        return tokens


def writer_of(*told: dict[str, Any]) -> str | None:
    """The first node that is a text."""
    named = (source.get("node") for source in told)
    return next((node for node in named if isinstance(node, str) and node), None)


def read_rows(path: Path) -> list[Any]:
    """A JSON list, or one object per line."""
    text = read_text(path) or ""
    whole = plain_json(text)
    if isinstance(whole, list):
        return whole
    return [plain_json(line) for line in text.splitlines() if line.strip()]
