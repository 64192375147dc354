"""Decides when a checkpoint is written, and which one a run resumes from.

A checkpoint belongs to a step. Changes at a step after its checkpoint was written (a new phase, a
trigger's actions, an edit) are noted, so that a stop writes it again.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coloop.errors import CheckpointError
from coloop.runtime.checkpoints.checkpoint import SET_ASIDE, Checkpoint, Checkpoints, Save
from coloop.runtime.run_files.event_file import EVENT_FILE, events_of
from coloop.runtime.run_files.events import CheckpointEvent
from coloop.runtime.run_files.recorder import Recorder

State = Callable[[], Mapping[str, Any]]

SECONDS_BETWEEN = 600.0
"""Longest work, besides a step, that a crash loses without `run.checkpoint_every`."""


@dataclass(eq=False)
class CheckpointManager:
    checkpoints: Checkpoints
    save: Save
    recorder: Recorder
    state: State
    """Returns all that a resume needs now besides the weights."""
    clock: Callable[[], float] = time.monotonic
    _written_step: int | None = field(default=None, init=False)
    _is_changed: bool = field(default=True, init=False)
    _best: dict[str, float | None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._written_at = self.clock()

    @property
    def has_best(self) -> bool:
        """Whether this step is the best so far and has no checkpoint yet."""
        return self._best is not None

    def is_due(self, step: int, every: int | None) -> bool:
        """Whether a checkpoint is due after this step: at every `every` steps, or without it, if
        the last one is ten minutes old."""
        if every is None:
            return step > 0 and self.clock() - self._written_at >= SECONDS_BETWEEN
        return step > 0 and step % every == 0

    def note_best(self, readings: Mapping[str, float]) -> None:
        self._best = dict(readings)

    def note_change(self) -> None:
        self._is_changed = True

    def note_resumed(self, step: int) -> None:
        self._written_step, self._is_changed = step, False

    def write(self, step: int, *, once: bool = False) -> None:
        """Write a checkpoint, unless that of this step has all changes and this step is no new
        best. With `once`, changes do not count."""
        is_changed = self._is_changed and not once
        if self._written_step == step and not is_changed and not self.has_best:
            return
        best = self._best
        path = self.checkpoints.write(step, self.state(), self.save, best=best is not None)
        self._written_step, self._is_changed, self._best = step, False, None
        self._written_at = self.clock()
        self.recorder.record(
            CheckpointEvent(
                path=str(path.relative_to(self.recorder.folder)),
                best=best is not None,
                step=step,
                metrics=dict(best or {}),
            )
        )


def pick_up(
    checkpoints: Checkpoints, folder: Path, step: int | None, tell: Callable[[str], None]
) -> Checkpoint | None:
    """The checkpoint to resume from; None: the beginning, as none was ever written.

    Args:
        step: of the checkpoint to use; None: the newest whole one, of the folder or the storage.
        tell: called for each one that is left out, with what is wrong.

    Raises:
        CheckpointError: that of the step is not whole, or some were written and none is whole.
    """
    if step is not None:
        return checkpoints.chosen(step)
    checkpoints.bring_back()
    newest, problems = checkpoints.newest_whole()
    last = last_written(folder)
    if newest is None:
        if problems or last is not None:
            why = "; ".join(problems) or f"one of step {last} was written but is missing"
            raise CheckpointError(
                f"no checkpoint of the run is intact: {why}; restore one to {folder}/checkpoints, "
                "or start a new run"
            )
        return None
    if last is not None and last > newest.step and not problems:
        problems = [f"the checkpoint of step {last} was written but is missing"]
    for problem in problems:
        tell(f"{problem}; the run resumes from the checkpoint of step {newest.step}")
    return newest


def last_written(folder: Path) -> int | None:
    """Step of the last checkpoint in the events, unless it was set aside; None if there is none."""
    last = None
    for event in events_of(folder / EVENT_FILE):
        if event["type"] == "checkpoint":
            step = re.search(r"step-(\d+)$", str(event.get("path")))
            last = int(step[1]) if step else last
    is_aside = (folder / "checkpoints" / f"step-{last}{SET_ASIDE}").exists()
    return None if is_aside else last
