"""What a run keeps of the plan that it began with: whoever goes on with it learns and writes with
the settings that were decided then, unless what they rest on has changed.

    loop, pools, machine as they were    the settings of `plan.json`
    one of them has changed              settings decided anew, and a person is told what changed

What its results rest on (`begun_in`) holds on in either case, where the loop leaves it open.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coloop.data.files.marks import write_whole
from coloop.plan.settings.processor import Begun, processor_here
from coloop.plan.types import Plan, PoolPlan, WeightsPlan
from coloop.runtime.run_files.event_file import EVENT_FILE, lines_of
from coloop.runtime.run_files.events import EditRequest
from coloop.spec.dtypes import DTYPE_BYTES
from coloop.workers.settings import gpus_here

PLAN_FILE = "plan.json"
MACHINE_FILE = "machine.json"
DECIDED_ANEW = "plan.decided_anew"
"""Code of the alert."""

Machine = Mapping[str, int]


def begun_in(folder: Path | None) -> Begun | None:
    """What a run began with, as its folder tells it, be its plan of another version; None where
    there is no run yet, or nothing can be read of its plan."""
    if folder is None:
        return None
    try:
        plan = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
        dtypes = [(str(one["name"]), one["dtypes"]["compute"]) for one in plan["weights"]]
        workers = max(1, int(plan["pools"][0]["workers"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    known = tuple(one for one in dtypes if one[1] in DTYPE_BYTES)
    return Begun(dtypes=known, workers=workers)


def keep_plan(folder: Path, fresh: Plan) -> tuple[Plan, str | None]:
    """The plan of a run in its folder, which has it and the machine written down from here on.

    Args:
        fresh: as the loop is compiled now.

    Returns: the plan to run by; and what a person should know where its settings are others than
        those with which the run began.
    """
    here, path = _machine_here(), folder / PLAN_FILE
    kept = _read_plan(path)
    if kept is not None:
        changed = list(_changes(kept, fresh, _read_machine(folder), here))
        if not changed:
            write_whole(folder / MACHINE_FILE, json.dumps(here))
            settled = {name: getattr(kept, name) for name in ("weights", "decisions", "explain")}
            return fresh.model_copy(update=settled), None
    else:
        changed = (
            [(f"{PLAN_FILE} is damaged, or was written by another version")]
            if path.exists()
            else []
        )
    write_whole(folder / PLAN_FILE, fresh.model_dump_json(indent=1))
    write_whole(folder / MACHINE_FILE, json.dumps(here))
    others = list(_differences(kept.weights, fresh.weights)) if kept is not None else []
    if not changed or (kept is not None and not others):
        return fresh, None
    now = f"; now {', '.join(others)}" if others else ""
    return fresh, (
        f"settings that the loop leaves open are decided again, because {'; '.join(changed)}{now}"
    )


def _changes(kept: Plan, fresh: Plan, then: Machine | None, now: Machine) -> Iterator[str]:
    """What the settings rest on and is not as it was, in words."""
    if kept.spec_hash != fresh.spec_hash:
        yield "the loop has changed"
    yield from _pool_changes(kept.pools, fresh.pools)
    known = then or {}
    words = [
        f"{_told(name, known[name])} then, {_told(name, value)} now"
        for name, value in now.items()
        if known.get(name, value) != value
    ]
    if words:
        yield f"the machine has changed ({', '.join(words)})"


def _pool_changes(kept: tuple[PoolPlan, ...], fresh: tuple[PoolPlan, ...]) -> Iterator[str]:
    then = {pool.name: pool for pool in kept}
    now = {pool.name: pool for pool in fresh}
    if then.keys() != now.keys():
        yield f"the pools have changed ({', '.join(then)} then, {', '.join(now)} now)"
        return
    for name, pool in now.items():
        if (then[name].workers, then[name].gpus) != (pool.workers, pool.gpus):
            sizes = f"{then[name].workers} processes then, {pool.workers} now"
            yield f"the pool {name} has changed ({sizes})"


def _differences(kept: tuple[WeightsPlan, ...], fresh: tuple[WeightsPlan, ...]) -> Iterator[str]:
    then = {weights.name: _settings(weights) for weights in kept}
    for weights in fresh:
        before = then.get(weights.name, {})
        for path, value in _settings(weights).items():
            if path in before and before[path] != value:
                yield f"{weights.name}: {path} {value} (was {before[path]})"


def _settings(weights: WeightsPlan) -> dict[str, Any]:
    """What is decided of weights, by its path; why is no part of it."""
    found = _flat(weights.model_dump(mode="json"))
    return {path: value for path, value in found.items() if path.rpartition(".")[2] != "reason"}


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, list):
        value = {str(place): one for place, one in enumerate(value)}
    if not isinstance(value, dict):
        return {path: value}
    found: dict[str, Any] = {}
    for name, one in value.items():
        found |= _flat(one, f"{path}.{name}" if path else name)
    return found


def _machine_here() -> dict[str, int]:
    processor = processor_here()
    return {
        "cores": processor.cores,
        "bfloat16": int(processor.has_bf16),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "gpus": gpus_here(),
    }


def _told(name: str, value: int) -> str:
    if name == "bfloat16":
        return f"{'with' if value else 'without'} products in bfloat16"
    units = {"memory_gib": "GiB", "gpus": "GPUs"}
    return f"{value} {units.get(name, name)}"


def _read_plan(path: Path) -> Plan | None:
    try:
        return Plan.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _read_machine(folder: Path) -> Machine | None:
    try:
        found = json.loads((folder / MACHINE_FILE).read_text(encoding="utf-8"))
        return {name: int(found[name]) for name in _machine_here() if name in found}
    except (OSError, ValueError, TypeError):
        return None


# Edits that the checkpoint has not, with which a run goes on after its driver was killed: a
# person has been told that they hold, so each is made again at the step at which it was made.
#
#     checkpoint of step 5 ── edit at step 7 ── killed ──> 5 ── 6 ── 7 ── the same edit ── 8

REFUSED = "control.edit_refused"
"""Alert: an edit that does not fit the loop."""
LEFT_OUT = "edit.left_out"
"""Alert: a person went back to an earlier checkpoint, and so before these edits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What was changed, and after which step."""

    step: int
    request: EditRequest

    @property
    def words(self) -> str:
        changes = ", ".join(f"{path} = {value}" for path, value in self.request.changes.items())
        return f"the edit of step {self.step} ({changes})"


def edits_since(folder: Path, step: int) -> list[Edit]:
    """What the events tell of edits that the checkpoint of this step has not, in the order of their
    steps; 0: the beginning of the run."""
    found: list[Edit] = []
    for _, event in lines_of(folder / EVENT_FILE):
        if event is None:
            continue
        if event["type"] == "edit":
            request = EditRequest(changes=event["changes"], by=event.get("by", "user"))
            found.append(Edit(step=event.get("step") or 0, request=request))
        elif event.get("code") == LEFT_OUT or (
            event["type"] == "checkpoint" and event.get("step") == step
        ):
            found.clear()
    return sorted((edit for edit in found if edit.step >= step), key=lambda edit: edit.step)


def answered(folder: Path) -> int:
    """How many edits were asked for of which the events tell whether they were made."""
    events = (event for _, event in lines_of(folder / EVENT_FILE) if event is not None)
    return sum(one["type"] == "edit" or one.get("code") == REFUSED for one in events)
