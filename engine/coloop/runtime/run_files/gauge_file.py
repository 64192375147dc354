"""`gauges.jsonl`: how a run stood at the end of its steps, for a replay; a line for each.

    {"seq": 812, "attempt": 1, "step": 40, "gauges": {...}}    seq: the newest event there was

`gauges` is what `gauges.json` held at that moment. Lines are in the order of `seq`, as events are:
where an attempt does steps again, its lines come later, and those count. A line is written when a
step, an evaluation or the run ends; of late steps only every second, fourth, ... has one
(`has_line`), so that the file grows with the logarithm of the steps.
"""

import json
import os
from pathlib import Path
from typing import IO, Final

GAUGE_LINES: Final = "gauges.jsonl"
EACH_BELOW_BITS: Final = 12
"""Steps below 2**12 have a line each, those below 2**13 every second one, and so on."""
BLOCK_BYTES: Final = 64 * 1024


def has_line(step: int) -> bool:
    """Whether how the run stands at the end of a step is kept."""
    stride = 1 << max(0, step.bit_length() - EACH_BELOW_BITS)
    return step % stride == 0


def cut_end(path: Path, last_seq: int) -> None:
    """Cut what was not written whole, and lines of events that are lost.

    Args:
        last_seq: of the newest event that can be read.
    """
    if not path.exists():
        return
    with path.open("r+b") as file:
        cut_open(file, last_seq)


def cut_open(file: IO[bytes], last_seq: int) -> int:
    """The same of a file that is open for reading and writing; the `seq` of its last line, 0 where
    none is left."""
    size = end = file.seek(0, os.SEEK_END)
    seq = 0
    while end:
        line = _last_line(file, end)
        seq = _seq_of(line)
        if 1 <= seq <= last_seq:
            break
        end -= len(line)
    if end < size:
        file.truncate(end)
    return seq if end else 0


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
