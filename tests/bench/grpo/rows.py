"""The rows of the GRPO table, and the arms that are measured in each."""

import os
from dataclasses import dataclass
from itertools import product
from typing import Any

CORES = len(os.sched_getaffinity(0))

ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "trl": ("trl_arm", {"threads": CORES}),
    "trl-1": ("trl_arm", {"threads": 1}),
    "trl-fp32": ("trl_arm", {"threads": CORES, "precision": "float32"}),
    "default": ("own_arm", {"threads": 1, "settings": "default"}),
    "best": ("own_arm", {"threads": CORES}),
    "best-1": ("own_arm", {"threads": 1}),
    "best-ranks": ("own_arm", {"threads": CORES, "processes": CORES}),
    "own-fp32": ("own_arm", {"threads": CORES, "precision": "float32"}),
    "bare": ("bare_arm", {"threads": 1, "processes": CORES}),
    "bare-1": ("bare_arm", {"threads": 1, "processes": 1}),
    "bare-plain": ("bare_arm", {"threads": 1, "processes": 1, "is_compiled": False}),
    "bare-threads": ("bare_arm", {"threads": CORES, "processes": 1}),
}
"""Module and settings of each arm; those of one column differ in what may be fastest here."""
COLUMNS = {
    "TRL": ("trl", "trl-1"),
    "default": ("default",),
    "best": ("default", "best", "best-1", "best-ranks"),
    "bare": ("bare", "bare-1", "bare-threads"),
}
"""A column is its fastest arm."""
USUAL = ("trl", "default", "best", *(("best-ranks",) if CORES > 1 else ()), "bare")
EQUAL = ("trl-fp32", "own-fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    length: str
    size: str
    warm_up: int
    turns: int
    steps: int
    arms: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.length}-{self.size}"


def _row(length: str, size: str, steps: int) -> Row:
    extra = EQUAL if size == "1M" else ()
    if size == "1M" and length == "short" and CORES > 1:
        extra = (*extra, "trl-1", "best-1")
    return Row(
        length=length,
        size=size,
        warm_up=3 if length == "short" else 2,
        turns=4 if size != "20M" else 2,
        steps=steps,
        arms=(*USUAL, *extra),
    )


STEPS = {"short": {"1M": 12, "5M": 8, "20M": 6}, "long": {"1M": 2, "5M": 1, "20M": 1}}
ROWS = {
    row.name: row
    for row in (
        _row(length, size, STEPS[length][size])
        for length, size in product(STEPS, ("1M", "5M", "20M"))
    )
}
