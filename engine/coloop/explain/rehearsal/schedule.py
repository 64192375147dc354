"""When what happens in a rehearsal: every phase once, a few steps each."""

from collections.abc import Iterable, Iterator
from typing import Any

ENDS = ("next_phase", "stop")
FILLING = 4
"""A phase that ends when a buffer is full takes at most so many times the steps of another."""


def short_schedule(document: dict[str, Any], steps: int) -> None:
    """Cut the schedule to every phase once, of at most so many steps."""
    schedule = document["schedule"]
    for field in ("steps", "epochs"):
        if schedule.pop(field, None) is not None:
            schedule["steps"] = steps
    for item in schedule.get("phases", ()):
        _cut(item, steps)
    for rule in schedule.get("learn", {}).values():
        _hurry(rule, steps)
    if "triggers" in schedule:
        schedule["triggers"] = [*_without_ends(schedule["triggers"])]
    for anneal in schedule.get("anneal", ()):
        for field in ("steps", "cycle"):
            if field in anneal:
                anneal[field] = min(anneal[field], steps)


def _cut(item: dict[str, Any], steps: int) -> None:
    if "phases" in item:
        item["repeat"] = 1
        for inner in item["phases"]:
            _cut(inner, steps)
    elif "steps" in item:
        item["steps"] = min(item["steps"], steps)
    else:
        most = steps * FILLING if "until" in item else steps
        item["max_steps"] = min(item.get("max_steps", most), most)


def _without_ends(triggers: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Triggers that end no phase and no run: a rehearsal goes through all of them."""
    for trigger in triggers:
        does = {key: value for key, value in trigger["do"].items() if key not in ENDS}
        if does:
            yield trigger | {"do": does}


def _hurry(rule: dict[str, Any], steps: int) -> None:
    """A learner that would begin later, or with more rows, learns in a rehearsal as well."""
    for field, most in (("every", 1), ("after", steps - 1), ("updates", 2), ("rows", 4)):
        if rule.get(field) is not None:
            rule[field] = min(rule[field], most)
