"""Reads `events.jsonl` while it grows, and gives any part of it again by `seq`.

      file   |line|line|line| ... |line|half a li
      marks  ^ every 128th                ^ end: after the last whole line
      recent                  [the last 8192 lines, 2 MiB at most]

A line that is not whole yet is left for later; one that is no event is skipped. Each is parsed
once. Clients are sent lines as they stand in the file, and those that stand at the same event share
the text of their next message. What was learned of a file can be kept (`keep`, `recall`), so that
the next reader resumes at `end`. Safe to use from several threads.
"""

import json
import re
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from coloop_server.private import open_plain
from coloop_server.runs.folder import plain_json
from coloop_server.runs.summary import read_time, whole

MARK_EVERY = 128
RECENT = 8192
RECENT_BYTES = 2 * 1024 * 1024
SHARED_CHARACTERS = 256 * 1024
"""Longest message that is kept for the next client at the same position."""
MAX_LINE_BYTES = 8 * 1024 * 1024
READ_BYTES = 4 * 1024 * 1024
MAX_SEQ = 2**31 - 1
"""Largest integer of every database."""
KEPT = ("end", "last_seq", "last_start", "lines")
"""State that a reader passes to the next one."""
SEQ = re.compile(rb'\{"seq": ?(\d{1,10}),')
"""Start of a line from a driver."""


class Entry(NamedTuple):
    """An event, the position of its line in bytes, and data from its start."""

    event: dict[str, Any]
    start: int
    size: int
    kind: str
    seq: int
    step: int | None
    attempt: int
    at: datetime | None


class Shared(NamedTuple):
    """The last message, and the clients that it fits."""

    after: int
    limit: int
    newest: int
    text: str
    last: int


class EventLog:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.beginnings = 0
        """How often the file was read from its start; counts up when it was replaced."""
        self.reset()

    def reset(self) -> None:
        self.beginnings += 1
        self.end = 0
        """Position after the last complete line."""
        self.last_seq = 0
        self.last_start = 0
        """Position of the last event."""
        self.lines = 0
        self.marks: list[tuple[int, int]] = []
        self.recent_seqs: list[int] = []
        self.recent_lines: list[bytes] = []
        self.recent_size = 0
        self.shared: Shared | None = None
        self.odd: set[int] = set()
        """Positions of lines that are sent changed, or not at all."""

    def keep(self) -> dict[str, Any]:
        with self.lock:
            return {
                **{name: getattr(self, name) for name in KEPT},
                "marks": self.marks,
                "odd": sorted(self.odd),
            }

    def recall(self, kept: dict[str, Any]) -> bool:
        """Continue from saved state; False if the file was replaced."""
        with self.lock:
            last = self.line_at(kept["last_start"], kept["end"] - kept["last_start"])
            parsed = parse_event(last.partition(b"\n")[0]) if last else None
            if parsed is None or parsed[0] != kept["last_seq"]:
                return False
            vars(self).update((name, kept[name]) for name in KEPT)
            self.marks = [(seq, start) for seq, start in kept["marks"]]
            self.odd = set(kept["odd"])
            return True

    def refresh(self) -> list[Entry]:
        """Events since the last call; at most a few MiB."""
        with self.lock:
            try:
                size = self.path.stat().st_size
                if size < self.end:
                    self.reset()
                return self.take_new(size) if size > self.end else []
            except OSError:
                return []

    def take_new(self, size: int) -> list[Entry]:
        with open_plain(self.path) as file:
            file.seek(self.end)
            block = file.read(min(READ_BYTES, size - self.end))
            while b"\n" not in block and len(block) < min(MAX_LINE_BYTES, size - self.end):
                more = file.read(READ_BYTES)
                if not more:
                    return []  # the file was cut meanwhile
                block += more
        if len(block) >= MAX_LINE_BYTES and b"\n" not in block:
            self.end += len(block)  # no event is so long: skip over it
            return []
        return self.take_lines(block[: block.rfind(b"\n") + 1].splitlines(keepends=True))

    def take_lines(self, lines: Sequence[bytes]) -> list[Entry]:
        entries = []
        for line in lines:
            start, self.end = self.end, self.end + len(line)
            event, sent = quick_event(line), line
            if event is None:
                event, sent = self.look_closely(line, start)
            if event is None or event["seq"] <= self.last_seq:
                self.odd.add(start)
                continue
            entry = entry_of(event, start, len(line))
            if self.lines % MARK_EVERY == 0:
                self.marks.append((entry.seq, start))
            self.lines += 1
            self.last_seq, self.last_start = entry.seq, start
            self.recent_seqs.append(entry.seq)
            self.recent_lines.append(sent)
            self.recent_size += len(sent)
            entries.append(entry)
        self.trim()
        return entries

    def look_closely(self, line: bytes, start: int) -> tuple[dict[str, Any] | None, bytes]:
        """An event in another format than a driver's, and its text to send."""
        parsed = parse_event(line)
        if parsed is None:
            return None, line
        if b"NaN" in line or b"Infinity" in line:
            self.odd.add(start)
        return parsed[2], parsed[1].encode("utf-8", "replace")

    def trim(self) -> None:
        old = max(len(self.recent_lines) - RECENT, 0)
        self.recent_size -= sum(map(len, self.recent_lines[:old]))
        while self.recent_size > RECENT_BYTES:
            self.recent_size -= len(self.recent_lines[old])
            old += 1
        del self.recent_seqs[:old], self.recent_lines[:old]

    def line_at(self, start: int, size: int) -> bytes:
        """Bytes of the file; empty if unreadable."""
        try:
            with open_plain(self.path) as file:
                file.seek(start)
                return file.read(size)
        except (OSError, ValueError):
            return b""

    def read(self, after: int, limit: int) -> list[tuple[int, str]]:
        """Up to `limit` events with a `seq` above `after`, as (seq, JSON text)."""
        with self.lock:
            if after >= self.last_seq or limit <= 0:
                return []
            if (part := self.recent_after(after, limit)) is not None:
                texts = (line.decode("utf-8", "replace") for line in self.recent_lines[part])
                return list(zip(self.recent_seqs[part], map(str.strip, texts), strict=True))
            try:
                return list(self.read_file(after, limit))
            except OSError:
                return []

    def recent_after(self, after: int, limit: int) -> slice | None:
        """Recent lines after an event; None if older ones are needed."""
        if not self.recent_seqs or self.recent_seqs[0] > after + 1:
            return None
        begin = bisect_right(self.recent_seqs, after)
        return slice(begin, begin + limit)

    def read_message(self, after: int, limit: int) -> tuple[int, str] | None:
        """Like `read`, as one comma-separated text with its last `seq`; None if there are no
        events."""
        with self.lock:
            shared = self.shared
            if shared is not None and shared[:3] == (after, limit, self.last_seq):
                return shared.last, shared.text
            events = self.read(after, limit)
            if not events:
                return None
            text, last = ",".join(text for _, text in events), events[-1][0]
            if len(text) <= SHARED_CHARACTERS:
                self.shared = Shared(after, limit, self.last_seq, text, last)
            return last, text

    def read_places(self, places: Sequence[tuple[int, int]]) -> list[str]:
        """Events at these positions and lengths, as JSON text."""
        texts = []
        try:
            with open_plain(self.path) as file:
                for start, size in places:
                    file.seek(start)
                    parsed = parse_event(file.read(size))
                    if parsed is not None:
                        texts.append(parsed[1])
        except OSError:
            return []
        return texts

    def first_of_step(self, step: int, near: int) -> int:
        """`seq` of the first event of a step or of a later one, not before `near`; one more than
        the last if all steps are earlier."""
        after = near - 1
        while events := self.read(after, MARK_EVERY):
            for seq, text in events:
                told = json.loads(text).get("step")
                if isinstance(told, int) and told >= step:
                    return seq
            after = events[-1][0]
        return self.last_seq + 1

    def read_file(self, after: int, limit: int) -> Iterator[tuple[int, str]]:
        index = bisect_right(self.marks, after, key=lambda mark: mark[0]) - 1
        position = self.marks[max(index, 0)][1]
        last = 0
        with open_plain(self.path) as file:
            file.seek(position)
            while position < self.end and limit > 0:
                line, start = file.readline(), position
                position += len(line)
                if not line:
                    return
                told = read_line(line, is_odd=start in self.odd)
                if told is None or told[0] <= last:
                    continue
                last = told[0]
                if last > after:
                    limit -= 1
                    yield told


def read_line(line: bytes, *, is_odd: bool) -> tuple[int, str] | None:
    """(seq, JSON text) of a line that was parsed before."""
    begin = None if is_odd else SEQ.match(line)
    if begin is not None:
        return int(begin[1]), line.decode("utf-8", "replace").strip()
    parsed = parse_event(line)
    return None if parsed is None else (parsed[0], parsed[1])


def quick_event(line: bytes) -> dict[str, Any] | None:
    """The event of a line in a driver's format, which can be sent unchanged; None if it needs a
    closer look. Numbers too large for a float become infinite."""
    try:
        event = from_json(line, allow_inf_nan=False)
    except ValueError:
        return None
    if type(event) is not dict or type(event.get("type")) is not str:
        return None
    seq = event.get("seq")
    return event if type(seq) is int and 1 <= seq <= MAX_SEQ else None


def entry_of(event: dict[str, Any], start: int, size: int) -> Entry:
    get = event.get
    step, attempt = whole(get("step")), whole(get("attempt")) or 1
    at = read_time(get("at"))
    return Entry(event, start, size, event["type"], event["seq"], step, attempt, at)


def parse_event(line: bytes) -> tuple[int, str, dict[str, Any]] | None:
    """(seq, JSON text, event) of a line; None if it is no event."""
    event = plain_json(line)
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        return None
    seq = event.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool) or not 1 <= seq <= MAX_SEQ:
        return None
    text = line.decode("utf-8", "replace").strip()
    if "NaN" in text or "Infinity" in text:
        text = json.dumps(event, ensure_ascii=False)
    return seq, text, event
