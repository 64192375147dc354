"""What is said of the figures of the GRPO bench: tables and goals."""

from collections.abc import Sequence
from typing import Any

from tests.bench.grpo import gpu
from tests.bench.grpo.rows import COLUMNS, EQUAL, ROWS
from tests.bench.grpo.turns import Figures
from tests.bench.results import Goal, Result, Table

BEST_RATIO, DEFAULT_RATIO, TOKENS_RATIO = 1.15, 1.5, 2.0
MIB = 2**20
ONCE = "Peak memory, shared pages counted once"
SUMMED = "Peak resident memory, summed over processes"


def columns_of(record: dict[str, Any]) -> dict[str, tuple[str, Figures]]:
    """The fastest arm of each column."""
    known = {name: Figures(**one) for name, one in record["arms"].items()}
    found = {}
    for column, names in COLUMNS.items():
        there = [name for name in names if name in known]
        if there:
            best = min(there, key=lambda name: known[name].step)
            found[column] = (best, known[best])
    return found


def result_of(records: dict[str, dict[str, Any]]) -> Result:
    """Tables and goals.

    Args:
        records: what was measured, by row.
    """
    found = {name: columns_of(record) for name, record in records.items()}
    tables = [
        _table("Seconds a step, median of interleaved turns", found, lambda one: _s(one.step)),
        _table("CPU seconds a step", found, lambda one: _s(one.processor_step)),
        _table("Generated tokens per second", found, lambda one: f"{one.tokens_per_second:,.0f}"),
        _table(ONCE, found, lambda one: _mib(one.peak_once_bytes)),
        _table(SUMMED, found, lambda one: _mib(one.peak_bytes)),
        _table("Warm-up (not counted), in seconds", found, lambda one: f"{one.warm_up:.1f}"),
    ]
    tables.append(_equal_table(records))
    goals = [*_goals(found, records), *gpu.goals()]
    failures = [
        f"{name}, {arm}: {why}"
        for name, one in records.items()
        for arm, why in one["failed"].items()
    ]
    if (reason := gpu.why_not()) is not None:
        failures.append(f"The GPU row was not measured: {reason}.")
    return Result(
        title="GRPO against TRL and a bare loop",
        tables=tuple(tables),
        goals=tuple(goals),
        text="\n".join(failures),
        data=records,
    )


def _s(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}"


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"


def _table(title: str, found: dict[str, dict[str, tuple[str, Figures]]], say: Any) -> Table:
    return Table(
        title=title + ".",
        head=("workload", *COLUMNS, *(f"{over} / {under}" for over, under in PAIRS)),
        rows=tuple(
            (
                name,
                *(say(row[c][1]) if c in row else "-" for c in COLUMNS),
                *(_ratio_of(title, row, over, under) for over, under in PAIRS),
            )
            for name, row in found.items()
        ),
    )


PAIRS = (("default", "bare"), ("best", "bare"), ("default", "TRL"), ("best", "TRL"))


def _ratio_of(title: str, row: dict[str, tuple[str, Figures]], over: str, under: str) -> str:
    if over not in row or under not in row:
        return "-"
    return f"{_value(title, row[over][1]) / _value(title, row[under][1]):.2f}"


def _value(title: str, one: Figures) -> float:
    match title.split()[0]:
        case "Seconds":
            return one.step
        case "Processor":
            return one.processor_step
        case "Tokens":
            return one.tokens_per_second
        case "Peak" if title == ONCE:
            return float(one.peak_once_bytes)
        case "Peak":
            return float(one.peak_bytes)
    return one.warm_up


def _equal_table(records: dict[str, dict[str, Any]]) -> Table:
    rows = []
    for name, record in records.items():
        known = {arm: Figures(**one) for arm, one in record["arms"].items()}
        rows += [(name, arm, _s(one.step), _s(one.processor_step)) for arm, one in known.items()]
    return Table(
        title="Every arm: seconds and CPU seconds a step.",
        head=("workload", "arm", "seconds", "processor"),
        rows=tuple(rows),
    )


def _goals(
    found: dict[str, dict[str, tuple[str, Figures]]], records: dict[str, dict[str, Any]]
) -> list[Goal]:
    def ratios(over: str, under: str, what: Any, rows: Sequence[str] = tuple(ROWS)) -> list[float]:
        return [
            what(found[name][over][1]) / what(found[name][under][1])
            for name in rows
            if name in found and over in found[name] and under in found[name]
        ]

    def most(wanted: str, values: list[float], limit: float) -> Goal:
        said = ", ".join(f"{value:.2f}" for value in values) or "nothing"
        return Goal(wanted=wanted, found=said, is_reached=bool(values) and max(values) <= limit)

    long = [name for name in ROWS if name.startswith("long")]
    writing = ratios("best", "TRL", lambda one: one.tokens_per_second, long)
    equal = []
    for record in records.values():
        known = {arm: Figures(**one).step for arm, one in record["arms"].items()}
        equal += [known["own-fp32"] / known["trl-fp32"]] if set(EQUAL) <= set(known) else []
    equal += ratios("best", "TRL", lambda one: one.step)
    return [
        most(
            f"best settings at most {BEST_RATIO} of the bare loop",
            ratios("best", "bare", lambda one: one.step),
            BEST_RATIO,
        ),
        most(
            f"default settings at most {DEFAULT_RATIO} of the bare loop",
            ratios("default", "bare", lambda one: one.step),
            DEFAULT_RATIO,
        ),
        most("never slower than TRL at equal precision", equal, 1.0),
        Goal(
            wanted=f"at least {TOKENS_RATIO:g} times TRL's tokens per second for long texts",
            found=", ".join(f"{value:.1f}" for value in writing) or "nothing",
            is_reached=bool(writing) and min(writing) >= TOKENS_RATIO,
        ),
        *(
            most(
                f"peak memory {how}, shared pages counted once, no higher than TRL's",
                ratios(column, "TRL", lambda one: float(one.peak_once_bytes)),
                1.0,
            )
            for column, how in (
                ("default", "with default settings"),
                ("best", "with best settings"),
            )
        ),
    ]
