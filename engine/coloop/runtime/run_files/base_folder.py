"""Where the relative paths of a run begin. Kept in its folder, so that it can be gone on with from
anywhere."""

import json
from pathlib import Path

from coloop.data.files.marks import write_whole
from coloop.errors import RunNotFound

ORIGIN_FILE = "origin.json"


def write_origin(folder: Path, root: Path) -> None:
    """Note in a run folder from where the loop's relative paths are read."""
    text = json.dumps({"root": str(root.resolve())})
    write_whole(folder / ORIGIN_FILE, text)


def read_origin(folder: Path) -> Path:
    """The folder from which the run's relative paths are read, as it was when the run began.

    Raises:
        RunNotFound: what was noted cannot be read.
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
