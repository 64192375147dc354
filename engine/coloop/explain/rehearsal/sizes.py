"""How much of everything a rehearsal takes: rows, completions, tokens, budgets.

Every number of rows becomes at most `ROWS`, and every product of rows and completions a multiple of
it, so that groups and mini-batches go on dividing. A number that a phase or trigger sets is made
smaller by the same rule as the field that it stands for.
"""

import re
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from coloop.spec.graph import LoopSpec

ROWS = 4
"""Rows of a step, and of a mini-batch."""
GROUP = 4
"""Most completions of a prompt."""
TOKENS = 96
"""Most tokens that a policy writes."""
TASK_ROWS = 32
"""Rows of a task's split."""
WHOLE_TABLES = frozenset({"documents", "library", "seed"})
"""Ports that take a dataset as a whole: nothing is drawn of it by the step."""

Shrink = Callable[[Any], Any]


def at_most(limit: float) -> Shrink:
    """A number, but no more than this; what is no number stays."""

    def shrink(value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return min(value, limit) if is_number else value

    return shrink


def exactly(number: int) -> Shrink:
    """This number, whatever it was."""
    return lambda value: None if value is None else number


SIZES: tuple[tuple[str, Shrink], ...] = (
    (r"rows_per_step", exactly(ROWS)),
    (r"source\.size", at_most(TASK_ROWS)),
    (r"tokens\.(mean|max)", at_most(TOKENS)),
    (r"rollout\.completions_per_prompt", at_most(GROUP)),
    (r"rollout\.(max_new_tokens|expected_tokens)", at_most(TOKENS)),
    (r"rollout\.turns\.max", at_most(3)),
    (r"rollout\.turns\.(tokens|observation_tokens)", at_most(TOKENS)),
    (r"training\.mini_batch", exactly(ROWS)),
    (r"training\.epochs", at_most(2)),
    (r"training\.optimizer\.warmup", at_most(1)),
    (r"credit\.balance\.to", exactly(ROWS)),
    (r"per_group\.max", at_most(GROUP)),
    (r"(fill\.groups|up_to|resample\.rows)", at_most(ROWS)),
    (r"fill\.rows", at_most(ROWS * GROUP)),
    (r"fill\.max_rounds", at_most(3)),
    (r"capacity", at_most(2 * ROWS)),
    (r"(completions|completions\.bands\.\d+\.use|expand\.samples)", at_most(2)),
    (r"budget\.searches_per_row", at_most(4)),
    (r"budget\.nodes", at_most(16)),
    (r"budget\.tokens", at_most(8_000)),
    (r"budget\.seconds", at_most(20)),
    (r"pack\.tokens", at_most(TOKENS)),
    (r"model\.refresh\.every", at_most(1)),
)
"""By path below a node, how a number is made smaller."""


def few_rows(spec: LoopSpec, document: dict[str, Any], steps: int) -> None:
    """Make every size of the loop small, those that phases and triggers set as well."""
    for name, node in document["nodes"].items():
        _say_defaults(spec, name, node)
        _shrink(node, "")
    for values in _settings(document["schedule"]):
        for path in values:
            values[path] = small(re.sub(r"^nodes\.\w+\.", "", path), values[path])
    for node in document["nodes"].values():
        if node["kind"] == "evaluate" and (node.get("instead_of") or node.get("of")):
            node["every"] = _every(document["schedule"], steps)
        if "clear" in node:
            node["clear"]["every"] = min(node["clear"]["every"], steps)


def small(path: str, value: Any) -> Any:
    """The value of a field below a node in a rehearsal."""
    for pattern, shrink in SIZES:
        if re.fullmatch(pattern, path):
            return shrink(value)
    return value


def _say_defaults(spec: LoopSpec, name: str, node: dict[str, Any]) -> None:
    """Write out what silence would make large."""
    if "rollout" in node or node["kind"] == "actor":
        node.setdefault("rollout", {}).setdefault("max_new_tokens", TOKENS)
    if node["kind"] == "dataset":
        targets = {edge.target.port for edge in spec.graph.edges_out_of(name, "rows")}
        if not targets or targets - WHOLE_TABLES:
            node.setdefault("rows_per_step", ROWS)


def _shrink(value: Any, path: str) -> None:
    """Every number below this one, in its place."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        below = f"{path}.{key}" if path else str(key)
        value[key] = small(below, item)
        if isinstance(item, dict | list):
            _shrink(item, below)


def _settings(part: Any) -> Iterator[MutableMapping[str, Any]]:
    """Every `set` of phases, groups and triggers."""
    for item in [*part.get("phases", ()), *part.get("triggers", ())]:
        for holder in (item, item.get("do") or {}):
            if "set" in holder:
                yield holder["set"]
        yield from _settings(item)


def _every(schedule: dict[str, Any], steps: int) -> int:
    """So seldom that a probe is read when the rehearsal begins and when it ends."""
    return steps * max(1, _phases(schedule.get("phases", ())))


def _phases(items: Any) -> int:
    return sum(_phases(item["phases"]) if "phases" in item else 1 for item in items)
