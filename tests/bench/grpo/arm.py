"""An arm's side of the bench: does steps when it is told to, and tells what they took.

    parent ──"go 3"──► arm ──3 steps──► {"seconds": [..], "processor": .., ...} ──► parent
           ──"end"───►     ──► saves what it is to keep, ends

An arm that does nothing waits for the next line and takes nothing of the machine. Standard library
only, for arms of every environment.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = "@arm "
"""Begins a line for the parent; whatever else is printed is let be."""


class Ended(Exception):
    """The parent wants no more steps."""


@dataclass(slots=True)
class Meter:
    """Counts the steps that were asked for, and tells of them when they are done."""

    helpers: Sequence[int] = ()
    """Ids of further processes that work for this arm."""
    _left: int = 0
    _began: float = 0.0
    _processor: float = 0.0
    _seconds: list[float] = field(default_factory=list)
    _tokens: int = 0
    _writing: float = 0.0
    _learning: float = 0.0

    def ready(self, **told: Any) -> None:
        """The arm is built."""
        tell({"ready": True, **told})

    def begin_step(self) -> None:
        """Before each step: waits where none is asked for; raises `Ended`."""
        if not self._left:
            self._left = self._next_order()
            self._processor = self._processor_seconds()
            self._seconds, self._tokens, self._writing, self._learning = [], 0, 0.0, 0.0
        self._began = time.perf_counter()

    def wrote(self, tokens: int, seconds: float) -> None:
        """Tokens that the step wrote, and how long that took."""
        self._tokens += tokens
        self._writing += seconds

    def learned(self, seconds: float) -> None:
        """How long the update of the step took."""
        self._learning += seconds

    def end_step(self) -> None:
        """After each step."""
        self._seconds.append(time.perf_counter() - self._began)
        self._left -= 1
        if self._left:
            return
        tell(
            {
                "seconds": self._seconds,
                "processor": self._processor_seconds() - self._processor,
                "tokens": self._tokens,
                "writing": self._writing,
                "learning": self._learning,
                "peak_bytes": self._peak_bytes(),
            }
        )

    def _next_order(self) -> int:
        line = sys.stdin.readline().split()
        if not line or line[0] == "end":
            raise Ended
        return int(line[1])

    def _processor_seconds(self) -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        ticks = os.sysconf("SC_CLK_TCK")
        others = 0.0
        for pid in self.helpers:
            facts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            others += (int(facts[11]) + int(facts[12])) / ticks
        return used.ru_utime + used.ru_stime + others

    def _peak_bytes(self) -> int:
        """Greatest resident memory so far, of all processes of the arm together."""
        return sum(_peak_of(pid) for pid in ("self", *self.helpers))


def _peak_of(pid: int | str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def tell(what: dict[str, Any]) -> None:
    """Say something to the parent; without one the arm ends, whatever drives it."""
    try:
        sys.stdout.write(MARK + json.dumps(what) + "\n")
        sys.stdout.flush()
    except OSError:
        os._exit(1)
