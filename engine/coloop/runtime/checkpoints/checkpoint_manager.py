"""When the state of a run goes to disk, and that nothing of it is written twice or lost.

A checkpoint belongs to a step. What changes at a step after its checkpoint was written (a phase
that began, a trigger that was obeyed, an edit) is noted, so that a stop writes it again whole.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coloop.errors import CheckpointError
from coloop.runtime.checkpoints.checkpoint import SET_ASIDE, Checkpoint, Checkpoints, Saver
from coloop.runtime.run_files.event_file import EVENT_FILE, lines_of
from coloop.runtime.run_files.events import CheckpointEvent
from coloop.runtime.run_files.recorder import Recorder

State = Callable[[], Mapping[str, Any]]

SECONDS_BETWEEN = 600.0
"""Work that a crash costs at most, and a step, where `run.checkpoint_every` says nothing."""


@dataclass(eq=False)
class CheckpointManager:
    """The checkpoints of a run at work."""

    checkpoints: Checkpoints
    saver: Saver
    recorder: Recorder
    state: State
    """All that a resume needs besides the weights, as it is at this moment."""
    clock: Callable[[], float] = time.monotonic
    """Seconds that only grow."""
    _written_step: int | None = field(default=None, init=False)
    _is_changed: bool = field(default=True, init=False)
    _best: dict[str, float | None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._written_at = self.clock()

    @property
    def has_best(self) -> bool:
        """Whether the run is at its best and no checkpoint says so yet."""
        return self._best is not None

    def is_due(self, step: int, every: int | None) -> bool:
        """Whether a checkpoint is to be written after this step: after every so many, or where
        nobody says how often after ten minutes."""
        if every is not None:
            return step > 0 and step % every == 0
        return step > 0 and self.clock() - self._written_at >= SECONDS_BETWEEN

    def note_best(self, readings: Mapping[str, float]) -> None:
        """By these readings the run is at its best: the next checkpoint says so."""
        self._best = dict(readings)

    def note_change(self) -> None:
        """Something that a resume needs is no longer as the last checkpoint has it."""
        self._is_changed = True

    def note_resumed(self, step: int) -> None:
        """The run stands where the checkpoint of this step stands."""
        self._written_step, self._is_changed = step, False

    def write_once(self, step: int) -> None:
        """A checkpoint of this step, unless there is one."""
        if self._written_step != step or self.has_best:
            self._write(step)

    def write_changes(self, step: int) -> None:
        """A checkpoint with everything that a resume needs, unless the last one has it."""
        if self._written_step != step or self._is_changed or self.has_best:
            self._write(step)

    def _write(self, step: int) -> None:
        best = self._best
        path = self.checkpoints.write(step, self.state(), self.saver, best=best is not None)
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


# From which checkpoint a run goes on, and what a person has to know of the others.
#
# newest whole one, of the folder or the storage    those that are newer and damaged are told
# none, though the events tell of some               an error: nothing begins anew by itself none,
# and none was ever written                    the beginning


def pick_up(
    checkpoints: Checkpoints, folder: Path, step: int | None, tell: Callable[[str], None]
) -> Checkpoint | None:
    """The checkpoint to resume from; None: start from scratch.

    Args:
        step: whose checkpoint is asked for; None: the newest.
        tell: told of each that is left out, with the file and what is wrong.

    Raises:
        CheckpointError: the one that is asked for is not whole, or there were some and none is.
    """
    if step is not None:
        return checkpoints.chosen(step)
    checkpoints.bring_back()
    found, problems = checkpoints.newest_whole()
    last = last_written(folder)
    if found is None and (problems or last is not None):
        told = f"one of step {last} was written but is missing" if last is not None else ""
        raise CheckpointError(
            f"no checkpoint of the run is intact: {'; '.join(problems) or told}; restore one to "
            f"{folder}/checkpoints, or start a new run"
        )
    going_on = f"; the run resumes from the checkpoint of step {found.step}" if found else ""
    for problem in problems:
        tell(f"{problem}{going_on}")
    if found is not None and last is not None and last > found.step and not problems:
        tell(f"the checkpoint of step {last} was written but is missing{going_on}")
    return found


def last_written(folder: Path) -> int | None:
    """Step of the checkpoint of which the events tell last, unless it was set aside; None: of
    none."""
    last = None
    for _, event in lines_of(folder / EVENT_FILE):
        if event is not None and event["type"] == "checkpoint":
            found = re.search(r"step-(\d+)$", str(event.get("path")))
            last = int(found[1]) if found else last
    is_aside = (folder / "checkpoints" / f"step-{last}{SET_ASIDE}").exists()
    return None if is_aside else last
