"""From which checkpoint a run goes on, and what a person has to know of the others.

newest whole one, of the folder or the storage    those that are newer and damaged are told
none, though the events tell of some               an error: nothing begins anew by itself
none, and none was ever written                    the beginning
"""

import re
from collections.abc import Callable
from pathlib import Path

from coloop.errors import CheckpointError
from coloop.runtime.checkpoints.checkpoint import SET_ASIDE, Checkpoint, Checkpoints
from coloop.runtime.run_files.event_file import EVENT_FILE, lines_of


def pick_up(
    checkpoints: Checkpoints, folder: Path, step: int | None, tell: Callable[[str], None]
) -> Checkpoint | None:
    """The checkpoint to go on from; None: the beginning.

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
        told = f"one of step {last} was written and is not there" if last is not None else ""
        raise CheckpointError(
            f"no checkpoint of the run is whole: {'; '.join(problems) or told}; bring one back to "
            f"{folder}/checkpoints, or start a new run"
        )
    going_on = f"; the run goes on from the checkpoint of step {found.step}" if found else ""
    for problem in problems:
        tell(f"{problem}{going_on}")
    if found is not None and last is not None and last > found.step and not problems:
        tell(f"the checkpoint of step {last} was written and is not there{going_on}")
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
