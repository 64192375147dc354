"""`events.jsonl` on disk: what can be read, and what may be cut.

An event is a line with a JSON object that has a string `type` and a `seq` of 1 or more. Other lines
stay as they are and are skipped; numbering continues after the largest readable `seq`. Only the end
is repaired: a last line without a line break is cut, or completed if only the break is missing.
Zeros after it are what a file system leaves after a power cut.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

EVENT_FILE: Final = "events.jsonl"
LARGEST: Final = 2**63 - 1
"""Largest `seq` or `attempt`: what a database can store."""
DAMAGED: Final = "events.damaged"
LOST: Final = f"{EVENT_FILE} is missing: earlier events of the run are lost"
MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """Last numbers of an event file."""

    seq: int = 0
    """The largest readable one; 0: none."""
    attempt: int = 0
    damaged: tuple[int, ...] = ()
    """Line numbers of invalid events, from 1."""


def event_of(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        return None
    return event if _is_number(event.get("seq")) else None


def read_events(path: Path, after: int = 0) -> list[dict[str, Any]]:
    return [event for event in events_of(path) if event["seq"] > after]


def events_of(path: Path) -> Iterator[dict[str, Any]]:
    return (event for _, event in lines_of(path) if event is not None)


def lines_of(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The number of each complete line that is not empty, with its event."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n") and line.strip():
                yield number, event_of(line)


def torn_bytes(path: Path) -> int:
    """How many bytes at the end of a file belong to an incomplete line."""
    with path.open("rb") as file:
        line = _last_line(file, file.seek(0, os.SEEK_END))
    return 0 if line.endswith(b"\n") else len(line) - len(_whole_event(line).rstrip(b"\n"))


def repair(path: Path) -> Numbering:
    """Cut or complete a last line without a line break; returns where the file then stands."""
    if not path.exists():
        return Numbering()
    with path.open("r+b") as file:
        _cut_end(file, _whole_event)
    seq = attempt = 0
    damaged = []
    for number, event in lines_of(path):
        if event is None:
            damaged.append(number)
            continue
        seq = max(seq, event["seq"])
        if _is_number(event.get("attempt")):
            attempt = max(attempt, event["attempt"])
    return Numbering(seq=seq, attempt=attempt, damaged=tuple(damaged))


def _whole_event(line: bytes) -> bytes:
    """A complete line; of an incomplete one the event in it, or nothing."""
    if line.endswith(b"\n"):
        return line
    line = line.rstrip(b"\0")
    return b"" if event_of(line) is None else line + b"\n"


def _cut_end(file: IO[bytes], rest_of: Callable[[bytes], bytes]) -> bytes:
    """Cut lines from the end of a file up to one of which something stays; returns that rest."""
    size = end = file.seek(0, os.SEEK_END)
    rest = line = b""
    while end and not rest:
        line = _last_line(file, end)
        end, rest = end - len(line), rest_of(line)
    if rest != line or end + len(rest) != size:
        file.seek(end)
        file.write(rest)
        file.truncate()
    return rest


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST


def damaged_words(lines: Sequence[int]) -> str:
    named = ", ".join(map(str, lines[:MOST_NAMED]))
    rest = f" and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else ""
    which = f"lines {named}{rest} are" if len(lines) > 1 else f"line {named} is"
    return (
        f"{EVENT_FILE}: {which} not a valid event; the file is left as it is and such lines are "
        "skipped"
    )


# `gauges.jsonl`: the contents of `gauges.json` after steps, evaluations and the run, for replays.
#
#     {"seq": 812, "attempt": 1, "step": 40, "gauges": {...}}    seq: of the newest event then
#
# If an attempt repeats steps, its later lines count. Of late steps only every second, fourth, ...
# has a line (`has_line`), so that the file grows with the logarithm of the steps.

GAUGE_LINES: Final = "gauges.jsonl"
EACH_BELOW_BITS: Final = 12
"""Steps below 2**12 have a line each, those below 2**13 every second one, and so on."""
BLOCK_BYTES: Final = 64 * 1024


def has_line(step: int) -> bool:
    """Whether the gauges after this step are kept."""
    stride = 1 << max(0, step.bit_length() - EACH_BELOW_BITS)
    return step % stride == 0


def cut_end(file: IO[bytes], last_seq: int) -> int:
    """Cut an incomplete last line and events after `last_seq` from a file open for reading and
    writing; returns the last `seq` left, or 0."""
    return _seq_of(_cut_end(file, lambda line: line if 1 <= _seq_of(line) <= last_seq else b""))


def _seq_of(line: bytes) -> int:
    """0 for an incomplete or invalid line."""
    try:
        seq = json.loads(line)["seq"] if line.endswith(b"\n") else 0
    except (ValueError, RecursionError, KeyError, TypeError):
        return 0
    return seq if type(seq) is int else 0


def _last_line(file: IO[bytes], end: int) -> bytes:
    """The last line before a position of the file, with its line break if it has one."""
    block = b""
    while len(block) < end and b"\n" not in block[:-1]:
        size = min(end, len(block) + BLOCK_BYTES)
        file.seek(end - size)
        block = file.read(size)
    return block[block.rfind(b"\n", 0, -1) + 1 :]
