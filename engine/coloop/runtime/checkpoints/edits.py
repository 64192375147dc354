"""Edits that the checkpoint has not, with which a run goes on after its driver was killed: a person
has been told that they hold, so each is made again at the step at which it was made.

    checkpoint of step 5 ── edit at step 7 ── killed ──> 5 ── 6 ── 7 ── the same edit ── 8
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coloop.runtime.run_files.event_file import EVENT_FILE, lines_of
from coloop.runtime.run_files.events import EditRequest

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
        elif event.get("code") == LEFT_OUT or _is_written(event, step):
            found.clear()
    return sorted((edit for edit in found if edit.step >= step), key=lambda edit: edit.step)


def answered(folder: Path) -> int:
    """How many edits were asked for of which the events tell whether they were made."""
    events = (event for _, event in lines_of(folder / EVENT_FILE) if event is not None)
    return sum(one["type"] == "edit" or one.get("code") == REFUSED for one in events)


def _is_written(event: Mapping[str, Any], step: int) -> bool:
    """Whether a checkpoint of this step was written here."""
    return event["type"] == "checkpoint" and event.get("step") == step
