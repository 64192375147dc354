"""The base folder for a run's relative paths. It is stored in the run folder, so that the run can
be resumed from any working directory."""

import json
from pathlib import Path

from coloop.data.files.marks import write_whole
from coloop.errors import RunNotFound

ORIGIN_FILE = "origin.json"


def write_base_folder(folder: Path, root: Path) -> None:
    """Store the base folder of the loop's relative paths in a run folder."""
    text = json.dumps({"root": str(root.resolve())})
    write_whole(folder / ORIGIN_FILE, text)


def read_base_folder(folder: Path) -> Path:
    """The folder from which the run's relative paths are read, as it was when the run began.

    Raises:
        RunNotFound: the stored base folder cannot be read.
    """
    origin = folder / ORIGIN_FILE
    if not origin.exists():
        return Path()
    try:
        return Path(json.loads(origin.read_text(encoding="utf-8"))["root"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RunNotFound(
            f"{origin} is damaged: it does not say where the loop's relative paths start; set it "
            "with --root"
        ) from error
