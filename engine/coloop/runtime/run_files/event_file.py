"""`events.jsonl` as it lies on disk: what of it can be read, and what may be cut.

A line is an event where it is a JSON object with a `type` in words and a `seq` of 1 or more. What
is not stays where it is, byte for byte, and nobody stumbles over it; the numbering goes on after
the largest `seq` that can be read. Only the end is repaired: a last line without its end was not
written whole and is cut, or gets its end where nothing else is missing; zeros behind it are what a
file system leaves where the power went.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

EVENT_FILE: Final = "events.jsonl"
LARGEST: Final = 2**63 - 1
"""Of a `seq` or an `attempt`: what databases and browsers' servers can keep."""
DAMAGED: Final = "events.damaged"
"""Code of the alert."""
LOST: Final = f"{EVENT_FILE} is missing: earlier events of the run are lost"
MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """Where an event file stands."""

    seq: int = 0
    """The largest that can be read; 0: none can."""
    attempt: int = 0
    damaged: tuple[int, ...] = ()
    """Numbers of the lines that are no events, from 1."""


def event_of(line: bytes) -> dict[str, Any] | None:
    """The event of a line; None for what is none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        return None
    return event if _is_number(event.get("seq")) else None


def read_events(path: Path, after: int = 0) -> list[dict[str, Any]]:
    """Events of a file with a `seq` above `after`; what is no event, or not whole, is left out."""
    return [event for _, event in lines_of(path) if event is not None and event["seq"] > after]


def lines_of(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The number of each line that has an end and is not empty, with its event."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n") and line.strip():
                yield number, event_of(line)


def torn_bytes(path: Path) -> int:
    """How many bytes at the end of a file were not written whole."""
    with path.open("rb") as file:
        line = _last_line(file, file.seek(0, os.SEEK_END))
    return 0 if line.endswith(b"\n") else len(line) - len(_whole_event(line).rstrip(b"\n"))


def repair(path: Path) -> Numbering:
    """Where a file stands, once a last line without its end is cut or completed."""
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
    """A line that has its end; of another one the event that it holds, or nothing."""
    if line.endswith(b"\n"):
        return line
    line = line.rstrip(b"\0")
    return b"" if event_of(line) is None else line + b"\n"


def _cut_end(file: IO[bytes], rest_of: Callable[[bytes], bytes]) -> bytes:
    """Cut lines from the end of a file, up to one of which something stays; what stays of it."""
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


# `gauges.jsonl`: how a run stood at the end of its steps, for a replay; a line for each.
#
#     {"seq": 812, "attempt": 1, "step": 40, "gauges": {...}}    seq: the newest event there was
#
# `gauges` is what `gauges.json` held at that moment. Lines are in the order of `seq`, as events
# are: where an attempt does steps again, its lines come later, and those count. A line is written
# when a step, an evaluation or the run ends; of late steps only every second, fourth, ... has one
# (`has_line`), so that the file grows with the logarithm of the steps.

GAUGE_LINES: Final = "gauges.jsonl"
EACH_BELOW_BITS: Final = 12
"""Steps below 2**12 have a line each, those below 2**13 every second one, and so on."""
BLOCK_BYTES: Final = 64 * 1024


def has_line(step: int) -> bool:
    """Whether how the run stands at the end of a step is kept."""
    stride = 1 << max(0, step.bit_length() - EACH_BELOW_BITS)
    return step % stride == 0


def cut_end(file: IO[bytes], last_seq: int) -> int:
    """Cut what was not written whole, and lines of events that are lost; the `seq` of the last line
    that stays, 0 where none does.

    Args:
        file: open for reading and writing.
        last_seq: of the newest event that can be read.
    """
    return _seq_of(_cut_end(file, lambda line: line if 1 <= _seq_of(line) <= last_seq else b""))


def _seq_of(line: bytes) -> int:
    """0 for what is no whole line."""
    try:
        seq = json.loads(line)["seq"] if line.endswith(b"\n") else 0
    except (ValueError, RecursionError, KeyError, TypeError):
        return 0
    return seq if type(seq) is int else 0


def _last_line(file: IO[bytes], end: int) -> bytes:
    """The last line before a place of the file, with its end if it has one."""
    block = b""
    while len(block) < end and b"\n" not in block[:-1]:
        size = min(end, len(block) + BLOCK_BYTES)
        file.seek(end - size)
        block = file.read(size)
    return block[block.rfind(b"\n", 0, -1) + 1 :]
