"""Reads `gauges.jsonl`: the state of a run at the end of its steps.

Lines are sorted by `seq`, so a line is found by bisection, and no index is kept. Invalid lines are
skipped.
"""

import json
import os
from pathlib import Path
from typing import IO, Any, NamedTuple

from coloop_server.private import open_plain
from coloop_server.runs.eventlog import SEQ
from coloop_server.runs.folder import is_shallow, plain_json

MAX_LINE_BYTES = 1024 * 1024


class GaugeLines(NamedTuple):
    texts: list[str]
    """JSON of each line."""
    has_more: bool


def read_gauges(path: Path, seq: int, limit: int) -> GaugeLines | None:
    """From the newest line that is not after an event on; from the first one where all are.

    Args:
        seq: of that event.
        limit: lines at most, 1 or more.

    Returns:
        None where the run has no such file.
    """
    try:
        with open_plain(path) as file:
            file.seek(place_of(file, seq))
            texts: list[str] = []
            while (line := file.readline(MAX_LINE_BYTES)).endswith(b"\n"):
                text = text_of(line)
                if text is not None and len(texts) == limit:
                    return GaugeLines(texts, has_more=True)
                if text is not None:
                    texts.append(text)
    except OSError:
        return None
    return GaugeLines(texts, has_more=False)


def place_of(file: IO[bytes], seq: int) -> int:
    """Position of the newest line up to an event; 0 if all are later."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        following = line_behind(file, middle)
        if following is None or following[1] > seq:
            high = middle
        else:
            low = following[0]
    return low


def line_behind(file: IO[bytes], position: int) -> tuple[int, int] | None:
    """Position and `seq` of the first line after a position; None if there is none."""
    file.seek(position)
    start = position + len(file.readline(MAX_LINE_BYTES))
    while start - position <= MAX_LINE_BYTES and (line := file.readline(MAX_LINE_BYTES)):
        begin = SEQ.match(line)
        if begin is not None and line.endswith(b"\n"):
            return start, int(begin[1])
        start += len(line)
    return None


def text_of(line: bytes) -> str | None:
    """The line's text; None if it is not a line of gauges."""
    kept: Any = plain_json(line)
    if not isinstance(kept, dict) or not isinstance(kept.get("gauges"), dict):
        return None
    if type(kept.get("seq")) is not int or not is_shallow(kept):
        return None
    told = {name: kept.get(name) for name in ("seq", "attempt", "step", "gauges")}
    return json.dumps(told, ensure_ascii=False)
