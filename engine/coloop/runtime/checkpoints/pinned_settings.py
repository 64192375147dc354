"""Settings that a resumed run keeps from its first plan.

    loop, pools, machine unchanged    the settings of `plan.json`
    one of them has changed           settings decided again, with a notice of what changed

Settings that change results (`begun_in`) are kept in both cases, if the loop leaves them open.
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
from coloop.runtime.run_files.event_file import EVENT_FILE, events_of
from coloop.runtime.run_files.events import EditRequest
from coloop.spec.dtypes import DTYPE_BYTES
from coloop.workers.settings import gpus_here

PLAN_FILE = "plan.json"
MACHINE_FILE = "machine.json"
DECIDED_ANEW = "plan.decided_anew"

Machine = Mapping[str, int]


def begun_in(folder: Path | None) -> Begun | None:
    """What a run began with, in a plan of any version; None if there is no readable plan."""
    if folder is None:
        return None
    try:
        plan = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
        dtypes = [(str(group["name"]), group["dtypes"]["compute"]) for group in plan["weights"]]
        workers = max(1, int(plan["pools"][0]["workers"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    known = tuple((name, dtype) for name, dtype in dtypes if dtype in DTYPE_BYTES)
    return Begun(dtypes=known, workers=workers)


def keep_plan(folder: Path, fresh: Plan) -> tuple[Plan, str | None]:
    """Write the plan and the machine into a run's folder.

    Args:
        fresh: the loop compiled now.

    Returns: the plan to use, and a notice if its settings differ from those the run began with.
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
        changed = [f"{PLAN_FILE} is damaged, or was written by another version"]
        changed = changed if path.exists() else []
    write_whole(path, fresh.model_dump_json(indent=1))
    write_whole(folder / MACHINE_FILE, json.dumps(here))
    others = list(_differences(kept.weights, fresh.weights)) if kept is not None else []
    if not changed or (kept is not None and not others):
        return fresh, None
    now = f"; now {', '.join(others)}" if others else ""
    return fresh, (
        f"settings that the loop leaves open are decided again, because {'; '.join(changed)}{now}"
    )


def _changes(kept: Plan, fresh: Plan, then: Machine | None, now: Machine) -> Iterator[str]:
    """What the settings depend on and has changed, in words."""
    if kept.spec_hash != fresh.spec_hash:
        yield "the loop has changed"
    yield from _pool_changes(kept.pools, fresh.pools)
    known = then or {}
    words = [
        f"{_with_unit(name, known[name])} then, {_with_unit(name, value)} now"
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
    """The settings of weights by path, without their reasons."""
    flat = _flat(weights.model_dump(mode="json"))
    return {path: value for path, value in flat.items() if path.rpartition(".")[2] != "reason"}


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, list):
        value = {str(index): item for index, item in enumerate(value)}
    if not isinstance(value, dict):
        return {path: value}
    flat: dict[str, Any] = {}
    for name, part in value.items():
        flat |= _flat(part, f"{path}.{name}" if path else name)
    return flat


def _machine_here() -> dict[str, int]:
    processor = processor_here()
    return {
        "cores": processor.cores,
        "bfloat16": int(processor.has_bf16),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "gpus": gpus_here(),
    }


def _with_unit(name: str, value: int) -> str:
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
        machine = json.loads((folder / MACHINE_FILE).read_text(encoding="utf-8"))
        return {name: int(machine[name]) for name in _machine_here() if name in machine}
    except (OSError, ValueError, TypeError):
        return None


# Confirmed edits that the checkpoint lacks are applied again, at the step of the first time.
#
#     checkpoint of step 5 ── edit at step 7 ── killed ──> 5 ── 6 ── 7 ── the same edit ── 8

REFUSED = "control.edit_refused"
"""Alert: an edit that does not fit the loop."""
LEFT_OUT = "edit.left_out"
"""Alert: the run resumes from a checkpoint before these edits, by request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Changed values, and the step after which they were changed."""

    step: int
    request: EditRequest

    @property
    def words(self) -> str:
        changes = ", ".join(f"{path} = {value}" for path, value in self.request.changes.items())
        return f"the edit of step {self.step} ({changes})"


def edits_since(folder: Path, step: int) -> list[Edit]:
    """Edits in the events that the checkpoint of this step lacks, in order; 0: the beginning of the
    run."""
    edits: list[Edit] = []
    for event in events_of(folder / EVENT_FILE):
        is_checkpoint = event["type"] == "checkpoint" and event.get("step") == step
        if event["type"] == "edit":
            request = EditRequest(changes=event["changes"], by=event.get("by", "user"))
            edits.append(Edit(step=event.get("step") or 0, request=request))
        elif event.get("code") == LEFT_OUT or is_checkpoint:
            edits.clear()
    return sorted((edit for edit in edits if edit.step >= step), key=lambda edit: edit.step)


def answered(folder: Path) -> int:
    """How many edit requests were applied or refused, according to the events."""
    events = events_of(folder / EVENT_FILE)
    return sum(event["type"] == "edit" or event.get("code") == REFUSED for event in events)
